//! Kernels of collectives: they start when their stream reaches them, and end on all ranks when the last has started and
//! the bytes have moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use sim_abi::{COLLECTIVE_MAGIC, Cell, CollectiveArgs, SLOTS};

use crate::error::{self, Result};

/// More ranks, or more operations in one kernel, are a wrong argument.
const MOST: usize = 4096;

struct Part {
    counter: &'static AtomicU64,
    own: &'static [Cell; SLOTS],
    peers: Vec<&'static [Cell; SLOTS]>,
    bells: Vec<&'static AtomicU32>,
}

/// For whom a kernel waits.
pub struct Rendezvous {
    /// From the start of the last to the end, ns.
    pub transfer_ns: u64,
    parts: Vec<Part>,
}

impl Rendezvous {
    /// From the first argument of a kernel's launch.
    pub fn read(argument: u64) -> Result<Arc<Self>> {
        let args = std::ptr::with_exposed_provenance::<CollectiveArgs>(argument as usize);
        if args.is_null() || !args.is_aligned() {
            return Err(error::INVALID_VALUE);
        }
        // SAFETY: by the contract of kernels of this name their first argument is such a pointer.
        let args = unsafe { args.read() };
        if args.magic != COLLECTIVE_MAGIC || args.part_count > MOST {
            return Err(error::INVALID_VALUE);
        }
        // SAFETY: by the same contract an array of that length, for the time of the launch.
        let parts = unsafe { std::slice::from_raw_parts(args.parts, args.part_count) };
        let parts = parts.iter().map(|part| {
            if part.peer_count > MOST || part.bell_count > MOST {
                return Err(error::INVALID_VALUE);
            }
            // SAFETY: by the same contract arrays of these lengths.
            let (peers, bells) = unsafe {
                (
                    std::slice::from_raw_parts(part.peers, part.peer_count),
                    std::slice::from_raw_parts(part.bells, part.bell_count),
                )
            };
            // SAFETY: by the same contract cells, counters and bells live as long as the process.
            let cells = |start: *const Cell| unsafe { &*start.cast::<[Cell; SLOTS]>() };
            Ok(Part {
                // SAFETY: as above.
                counter: unsafe { &*part.counter },
                own: cells(part.own),
                peers: peers.iter().map(|peer| cells(*peer)).collect(),
                // SAFETY: as above.
                bells: bells.iter().map(|bell| unsafe { &**bell }).collect(),
            })
        });
        Ok(Arc::new(Self { transfer_ns: args.transfer_ns, parts: parts.collect::<Result<_>>()? }))
    }

    /// The kernel starts at `at`: tells its peers.
    pub fn arrive(self: Arc<Self>, at: u64) -> Arrival {
        let numbers: Vec<u64> = self
            .parts
            .iter()
            .map(|part| {
                let number = part.counter.fetch_add(1, Ordering::Relaxed) + 1;
                let cell = &part.own[number as usize % SLOTS];
                cell.started.store(at, Ordering::Relaxed);
                cell.sequence.store(number, Ordering::SeqCst);
                number
            })
            .collect();
        let arrival = Arrival { rendezvous: self, numbers, at };
        // The last to come tells the others; of two that come at once both may.
        for (part, number) in arrival.rendezvous.parts.iter().zip(&arrival.numbers) {
            if part.last_start(*number, at).is_some() {
                part.bells.iter().for_each(|bell| ring(bell));
            }
        }
        arrival
    }
}

impl Part {
    /// When the last of all started operation `number`; `None` while some have not. This rank did at `at`.
    fn last_start(&self, number: u64, at: u64) -> Option<u64> {
        self.peers.iter().try_fold(at, |last, peer| {
            let cell = &peer[number as usize % SLOTS];
            let there = cell.sequence.load(Ordering::SeqCst) >= number;
            there.then(|| last.max(cell.started.load(Ordering::Relaxed)))
        })
    }
}

/// A collective that has started on this rank.
pub struct Arrival {
    rendezvous: Arc<Rendezvous>,
    numbers: Vec<u64>,
    at: u64,
}

impl Arrival {
    /// When it ends; `None` while a peer has not started.
    pub fn end(&self) -> Option<u64> {
        let parts = self.rendezvous.parts.iter().zip(&self.numbers);
        let last = parts
            .map(|(part, number)| part.last_start(*number, self.at))
            .try_fold(self.at, |last, part| part.map(|part| last.max(part)))?;
        Some(last + self.rendezvous.transfer_ns)
    }
}

fn ring(bell: &AtomicU32) {
    bell.fetch_add(1, Ordering::AcqRel);
    // SAFETY: an address that lives as long as the process and a number.
    unsafe { libc::syscall(libc::SYS_futex, bell.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
