//! What a shim counted as missing, as intervals.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tracer_abi::shim::{Class, RingHeader};

use super::row::GpuRow;
use crate::event::{MonoNs, Pid, Text};
use crate::store::schema::Loss;

/// Launches without a kernel before that is strange.
const SILENT_LAUNCHES: u64 = 32;
/// How long it must last.
const SILENT_NS: i64 = 2_000_000_000;

/// The counters of a header that stand for something lost, with the source and reason of its rows.
fn counters(header: &RingHeader) -> impl Iterator<Item = (&'static str, &'static str, &AtomicU64)> {
    let ring = Class::ALL.into_iter().zip(&header.dropped).map(|(class, counter)| {
        let reason = match class {
            Class::Gpu => "GPU work: the ring was full",
            Class::Api => "API calls: the ring was full",
            Class::Sync => "synchronisations: the ring was full",
            Class::Overhead => "overhead: the ring was full",
            Class::Info => "names and devices: the ring was full",
            Class::Clock => "clock readings: the ring was full",
            Class::Invalid => "notes of invalid records: the ring was full",
            Class::Marker => "marked ranges and calls of NCCL: the ring was full",
        };
        // Markers are no causes: what is left of them is as true as before.
        (if class == Class::Marker { "shim.markers" } else { "shim.ring" }, reason, counter)
    });
    ring.chain([
        ("cupti.dropped", "CUPTI had no room for records", &header.cupti_dropped),
        (
            "cupti.foreign",
            "buffers of another CUPTI client came to gtrace, and gtrace's may have gone to it",
            &header.foreign_buffers,
        ),
        ("shim.buffers", "CUPTI asked for a buffer when none was free", &header.refused_buffers),
        ("cupti.broken", "a buffer could not be read to its end", &header.broken_buffers),
        (UNKNOWN_KIND, "records of a kind that nobody asked for", &header.unknown_kinds),
    ])
}

/// Records of other kinds. Work of the device comes in the kinds that were asked for, whatever else comes: they are counted,
/// and no time is unknown by them.
const UNKNOWN_KIND: &str = "cupti.unknown_kind";

/// Counters as they were last.
pub(super) struct Losses {
    last: Vec<u64>,
    silence: Silence,
}

impl Losses {
    /// The counters as they are; what was lost before is not ours.
    pub(super) fn new(header: &RingHeader, now: MonoNs) -> Self {
        let kernels = header.kernels.load(Relaxed);
        let silence = Silence { kernels, launches: header.launches.load(Relaxed), since: now };
        Self { last: counters(header).map(|(_, _, counter)| counter.load(Relaxed)).collect(), silence }
    }

    /// Forgets that anything was before: nobody read the ring before us.
    pub(super) fn count_from_zero(&mut self) {
        self.last.iter_mut().for_each(|value| *value = 0);
        (self.silence.launches, self.silence.kernels) = (0, 0);
    }

    /// Hands out what was lost since `after`.
    pub(super) fn tell(
        &mut self,
        header: &RingHeader,
        pid: Pid,
        after: MonoNs,
        now: MonoNs,
        sink: &mut impl FnMut(GpuRow),
    ) {
        for ((source, reason, counter), last) in counters(header).zip(&mut self.last) {
            let value = counter.load(Relaxed);
            let count = value.saturating_sub(*last);
            *last = value;
            if count > 0 && source == UNKNOWN_KIND {
                let kind = header.unknown_kind.load(Relaxed);
                let reason = Text::from(format!("{reason}, the last of kind {kind}"));
                sink(loss(source, reason, pid, now, now, count));
            } else if count > 0 {
                sink(loss(source, reason.into(), pid, after, now, count));
            }
        }
        if let Some((since, launches)) = self.silence.look(header, now) {
            let reason =
                format!("{launches} launches and no kernel record: another CUPTI client may have taken over");
            sink(loss("cupti.silent", reason.into(), pid, since, now, launches));
        }
    }
}

