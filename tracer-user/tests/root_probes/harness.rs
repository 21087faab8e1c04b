//! A target in Python that waits to be told, and everything that the probes record of it.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use gtrace::record::probes::{LoadConfig, Probes, RawRecord};
use tracer_abi::kernel::{
    BlockRecord, CountKey, CountValue, ExecRecord, ExitRecord, ForkRecord, InterruptRecord,
    MemoryStallRecord, ObjectPathRecord, OffCpuRecord, RetransmitRecord, SyscallRecord, WakerKind,
    off_cpu_flags,
};

/// Everything recorded, in order.
pub struct Recording {
    pub probes: Probes,
    pub off_cpu: Vec<OffCpuRecord>,
    pub syscalls: Vec<SyscallRecord>,
    pub blocks: Vec<BlockRecord>,
    pub paths: Vec<ObjectPathRecord>,
    pub forks: Vec<ForkRecord>,
    pub execs: Vec<ExecRecord>,
    pub exits: Vec<ExitRecord>,
    pub memory_stalls: Vec<MemoryStallRecord>,
    pub interrupts: Vec<InterruptRecord>,
    pub retransmits: Vec<RetransmitRecord>,
}

impl Recording {
    /// Loads the probes; follows nothing yet.
    pub fn start() -> Self {
        let probes = Probes::load(&LoadConfig::default()).unwrap_or_else(|error| {
            panic!("this test loads eBPF programs, as root and after `cargo xtask build`: {error}")
        });
        Self {
            probes,
            off_cpu: Vec::new(),
            syscalls: Vec::new(),
            blocks: Vec::new(),
            paths: Vec::new(),
            forks: Vec::new(),
            execs: Vec::new(),
            exits: Vec::new(),
            memory_stalls: Vec::new(),
            interrupts: Vec::new(),
            retransmits: Vec::new(),
        }
    }

    /// Loads the probes and follows one target.
    pub fn of(target: &Target) -> Self {
        let recording = Self::start();
        recording.probes.track_process(target.pid()).expect("a process");
        recording
    }

