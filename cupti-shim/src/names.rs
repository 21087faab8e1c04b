//! Kernel names: each is written to the ring once a session, and kernels refer to it by a hash of its contents.
//!
//! By contents and not by address, since CUPTI's strings die with their module and their addresses are used again.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tracer_abi::shim::{NAME_MAX_BYTES, NameRecord, Producer, Record};

/// Places for names. A program with more has some written more than once, which costs room only.
const PLACES: usize = 1 << 14;
/// Places that are tried for one name.
const TRIES: usize = 16;

/// The names that were written in this session: a set of hashes, without lock or allocation after it was made.
pub struct Names {
    places: Box<[AtomicU64]>,
    /// Mixed into each entry, so that what a thread enters late from an earlier session is no entry of this one.
    salt: AtomicU64,
}

impl Default for Names {
    fn default() -> Self {
        Self::new()
    }
}

impl Names {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self { places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(), salt: AtomicU64::new(1) }
    }

    /// Begins a session: no name was written yet.
    pub fn begin_session(&self) {
        let salt = self.salt.load(Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
        self.salt.store(salt, Relaxed);
        for place in &self.places {
            place.store(0, Relaxed);
        }
    }

    /// The hash for a name, which is in the ring after this call, or was dropped and will be written with its next use.
    pub fn intern(&self, name: &[u8], ring: &Producer<'_>) -> u64 {
        self.intern_as(name, ring, |hash, name| {
            let kept = &name[..name.len().min(NAME_MAX_BYTES)];
            let truncated = u32::from(kept.len() < name.len());
            (NameRecord { hash, length: kept.len() as u32, truncated }, kept)
        })
    }

    /// The same, written as `record` says, with the bytes that follow it.
    pub fn intern_as<'name, R: Record>(
        &self,
        name: &'name [u8],
        ring: &Producer<'_>,
        record: impl FnOnce(u64, &'name [u8]) -> (R, &'name [u8]),
    ) -> u64 {
        let hash = hash(name);
        let entry = (hash ^ self.salt.load(Relaxed)).max(1);
        let mut free = None;
        for step in 0..TRIES {
            let place = &self.places[(entry as usize).wrapping_add(step) % PLACES];
            match place.load(Relaxed) {
                0 => {
                    free = Some(place);
                    break;
                }
                known if known == entry => return hash,
                _ => {}
            }
        }
        let (record, kept) = record(hash, name);
        // Entered after it was written: a thread that finds the entry finds the name before its own record.
        if ring.write_with(&record, kept)
            && let Some(place) = free
        {
            let _ = place.compare_exchange(0, entry, Relaxed, Relaxed);
        }
        hash
    }
}

/// A hash of bytes that is good enough to tell a program's kernels apart (64 bits, every bit depends on every byte).
fn hash(bytes: &[u8]) -> u64 {
    const K: u64 = 0xD6E8_FEB8_6659_FD93;
    let mix = |value: u64| {
        let value = (value ^ (value >> 32)).wrapping_mul(K);
        value ^ (value >> 29)
    };
    let mut state = K ^ bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = mix(state ^ u64::from_le_bytes(word)).rotate_left(23).wrapping_add(K);
    }
    mix(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use tracer_abi::shim::{Consumer, ContextRecord, Next, RecordKind, RingHeader};

    #[test]
    fn names_that_differ_little_have_different_hashes() {
        let names = (0..100_000_u32).map(|n| format!("_ZN7cutlass6KernelI{n}E").into_bytes());
        let hashes: HashSet<u64> = names.map(|name| hash(&name)).collect();
        assert_eq!(hashes.len(), 100_000);
        assert_ne!(hash(b"a"), hash(b"a\0"));
        assert_ne!(hash(b""), hash(b"\0"));
    }

    #[test]
    fn a_name_is_written_once_a_session_and_again_after_a_drop() {
        // SAFETY: all zero is a valid header.
        let header = unsafe { Box::new(core::mem::zeroed::<RingHeader>()) };
        let data: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
        let (ring, mut reader) =
            (Producer::new(&header, &data), Consumer::new(&header, &data).expect("fresh"));
        let names = Names::new();
        let first = names.intern(b"spin_ns", &ring);
        assert_eq!(names.intern(b"spin_ns", &ring), first);
        assert_eq!(reader.take(), Ok(Next::Record(RecordKind::Name)));
        assert_eq!(reader.tail::<NameRecord>(7), b"spin_ns");
        assert_eq!(reader.take(), Ok(Next::Empty), "not twice");

        names.begin_session();
        names.intern(b"spin_ns", &ring);
        assert_eq!(reader.take(), Ok(Next::Record(RecordKind::Name)), "again in the next session");

        while ring.write(&ContextRecord { context: 0, device: 0, null_stream: 0, reserved: 0 }) {}
        names.intern(b"dropped", &ring);
        while reader.take() == Ok(Next::Record(RecordKind::Context)) {}
        assert_eq!(reader.take(), Ok(Next::Empty), "it had no room");
        names.intern(b"dropped", &ring);
        assert_eq!(
            reader.take(),
            Ok(Next::Record(RecordKind::Name)),
            "what was dropped is written with its next use"
        );
    }
}
