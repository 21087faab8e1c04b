//! How much of the CPUs the recorder takes for itself.

/// Nice value while it gives way: a seventieth of the weight of an ordinary thread.
const POLITE: i32 = 19;

/// Gives way to what is recorded. Threads made from now on give way, too.
pub fn yield_to_others() {
    set_nice(POLITE);
}

/// Takes an ordinary share, as every other program.
pub fn take_share() {
    set_nice(0);
}

fn set_nice(value: i32) {
    // SAFETY: changes the calling thread's priority (on Linux, `0` is the thread) and touches no memory. A refusal (no
    // right to raise it again) leaves it as it is.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, value) };
}
