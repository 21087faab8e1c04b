//! Brings the shim into a process that runs already.
//!
//! One thread of the process, stopped while it waits in a system call in which the C library holds no lock, is made to
//! load the library and then to go on waiting as if nothing had been. Everything that the thread does meanwhile is in a
//! few instructions that need nobody: they map scratch memory, make a memfd, load it, call its entry, free the memory and
//! return by a signal frame that was laid ready. So the process lives on whenever gtrace is killed:
//!
//! - before the thread's registers are changed, nothing has happened to it; the start-up code of the program, which has
//!   run once and never will again, may hold other instructions;
//! - after that the thread goes through to the end by itself. Without the library's bytes, which gtrace writes when the
//!   memfd is made, loading fails and the rest is cleaned up.
//!
//! With gtrace alive the last step is not taken by the signal frame: the thread is stopped there and gets back its
//! registers, vector registers and signal mask exactly, and the kernel makes the system call again in which it waited, with
//! what remains of its time.

mod arch;
mod calls;
mod driver;
pub(in crate::record) mod elf;
mod fault;
mod refusal;
mod scratch;
mod seccomp;
pub(in crate::record) mod target;
mod tracee;

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

pub use calls::{Calls, FUNCTIONS, Role};
pub use driver::{Client, Cupti, Driver, is_inherited};
pub use refusal::Refusal;

use crate::event::{Pid, Tid};
use arch::Registers;
use scratch::Plan;
use target::Addresses;
use tracee::{State, Stop, Tracee};

/// How long a thread is looked for that can be used.
const SAFE_POINT_WITHIN: Duration = Duration::from_secs(5);
/// From when on threads are used that wait for a futex.
const LAST_RESORT_AFTER: Duration = Duration::from_secs(1);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a thread may take to stop.
const STOP_WITHIN: Duration = Duration::from_millis(200);
/// How long loading may take.
const LOADED_WITHIN: Duration = Duration::from_secs(10);
/// Bytes of a loader's message.
const MOST_WORDS: usize = 400;
/// All signals.
const ALL_SIGNALS: u64 = u64::MAX;
/// Bytes below the stack pointer that a function may use without saying so (x86-64; none elsewhere).
const RED_ZONE: u64 = 128;
/// Room for the signal frame.
const FRAME_ROOM: u64 = 1024;

