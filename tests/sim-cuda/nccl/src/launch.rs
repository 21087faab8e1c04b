//! From calls to kernels.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64};

use sim_abi::{COLLECTIVE_MAGIC, Cell, CollectiveArgs, CollectivePart};

use crate::comm::Comm;
use crate::driver;
use crate::kernel_name;
use crate::operation::{self, Kind};
use crate::result::{self, Result};

/// One call.
#[derive(Clone, Copy)]
pub struct Operation {
    /// Of which communicator.
    pub comm: &'static Comm,
    /// What.
    pub kind: Kind,
    /// Bytes that one rank hands over.
    pub bytes: usize,
    /// Part of the kernel's name.
    pub reduction: &'static str,
    /// Part of the kernel's name.
    pub data_type: &'static str,
    /// The other rank of a send or receive.
    pub peer: usize,
    /// In which stream.
    pub stream: *mut c_void,
}

impl Operation {
    fn part(&self) -> Part {
        let (comm, shared) = (self.comm, self.comm.shared);
        let me = comm.rank;
        match self.kind {
            Kind::Send | Kind::Recv => {
                let send = self.kind == Kind::Send;
                let pair = if send { &shared.pairs[me][self.peer] } else { &shared.pairs[self.peer][me] };
                Part {
                    counter: comm.to_peer(self.peer, send),
                    own: pair[usize::from(!send)].as_ptr(),
                    peers: vec![pair[usize::from(send)].as_ptr()],
                    bells: vec![&raw const shared.bells[me], &raw const shared.bells[self.peer]],
                }
            }
            _ => Part {
                counter: comm.collectives(),
                own: shared.collectives[me].as_ptr(),
                peers: (0..comm.ranks)
                    .filter(|rank| *rank != me)
                    .map(|rank| shared.collectives[rank].as_ptr())
                    .collect(),
                bells: shared.bells[..comm.ranks].iter().map(|bell| &raw const *bell).collect(),
            },
        }
    }
}

struct Part {
    counter: *const AtomicU64,
    own: *const Cell,
    peers: Vec<*const Cell>,
    bells: Vec<*const AtomicU32>,
}

/// Launches one kernel for operations of one communicator and stream: the real library puts those of a group together.
/// Named after the first.
pub fn launch(operations: &[Operation]) -> Result {
    let Some(first) = operations.first() else { return Ok(()) };
    let comm = first.comm;
    if !comm.is_ready() {
        return Err(result::USAGE);
    }
    let function = comm.kernel(kernel_name::symbol(first.kind, first.reduction, first.data_type))?;
    let parts: Vec<Part> = operations.iter().map(Operation::part).collect();
    let parts: Vec<CollectivePart> = parts
        .iter()
        .map(|part| CollectivePart {
            counter: part.counter,
            own: part.own,
            peers: part.peers.as_ptr(),
            peer_count: part.peers.len(),
            bells: part.bells.as_ptr(),
            bell_count: part.bells.len(),
        })
        .collect::<Vec<_>>();
    let transfers = operations.iter().map(|op| operation::transfer_ns(op.kind, op.bytes, comm.ranks));
    // Sends and receives of one group go at once; collectives one after the other.
    let transfer_ns = if first.kind.is_p2p() { transfers.max().unwrap_or(0) } else { transfers.sum() };
    let args = CollectiveArgs {
        magic: COLLECTIVE_MAGIC,
        transfer_ns,
        parts: parts.as_ptr(),
        part_count: parts.len(),
    };
    let _entered = driver::enter(comm.device)?;
    driver::launch(function, first.stream, (&raw const args).expose_provenance() as u64)
}
