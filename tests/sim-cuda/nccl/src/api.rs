//! The exported C interface: each function under its own name and with the prefix `p`, as the real library has them.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use crate::comm::{Comm, UniqueId};
use crate::driver;
use crate::group;
use crate::launch::Operation;
use crate::nvtx::{Payload, Range, RegisteredName};
use crate::operation::{self, Kind};
use crate::result::{self, Result};

/// What `ncclGetVersion` says: 2.27.5.
const VERSION: i32 = 22_705;

/// NCCL's numbers of the payloads' schemas.
mod schema {
    pub const COMM_INIT_RANK: u64 = 0;
    pub const COMM_INIT_ALL: u64 = 1;
    pub const COMM_DESTROY: u64 = 2;
    pub const COMM_ABORT: u64 = 3;
    pub const ALL_GATHER: u64 = 4;
    pub const ALL_REDUCE: u64 = 5;
    pub const BROADCAST: u64 = 6;
    pub const REDUCE_SCATTER: u64 = 7;
    pub const REDUCE: u64 = 8;
    pub const SEND: u64 = 9;
    pub const RECV: u64 = 10;
    pub const COMM_INIT_RANK_CONFIG: u64 = 11;
    pub const COMM_SPLIT: u64 = 13;
    pub const ALL_TO_ALL: u64 = 16;
    pub const GATHER: u64 = 17;
    pub const SCATTER: u64 = 18;
}

fn guarded(body: impl FnOnce() -> Result) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(result::INTERNAL));
    result.err().map_or(0, |error| error.0)
}

fn put<T>(to: *mut T, value: T) -> Result {
    if to.is_null() {
        return Err(result::ARGUMENT);
    }
    // SAFETY: not null; a place for a `T` by the function's contract.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Exports functions. In brackets the second name; `name` in the body is the registered name of the function.
macro_rules! api {
    ($($(#[$meta:meta])* fn $name:ident[$alias:ident]($($arg:ident: $type:ty),* $(,)?) |$range:ident| $body:block)*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> i32 {
            guarded(move || {
                static NAME: RegisteredName = RegisteredName::new(
                    match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => c"",
                    },
                );
                let $range = &NAME;
                $body
            })
        }

        /// The same.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $alias($($arg: $type),*) -> i32 {
            // SAFETY: the same contract.
            unsafe { $name($($arg),*) }
        }
    )*};
}

/// What the collectives have in common.
struct Call {
    kind: Kind,
    schema: u64,
    count: usize,
    data_type: i32,
    /// Reduction, if the operation has one.
    reduction: Option<i32>,
    /// Root or peer, if it has one.
    rank: Option<i32>,
    comm: *const Comm,
    stream: *mut c_void,
}

fn call(name: &RegisteredName, call: &Call) -> Result {
    let data_type = operation::data_type(call.data_type);
    let bytes = call.count.saturating_mul(data_type.map_or(0, |(bytes, _)| bytes));
    let comm = Comm::of(call.comm);
    let hash = comm.map_or(0, |comm| comm.hash);
    // Before anything is checked, as the real one.
    let number = call.rank.or(call.reduction);
    let _range = Range::push(name, Some(&Payload::call(call.schema, hash, bytes, number)));
    let (comm, (_, data_type)) = (comm?, data_type?);
    let reduction = call.reduction.map(|op| operation::reduction(op, call.data_type)).transpose()?;
    let peer = usize::try_from(call.rank.unwrap_or(0)).map_err(|_| result::ARGUMENT)?;
    if peer >= comm.ranks {
        return Err(result::ARGUMENT);
    }
    group::submit(Operation {
        comm,
        kind: call.kind,
        bytes,
        reduction: reduction.unwrap_or(""),
        data_type,
        peer,
        stream: call.stream,
    })
}

fn init(
    name: &RegisteredName,
    schema: u64,
    handle: *mut *const Comm,
    ranks: i32,
    id: &UniqueId,
    rank: i32,
) -> Result {
    let mut range = Range::push(name, None);
    let device = driver::current_device()?;
    let comm = Comm::join(id.hash(), ranks, rank, device)?;
    put(handle, std::ptr::from_ref(comm))?;
    group::complete(comm)?;
    range.add(Payload::comm(schema, comm.hash, ranks, rank, device));
    Ok(())
}

