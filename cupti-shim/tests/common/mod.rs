//! Records of every CUDA version by the fixture's layouts, a CUPTI that walks them, and a ring to write to.
#![allow(
    dead_code,
    clippy::unwrap_used,
    missing_docs,
    reason = "shared by several tests, none of which uses all of it"
)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use gtrace_cupti::bind::Cupti;
use gtrace_cupti::collector::Collector;
use gtrace_cupti::layout::Version;
use tracer_abi::shim::{Consumer, Producer, RingHeader};

/// `cuptiGetVersion` of each CUDA version of the fixture.
pub const VERSIONS: [(&str, u32); 17] = [
    ("11.7", 17),
    ("11.8", 18),
    ("12.0", 18),
    ("12.1", 18),
    ("12.2", 20),
    ("12.3", 21),
    ("12.4", 22),
    ("12.5", 23),
    ("12.6", 24),
    ("12.8", 26),
    ("12.9", 28),
    ("13.0", 130_001),
    ("13.1", 130_101),
    ("13.2", 130_202),
    ("13.3", 130_301),
    ("13.4", 130_401),
    ("13.5", 130_500),
];

/// One struct of one version.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    pub size: usize,
    /// Offset and size by field.
    pub fields: BTreeMap<String, (usize, usize)>,
}

/// The fixture: layouts by CUDA version and record.
pub fn layouts() -> BTreeMap<(String, String), Layout> {
    let mut layouts: BTreeMap<(String, String), Layout> = BTreeMap::new();
    for line in include_str!("../fixtures/layouts.csv").lines().skip(1) {
        let [version, record, _, size, field, offset, field_size] = line.split(',').collect::<Vec<_>>()[..]
        else {
            panic!("seven columns: {line}");
        };
        let layout = layouts.entry((version.into(), record.into())).or_default();
        layout.size = size.parse().unwrap();
        layout.fields.insert(field.into(), (offset.parse().unwrap(), field_size.parse().unwrap()));
    }
    layouts
}

/// Bytes of a record with these values; every other byte is `0xEE`, so that a wrong offset shows.
pub fn record(layout: &Layout, values: &[(&str, u64)]) -> Vec<u8> {
    let mut bytes = vec![0xEE; layout.size];
    for (field, value) in values {
        let Some(&(offset, size)) = layout.fields.get(*field) else { continue };
        bytes[offset..offset + size].copy_from_slice(&value.to_ne_bytes()[..size]);
    }
    bytes
}

thread_local! {
    /// Sizes of the records in the buffer of this thread, 0-terminated, and where the walk is.
    static SIZES: Cell<([usize; 32], usize)> = const { Cell::new(([0; 32], 0)) };
}

/// `cuptiActivityGetNextRecord` over records of the sizes in `SIZES`.
pub unsafe extern "C" fn next_record(buffer: *mut u8, _valid: usize, record: *mut *mut u8) -> u32 {
    let (sizes, index) = SIZES.get();
    if index >= sizes.len() || sizes[index] == 0 {
        return 12;
    }
    let offset: usize = sizes[..index].iter().sum();
    SIZES.set((sizes, index + 1));
    // SAFETY: the test's own buffer and variable.
    unsafe { record.write(buffer.add(offset)) };
    0
}

/// A collector that writes to a ring of `bytes`, and the ring's reading end.
pub fn collector(version: u32, bytes: usize) -> (Collector, Consumer<'static>) {
    // SAFETY: all zero is a valid header.
    let header: &'static RingHeader = Box::leak(unsafe { Box::new(core::mem::zeroed::<RingHeader>()) });
    let data: &'static [AtomicU64] = (0..bytes / 8).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
    let cupti = Cupti { get_next_record: Some(next_record), ..Cupti::default() };
    let collector = Collector::new(Producer::new(header, data), cupti, Version(version)).unwrap();
    (collector, Consumer::new(header, data).unwrap())
}

/// Lets a collector read these records, as CUPTI would hand them over in one buffer; `cut` bytes are missing at its end.
pub fn parse(collector: &Collector, records: &[Vec<u8>], cut: usize) {
    let mut buffer: Vec<u8> = records.concat();
    let mut sizes = [0; 32];
    for (size, record) in sizes.iter_mut().zip(records) {
        *size = record.len();
    }
    SIZES.set((sizes, 0));
    // SAFETY: a buffer of records as CUPTI would hand it back.
    unsafe { collector.parse(buffer.as_mut_ptr(), buffer.len() - cut) };
}
