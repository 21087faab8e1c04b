//! What a call asks for: the operation, its type, its reduction.

use crate::config;
use crate::result::{self, Result};

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All get the reduction.
    AllReduce,
    /// One gets the reduction.
    Reduce,
    /// Each gets a part of the reduction.
    ReduceScatter,
    /// All get all parts.
    AllGather,
    /// All get what one has.
    Broadcast,
    /// Each sends a part to each.
    AlltoAll,
    /// One gets all parts.
    Gather,
    /// Each gets a part of what one has.
    Scatter,
    /// To one peer.
    Send,
    /// From one peer.
    Recv,
}

impl Kind {
    /// Whether it is between two ranks.
    pub fn is_p2p(self) -> bool {
        matches!(self, Self::Send | Self::Recv)
    }
}

/// `ncclDataType_t`: bytes of an element, and its name in kernels' names.
pub fn data_type(number: i32) -> Result<(usize, &'static str)> {
    Ok(match number {
        0 => (1, "i8"),
        1 => (1, "u8"),
        2 => (4, "i32"),
        3 => (4, "u32"),
        4 => (8, "i64"),
        5 => (8, "u64"),
        6 => (2, "f16"),
        7 => (4, "f32"),
        8 => (8, "f64"),
        9 => (2, "bf16"),
        10 => (1, "f8e4m3"),
        11 => (1, "f8e5m2"),
        _ => return Err(result::ARGUMENT),
    })
}

/// `ncclRedOp_t`: its name in kernels' names. Averages of integers are sums with a division after.
pub fn reduction(number: i32, data_type: i32) -> Result<&'static str> {
    Ok(match number {
        0 => "Sum",
        1 => "Prod",
        2 | 3 => "MinMax",
        4 if data_type <= 5 => "SumPostDiv",
        4 => "PreMulSum",
        _ => return Err(result::ARGUMENT),
    })
}

/// How long the bytes of an operation take between `ranks` ranks. `bytes`: what one rank hands over.
pub fn transfer_ns(kind: Kind, bytes: usize, ranks: usize) -> u64 {
    let config = config::get();
    let (bytes, ranks) = (bytes as f64, ranks as f64);
    let sent = match kind {
        Kind::AllReduce => 2.0 * bytes * (ranks - 1.0) / ranks,
        Kind::AllGather | Kind::ReduceScatter | Kind::AlltoAll | Kind::Gather | Kind::Scatter => {
            bytes * (ranks - 1.0)
        }
        Kind::Reduce | Kind::Broadcast | Kind::Send | Kind::Recv => bytes,
    };
    config.latency_ns + (sent / config.bandwidth * 1e9) as u64
}
