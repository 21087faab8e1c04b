//! The two ends against each other, and the reading end against nonsense.

extern crate std;

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::boxed::Box;
use std::thread;
use std::vec;
use std::vec::Vec;

use super::*;

struct Memory {
    header: Box<RingHeader>,
    data: Vec<AtomicU64>,
}

impl Memory {
    fn new(bytes: usize) -> Self {
        // SAFETY: all zero is a valid header: atomics of integers.
        let header = unsafe { Box::new(core::mem::zeroed::<RingHeader>()) };
        Self { header, data: (0..bytes / 8).map(|_| AtomicU64::new(0)).collect() }
    }

    fn producer(&self) -> Producer<'_> {
        Producer::new(&self.header, &self.data)
    }

    fn consumer(&self) -> Consumer<'_> {
        Consumer::new(&self.header, &self.data).expect("positions are fresh")
    }
}

fn clock(n: u64) -> ClockRecord {
    ClockRecord { before_ns: n, other_ns: !n, after_ns: n.wrapping_mul(3), which: 1 }
}

#[test]
fn what_is_written_is_read_in_order_over_many_laps() {
    let memory = Memory::new(1024);
    let (producer, mut consumer) = (memory.producer(), memory.consumer());
    let mut read = 0;
    for n in 0..10_000_u64 {
        let tail = n.to_ne_bytes();
        let name = NameRecord { hash: n, length: (n % 8) as u32, truncated: 0 };
        assert!(producer.write_with(&name, &tail[..(n % 8) as usize]));
        assert!(producer.write(&clock(n)));
        if n % 3 == 2 {
            while consumer.take().expect("the ring is sound") == Next::Record(RecordKind::Name) {
                let name: NameRecord = consumer.record().expect("it is one");
                assert_eq!(name.hash, read);
                assert_eq!(
                    consumer.tail::<NameRecord>(name.length as usize),
                    &read.to_ne_bytes()[..(read % 8) as usize]
                );
                assert_eq!(consumer.take(), Ok(Next::Record(RecordKind::Clock)));
                assert_eq!(consumer.record::<ClockRecord>(), Some(clock(read)));
                read += 1;
            }
        }
    }
    assert_eq!(read, 9_999);
    assert_eq!(memory.header.dropped.iter().map(|n| n.load(Relaxed)).sum::<u64>(), 0);
}

#[test]
fn a_full_ring_drops_and_counts_by_class() {
    let memory = Memory::new(1024);
    let (producer, mut consumer) = (memory.producer(), memory.consumer());
    let written = (0..100).filter(|n| producer.write(&clock(*n))).count();
    assert_eq!(written, 1024 / 40);
    assert_eq!(memory.header.dropped[Class::Clock as usize].load(Relaxed), 100 - written as u64);
    assert_eq!(memory.header.dropped[Class::Gpu as usize].load(Relaxed), 0);
    for n in 0..written as u64 {
        assert_eq!(consumer.take(), Ok(Next::Record(RecordKind::Clock)));
        assert_eq!(consumer.record::<ClockRecord>(), Some(clock(n)));
    }
    assert_eq!(consumer.take(), Ok(Next::Empty));
    assert!(producer.write(&clock(7)), "there is room again");
}

#[test]
fn many_producers_lose_and_double_nothing() {
    const EACH: u64 = 20_000;
    let memory = Memory::new(64 << 10);
    let mut seen = vec![0_u64; 4];
    thread::scope(|scope| {
        for who in 0..4_u64 {
            let producer = memory.producer();
            scope.spawn(move || {
                for n in 0..EACH {
                    let record = SessionRecord { token: who, time_ns: n };
                    while !producer.write_with(&record, &[who as u8; 13][..(n % 13) as usize]) {
                        thread::yield_now();
                    }
                }
            });
        }
        let mut consumer = memory.consumer();
        let mut left = 4 * EACH;
        while left > 0 {
            match consumer.take().expect("the ring is sound") {
                Next::Record(RecordKind::Session) => {
                    let record: SessionRecord = consumer.record().expect("it is one");
                    let expected = &mut seen[record.token as usize];
                    assert_eq!(record.time_ns, *expected, "each producer's records keep their order");
                    let tail = consumer.tail::<SessionRecord>((record.time_ns % 13) as usize);
                    assert!(tail.iter().all(|byte| u64::from(*byte) == record.token));
                    *expected += 1;
                    left -= 1;
                }
                Next::Empty | Next::Pending => thread::yield_now(),
                other => panic!("{other:?}"),
            }
        }
    });
    assert_eq!(seen, [EACH; 4]);
}