/// Brings the library at `shim` into a process. Once it is there it waits for a recorder.
///
/// # Errors
/// The process is as it was.
pub fn inject(pid: Pid, shim: &Path) -> Result<(), Refusal> {
    if !arch::SUPPORTED {
        return Err(Refusal::Processor(arch::NAME));
    }
    let library = std::fs::read(shim)
        .map_err(|source| Refusal::ShimUnreadable { path: shim.display().to_string(), source })?;
    let addresses = target::examine(pid)?;
    let began = Instant::now();
    while began.elapsed() < SAFE_POINT_WITHIN {
        let mut threads = target::waiting_threads(pid);
        if threads.is_empty() {
            return Err(Refusal::Ended(pid));
        }
        let patient = began.elapsed() < LAST_RESORT_AFTER;
        threads.retain(|(_, call)| {
            arch::SAFE_CALLS.contains(call) || (!patient && arch::LAST_RESORT_CALLS.contains(call))
        });
        threads.sort_by_key(|(_, call)| {
            arch::SAFE_CALLS.iter().position(|safe| safe == call).unwrap_or(usize::MAX)
        });
        for (tid, _) in threads {
            if let Some(visit) = Visit::begin(pid, tid, &addresses)? {
                return visit.load(&library);
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Err(Refusal::NoSafePoint { pid, seconds: SAFE_POINT_WITHIN.as_secs() })
}

/// A thread that was stopped where it can be used, and what it has to get back.
struct Visit<'a> {
    pid: Pid,
    tracee: Tracee,
    registers: Registers,
    state: State,
    mask: u64,
    addresses: &'a Addresses,
    frame: u64,
}

impl<'a> Visit<'a> {
    /// Stops a thread. `None`: it is not where it can be used, and goes on.
    fn begin(pid: Pid, tid: Tid, addresses: &'a Addresses) -> Result<Option<Self>, Refusal> {
        let failed = |what| move |source| Refusal::System { pid, what, source };
        let mut tracee = match Tracee::seize(pid, tid) {
            Ok(tracee) => tracee,
            Err(source) if source.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
            Err(source) => return Err(Refusal::NotAllowed { pid, source, hint: hint() }),
        };
        fault::here("seized");
        match tracee.interrupt(STOP_WITHIN).map_err(failed("stopping a thread"))? {
            Some(Stop::Event) => {}
            Some(Stop::Signal(signal)) => {
                tracee.detach(signal).map_err(failed("letting a thread go"))?;
                return Ok(None);
            }
            _ => return Ok(None),
        }
        let registers = tracee.registers().map_err(failed("reading registers"))?;
        let frame = registers.stack().wrapping_sub(RED_ZONE + FRAME_ROOM) & !63;
        let mut call = [0; 2];
        let usable = registers.in_restartable_call()
            && tracee.read(registers.call_instruction(), &mut call).is_ok()
            && arch::is_call_instruction(&call)
            && target::is_writable(pid, frame, registers.stack());
        if !usable {
            return Ok(None);
        }
        check_filters(pid, &tracee)?;
        let state = tracee.state().map_err(failed("reading vector registers"))?;
        let mask = tracee.signal_mask().map_err(failed("reading the signal mask"))?;
        Ok(Some(Self { pid, tracee, registers, state, mask, addresses, frame }))
    }

    /// Lets the thread load the library, and puts everything back.
    fn load(mut self, library: &[u8]) -> Result<(), Refusal> {
        let pid = self.pid;
        let failed = |what| move |source| Refusal::System { pid, what, source };
        let frame = arch::frame(&self.registers, self.state.legacy(), self.mask, self.frame);
        self.tracee.write(self.frame, &frame).map_err(failed("writing to the stack"))?;
        let place = self.addresses.place;
        self.tracee.write(place, &arch::first_code()).map_err(failed("writing instructions"))?;
        fault::here("written");
        let begin = arch::begin(&self.registers, self.addresses, self.frame);
        self.tracee.set_registers(&begin).map_err(failed("changing registers"))?;
        fault::here("entered");
        let outcome = self.follow(library);
        match outcome {
            Ok(outcome) => {
                self.restore().map_err(failed("putting the thread back"))?;
                outcome.judge(pid)
            }
            // The thread is on its way, and finds back alone. The start-up code stays as it is: it may be in it.
            Err(refusal) => Err(refusal),
        }
    }

    /// Follows the thread from call to call until it is about to return by its frame.
    fn follow(&mut self, library: &[u8]) -> Result<Outcome, Refusal> {
        let pid = self.pid;
        let failed = |what| move |source| Refusal::System { pid, what, source };
        self.tracee.set_signal_mask(ALL_SIGNALS).map_err(failed("blocking signals"))?;
        let (mapped, freed, returning) = arch::stops(self.addresses.place);
        let deadline = Instant::now() + LOADED_WITHIN;
        let mut outcome = Outcome::default();
        let mut base = 0;
        let mut signal = 0;
        loop {
            self.tracee.go_on(signal).map_err(failed("letting the thread run"))?;
            signal = 0;
            let left = deadline.saturating_duration_since(Instant::now());
            match self.tracee.wait(left).map_err(failed("waiting for the thread"))? {
                None => {
                    let tid = self.tracee.tid();
                    return Err(Refusal::TooSlow { pid, tid, seconds: LOADED_WITHIN.as_secs() });
                }
                Some(Stop::Ended) => return Err(Refusal::Ended(pid)),
                Some(Stop::CallExit { ip, result }) if ip == mapped => {
                    fault::here("mapped");
                    if (-4095..0).contains(&result) {
                        outcome.reason = Some(format!("no scratch memory: {}", error(result)));
                    } else {
                        base = result as u64;
                        self.fill(base).map_err(failed("writing instructions"))?;
                        fault::here("filled");
                    }
                }
                // The first call that the instructions in the scratch memory make.
                Some(Stop::CallExit { ip, result })
                    if (base..base + scratch::BYTES).contains(&ip) && !outcome.file =>
                {
                    fault::here("memfd");
                    outcome.file = true;
                    match self.write_library(base, result, library) {
                        Ok(()) => fault::here("library"),
                        Err(source) => {
                            outcome.reason = Some(format!("its memfd cannot be written: {source}"));
                        }
                    }
                }
                Some(Stop::CallEntry { ip, .. }) if ip == freed => {
                    fault::here("loaded");
                    self.read_outcome(base, &mut outcome);
                }
                Some(Stop::CallEntry { ip, .. }) if ip == returning => {
                    fault::here("returning");
                    return Ok(outcome);
                }
                // Only what cannot be blocked comes through.
                Some(Stop::Signal(number)) => signal = number,
                Some(_) => {}
            }
        }
    }

    fn fill(&self, base: u64) -> io::Result<()> {
        let plan = Plan {
            base,
            addresses: self.addresses.clone(),
            frame: self.frame,
            tail: arch::tail(self.addresses.place),
            memfd_flags: memfd_flags(),
        };
        self.tracee.write(base, &plan.image())?;
        self.tracee.write(base + u64::from(scratch::GO), &1_u64.to_ne_bytes())
    }

    fn write_library(&self, base: u64, fd: i64, library: &[u8]) -> io::Result<()> {
        if fd < 0 {
            return Err(io::Error::from_raw_os_error((-fd) as i32));
        }
        let link = format!("/proc/{}/fd/{fd}", self.tracee.tid());
        OpenOptions::new().write(true).open(link)?.write_all(library)?;
        self.tracee.write(base + u64::from(scratch::PATH), &scratch::path(fd))
    }

    fn read_outcome(&self, base: u64, outcome: &mut Outcome) {
        let word = |at: u32| self.tracee.read_word(base + u64::from(at)).unwrap_or(0);
        (outcome.handle, outcome.entry) = (word(scratch::HANDLE), word(scratch::ENTRY));
        outcome.result = word(scratch::RESULT);
        let words = word(scratch::ERROR);
        if words != 0 && outcome.reason.is_none() {
            outcome.reason = Some(self.tracee.read_text(words, MOST_WORDS));
        }
    }

    /// The thread stands before its return by the frame: makes that none, and puts it where it was.
    fn restore(mut self) -> io::Result<()> {
        let mut registers = self.tracee.registers()?;
        registers.skip_call();
        self.tracee.set_registers(&registers)?;
        self.tracee.go_on(0)?;
        let ended = || io::Error::from_raw_os_error(libc::ESRCH);
        let mut stop = self.tracee.wait(STOP_WITHIN)?.ok_or_else(ended)?;
        if matches!(stop, Stop::CallExit { .. }) {
            // Registers that say "in a system call that is to be made again" are heeded on the way out of a stop of this
            // kind, and not of a call's exit.
            stop = self.stop_on_the_way_out()?.ok_or_else(ended)?;
        }
        if stop != Stop::Event {
            return Err(ended());
        }
        self.tracee.write(self.addresses.place, &self.addresses.place_bytes)?;
        self.tracee.set_state(&self.state)?;
        self.tracee.set_registers(&self.registers)?;
        self.tracee.set_signal_mask(self.mask)?;
        fault::here("restored");
        self.tracee.detach(0)
    }

    fn stop_on_the_way_out(&mut self) -> io::Result<Option<Stop>> {
        self.tracee.ask_to_stop()?;
        self.tracee.go_on(0)?;
        self.tracee.wait(STOP_WITHIN)
    }
}

/// What came of it.
#[derive(Debug, Default)]
struct Outcome {
    file: bool,
    handle: u64,
    entry: u64,
    result: u64,
    reason: Option<String>,
}

impl Outcome {
    fn judge(self, pid: Pid) -> Result<(), Refusal> {
        if self.handle == 0 || self.entry == 0 {
            let reason = self.reason.unwrap_or_else(|| "it gave no reason".into());
            return Err(Refusal::NotLoaded { pid, reason });
        }
        if self.result as u32 == 0 { Err(Refusal::NotStarted(pid)) } else { Ok(()) }
    }
}

fn error(result: i64) -> io::Error {
    io::Error::from_raw_os_error((-result) as i32)
}

/// Refuses a process whose filters would kill it.
fn check_filters(pid: Pid, tracee: &Tracee) -> Result<(), Refusal> {
    match target::status_field(pid, "Seccomp:").as_deref() {
        // A kernel without filters says nothing. (A process that is gone fails at the next step.)
        None | Some("0") => return Ok(()),
        // Strict: read, write, exit and sigreturn only.
        Some("1") => return Err(Refusal::SeccompKills(pid)),
        _ => {}
    }
    let filters = tracee.filters().map_err(|source| Refusal::SeccompUnreadable(pid, source))?;
    let killed =
        |&number: &u32| filters.iter().any(|filter| !seccomp::survives(filter, number, arch::AUDIT_ARCH));
    if arch::NEEDED_CALLS.iter().any(killed) { Err(Refusal::SeccompKills(pid)) } else { Ok(()) }
}

/// Flags of the memfd that the library comes in. One that is sealed against being executed as a program is given whatever
/// `vm.memfd_noexec` says in the target's pid namespace, and a library is mapped from it all the same: the seal is about the
/// file's mode. Before 6.3 there is no such flag, and no such restriction.
fn memfd_flags() -> u32 {
    // SAFETY: a name; the file is closed at once.
    let fd = unsafe { libc::memfd_create(c"gtrace".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_NOEXEC_SEAL) };
    if fd < 0 {
        return libc::MFD_CLOEXEC;
    }
    // SAFETY: ours.
    unsafe { libc::close(fd) };
    libc::MFD_CLOEXEC | libc::MFD_NOEXEC_SEAL
}

/// What is known about why a thread cannot be traced.
fn hint() -> &'static str {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "3" => " (kernel.yama.ptrace_scope is 3: nobody may trace until the next boot)",
        _ => " (it may be traced by another program, or protected by a security module)",
    }
}
