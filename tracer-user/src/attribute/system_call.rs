//! What a system call waits for, by its name.

/// What kind of call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemCall {
    /// No system call: user code, or a page fault.
    None,
    /// Reads from a descriptor.
    Read,
    /// Writes to a descriptor.
    Write,
    /// Makes data durable.
    Fsync,
    /// Names, attributes and directories of files.
    Metadata,
    /// Waits for several descriptors.
    Poll,
    /// Waits for a word in memory.
    Futex,
    /// Sleeps.
    Sleep,
    /// Receives from a socket.
    Receive,
    /// Sends to a socket.
    Send,
    /// Opens a connection.
    Connect,
    /// Waits for a connection.
    Accept,
    /// Waits for a child process.
    WaitChild,
    /// Starts a program.
    Exec,
    /// Creates a process or thread.
    Fork,
    /// Unmaps or remaps memory.
    Unmap,
    /// Ends a thread or process.
    Exit,
    /// Something else.
    Other,
}

impl SystemCall {
    /// The kind of the call `name`; the empty name is none.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match name {
            "" => Self::None,
            "read" | "pread64" | "readv" | "preadv" | "preadv2" | "readahead" | "io_getevents"
            | "io_pgetevents" | "io_uring_enter" | "fadvise64" | "madvise" | "mincore" => Self::Read,
            "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "fallocate" | "ftruncate"
            | "truncate" | "copy_file_range" | "sendfile" | "splice" | "tee" | "vmsplice" => Self::Write,
            "fsync" | "fdatasync" | "sync" | "syncfs" | "sync_file_range" | "msync" => Self::Fsync,
            "open" | "openat" | "openat2" | "creat" | "close" | "stat" | "lstat" | "fstat" | "newfstatat"
            | "statx" | "statfs" | "fstatfs" | "access" | "faccessat" | "faccessat2" | "getdents"
            | "getdents64" | "unlink" | "unlinkat" | "rename" | "renameat" | "renameat2" | "mkdir"
            | "mkdirat" | "rmdir" | "link" | "linkat" | "symlink" | "symlinkat" | "readlink"
            | "readlinkat" | "chmod" | "fchmod" | "fchmodat" | "chown" | "fchown" | "fchownat"
            | "utimensat" | "lseek" | "getxattr" | "flock" => Self::Metadata,
            "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => {
                Self::Poll
            }
            "futex" | "futex_wait" | "futex_waitv" | "rt_sigtimedwait" | "semtimedop" | "semop" => {
                Self::Futex
            }
            "nanosleep" | "clock_nanosleep" | "pause" => Self::Sleep,
            "recvfrom" | "recvmsg" | "recvmmsg" | "recv" => Self::Receive,
            "sendto" | "sendmsg" | "sendmmsg" | "send" | "shutdown" => Self::Send,
            "connect" => Self::Connect,
            "accept" | "accept4" => Self::Accept,
            "wait4" | "waitid" | "waitpid" => Self::WaitChild,
            "execve" | "execveat" => Self::Exec,
            "fork" | "vfork" | "clone" | "clone3" => Self::Fork,
            "munmap" | "mremap" | "brk" => Self::Unmap,
            "exit" | "exit_group" => Self::Exit,
            _ => Self::Other,
        }
    }

    /// Whether a packet that is delivered while a thread is in such a call may be its own (loopback): the receive softirq
    /// then runs inside the sender's call.
    #[must_use]
    pub const fn can_send(self) -> bool {
        matches!(self, Self::Write | Self::Send | Self::Connect | Self::Accept | Self::Exit)
    }

    /// Whether such a call waits again at once on the same object when its time-out ran out, as locks with time-outs and
    /// poll loops do.
    #[must_use]
    pub const fn can_wait_again(self) -> bool {
        matches!(self, Self::Poll | Self::Futex | Self::Receive | Self::Read)
    }
}
