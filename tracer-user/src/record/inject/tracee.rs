//! One thread under `ptrace(2)`.
//!
//! Seized, not attached: the thread gets no signal from it, and if this program dies the kernel lets the thread go on
//! from where it is.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr;
use std::time::{Duration, Instant};

use super::arch::Registers;
use super::seccomp::Instruction;
use crate::event::{Pid, Tid};

/// `NT_PRSTATUS`, `NT_PRFPREG`, `NT_X86_XSTATE` (`include/uapi/linux/elf.h`).
const PRSTATUS: libc::c_int = 1;
const PRFPREG: libc::c_int = 2;
const XSTATE: libc::c_int = 0x202;
/// `PTRACE_SECCOMP_GET_FILTER` (4.4), `PTRACE_GETSIGMASK`, `PTRACE_SETSIGMASK` (3.11).
const SECCOMP_GET_FILTER: libc::c_uint = 0x420c;
const GETSIGMASK: libc::c_uint = 0x420a;
const SETSIGMASK: libc::c_uint = 0x420b;
/// Bytes of the kernel's signal set.
const MASK_BYTES: usize = 8;
/// Most bytes of extended registers.
const MOST_STATE_BYTES: usize = 64 << 10;
/// Filters, and instructions of one (`BPF_MAXINSNS`), that are read.
const MOST_FILTERS: usize = 256;
const MOST_INSTRUCTIONS: usize = 4096;

/// Why the thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// We asked for it, or its process was stopped.
    Event,
    /// It enters a system call.
    CallEntry {
        /// Its number.
        number: u64,
        /// The instruction after the call.
        ip: u64,
    },
    /// It leaves a system call.
    CallExit {
        /// The instruction after the call.
        ip: u64,
        /// What it returned.
        result: i64,
    },
    /// A signal is to be delivered.
    Signal(i32),
    /// It ended.
    Ended,
}

/// A thread that we trace. Let go when dropped, wherever it is.
pub struct Tracee {
    tid: Tid,
    memory: File,
    ended: bool,
    stopped: bool,
}

/// Registers beyond the general ones, and which kind they are.
pub struct State {
    kind: libc::c_int,
    bytes: Vec<u8>,
}

impl Tracee {
    /// Begins to trace a thread. It runs on.
    pub fn seize(pid: Pid, tid: Tid) -> io::Result<Self> {
        let memory = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
        let tracee = Self { tid, memory, ended: false, stopped: false };
        tracee.ask(libc::PTRACE_SEIZE, ptr::null_mut(), libc::PTRACE_O_TRACESYSGOOD as *mut _)?;
        Ok(tracee)
    }

    /// The thread.
    pub fn tid(&self) -> Tid {
        self.tid
    }

    /// Stops it. What it was stopped by.
    pub fn interrupt(&mut self, patience: Duration) -> io::Result<Option<Stop>> {
        self.ask(libc::PTRACE_INTERRUPT, ptr::null_mut(), ptr::null_mut())?;
        self.wait(patience)
    }

    /// Asks it to stop as soon as it can; it is stopped already, so that is on its way out of the kernel.
    pub fn ask_to_stop(&self) -> io::Result<()> {
        self.ask(libc::PTRACE_INTERRUPT, ptr::null_mut(), ptr::null_mut())
    }

    /// Lets it run to the next system call, with a signal.
    pub fn go_on(&mut self, signal: i32) -> io::Result<()> {
        self.stopped = false;
        self.ask(libc::PTRACE_SYSCALL, ptr::null_mut(), signal as usize as *mut _)
    }

