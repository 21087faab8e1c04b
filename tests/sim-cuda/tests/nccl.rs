//! Collectives between processes: the ranks are forked before they load CUDA, as `torchrun` starts them apart.
#![allow(clippy::unwrap_used, reason = "a failure here is a failure of the test")]

mod common;

use std::process::Command;

/// What the ranks of every test have: the libraries, a context on a device of their own, a stream, a communicator.
const RANK: &str = r#"
import ctypes as C, os, sys, time
now = time.monotonic_ns
class Id(C.Structure):
    _fields_ = [("bytes", C.c_char * 128)]
def check(result):
    assert result == 0, result
class Rank:
    def __init__(self, id, rank, ranks, device):
        self.cu, self.nccl = C.CDLL("libcuda.so.1"), C.CDLL("libnccl.so.2")
        self.rank, self.ranks, self.device = rank, ranks, device
        check(self.cu.cuInit(0))
        check(self.cu.cuDevicePrimaryCtxSetFlags_v2(device, 4))
        context = C.c_void_p()
        check(self.cu.cuDevicePrimaryCtxRetain(C.byref(context), device))
        check(self.cu.cuCtxSetCurrent(context))
        self.stream, self.comm = C.c_void_p(), C.c_void_p()
        check(self.cu.cuStreamCreate(C.byref(self.stream), 1))
        check(self.nccl.ncclCommInitRank(C.byref(self.comm), ranks, id, rank))
    def all_reduce(self, count=1 << 20, comm=None):
        check(self.nccl.ncclAllReduce(None, None, C.c_size_t(count), 7, 0, comm or self.comm, self.stream))
    def sync(self):
        check(self.cu.cuStreamSynchronize(self.stream))
def fork_ranks(ranks, body):
    """Runs the ranks, each in a process of its own; what they return, by rank."""
    pipes = []
    id_reader, id_writer = os.pipe()
    for rank in range(ranks):
        reader, writer = os.pipe()
        if os.fork() == 0:
            id = Id()
            if rank == 0:
                check(C.CDLL("libnccl.so.2").ncclGetUniqueId(C.byref(id)))
                for _ in range(1, ranks):
                    os.write(id_writer, bytes(memoryview(id).cast("B")))
            else:
                id = Id.from_buffer_copy(os.read(id_reader, 128))
            result = body(Rank(id, rank, ranks, rank))
            os.write(writer, repr(result).encode())
            os._exit(0)
        os.close(writer)
        pipes.append(reader)
    results = []
    for reader in pipes:
        text = b""
        while part := os.read(reader, 65536):
            text += part
        results.append(eval(text))
    return results
"#;

/// Runs a program whose last line is `good`.
fn python(program: &str) {
    let output = Command::new("timeout")
        .args(["60", "python3", "-c", &format!("{RANK}\n{program}\nprint('good')")])
        .env("LD_LIBRARY_PATH", common::folder())
        .env("SIMCUDA_DEVICES", "4")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "good\n", "{errors}");
}

#[test]
fn early_ranks_wait_for_the_late_one_and_all_end_together() {
    python(
        r"
def body(rank):
    rank.all_reduce(); rank.sync()
    if rank.rank == 2: time.sleep(0.2)
    begin = now()
    rank.all_reduce(); rank.sync()
    return begin, now()
late = fork_ranks(3, body)
begins, ends = [begin for begin, _ in late], [end for _, end in late]
assert min(ends) >= begins[2], (begins, ends)
assert all(end - begin >= 150_000_000 for begin, end in late[:2]), late
assert late[2][1] - late[2][0] < 150_000_000, late
assert max(ends) - min(ends) < 150_000_000, late
",
    );
}

#[test]
fn work_can_be_queued_far_ahead_of_the_peers() {
    python(
        r"
def body(rank):
    for _ in range(300):
        rank.all_reduce(1024)
    if rank.rank == 1: time.sleep(0.1)
    rank.sync()
    return now()
ends = fork_ranks(2, body)
assert len(ends) == 2
",
    );
}

#[test]
fn bytes_take_time() {
    python(
        r"
def body(rank):
    rank.all_reduce(); rank.sync()
    begin = now()
    rank.all_reduce(500_000_000); rank.sync()
    return now() - begin
# 2 GB there and back at 50 GB/s.
assert all(40_000_000 <= time for time in fork_ranks(2, body))
",
    );
}

#[test]
fn sends_meet_receives_in_groups() {
    python(
        r"
def body(rank):
    if rank.rank == 0: time.sleep(0.1)
    begin = now()
    to, of = (rank.rank + 1) % rank.ranks, (rank.rank - 1) % rank.ranks
    for _ in range(20):
        check(rank.nccl.ncclGroupStart())
        check(rank.nccl.ncclSend(None, C.c_size_t(64), 7, to, rank.comm, rank.stream))
        check(rank.nccl.ncclRecv(None, C.c_size_t(64), 7, of, rank.comm, rank.stream))
        check(rank.nccl.ncclGroupEnd())
    rank.sync()
    return begin, now()
times = fork_ranks(3, body)
assert min(end for _, end in times) >= times[0][0]
",
    );
}

#[test]
fn a_communicator_splits() {
    python(
        r"
def body(rank):
    part = C.c_void_p()
    check(rank.nccl.ncclCommSplit(rank.comm, rank.rank % 2, -rank.rank, C.byref(part), None))
    count, own = C.c_int(), C.c_int()
    check(rank.nccl.ncclCommCount(part, C.byref(count)))
    check(rank.nccl.ncclCommUserRank(part, C.byref(own)))
    # Ranks 1 and 3 do not wait for 0 and 2.
    if rank.rank % 2 == 0: time.sleep(0.2)
    begin = now()
    rank.all_reduce(1024, part); rank.sync()
    end = now()
    rank.all_reduce(); rank.sync()
    check(rank.nccl.ncclCommDestroy(part))
    return count.value, own.value, begin, end
parts = fork_ranks(4, body)
assert [part[:2] for part in parts] == [(2, 1), (2, 1), (2, 0), (2, 0)], parts
assert max(parts[1][3], parts[3][3]) < min(parts[0][2], parts[2][2]), parts
",
    );
}

#[test]
fn one_process_has_several_ranks() {
    python(
        r"
cu, nccl = C.CDLL('libcuda.so.1'), C.CDLL('libnccl.so.2')
check(cu.cuInit(0))
contexts, streams, comms = [C.c_void_p() for _ in range(3)], [C.c_void_p() for _ in range(3)], (C.c_void_p * 3)()
for device in range(3):
    check(cu.cuDevicePrimaryCtxSetFlags_v2(device, 4))
    check(cu.cuDevicePrimaryCtxRetain(C.byref(contexts[device]), device))
    check(cu.cuCtxSetCurrent(contexts[device]))
    check(cu.cuStreamCreate(C.byref(streams[device]), 1))
check(nccl.ncclCommInitAll(comms, 3, None))
for _ in range(10):
    check(nccl.ncclGroupStart())
    for device in range(3):
        handle = C.c_void_p(comms[device])
        check(nccl.ncclAllReduce(None, None, C.c_size_t(1024), 7, 0, handle, streams[device]))
    check(nccl.ncclGroupEnd())
for device in range(3):
    check(cu.cuCtxSetCurrent(contexts[device]))
    check(cu.cuStreamSynchronize(streams[device]))
assert nccl.ncclAllReduce(None, None, C.c_size_t(1), 7, 0, None, streams[0]) == 4
",
    );
}