#[test]
fn a_writer_that_died_is_stepped_over_with_and_without_its_length() {
    let memory = Memory::new(1024);
    let producer = memory.producer();
    assert!(producer.write(&clock(1)));
    // Died after it wrote its length.
    let busy = memory.header.reserved.position.fetch_add(40, Relaxed);
    let slot = Slot { state: SlotState::Busy, kind: RecordKind::Clock as u8, words: 5 };
    memory.data[(busy / 8) as usize].store(slot.encode(busy), Relaxed);
    assert!(producer.write(&clock(2)));
    // Died before.
    memory.header.reserved.position.fetch_add(64, Relaxed);
    assert!(producer.write(&clock(3)));

    let mut consumer = memory.consumer();
    let mut read = Vec::new();
    let mut lost = 0;
    loop {
        match consumer.take().expect("the ring is sound") {
            Next::Record(_) => read.push(consumer.record::<ClockRecord>().expect("it is one").before_ns),
            Next::Pending => {
                lost += 1;
                assert!(consumer.step_over_pending().expect("the ring is sound"));
            }
            Next::Empty => break,
            Next::Unknown(kind) => panic!("kind {kind}"),
        }
    }
    assert_eq!((read.as_slice(), lost), ([1, 2, 3].as_slice(), 2));
}

#[test]
fn a_second_reader_goes_on_where_the_first_stopped() {
    let memory = Memory::new(1024);
    let producer = memory.producer();
    assert!(producer.write(&clock(1)) && producer.write(&clock(2)));
    assert_eq!(memory.consumer().take(), Ok(Next::Record(RecordKind::Clock)));
    let mut second = memory.consumer();
    assert_eq!(second.take(), Ok(Next::Record(RecordKind::Clock)));
    assert_eq!(second.record::<ClockRecord>(), Some(clock(2)));
}

#[test]
fn nonsense_is_refused_and_never_read_out_of_bounds() {
    // A simple generator is enough: words that are valid slots of random length, kind and state, and random positions.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..2_000 {
        let memory = Memory::new(1024);
        for index in 0..memory.data.len() as u64 {
            let state = if random() % 4 == 0 { SlotState::Busy } else { SlotState::Ready };
            let words = if random() % 8 == 0 { random() as u16 } else { (random() % 9) as u16 };
            let slot = Slot { state, kind: (random() % 20) as u8, words };
            memory.data[index as usize].store(slot.encode(index * 8), Relaxed);
        }
        memory
            .header
            .reserved
            .position
            .store(if random() % 4 == 0 { random() } else { random() % 129 * 8 }, Relaxed);
        memory.header.consumed.position.store(if random() % 16 == 0 { random() } else { 0 }, Relaxed);
        let Ok(mut consumer) = Consumer::new(&memory.header, &memory.data) else { continue };
        for _ in 0..1_000 {
            match consumer.take() {
                Ok(Next::Record(_)) => {
                    let _ =
                        (consumer.record::<KernelRecord>(), consumer.tail::<NameRecord>(usize::MAX).len());
                }
                Ok(Next::Pending) if consumer.step_over_pending() == Ok(true) => {}
                Ok(Next::Unknown(_)) => {}
                Ok(Next::Pending | Next::Empty) | Err(_) => break,
            }
        }
    }
}

#[test]
fn a_text_is_cut_and_never_too_long() {
    let text = Memory::new(1024);
    text.header.notice.set(&[b'x'; 1000]);
    let mut out = [0; 504];
    assert_eq!(text.header.notice.get(&mut out), 504);
    text.header.notice.set(b"short");
    let length = text.header.notice.get(&mut out);
    assert_eq!(&out[..length], b"short");
}
