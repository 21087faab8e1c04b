//! The CPU: staying on one, burning one.

use crate::clock::now_ns;

/// Pins the calling thread to one CPU. A machine that does not have it, or does not allow it, leaves the thread as it is.
pub fn pin(cpu: usize) {
    // SAFETY: an all-zero cpu_set_t is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `CPU_SET` ignores a number beyond the set's size.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is live and its size is given; 0 is the calling thread.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
}

/// The CPU for what is planted: the last one.
#[must_use]
pub fn stage() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get) - 1
}

/// The CPU for what is loud and innocent: the first one.
#[must_use]
pub fn elsewhere() -> usize {
    0
}

/// How often the calling thread was taken off its CPU against its will, by the kernel's own count.
#[must_use]
pub fn involuntary_switches() -> i64 {
    // SAFETY: an all-zero rusage is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable. The call cannot fail with these arguments.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage.ru_nivcsw
}

/// For how long the calling thread has waited for a CPU since it began, in ns, by the kernel's own count; 0 where the
/// kernel does not count.
#[must_use]
pub fn run_delay_ns() -> i64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_ascii_whitespace().nth(1).and_then(|delay| delay.parse().ok()).unwrap_or(0)
}

/// Gives the thread that has just woken this one the time to reach its wait. On a busy machine both may be on one CPU; the
/// waker would then be preempted by what follows, and not wait for it.
pub fn let_them_block() {
    std::thread::sleep(std::time::Duration::from_micros(200));
}

/// Computes in user code for so long by the wall clock: what a decoder does, without its memory traffic.
pub fn burn(nanoseconds: i64) -> u64 {
    let end = now_ns() + nanoseconds;
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    while now_ns() < end {
        state = xorshift(state, 2_000);
    }
    std::hint::black_box(state)
}

/// So many rounds of a pseudo-random generator.
#[must_use]
pub fn xorshift(mut state: u64, rounds: u64) -> u64 {
    for _ in 0..rounds {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}
