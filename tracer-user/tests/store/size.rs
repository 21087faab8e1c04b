//! How many bytes a row takes.
//!
//! The rows are drawn as recorded ones look: times with full nanoseconds, lengths over three orders of magnitude, few
//! threads and names. `docs/performance.md` has the figures of real recordings; these bounds notice when an encoding is lost.

use gtrace::event::{CorrelationId, DurationNs, MonoNs, Pid, RequestId, RowId, StreamId, Text, Tid};
use gtrace::store::schema::{GpuOp, OffCpu, Syscall};
use gtrace::store::{Bundle, BundleWriter, Table};

use crate::samples::{meta, op, syscall};

const ROWS: i64 = 60_000;

/// xorshift64*: the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: i64) -> i64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as i64) % bound
    }

    /// Between `low` and `low * 2^doublings`, each doubling as likely as the other.
    fn spread(&mut self, low: i64, doublings: i64) -> i64 {
        let low = low << self.below(doublings);
        low + self.below(low)
    }

    fn one_of<'a>(&mut self, names: &[&'a str]) -> &'a str {
        names[self.below(names.len() as i64) as usize]
    }
}

fn bytes_a_row<T: Table>(rows: Vec<T>) -> f64 {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    let mut writer = BundleWriter::create(&path, meta(), None).unwrap();
    let count = rows.len() as u64;
    writer.append(rows);
    writer.finish(meta()).unwrap();
    let bytes = std::fs::metadata(path.join(T::NAME).join("part-00001.parquet")).unwrap().len();
    assert_eq!(Bundle::open(&path).unwrap().count::<T>().unwrap(), count);
    let bytes = bytes as f64 / count as f64;
    println!("{}: {bytes:.1} bytes a row", T::NAME);
    bytes
}

#[test]
fn gpu_ops() {
    let mut random = Random(1);
    let mut time = 86_400_000_000_000;
    let names: Vec<String> =
        (0..40).map(|i| format!("void kernel_{i}<float, 128>(float*, float const*, int)")).collect();
    let rows = (0..ROWS).map(|id| {
        time += random.spread(500, 6);
        let length = random.spread(2_000, 8);
        let start = time;
        time += length;
        GpuOp {
            name: names[random.below(40) as usize].as_str().into(),
            stream: StreamId(if random.below(10) == 0 { 13 } else { 7 }),
            correlation_id: CorrelationId(id + 1_000),
            grid_x: Some(1 << random.below(12)),
            block_x: Some(128 << random.below(3)),
            ..op(id, start, start + length)
        }
    });
    assert!(bytes_a_row(rows.collect()) <= 10.0);
}

#[test]
fn off_cpu() {
    let mut random = Random(2);
    let mut time = 86_400_000_000_000;
    let rows = (0..ROWS).map(|id| {
        time += random.spread(1_000, 6);
        let (wait, queue) = (random.spread(4_000, 9), random.spread(1_000, 5));
        let tid = 1_000 + random.below(12) as i32;
        let by_task = random.below(3) > 0;
        let queued = random.below(4) == 0;
        let waker = 1_000 + random.below(12) as i32;
        let call = random.one_of(&["futex", "read", "pread64", "epoll_wait"]);
        OffCpu {
            id: RowId(id),
            pid: Pid(tid / 4 * 4),
            tid: Tid(tid),
            off_ns: MonoNs(time),
            woken_ns: Some(MonoNs(time + wait)),
            on_ns: Some(MonoNs(time + wait + queue)),
            state: "interruptible".into(),
            before_attach: false,
            syscall: Some(call.into()),
            syscall_start_ns: Some(MonoNs(time - random.spread(500, 3))),
            waker_kind: Some(if by_task { "task" } else { "block" }.into()),
            waker_pid: by_task.then_some(Pid(waker / 4 * 4)),
            waker_tid: by_task.then_some(Tid(waker)),
            waker_comm: by_task.then(|| "pt_data_worker".into()),
            waker_syscall: by_task.then(|| Text::from(random.one_of(&["futex", "write"]))),
            waker_object: (!by_task).then(|| "nvme0n1".into()),
            request_id: (!by_task).then_some(RequestId(id)),
            off_cpu: random.below(16) as i32,
            on_cpu: Some(random.below(16) as i32),
            culprit_pid: queued.then_some(Pid(waker)),
            culprit_tid: queued.then_some(Tid(waker)),
            culprit_comm: queued.then(|| "stress".into()),
            culprit_ns: queued.then_some(DurationNs(queue / 2)),
            others_ns: DurationNs(if queued { queue / 2 } else { 0 }),
            idle_ns: DurationNs(if queued { 0 } else { queue }),
            allowed_cpus: None,
            forbidden_idle_ns: None,
            throttled: None,
        }
    });
    // Four times with nanoseconds alone carry 7.9 bytes of information a row on a recorded timeline.
    assert!(bytes_a_row(rows.collect()) <= 24.0);
}

#[test]
fn syscalls() {
    let mut random = Random(3);
    let mut time = 86_400_000_000_000;
    let files: Vec<String> = (0..100).map(|i| format!("/data/train/shard-{i:04}.tar")).collect();
    let rows = (0..ROWS).map(|id| {
        time += random.spread(2_000, 6);
        let length = random.spread(8_000, 8);
        Syscall {
            tid: Tid(1_000 + random.below(12) as i32),
            end_ns: Some(MonoNs(time + length)),
            blocked_ns: DurationNs(length - random.spread(500, 3)),
            object: Some(files[random.below(100) as usize].as_str().into()),
            offset: Some(random.below(4096) * 131_072),
            bytes: Some(131_072),
            result: Some(131_072),
            ..syscall(id, time)
        }
    });
    assert!(bytes_a_row(rows.collect()) <= 13.0);
}