/// A row.
pub(super) fn loss(source: &str, reason: Text, pid: Pid, start: MonoNs, end: MonoNs, count: u64) -> GpuRow {
    GpuRow::Loss(Loss {
        source: source.into(),
        reason,
        pid: Some(pid),
        start_ns: start.min(end),
        end_ns: end,
        count: i64::try_from(count).unwrap_or(i64::MAX),
    })
}

/// Whether launches are followed by kernels.
struct Silence {
    launches: u64,
    kernels: u64,
    /// Since when no kernel has come.
    since: MonoNs,
}

impl Silence {
    /// Launches since the last kernel, if they are many and old: since when, how many.
    ///
    /// One long kernel looks the same while it runs; a gap cannot lie under a running kernel, so nothing is taken from
    /// the causes by such a row.
    fn look(&mut self, header: &RingHeader, now: MonoNs) -> Option<(MonoNs, u64)> {
        let (launches, kernels) = (header.launches.load(Relaxed), header.kernels.load(Relaxed));
        let quiet = launches.saturating_sub(self.launches);
        if kernels != self.kernels || quiet == 0 {
            *self = Self { launches, kernels, since: now };
            return None;
        }
        if quiet < SILENT_LAUNCHES || now.0 - self.since.0 < SILENT_NS {
            return None;
        }
        let since = self.since;
        *self = Self { launches, kernels, since: now };
        Some((since, quiet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn header() -> Box<RingHeader> {
        // SAFETY: all zero is a valid header.
        Box::new(unsafe { std::mem::zeroed() })
    }

    fn tell(losses: &mut Losses, header: &RingHeader, seconds: i64) -> Vec<GpuRow> {
        let mut rows = Vec::new();
        losses.tell(header, Pid(7), MonoNs(seconds * SECOND - 5), MonoNs(seconds * SECOND), &mut |row| {
            rows.push(row);
        });
        rows
    }

    #[test]
    fn each_loss_is_told_once_and_what_was_before_us_never() {
        let header = header();
        header.dropped[Class::Gpu as usize].store(5, Relaxed);
        let mut losses = Losses::new(&header, MonoNs(0));
        assert_eq!(tell(&mut losses, &header, 1), []);
        header.dropped[Class::Gpu as usize].store(8, Relaxed);
        header.cupti_dropped.store(2, Relaxed);
        let reason = "GPU work: the ring was full";
        let expected = [
            loss("shim.ring", reason.into(), Pid(7), MonoNs(2 * SECOND - 5), MonoNs(2 * SECOND), 3),
            loss(
                "cupti.dropped",
                "CUPTI had no room for records".into(),
                Pid(7),
                MonoNs(2 * SECOND - 5),
                MonoNs(2 * SECOND),
                2,
            ),
        ];
        assert_eq!(tell(&mut losses, &header, 2), expected);
        assert_eq!(tell(&mut losses, &header, 3), []);
        header.cupti_dropped.store(0, Relaxed);
        assert_eq!(tell(&mut losses, &header, 4), [], "a counter that went back is no loss");
    }

    #[test]
    fn launches_without_kernels_are_strange_after_a_while() {
        let header = header();
        let mut losses = Losses::new(&header, MonoNs(0));
        for second in 1..10 {
            header.launches.fetch_add(100, Relaxed);
            header.kernels.fetch_add(100, Relaxed);
            assert_eq!(tell(&mut losses, &header, second), []);
        }
        header.launches.fetch_add(100, Relaxed);
        assert_eq!(tell(&mut losses, &header, 10), [], "they may still come");
        let rows = tell(&mut losses, &header, 12);
        let [GpuRow::Loss(row)] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((&*row.source, row.count), ("cupti.silent", 100));
        assert_eq!((row.start_ns, row.end_ns), (MonoNs(9 * SECOND), MonoNs(12 * SECOND)));
        assert_eq!(tell(&mut losses, &header, 15), [], "no further launches");
    }
}
