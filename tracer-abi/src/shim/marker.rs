//! What the program and its libraries say through NVTX. Times are CLOCK_MONOTONIC of the process.

use super::record::record;

record! {
    /// A name of marked ranges or their domains. Its bytes follow, filled up to 8.
    pub struct MarkerNameRecord: MarkerName, 16 bytes {
        /// Hash that ranges refer to.
        hash: u64,
        /// Bytes that follow, at most [`super::MARKER_NAME_MAX_BYTES`].
        length: u32,
        /// 1: it was longer.
        truncated: u32,
    }
}

record! {
    /// A range that has ended, or a moment that was marked.
    pub struct MarkerRecord: Marker, 40 bytes {
        /// Its begin.
        start_ns: u64,
        /// Its end; of a moment the same.
        end_ns: u64,
        /// Hash of the domain's name, 0: the default domain.
        domain: u64,
        /// Hash of its name, 0: it has none.
        name: u64,
        /// Thread that began it, in the process's own pid namespace.
        thread: u32,
        /// 0.
        reserved: u32,
    }
}

record! {
    /// A call of NCCL that has returned, with what its payload says.
    pub struct NcclRecord: Nccl, 72 bytes {
        /// Call.
        start_ns: u64,
        /// Return.
        end_ns: u64,
        /// Hash of the communicator, the same on all ranks; 0: not said.
        comm: u64,
        /// Bytes that one rank hands over; 0: not said.
        bytes: u64,
        /// How many collectives of this communicator the process called before. `u64::MAX`: not counted.
        sequence: u64,
        /// [`NcclFunction`] as its number.
        function: u32,
        /// Thread, in the process's own pid namespace.
        thread: u32,
        /// Groups that were open after the call.
        depth: u32,
        /// Set-up and end of a communicator: its ranks; 0: not said.
        ranks: u32,
        /// Set-up and end: this rank. Others: root or peer, -1 if there is none.
        rank: i32,
        /// Set-up and end: CUDA's number of the device.
        device: i32,
        /// 0.
        reserved: u64,
    }
}

macro_rules! functions {
    ($($variant:ident = $number:literal: $name:literal $op:literal,)*) => {
        /// A function of NCCL.
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are NCCL's")]
        pub enum NcclFunction { $($variant = $number,)* }

        impl NcclFunction {
            /// The function for a raw number; `None` for one that this version does not know.
            #[must_use]
            pub const fn from_raw(raw: u32) -> Option<Self> {
                Some(match raw { $($number => Self::$variant,)* _ => return None })
            }

            /// The function of this name.
            #[must_use]
            pub fn named(name: &[u8]) -> Option<Self> {
                $(if name == $name { return Some(Self::$variant); })*
                None
            }

            /// What it is called in the table of collectives; empty for those that send nothing.
            #[must_use]
            pub const fn op(self) -> &'static str {
                match self { $(Self::$variant => $op,)* }
            }
        }
    };
}

functions! {
    GroupStart = 1: b"ncclGroupStart" "",
    GroupEnd = 2: b"ncclGroupEnd" "",
    CommInitRank = 3: b"ncclCommInitRank" "",
    CommInitRankConfig = 4: b"ncclCommInitRankConfig" "",
    CommInitRankScalable = 5: b"ncclCommInitRankScalable" "",
    CommInitAll = 6: b"ncclCommInitAll" "",
    CommSplit = 7: b"ncclCommSplit" "",
    CommShrink = 8: b"ncclCommShrink" "",
    CommDestroy = 9: b"ncclCommDestroy" "",
    CommAbort = 10: b"ncclCommAbort" "",
    AllReduce = 11: b"ncclAllReduce" "allreduce",
    Reduce = 12: b"ncclReduce" "reduce",
    ReduceScatter = 13: b"ncclReduceScatter" "reducescatter",
    AllGather = 14: b"ncclAllGather" "allgather",
    Broadcast = 15: b"ncclBroadcast" "broadcast",
    AlltoAll = 16: b"ncclAlltoAll" "alltoall",
    Gather = 17: b"ncclGather" "gather",
    Scatter = 18: b"ncclScatter" "scatter",
    Send = 19: b"ncclSend" "send",
    Recv = 20: b"ncclRecv" "recv",
    Bcast = 21: b"ncclBcast" "broadcast",
}

impl NcclFunction {
    /// Whether it makes a communicator or ends one.
    #[must_use]
    pub const fn is_about_communicator(self) -> bool {
        matches!(
            self,
            Self::CommInitRank
                | Self::CommInitRankConfig
                | Self::CommInitRankScalable
                | Self::CommInitAll
                | Self::CommSplit
                | Self::CommShrink
                | Self::CommDestroy
                | Self::CommAbort
        )
    }

    /// Whether all ranks of the communicator take part.
    #[must_use]
    pub const fn is_collective(self) -> bool {
        !self.op().is_empty() && !self.is_p2p()
    }

    /// Whether it is between two ranks.
    #[must_use]
    pub const fn is_p2p(self) -> bool {
        matches!(self, Self::Send | Self::Recv)
    }
}
