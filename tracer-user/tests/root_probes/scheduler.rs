//! Preemption and who did it.

use tracer_abi::kernel::off_cpu_flags;

use crate::harness::{Recording, Target, comm};

/// In the round-robin class, so that whatever else runs on this machine does not come in between.
const BUSY: &str = "
os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
os.sched_setaffinity(0, {0})
wait()
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    pass
";

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_busy_neighbour_is_named() {
    let mut neighbour = Target::start(BUSY, &["1.0"]);
    let mut target = Target::start(BUSY, &["0.5"]);
    let mut recording = Recording::of(&target);
    neighbour.go();
    target.go();
    target.end();
    neighbour.end();
    recording.finish();
    let preempted: Vec<_> = recording
        .off_cpu
        .iter()
        .filter(|off| off.tid == target.pid() && off.flags & off_cpu_flags::PREEMPTED != 0)
        .collect();
    let waited: u64 = preempted.iter().map(|off| off.on_ns - off.off_ns).sum();
    assert!(waited > 100_000_000, "only {waited} ns of waiting beside a busy neighbour");
    let by_neighbour: u64 = preempted
        .iter()
        .filter(|off| off.culprit_tid == neighbour.pid())
        .map(|off| {
            assert_eq!(comm(&off.culprit_comm), "python3");
            assert_eq!(off.culprit_tgid, neighbour.pid());
            off.culprit_ns
        })
        .sum();
    assert!(by_neighbour * 10 > waited * 7, "the neighbour has {by_neighbour} of {waited} ns");
    for off in preempted {
        assert_eq!((off.off_ns, off.off_state), (off.woken_ns, 0), "{off:?}");
        // Everything is accounted for: others or idle, up to what the switch itself takes.
        let missing = (off.on_ns - off.woken_ns) - off.others_ns - off.idle_ns;
        assert!(missing < 100_000_000, "{off:?}");
    }
}
