//! Records as they come out of the ring, checked before they are handed on.

use tracer_abi::kernel::{
    BlockRecord, CudaCallRecord, ExecRecord, ExitRecord, ForkRecord, InterruptRecord, MemfdRecord,
    MemoryStallRecord, ObjectPathRecord, OffCpuRecord, RecordHeader, RecordKind, RetransmitRecord,
    SyscallRecord,
};

/// One record of the kernel side. Its length and kind are checked; the values inside are the kernel's and, where they
/// come from a target (names, paths), hostile.
#[derive(Clone, Copy)]
pub enum RawRecord<'a> {
    /// An off-CPU interval.
    OffCpu(&'a OffCpuRecord),
    /// A system call that blocked or lasted.
    Syscall(&'a SyscallRecord),
    /// A block request.
    Block(&'a BlockRecord),
    /// The path of an object.
    ObjectPath(&'a ObjectPathRecord),
    /// A new thread or process.
    Fork(&'a ForkRecord),
    /// Another program in a process.
    Exec(&'a ExecRecord),
    /// The end of a thread.
    Exit(&'a ExitRecord),
    /// A memfd that may be a shim's ring.
    Memfd(&'a MemfdRecord),
    /// A stretch of freeing memory.
    MemoryStall(&'a MemoryStallRecord),
    /// An interrupt that took long.
    Interrupt(&'a InterruptRecord),
    /// A segment that was sent again.
    Retransmit(&'a RetransmitRecord),
    /// A call of the CUDA driver.
    CudaCall(&'a CudaCallRecord),
}

impl<'a> RawRecord<'a> {
    /// The record in these bytes; `None` if its kind is not known, or its length or alignment is wrong.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let header: &RecordHeader = cast_prefix(bytes)?;
        Some(match RecordKind::from_raw(header.kind)? {
            RecordKind::OffCpu => Self::OffCpu(cast(bytes)?),
            RecordKind::Syscall => Self::Syscall(cast(bytes)?),
            RecordKind::Block => Self::Block(cast(bytes)?),
            RecordKind::ObjectPath => Self::ObjectPath(cast(bytes)?),
            RecordKind::Fork => Self::Fork(cast(bytes)?),
            RecordKind::Exec => Self::Exec(cast(bytes)?),
            RecordKind::Exit => Self::Exit(cast(bytes)?),
            RecordKind::Memfd => Self::Memfd(cast(bytes)?),
            RecordKind::MemoryStall => Self::MemoryStall(cast(bytes)?),
            RecordKind::Interrupt => Self::Interrupt(cast(bytes)?),
            RecordKind::Retransmit => Self::Retransmit(cast(bytes)?),
            RecordKind::CudaCall => Self::CudaCall(cast(bytes)?),
            // In a ring of its own.
            RecordKind::Sample => return None,
        })
    }

    /// Its header.
    #[must_use]
    pub const fn header(&self) -> &'a RecordHeader {
        match self {
            Self::OffCpu(record) => &record.header,
            Self::Syscall(record) => &record.header,
            Self::Block(record) => &record.header,
            Self::ObjectPath(record) => &record.header,
            Self::Fork(record) => &record.header,
            Self::Exec(record) => &record.header,
            Self::Exit(record) => &record.header,
            Self::Memfd(record) => &record.header,
            Self::MemoryStall(record) => &record.header,
            Self::Interrupt(record) => &record.header,
            Self::Retransmit(record) => &record.header,
            Self::CudaCall(record) => &record.header,
        }
    }
}

/// Types of which every bit pattern is a value: plain integers and arrays of them.
///
/// # Safety
/// The implementor must be such a type, without padding that is read.
unsafe trait AnyBits {}
// SAFETY: `#[repr(C)]` structures of integers and arrays of integers (`tracer_abi::kernel`).
unsafe impl AnyBits for RecordHeader {}
// SAFETY: as above.
unsafe impl AnyBits for OffCpuRecord {}
// SAFETY: as above.
unsafe impl AnyBits for SyscallRecord {}
// SAFETY: as above.
unsafe impl AnyBits for BlockRecord {}
// SAFETY: as above.
unsafe impl AnyBits for ObjectPathRecord {}
// SAFETY: as above.
unsafe impl AnyBits for ForkRecord {}
// SAFETY: as above.
unsafe impl AnyBits for ExecRecord {}
// SAFETY: as above.
unsafe impl AnyBits for ExitRecord {}
// SAFETY: as above.
unsafe impl AnyBits for MemfdRecord {}
// SAFETY: as above.
unsafe impl AnyBits for MemoryStallRecord {}
// SAFETY: as above.
unsafe impl AnyBits for InterruptRecord {}
// SAFETY: as above.
unsafe impl AnyBits for RetransmitRecord {}
// SAFETY: as above.
unsafe impl AnyBits for CudaCallRecord {}

fn cast<T: AnyBits>(bytes: &[u8]) -> Option<&T> {
    if bytes.len() == size_of::<T>() { cast_prefix(bytes) } else { None }
}

fn cast_prefix<T: AnyBits>(bytes: &[u8]) -> Option<&T> {
    let pointer = bytes.as_ptr().cast::<T>();
    if bytes.len() < size_of::<T>() || !pointer.is_aligned() {
        return None;
    }
    // SAFETY: long enough and aligned (checked above), every bit pattern is a value of T (`AnyBits`), and the result
    // borrows the bytes.
    Some(unsafe { &*pointer })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(8))]
    struct Aligned([u8; 2048]);

    #[test]
    fn only_whole_records_of_known_kinds_are_accepted() {
        let mut bytes = Aligned([0; 2048]);
        for kind in 0..=300_u32 {
            bytes.0[..4].copy_from_slice(&kind.to_ne_bytes());
            let accepted: Vec<usize> =
                (0..=2048).filter(|&length| RawRecord::parse(&bytes.0[..length]).is_some()).collect();
            let known = RecordKind::from_raw(kind).is_some_and(|kind| kind != RecordKind::Sample);
            assert_eq!(accepted.len(), usize::from(known), "kind {kind}: {accepted:?}");
        }
        bytes.0[8..12].copy_from_slice(&1_u32.to_ne_bytes());
        assert!(RawRecord::parse(&bytes.0[4..4 + size_of::<OffCpuRecord>()]).is_none(), "unaligned");
    }
}
