//! Calls of NCCL become collectives, each with its kernel, and the ranks of a communicator are found to meet.

use std::collections::HashSet;
use std::time::Duration;

use gtrace::collective::meetings;
use gtrace::event::DurationNs;
use gtrace::record::gpu::GpuSide;

use super::client::{COMMUNICATOR, DEVICE};
use super::target::{Rows, Target, drain_until, find, shim};

pub const TESTS: &[(&str, fn())] = &[
    ("nccl::collectives_of_two_ranks", || two_ranks(true)),
    ("nccl::without_nvtx_kernels_by_name", || two_ranks(false)),
];

fn two_ranks(nvtx: bool) {
    let name = format!("gtrace-test-{}-{nvtx}", std::process::id());
    let shim = shim();
    let mut ranks: Vec<Target> = (0..2)
        .map(|rank| {
            let mut variables = vec![
                ("GTRACE_START", "1"),
                ("SIMCUDA_DEVICES", "2"),
                (DEVICE, if rank == 0 { "0" } else { "1" }),
                (COMMUNICATOR, &name),
            ];
            if nvtx {
                variables.push(("NVTX_INJECTION64_PATH", shim.to_str().unwrap()));
            }
            Target::start(&format!("nccl:{rank}"), "12.4", &variables)
        })
        .collect();
    let (mut side, mut rows) = (GpuSide::new(), Rows::default());
    for rank in &ranks {
        find(&mut side, rank);
    }
    drain_until(&mut side, &mut rows, 60, |_, _| {
        ranks.iter_mut().all(|rank| rank.child.try_wait().unwrap().is_some())
    });
    side.finish(Duration::from_secs(2), &mut |row| rows.take(row));
    assert!(ranks.iter().all(|rank| rank.lines_to_end().contains(&"done".to_owned())));
    assert_eq!(rows.losses, [], "nothing is lost");
    let kernels: Vec<_> = rows.kernels().filter(|op| op.name.starts_with("ncclDevKernel_")).collect();
    // Ten, one for the group, one for send and receive, on each rank.
    assert_eq!(kernels.len(), 2 * 12);
    let ids: HashSet<_> = kernels.iter().map(|op| op.op_id).collect();
    assert!(rows.collectives.iter().all(|row| ids.contains(&row.op_id)));
    if !nvtx {
        assert_eq!(rows.collectives.len(), 2 * 12);
        assert!(rows.collectives.iter().all(|row| row.communicator.is_none() && row.rank.is_none()));
        assert_eq!(rows.markers, []);
        return;
    }
    let of = |op: &'static str| rows.collectives.iter().filter(move |row| &*row.op == op);
    assert_eq!((of("allreduce").count(), of("allgather").count()), (2 * 11, 2));
    assert_eq!((of("send").count(), of("recv").count()), (2, 2));
    assert!(rows.collectives.iter().all(|row| row.ranks == Some(2)));
    assert!(
        of("allreduce")
            .take(10)
            .all(|row| row.bytes == Some(4096) && row.data_type.as_deref() == Some("f32"))
    );
    for rank in 0..2 {
        let mut numbers: Vec<i64> =
            of("allreduce").filter(|row| row.rank == Some(rank)).map(|row| row.sequence).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..11).collect::<Vec<_>>());
    }
    let met = meetings(&rows.collectives, DurationNs(side.clock_residual_ns()));
    // The all-gather of the group is the twelfth collective; its kernel is that of the all-reduce before it.
    assert_eq!(met.len(), 12, "{:#?}", rows.collectives);
    let late = met.iter().filter(|meeting| rows.collectives[meeting.last].rank == Some(1)).count();
    assert!(late >= 6, "rank 1 came last to {late} of 12");

    let marked = |name: &str| rows.markers.iter().filter(|marker| &*marker.name == name).count();
    assert_eq!((marked("ncclAllReduce"), marked("ncclCommInitRank"), marked("ncclGroupEnd")), (22, 2, 4));
    assert!(rows.markers.iter().all(|marker| &*marker.domain == "NCCL" && marker.start_ns <= marker.end_ns));
}
