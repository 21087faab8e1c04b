//! What the kernel of a collective says of it.

use crate::event::{DeviceId, Interval, OpId, Pid, StreamId, Text};
use crate::store::schema::Collective;

/// The operation in the name of a collective's kernel: `ncclDevKernel_AllReduce_Sum_f16_RING_LL(…)`.
#[must_use]
pub fn operation(kernel: &str) -> String {
    let word = kernel.split(['_', '(']).nth(1).filter(|word| !word.is_empty());
    word.unwrap_or("unknown").to_ascii_lowercase()
}

/// The row of a collective of which nothing is known but its kernel.
#[must_use]
pub fn of_kernel(
    op_id: OpId,
    pid: Pid,
    device: DeviceId,
    stream: StreamId,
    op: Text,
    time: Interval,
) -> Collective {
    Collective {
        op_id,
        pid,
        device,
        stream,
        op,
        communicator: None,
        rank: None,
        ranks: None,
        sequence: 0,
        count: None,
        data_type: None,
        bytes: None,
        start_ns: time.start,
        end_ns: time.end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations() {
        assert_eq!(operation("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)"), "allreduce");
        assert_eq!(operation("ncclKernel_Broadcast_RING_LL_Sum_int8_t(x)"), "broadcast");
        assert_eq!(operation("ncclDevKernel"), "unknown");
    }
}
