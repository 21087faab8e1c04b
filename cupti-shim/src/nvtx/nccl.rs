//! Calls of NCCL: what their payloads say, and which of a communicator's collectives each is.
//!
//! NCCL marks each call as a range of the domain "NCCL" with the function's name. Which function it is is told by that name,
//! which all versions have; the numbers of the payloads' schemas are as here from 2.27 on only. All payloads of calls begin
//! with the communicator's hash and the bytes; those of set-ups are read where their size is that of 2.27.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use tracer_abi::shim::{NcclFunction, NcclRecord};

use super::payload::Payload;

/// NCCL's domain.
pub const DOMAIN: &[u8] = b"NCCL";
/// Communicators whose collectives are counted.
const MOST: usize = 256;
/// Not counted.
const UNCOUNTED: u64 = u64::MAX;

/// A call that is under way.
#[derive(Clone, Copy)]
pub struct Call {
    function: NcclFunction,
    comm: u64,
    bytes: u64,
    sequence: u64,
    ranks: i32,
    rank: i32,
    device: i32,
}

impl Call {
    /// A call that begins. Collectives are counted whether somebody records or not, so that a recorder that comes later
    /// counts as those of the other ranks do.
    pub fn begin(function: NcclFunction, payload: Option<&Payload>) -> Self {
        let mut call =
            Self { function, comm: 0, bytes: 0, sequence: UNCOUNTED, ranks: 0, rank: -1, device: -1 };
        if let Some(payload) = payload {
            call.add(payload);
        }
        if function.is_collective() && call.comm != 0 {
            call.sequence = next_of(call.comm);
        }
        call
    }

    /// Reads a payload, which set-ups have only at their end.
    pub fn add(&mut self, payload: &Payload) {
        match (self.function, payload.size()) {
            // {comm, parent, ranks, rank, device, …}
            (NcclFunction::CommSplit, 40) => {
                self.comm = payload.long(0);
                (self.ranks, self.rank, self.device) = (payload.int(16), payload.int(20), payload.int(24));
            }
            // {comm, devices}
            (NcclFunction::CommInitAll, 16) => (self.comm, self.ranks) = (payload.long(0), payload.int(8)),
            // {comm, ranks, rank, device}
            (function, 24) if function.is_about_communicator() => {
                self.comm = payload.long(0);
                (self.ranks, self.rank, self.device) = (payload.int(8), payload.int(12), payload.int(16));
            }
            // {comm, bytes}, and the root, the peer or the reduction
            (function, 16..) if function.is_collective() || function.is_p2p() => {
                (self.comm, self.bytes) = (payload.long(0), payload.long(8));
                let has_rank = matches!(
                    function,
                    NcclFunction::Reduce
                        | NcclFunction::Broadcast
                        | NcclFunction::Bcast
                        | NcclFunction::Gather
                        | NcclFunction::Scatter
                        | NcclFunction::Send
                        | NcclFunction::Recv
                );
                if has_rank && payload.size() >= 20 {
                    self.rank = payload.int(16);
                }
            }
            _ => {}
        }
    }

    /// How the number of open groups changes with this call.
    pub fn group_change(&self) -> i32 {
        match self.function {
            NcclFunction::GroupStart => 1,
            NcclFunction::GroupEnd => -1,
            _ => 0,
        }
    }

    /// The record of a call that has returned.
    pub fn record(&self, start_ns: u64, end_ns: u64, thread: u32, depth: u32) -> NcclRecord {
        NcclRecord {
            start_ns,
            end_ns,
            comm: self.comm,
            bytes: self.bytes,
            sequence: self.sequence,
            function: self.function as u32,
            thread,
            depth,
            ranks: self.ranks as u32,
            rank: self.rank,
            device: self.device,
            reserved: 0,
        }
    }
}

/// Communicators that were made: {hash, ranks and rank, device}, for recorders that come later.
static MADE: [[AtomicU64; 3]; MOST] = [const { [const { AtomicU64::new(0) }; 3] }; MOST];

impl Call {
    /// Remembers the communicator that this call has made.
    pub fn remember(&self) {
        let makes = self.function.is_about_communicator()
            && !matches!(self.function, NcclFunction::CommDestroy | NcclFunction::CommAbort);
        if !makes || self.comm == 0 {
            return;
        }
        // Of several ranks of one communicator in this process each has a place.
        let start = (self.comm as usize).wrapping_add(self.rank as usize);
        for step in 0..16 {
            let [comm, ranks, device] = &MADE[start.wrapping_add(step) % MOST];
            if comm.compare_exchange(0, self.comm, AcqRel, Acquire).is_ok() {
                device.store(u64::from(self.device as u32), Relaxed);
                ranks.store(u64::from(self.ranks as u32) << 32 | u64::from(self.rank as u32), Release);
                return;
            }
        }
    }
}

/// The communicators that were made so far.
pub fn made() -> impl Iterator<Item = NcclRecord> {
    MADE.iter().filter_map(|[comm, ranks, device]| {
        let numbers = ranks.load(Acquire);
        let call = Call {
            function: NcclFunction::CommInitRank,
            comm: comm.load(Acquire),
            bytes: 0,
            sequence: UNCOUNTED,
            ranks: (numbers >> 32) as i32,
            rank: numbers as u32 as i32,
            device: device.load(Relaxed) as u32 as i32,
        };
        (numbers != 0).then(|| call.record(0, 0, 0, 0))
    })
}

static COMMS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
static COUNTS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];

/// How many collectives of a communicator were called before.
fn next_of(comm: u64) -> u64 {
    for step in 0..16 {
        let index = (comm as usize).wrapping_add(step) % MOST;
        let known = COMMS[index].compare_exchange(0, comm, AcqRel, Acquire).unwrap_or_else(|known| known);
        if known == 0 || known == comm {
            return COUNTS[index].fetch_add(1, Relaxed);
        }
    }
    UNCOUNTED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectives_of_each_communicator_are_counted_apart() {
        assert_eq!((next_of(0xA1), next_of(0xA1), next_of(0xA1 + MOST as u64)), (0, 1, 0));
        assert_eq!((next_of(0xA1), next_of(0xA1 + MOST as u64)), (2, 1));
        for comm in 1..10_000 {
            next_of(comm << 20 | 7);
        }
        assert_eq!(next_of(u64::MAX << 8 | 7), UNCOUNTED, "bounded");
    }
}