    /// Waits until it stops; `None`: it has not within that time.
    pub fn wait(&mut self, patience: Duration) -> io::Result<Option<Stop>> {
        let deadline = Instant::now() + patience;
        let mut pause = Duration::from_micros(20);
        loop {
            let mut status = 0;
            // SAFETY: a number to fill.
            let got = unsafe { libc::waitpid(self.tid.0, &raw mut status, libc::__WALL | libc::WNOHANG) };
            if got == self.tid.0 {
                return self.classify(status).map(Some);
            }
            if got < 0 {
                let error = io::Error::last_os_error();
                if error.raw_os_error() != Some(libc::EINTR) {
                    return Err(error);
                }
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }

    fn classify(&mut self, status: libc::c_int) -> io::Result<Stop> {
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            self.ended = true;
            return Ok(Stop::Ended);
        }
        self.stopped = true;
        let signal = libc::WSTOPSIG(status);
        if status >> 16 == libc::PTRACE_EVENT_STOP {
            return Ok(Stop::Event);
        }
        if signal != libc::SIGTRAP | 0x80 {
            return Ok(Stop::Signal(signal));
        }
        // SAFETY: a structure of integers; the kernel fills it and is told its size.
        let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::ptrace_syscall_info>() as *mut libc::c_void;
        self.ask(libc::PTRACE_GET_SYSCALL_INFO, size, (&raw mut info).cast())?;
        let ip = info.instruction_pointer;
        Ok(match info.op {
            // SAFETY: `op` says which member is valid.
            libc::PTRACE_SYSCALL_INFO_ENTRY => Stop::CallEntry { number: unsafe { info.u.entry.nr }, ip },
            // SAFETY: as above.
            libc::PTRACE_SYSCALL_INFO_EXIT => Stop::CallExit { ip, result: unsafe { info.u.exit.sval } },
            _ => Stop::Event,
        })
    }

    /// Its general registers.
    pub fn registers(&self) -> io::Result<Registers> {
        let mut registers = Registers::default();
        let bytes = registers.bytes_mut();
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        self.ask(libc::PTRACE_GETREGSET, PRSTATUS as usize as *mut _, (&raw mut part).cast())?;
        Ok(registers)
    }

    /// Changes them.
    pub fn set_registers(&self, registers: &Registers) -> io::Result<()> {
        let bytes = registers.bytes();
        let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        self.ask(libc::PTRACE_SETREGSET, PRSTATUS as usize as *mut _, (&raw mut part).cast())
    }

    /// Its floating-point and vector registers.
    pub fn state(&self) -> io::Result<State> {
        self.state_of(XSTATE).or_else(|_| self.state_of(PRFPREG))
    }

    fn state_of(&self, kind: libc::c_int) -> io::Result<State> {
        let mut bytes = vec![0; MOST_STATE_BYTES];
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        self.ask(libc::PTRACE_GETREGSET, kind as usize as *mut _, (&raw mut part).cast())?;
        bytes.truncate(part.iov_len);
        Ok(State { kind, bytes })
    }

    /// Puts them back.
    pub fn set_state(&self, state: &State) -> io::Result<()> {
        let mut part =
            libc::iovec { iov_base: state.bytes.as_ptr().cast_mut().cast(), iov_len: state.bytes.len() };
        self.ask(libc::PTRACE_SETREGSET, state.kind as usize as *mut _, (&raw mut part).cast())
    }

    /// The signals that it blocks.
    pub fn signal_mask(&self) -> io::Result<u64> {
        let mut mask = 0_u64;
        self.ask(GETSIGMASK, MASK_BYTES as *mut _, (&raw mut mask).cast())?;
        Ok(mask)
    }

    /// Changes them.
    pub fn set_signal_mask(&self, mut mask: u64) -> io::Result<()> {
        self.ask(SETSIGMASK, MASK_BYTES as *mut _, (&raw mut mask).cast())
    }

    /// Its system-call filters.
    pub fn filters(&self) -> io::Result<Vec<Vec<Instruction>>> {
        let mut filters = Vec::new();
        for index in 0..MOST_FILTERS {
            // The kernel tells the length, and copies if there is a place.
            let length = match self.count(SECCOMP_GET_FILTER, index as *mut _, ptr::null_mut()) {
                Ok(length) => length,
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(filters),
                Err(error) => return Err(error),
            };
            let mut filter = vec![Instruction::default(); length.min(MOST_INSTRUCTIONS)];
            if length > filter.len() {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            self.count(SECCOMP_GET_FILTER, index as *mut _, filter.as_mut_ptr().cast())?;
            filters.push(filter);
        }
        Err(io::ErrorKind::FileTooLarge.into())
    }

    /// Reads its process's memory.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.memory.read_exact_at(bytes, address)
    }

    /// A word of it.
    pub fn read_word(&self, address: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// A string of it, at most so long; what is no text is escaped.
    pub fn read_text(&self, address: u64, most: usize) -> String {
        let mut text = Vec::new();
        let mut byte = [0];
        while text.len() < most && self.read(address + text.len() as u64, &mut byte).is_ok() && byte[0] != 0 {
            text.push(byte[0]);
        }
        String::from_utf8_lossy(&text).escape_default().to_string()
    }

    /// Writes it, read-only pages too: those of a file become the process's own.
    pub fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, address)
    }

    /// Lets it go, with a signal that was to be delivered.
    pub fn detach(mut self, signal: i32) -> io::Result<()> {
        let result = self.ask(libc::PTRACE_DETACH, ptr::null_mut(), signal as usize as *mut _);
        self.ended = true;
        result
    }

    fn ask(
        &self,
        request: libc::c_uint,
        address: *mut libc::c_void,
        data: *mut libc::c_void,
    ) -> io::Result<()> {
        self.count(request, address, data).map(|_| ())
    }

    fn count(
        &self,
        request: libc::c_uint,
        address: *mut libc::c_void,
        data: *mut libc::c_void,
    ) -> io::Result<usize> {
        // SAFETY: each caller gives what its request reads or writes, alive until the call returns.
        let result = unsafe { libc::ptrace(request, self.tid.0, address, data) };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }
}

impl State {
    /// The part that `fxsave` would write: 512 bytes.
    pub fn legacy(&self) -> &[u8] {
        &self.bytes[..self.bytes.len().min(512)]
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if !self.stopped {
            let _ = self.interrupt(Duration::from_millis(200));
        }
        // Dead, or not stopped even now: the kernel lets it go when we end.
        let _ = self.ask(libc::PTRACE_DETACH, ptr::null_mut(), ptr::null_mut());
    }
}