    pub fn drain(&mut self) {
        let (off_cpu, syscalls, blocks) = (&mut self.off_cpu, &mut self.syscalls, &mut self.blocks);
        let (paths, forks, execs) = (&mut self.paths, &mut self.forks, &mut self.execs);
        let exits = &mut self.exits;
        let (stalls, interrupts) = (&mut self.memory_stalls, &mut self.interrupts);
        let retransmits = &mut self.retransmits;
        let mut receive = |record: RawRecord<'_>| match record {
            RawRecord::OffCpu(record) => off_cpu.push(*record),
            RawRecord::Syscall(record) => syscalls.push(*record),
            RawRecord::Block(record) => blocks.push(*record),
            RawRecord::ObjectPath(record) => paths.push(*record),
            RawRecord::Fork(record) => forks.push(*record),
            RawRecord::Exec(record) => execs.push(*record),
            RawRecord::Exit(record) => exits.push(*record),
            RawRecord::Memfd(_) => panic!("it has a ring of its own"),
            RawRecord::CudaCall(_) => panic!("no driver is probed here"),
            RawRecord::MemoryStall(record) => stalls.push(*record),
            RawRecord::Interrupt(record) => interrupts.push(*record),
            RawRecord::Retransmit(record) => retransmits.push(*record),
        };
        while self.probes.drain(10_000, &mut receive) == 10_000 {}
    }

    /// Ends the recording; nothing may have been lost, and every record must be well formed and in itself consistent.
    pub fn finish(&mut self) {
        self.probes.stop();
        self.drain();
        let losses = self.probes.losses().expect("the loss counters");
        assert_eq!(losses[..9], [0; 9], "records were lost: {losses:?}");
        assert_eq!(losses[10], 0, "interrupts were nested too deep");
        assert_eq!(self.probes.malformed(), 0);
        assert_eq!(self.probes.recursion_misses(), Vec::new());
        let mut met = HashSet::new();
        for record in &self.off_cpu {
            let first = met.insert(record.tid);
            assert!(first || record.flags & off_cpu_flags::BEFORE_ATTACH == 0, "it ran since: {record:?}");
            assert!(record.off_ns <= record.on_ns, "{record:?}");
            if record.woken_ns != 0 {
                assert!((record.off_ns..=record.on_ns).contains(&record.woken_ns), "{record:?}");
            }
            let runnable = record.on_ns - if record.woken_ns == 0 { record.on_ns } else { record.woken_ns };
            assert!(record.others_ns + record.idle_ns <= runnable, "{record:?}");
            assert!(record.culprit_ns <= record.others_ns, "{record:?}");
        }
        for record in &self.syscalls {
            assert!(record.start_ns <= record.end_ns, "{record:?}");
            assert!(record.blocked_ns <= record.end_ns - record.start_ns, "{record:?}");
        }
        for record in &self.memory_stalls {
            assert!(record.start_ns <= record.end_ns, "{record:?}");
        }
        for record in &self.interrupts {
            assert!(record.start_ns + 20_000 <= record.end_ns, "{record:?}");
        }
        for record in &self.blocks {
            assert!(record.request_id != 0 && record.queued_ns <= record.completed_ns, "{record:?}");
            assert!(record.issued_ns <= record.completed_ns, "{record:?}");
        }
    }

    /// Off-CPU intervals of a thread in a system call.
    pub fn off_in(&self, tid: u32, nr: libc::c_long) -> Vec<&OffCpuRecord> {
        self.off_cpu
            .iter()
            .filter(|record| record.tid == tid && libc::c_long::from(record.syscall_nr) == nr)
            .collect()
    }

    /// The longest off-CPU interval of a thread in a system call.
    pub fn longest_off_in(&self, tid: u32, nr: libc::c_long) -> &OffCpuRecord {
        self.off_in(tid, nr)
            .into_iter()
            .max_by_key(|record| record.on_ns - record.off_ns)
            .unwrap_or_else(|| panic!("thread {tid} was never off the CPU in system call {nr}"))
    }

    pub fn calls_of(&self, tid: u32, nr: libc::c_long) -> Vec<&SyscallRecord> {
        self.syscalls
            .iter()
            .filter(|record| record.tid == tid && libc::c_long::from(record.nr) == nr)
            .collect()
    }

    pub fn block(&self, request_id: u64) -> &BlockRecord {
        self.blocks
            .iter()
            .find(|record| record.request_id == request_id)
            .unwrap_or_else(|| panic!("no record of block request {request_id:#x}"))
    }

    /// The last component of an inode's path.
    pub fn name_of(&self, inode: u64) -> String {
        let record = self
            .paths
            .iter()
            .find(|record| record.object.inode == inode)
            .unwrap_or_else(|| panic!("no path of inode {inode}"));
        let name = record.components.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }

    /// All counts of fast calls of a process.
    pub fn counts(&self, pid: u32) -> Vec<(CountKey, CountValue)> {
        let counts = self.probes.final_syscall_counts().expect("the counts");
        counts.into_iter().filter(|(key, _)| key.tgid == pid).collect()
    }
}

/// What kind of context woke.
pub fn waker_kind(record: &OffCpuRecord) -> WakerKind {
    [
        WakerKind::None,
        WakerKind::Task,
        WakerKind::Block,
        WakerKind::Net,
        WakerKind::Timer,
        WakerKind::HardIrq,
        WakerKind::SoftIrq,
    ][record.waker.kind as usize]
}

/// A name as the kernel keeps it.
pub fn comm(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
}

/// A Python program that runs up to `wait()`, and on when it is told to.
pub struct Target {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Target {
    /// Starts it, and returns when it has reached its first `wait()`.
    pub fn start(program: &str, arguments: &[&str]) -> Self {
        let prelude = "import os, sys, time, socket, threading, select\n\
                       def say(*words): print(*words, flush=True)\n\
                       def wait(): say('ready'); sys.stdin.readline()\n";
        let mut child = Command::new("python3")
            .args(["-S", "-E", "-c", &format!("{prelude}{program}")])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut target = Self { child, input, output };
        assert_eq!(target.line(), "ready");
        target
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it go on from its `wait()`.
    pub fn go(&mut self) {
        self.input.write_all(b"go\n").expect("the target reads");
    }

    /// The next line that it says.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the target writes");
        line.trim_end().to_owned()
    }

    /// The next line, as numbers.
    pub fn numbers<const N: usize>(&mut self) -> [u64; N] {
        let line = self.line();
        let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        numbers.try_into().unwrap_or_else(|_| panic!("{line}"))
    }

    /// Waits until it has ended well.
    pub fn end(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("a child") {
                assert!(status.success(), "the target failed: {status}");
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the target did not end");
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Ended already: there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
