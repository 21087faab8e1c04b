//! Files of the ring's name that are none, or that say nonsense: refused or read to their end, never a panic, never
//! anything outside of the mapping.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};

use gtrace::event::Pid;
use gtrace::record::gpu::GpuSide;
use tracer_abi::shim::{RING_ABI_VERSION, RING_HEADER_BYTES, RING_MAGIC, RING_NAME};

use super::target::Rows;

pub const TESTS: &[(&str, fn())] = &[("hostile::no_rings", no_rings), ("hostile::nonsense", nonsense)];

const DATA: usize = 64 << 10;
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

fn memfd(content: &[u8], seals: i32) -> File {
    // SAFETY: a name and flags.
    let fd = unsafe { libc::memfd_create(RING_NAME.as_ptr(), libc::MFD_ALLOW_SEALING | libc::MFD_CLOEXEC) };
    // SAFETY: just made, owned by nobody else.
    let mut file = unsafe { File::from_raw_fd(fd) };
    file.write_all(content).unwrap();
    // SAFETY: our own file.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }, 0);
    file
}

fn own() -> Pid {
    Pid(std::process::id() as i32)
}

/// A sound head for this process, with these positions.
fn head(reserved: u64, consumed: u64) -> Vec<u8> {
    let mut bytes = vec![0; RING_HEADER_BYTES];
    let mut put = |offset: usize, value: &[u8]| bytes[offset..offset + value.len()].copy_from_slice(value);
    put(0, &RING_MAGIC.to_ne_bytes());
    put(8, &RING_ABI_VERSION.to_ne_bytes());
    put(12, &(RING_HEADER_BYTES as u32).to_ne_bytes());
    put(16, &(DATA as u64).to_ne_bytes());
    put(24, &(own().0 as u32).to_ne_bytes());
    put(std::mem::offset_of!(tracer_abi::shim::RingHeader, reserved), &reserved.to_ne_bytes());
    put(std::mem::offset_of!(tracer_abi::shim::RingHeader, consumed), &consumed.to_ne_bytes());
    bytes
}

fn no_rings() {
    let mut wrong_version = head(0, 0);
    wrong_version[8] = 99;
    let mut wrong_size = head(0, 0);
    wrong_size[17] = 1;
    let mut others = head(0, 0);
    others[24..28].copy_from_slice(&1_u32.to_ne_bytes());
    let data = vec![0; DATA];
    for (content, seals, problem) in [
        (vec![], SEALS, None),
        (vec![1; 100], SEALS, Some("no ring")),
        ([head(0, 0), data.clone()].concat(), 0, None), // may be sealed yet
        ([vec![0; RING_HEADER_BYTES], data.clone()].concat(), SEALS, None), // may be filled yet
        ([wrong_version, data.clone()].concat(), SEALS, Some("version 99")),
        ([wrong_size, data.clone()].concat(), SEALS, Some("another size")),
        ([others, data.clone()].concat(), SEALS, None), // a parent's
        ([head(8, 16), data.clone()].concat(), SEALS, Some("positions")),
        ([head(DATA as u64 + 8, 0), data.clone()].concat(), SEALS, Some("positions")),
        ([head(u64::MAX, u64::MAX - 7), data.clone()].concat(), SEALS, Some("positions")),
    ] {
        let _file = memfd(&content, seals);
        let mut side = GpuSide::new();
        side.scan([own()]);
        side.drain(&mut |_| ());
        assert!(side.processes().is_empty(), "{problem:?}");
        let problems: Vec<String> = side.take_problems().iter().map(ToString::to_string).collect();
        match problem {
            None => assert!(problems.is_empty(), "{problems:?}"),
            Some(problem) => {
                assert!(problems.len() == 1 && problems[0].contains(problem), "{problem}: {problems:?}");
            }
        }
    }
}

/// Slots of all kinds with random contents: valid lengths and positions, values from anywhere.
fn nonsense() {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..200 {
        let mut data = vec![0_u8; DATA];
        let mut at = 0;
        while at < DATA - 256 {
            let words = random() % 24 + 1;
            for word in 0..words as usize {
                let value = match random() % 4 {
                    0 => random(),
                    1 => random() % 16,
                    2 => u64::MAX - random() % 3,
                    _ => super::client::now() as u64 - random() % 1_000_000_000,
                };
                data[at + 8 * word..at + 8 * word + 8].copy_from_slice(&value.to_ne_bytes());
            }
            let tag = !(at as u64 >> 3) & 0xFFFF_FFFF;
            let slot = tag | words << 32 | (random() % 18) << 48 | 0xA6 << 56;
            data[at..at + 8].copy_from_slice(&slot.to_ne_bytes());
            at += 8 * words as usize;
        }
        let _file = memfd(&[head(at as u64, 0), data].concat(), SEALS);
        let (mut side, mut rows) = (GpuSide::new(), Rows::default());
        side.scan([own()]);
        side.drain(&mut |row| rows.take(row));
        assert_eq!(side.pids().count(), 1);
        side.finish(std::time::Duration::ZERO, &mut |row| rows.take(row));
        for op in &rows.ops {
            assert!(op.start_ns.0 > 0 && op.end_ns >= op.start_ns, "{op:?}");
        }
        for marker in &rows.markers {
            assert!(marker.start_ns.0 > 0 && marker.end_ns >= marker.start_ns, "{marker:?}");
        }
        for loss in &rows.losses {
            assert!(loss.end_ns >= loss.start_ns && loss.count > 0, "{loss:?}");
        }
    }
}
