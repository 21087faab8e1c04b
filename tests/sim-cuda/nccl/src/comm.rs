//! Communicators.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::config;
use crate::driver;
use crate::result::{self, Result};
use crate::shared::{self, MOST_RANKS, Shared};

/// `ncclUniqueId`: a name for the communicator that is to be, handed from rank to rank by the program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct UniqueId(pub [u8; 128]);

impl UniqueId {
    /// A new one.
    pub fn new() -> Result<Self> {
        let mut bytes = [0_u8; 128];
        bytes[..8].copy_from_slice(b"simnccl\x01");
        // SAFETY: sixteen bytes of ours to fill.
        let filled = unsafe { libc::getrandom(bytes[8..24].as_mut_ptr().cast(), 16, 0) };
        if filled == 16 { Ok(Self(bytes)) } else { Err(result::SYSTEM) }
    }

    /// Names the communicator on all ranks.
    pub fn hash(&self) -> u64 {
        self.0.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }
}

/// How many operations of one kind this rank has started. They live on: kernels may be under way.
struct Counters {
    collectives: AtomicU64,
    sends: [AtomicU64; MOST_RANKS],
    receives: [AtomicU64; MOST_RANKS],
}

/// A rank's end of a communicator. Never freed; a destroyed one is known as such.
pub struct Comm {
    /// Same on all ranks.
    pub hash: u64,
    /// This rank.
    pub rank: usize,
    /// How many there are.
    pub ranks: usize,
    /// CUDA's number of its device.
    pub device: i32,
    /// What the ranks share.
    pub shared: &'static Shared,
    counters: &'static Counters,
    module: AtomicU64,
    kernels: Mutex<HashMap<CString, usize>>,
    splits: AtomicU32,
    ready: AtomicBool,
    alive: AtomicBool,
    error: AtomicI32,
}

impl Comm {
    /// Comes to a communicator: the others can count on this rank from now on.
    pub fn join(hash: u64, ranks: i32, rank: i32, device: i32) -> Result<&'static Self> {
        let (Ok(ranks), Ok(rank)) = (usize::try_from(ranks), usize::try_from(rank)) else {
            return Err(result::ARGUMENT);
        };
        if ranks == 0 || ranks > MOST_RANKS || rank >= ranks {
            return Err(result::ARGUMENT);
        }
        let shared = shared::open(hash)?;
        let counters = Box::leak(Box::new(Counters {
            collectives: AtomicU64::new(0),
            sends: std::array::from_fn(|_| AtomicU64::new(0)),
            receives: std::array::from_fn(|_| AtomicU64::new(0)),
        }));
        let comm = Box::leak(Box::new(Self {
            hash,
            rank,
            ranks,
            device,
            shared,
            counters,
            module: AtomicU64::new(0),
            kernels: Mutex::default(),
            splits: AtomicU32::new(0),
            ready: AtomicBool::new(false),
            alive: AtomicBool::new(true),
            error: AtomicI32::new(0),
        }));
        shared::count_up(&shared.joined);
        Ok(comm)
    }

    /// Waits for the other ranks and sets the transports up.
    pub fn complete(&'static self) -> Result {
        shared::wait_for(&self.shared.joined, self.ranks as u32);
        if self.rank == 0 {
            shared::unlink(self.hash);
        }
        let _entered = driver::enter(self.device)?;
        self.module.store(driver::load_kernels()? as u64, Ordering::Release);
        driver::watch_bell(&self.shared.bells[self.rank])?;
        // The real library exchanges addresses over sockets and maps buffers meanwhile.
        std::thread::sleep(Duration::from_millis(config::get().init_ms));
        shared::count_up(&self.shared.ready);
        shared::wait_for(&self.shared.ready, self.ranks as u32);
        self.ready.store(true, Ordering::Release);
        Ok(())
    }

    /// The communicator behind a program's handle.
    pub fn of(handle: *const Self) -> Result<&'static Self> {
        // SAFETY: by the functions' contract null or a communicator that this library made; those are never freed.
        let comm = unsafe { handle.as_ref() }.ok_or(result::ARGUMENT)?;
        if comm.alive.load(Ordering::Acquire) { Ok(comm) } else { Err(result::ARGUMENT) }
    }

    /// Whether its set-up is over.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Ends it.
    pub fn destroy(&self) {
        self.alive.store(false, Ordering::Release);
    }

    /// The error that a call left.
    pub fn error(&self) -> i32 {
        self.error.load(Ordering::Relaxed)
    }

    /// A kernel of the library on its device.
    pub fn kernel(&self, symbol: CString) -> Result<*mut c_void> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kernels.get(&symbol) {
            return Ok(std::ptr::without_provenance_mut(*known));
        }
        let module = self.module.load(Ordering::Acquire) as usize;
        let function = driver::kernel(std::ptr::without_provenance_mut(module), &symbol)?;
        kernels.insert(symbol, function.addr());
        Ok(function)
    }

    /// How many collectives it has started.
    pub fn collectives(&self) -> &'static AtomicU64 {
        &self.counters.collectives
    }

    /// How many operations it has started to (`send`) or from a peer.
    pub fn to_peer(&self, peer: usize, send: bool) -> &'static AtomicU64 {
        if send { &self.counters.sends[peer] } else { &self.counters.receives[peer] }
    }

    /// The next split's number, from 1.
    pub fn next_split(&self) -> u32 {
        self.splits.fetch_add(1, Ordering::Relaxed) + 1
    }
}