fn end(name: &RegisteredName, schema: u64, handle: *const Comm) -> Result {
    let comm = Comm::of(handle)?;
    let payload = Payload::comm(schema, comm.hash, comm.ranks as i32, comm.rank as i32, comm.device);
    let _range = Range::push(name, Some(&payload));
    comm.destroy();
    Ok(())
}

/// All ranks say which group they want to be in and make communicators of those.
fn split(
    name: &RegisteredName,
    parent: &'static Comm,
    color: i32,
    key: i32,
    handle: *mut *const Comm,
) -> Result {
    let mut range = Range::push(name, None);
    let number = u64::from(parent.next_split());
    let wishes = &parent.shared.splits[number as usize % 2];
    let own = &wishes[parent.rank];
    own.color.store(color, Ordering::Relaxed);
    own.key.store(key, Ordering::Relaxed);
    own.number.store(number, Ordering::Release);
    let mut members = Vec::new();
    for (rank, wish) in wishes[..parent.ranks].iter().enumerate() {
        while wish.number.load(Ordering::Acquire) < number {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        if wish.color.load(Ordering::Relaxed) == color {
            members.push((wish.key.load(Ordering::Relaxed), rank));
        }
    }
    members.sort_unstable();
    if color < 0 {
        return put(handle, std::ptr::null());
    }
    let rank = members.iter().position(|(_, rank)| *rank == parent.rank).ok_or(result::INTERNAL)? as i32;
    let mut id = UniqueId([0; 128]);
    id.0[..8].copy_from_slice(&parent.hash.to_le_bytes());
    id.0[8..16].copy_from_slice(&number.to_le_bytes());
    id.0[16..20].copy_from_slice(&color.to_le_bytes());
    let comm = Comm::join(id.hash(), members.len() as i32, rank, parent.device)?;
    put(handle, std::ptr::from_ref(comm))?;
    comm.complete()?;
    let rest = [members.len() as i32, rank, parent.device, color, key];
    range.add(Payload::split(schema::COMM_SPLIT, comm.hash, parent.hash, rest));
    Ok(())
}

/// The text of a result.
#[unsafe(no_mangle)]
pub extern "C" fn ncclGetErrorString(code: i32) -> *const c_char {
    result::text(code).as_ptr()
}

/// The same.
#[unsafe(no_mangle)]
pub extern "C" fn pncclGetErrorString(code: i32) -> *const c_char {
    ncclGetErrorString(code)
}

/// There is none.
#[unsafe(no_mangle)]
pub extern "C" fn ncclGetLastError(_comm: *const Comm) -> *const c_char {
    c"".as_ptr()
}

/// The same.
#[unsafe(no_mangle)]
pub extern "C" fn pncclGetLastError(comm: *const Comm) -> *const c_char {
    ncclGetLastError(comm)
}

api! {
    /// The library's version.
    fn ncclGetVersion[pncclGetVersion](version: *mut i32) |_name| {
        put(version, VERSION)
    }

    /// A name for a new communicator.
    fn ncclGetUniqueId[pncclGetUniqueId](id: *mut UniqueId) |_name| {
        put(id, UniqueId::new()?)
    }

    /// Makes this rank's end of a communicator on the calling thread's device, and waits for the others.
    fn ncclCommInitRank[pncclCommInitRank](comm: *mut *const Comm, ranks: i32, id: UniqueId, rank: i32) |name| {
        init(name, schema::COMM_INIT_RANK, comm, ranks, &id, rank)
    }

    /// The same; of the configuration nothing is used.
    fn ncclCommInitRankConfig[pncclCommInitRankConfig](
        comm: *mut *const Comm, ranks: i32, id: UniqueId, rank: i32, config: *mut c_void,
    ) |name| {
        let _ = config;
        init(name, schema::COMM_INIT_RANK_CONFIG, comm, ranks, &id, rank)
    }

    /// Makes a communicator of devices of this process.
    fn ncclCommInitAll[pncclCommInitAll](comms: *mut *const Comm, count: i32, devices: *const i32) |name| {
        let mut range = Range::push(name, None);
        if comms.is_null() || count < 1 {
            return Err(result::ARGUMENT);
        }
        let id = UniqueId::new()?;
        let mut made = Vec::new();
        for rank in 0..count {
            // SAFETY: by the function's contract null, or an array of that length.
            let device = if devices.is_null() { rank } else { unsafe { *devices.add(rank as usize) } };
            let comm = Comm::join(id.hash(), count, rank, device)?;
            // SAFETY: by the function's contract an array of that length.
            put(unsafe { comms.add(rank as usize) }, std::ptr::from_ref(comm))?;
            made.push(comm);
        }
        // Each waits for the others.
        std::thread::scope(|scope| {
            let threads: Vec<_> = made.iter().map(|comm| scope.spawn(|| comm.complete())).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Err(result::INTERNAL)))
        })?;
        range.add(Payload::all(schema::COMM_INIT_ALL, id.hash(), count));
        Ok(())
    }

    /// Makes communicators of parts of one.
    fn ncclCommSplit[pncclCommSplit](
        comm: *const Comm, color: i32, key: i32, new: *mut *const Comm, config: *mut c_void,
    ) |name| {
        let _ = config;
        split(name, Comm::of(comm)?, color, key, new)
    }

    /// There is nothing left to do.
    fn ncclCommFinalize[pncclCommFinalize](comm: *const Comm) |_name| {
        Comm::of(comm).map(drop)
    }

    /// Ends a communicator.
    fn ncclCommDestroy[pncclCommDestroy](comm: *const Comm) |name| {
        end(name, schema::COMM_DESTROY, comm)
    }

    /// Ends a communicator.
    fn ncclCommAbort[pncclCommAbort](comm: *const Comm) |name| {
        end(name, schema::COMM_ABORT, comm)
    }

    /// Whether something has gone wrong meanwhile.
    fn ncclCommGetAsyncError[pncclCommGetAsyncError](comm: *const Comm, error: *mut i32) |_name| {
        put(error, Comm::of(comm)?.error())
    }

    /// Ranks of a communicator.
    fn ncclCommCount[pncclCommCount](comm: *const Comm, count: *mut i32) |_name| {
        put(count, Comm::of(comm)?.ranks as i32)
    }

    /// Its device.
    fn ncclCommCuDevice[pncclCommCuDevice](comm: *const Comm, device: *mut i32) |_name| {
        put(device, Comm::of(comm)?.device)
    }

    /// This rank.
    fn ncclCommUserRank[pncclCommUserRank](comm: *const Comm, rank: *mut i32) |_name| {
        put(rank, Comm::of(comm)?.rank as i32)
    }

    /// All get the reduction.
    fn ncclAllReduce[pncclAllReduce](
        send: *const c_void, receive: *mut c_void, count: usize, data_type: i32, reduction: i32, comm: *const Comm,
        stream: *mut c_void,
    ) |name| {
        let _ = (send, receive);
        let (kind, schema, reduction) = (Kind::AllReduce, schema::ALL_REDUCE, Some(reduction));
        call(name, &Call { kind, schema, count, data_type, reduction, rank: None, comm, stream })
    }

    /// One gets the reduction.
    fn ncclReduce[pncclReduce](
        send: *const c_void, receive: *mut c_void, count: usize, data_type: i32, reduction: i32, root: i32,
        comm: *const Comm, stream: *mut c_void,
    ) |name| {
        let _ = (send, receive);
        let (kind, schema, reduction, rank) = (Kind::Reduce, schema::REDUCE, Some(reduction), Some(root));
        call(name, &Call { kind, schema, count, data_type, reduction, rank, comm, stream })
    }

    /// Each gets a part of the reduction.
    fn ncclReduceScatter[pncclReduceScatter](
        send: *const c_void, receive: *mut c_void, count: usize, data_type: i32, reduction: i32, comm: *const Comm,
        stream: *mut c_void,
    ) |name| {
        let _ = (send, receive);
        let (kind, schema, reduction) = (Kind::ReduceScatter, schema::REDUCE_SCATTER, Some(reduction));
        call(name, &Call { kind, schema, count, data_type, reduction, rank: None, comm, stream })
    }

    /// All get all parts.
    fn ncclAllGather[pncclAllGather](
        send: *const c_void, receive: *mut c_void, count: usize, data_type: i32, comm: *const Comm,
        stream: *mut c_void,
    ) |name| {
        let _ = (send, receive);
        let (kind, schema) = (Kind::AllGather, schema::ALL_GATHER);
        call(name, &Call { kind, schema, count, data_type, reduction: None, rank: None, comm, stream })
    }

    /// All get what one has.
    fn ncclBroadcast[pncclBroadcast](
        send: *const c_void, receive: *mut c_void, count: usize, data_type: i32, root: i32, comm: *const Comm,
        stream: *mut c_void,
    ) |name| {
        let _ = (send, receive);
        let (kind, schema, rank) = (Kind::Broadcast, schema::BROADCAST, Some(root));
        call(name, &Call { kind, schema, count, data_type, reduction: None, rank, comm, stream })
    }

    /// The same in place.
    fn ncclBcast[pncclBcast](
        buffer: *mut c_void, count: usize, data_type: i32, root: i32, comm: *const Comm, stream: *mut c_void,
    ) |name| {
        let _ = buffer;
        let (kind, schema, rank) = (Kind::Broadcast, schema::BROADCAST, Some(root));
        call(name, &Call { kind, schema, count, data_type, reduction: None, rank, comm, stream })
    }

    /// Each sends a part to each.
    fn ncclAlltoAll[pncclAlltoAll](
        send: *const c_void, receive: *mut c_void, count: usize, data_type: i32, comm: *const Comm,
        stream: *mut c_void,
    ) |name| {
        let _ = (send, receive);
        let (kind, schema) = (Kind::AlltoAll, schema::ALL_TO_ALL);
        call(name, &Call { kind, schema, count, data_type, reduction: None, rank: None, comm, stream })
    }

    /// One gets all parts.
    fn ncclGather[pncclGather](
        send: *const c_void, receive: *mut c_void, count: usize, data_type: i32, root: i32, comm: *const Comm,
        stream: *mut c_void,
    ) |name| {
        let _ = (send, receive);
        let (kind, schema, rank) = (Kind::Gather, schema::GATHER, Some(root));
        call(name, &Call { kind, schema, count, data_type, reduction: None, rank, comm, stream })
    }

    /// Each gets a part of what one has.
    fn ncclScatter[pncclScatter](
        send: *const c_void, receive: *mut c_void, count: usize, data_type: i32, root: i32, comm: *const Comm,
        stream: *mut c_void,
    ) |name| {
        let _ = (send, receive);
        let (kind, schema, rank) = (Kind::Scatter, schema::SCATTER, Some(root));
        call(name, &Call { kind, schema, count, data_type, reduction: None, rank, comm, stream })
    }

    /// Sends to a peer, who receives.
    fn ncclSend[pncclSend](
        send: *const c_void, count: usize, data_type: i32, peer: i32, comm: *const Comm, stream: *mut c_void,
    ) |name| {
        let _ = send;
        let (kind, schema, rank) = (Kind::Send, schema::SEND, Some(peer));
        call(name, &Call { kind, schema, count, data_type, reduction: None, rank, comm, stream })
    }

    /// Receives from a peer, who sends.
    fn ncclRecv[pncclRecv](
        receive: *mut c_void, count: usize, data_type: i32, peer: i32, comm: *const Comm, stream: *mut c_void,
    ) |name| {
        let _ = receive;
        let (kind, schema, rank) = (Kind::Recv, schema::RECV, Some(peer));
        call(name, &Call { kind, schema, count, data_type, reduction: None, rank, comm, stream })
    }

    /// Begins a group.
    fn ncclGroupStart[pncclGroupStart]() |name| {
        let _range = Range::push(name, None);
        group::start()
    }

    /// Ends a group: what was asked for in it is carried out.
    fn ncclGroupEnd[pncclGroupEnd]() |name| {
        let _range = Range::push(name, None);
        group::end()
    }
}
