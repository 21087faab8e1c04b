//! Which argument of a call says what: descriptor, offset, bytes, what it waits for.

/// What a call works on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operand {
    /// Nothing that has a name.
    #[default]
    None,
    /// The descriptor in this argument.
    Descriptor(u8),
    /// A descriptor that the call itself makes: its result.
    NewDescriptor,
    /// A set of descriptors: which one ended the wait is known only where the kernel side read it.
    DescriptorSet,
    /// The futex word whose address is in this argument.
    FutexWord(u8),
    /// Time itself.
    Sleep,
    /// A process's end (`wait4`, `waitid`).
    Process,
}

/// What the arguments of a call mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meaning {
    /// What it works on.
    pub operand: Operand,
    /// Which argument is the offset in the file.
    pub offset: Option<u8>,
    /// Which argument is the number of bytes asked for.
    pub bytes: Option<u8>,
}

const fn on(operand: Operand) -> Meaning {
    Meaning { operand, offset: None, bytes: None }
}

const fn fd(argument: u8) -> Meaning {
    on(Operand::Descriptor(argument))
}

const fn sized(argument: u8, bytes: u8) -> Meaning {
    Meaning { operand: Operand::Descriptor(argument), offset: None, bytes: Some(bytes) }
}

const fn positioned(argument: u8, bytes: Option<u8>, offset: u8) -> Meaning {
    Meaning { operand: Operand::Descriptor(argument), offset: Some(offset), bytes }
}

/// The meaning of the call of this name. Calls that are not listed have no operand that a wait could be about.
#[must_use]
pub fn meaning(name: &str) -> Meaning {
    match name {
        "read" | "write" | "recvfrom" | "sendto" | "getdents" | "getdents64" | "tee" => sized(0, 2),
        "pread64" | "pwrite64" => positioned(0, Some(2), 3),
        "preadv" | "pwritev" | "preadv2" | "pwritev2" => positioned(0, None, 3),
        "fallocate" => positioned(0, Some(3), 2),
        "sync_file_range" | "fadvise64" | "readahead" => positioned(0, Some(2), 1),
        "ftruncate" => sized(0, 1),
        "lseek" => positioned(0, None, 1),
        // The data is awaited from the input side.
        "sendfile" => sized(1, 3),
        "splice" | "copy_file_range" => sized(0, 4),
        "readv" | "writev" | "recvmsg" | "sendmsg" | "recvmmsg" | "sendmmsg" | "fsync" | "fdatasync"
        | "syncfs" | "connect" | "accept" | "accept4" | "bind" | "listen" | "shutdown" | "ioctl"
        | "fcntl" | "flock" | "fstat" | "close" | "fchmod" | "fchown" | "getsockopt" | "setsockopt"
        | "signalfd4" | "timerfd_settime" | "io_uring_enter" | "inotify_add_watch" | "epoll_ctl"
        | "fstatfs" | "vmsplice" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => fd(0),
        "mmap" => Meaning { operand: Operand::Descriptor(4), offset: Some(5), bytes: Some(1) },
        "open" | "openat" | "openat2" | "creat" | "socket" | "memfd_create" | "pidfd_open" => {
            on(Operand::NewDescriptor)
        }
        "poll" | "ppoll" | "select" | "pselect6" => on(Operand::DescriptorSet),
        "futex" | "futex_wait" | "futex_wake" | "futex_requeue" => on(Operand::FutexWord(0)),
        "nanosleep" | "clock_nanosleep" | "pause" | "rt_sigsuspend" | "rt_sigtimedwait" => on(Operand::Sleep),
        "wait4" | "waitid" => on(Operand::Process),
        _ => Meaning::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lie_inside_the_six() {
        for number in 0..600 {
            let meaning = meaning(&super::super::name(number));
            let operand = match meaning.operand {
                Operand::Descriptor(argument) | Operand::FutexWord(argument) => Some(argument),
                _ => None,
            };
            for argument in [operand, meaning.offset, meaning.bytes].into_iter().flatten() {
                assert!(argument < 6);
            }
        }
    }

    #[test]
    fn a_positioned_read_has_its_offset_last() {
        assert_eq!(meaning("pread64"), positioned(0, Some(2), 3));
        assert_eq!(meaning("futex").operand, Operand::FutexWord(0));
        assert_eq!(meaning("getpid"), Meaning::default());
    }
}
