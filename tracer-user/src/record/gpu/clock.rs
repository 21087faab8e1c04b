//! From CUPTI's clock to CLOCK_MONOTONIC.
//!
//! A shim that was there from the start makes CUPTI use CLOCK_MONOTONIC; otherwise CUPTI uses CLOCK_REALTIME, which
//! slews and steps. Each drain first takes a bracketed reading of both, so that every record that is read after it lies
//! before a reading; times between two readings are interpolated. Which of the two clocks a time is on is seen from the
//! time itself: the clocks are decades apart on any machine whose date is set.

use std::collections::VecDeque;
use std::fs;

use nix::time::{ClockId, clock_gettime};
use tracer_abi::shim::ClockKind;

use super::row::GpuRow;
use super::words::WORDS;
use crate::event::{MonoNs, Pid, Text};
use crate::store::schema::{ClockSample, Loss};

/// Readings that are kept: some minutes. Older times use the oldest offset.
const MOST_SAMPLES: usize = 4096;
/// Tries for a narrow bracket.
const TRIES: usize = 20;
/// A row of `clocks` at most this often.
const ROW_EVERY_NS: i64 = 1_000_000_000;
/// An offset that moves by more than this beyond what slewing (500 ppm) explains is a step.
const STEP_NS: i64 = 50_000;
/// The two clocks can be told apart by a time alone if they differ by more than a day.
const APART_NS: i64 = 86_400 * 1_000_000_000;
/// A record cannot lie further in the future; less is the conversion's error.
const FUTURE_NS: i64 = 1_000_000_000;

/// A reading of both clocks, in ns.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Middle of the bracket.
    mono: i64,
    half_width: i64,
    real: i64,
}

impl Sample {
    fn offset_ns(self) -> i64 {
        self.real - self.mono
    }
}

/// The clocks of the host.
#[derive(Default)]
pub(super) struct Clocks {
    samples: VecDeque<Sample>,
    last_row_ns: Option<i64>,
    residual_ns: i64,
}

impl Clocks {
    /// Clocks with a first reading, which has no row yet.
    pub(super) fn new() -> Self {
        let mut clocks = Self::default();
        clocks.sample(&mut |_| ());
        clocks.last_row_ns = None;
        clocks
    }

    /// Takes a reading; now and then hands out a row, and a loss when CLOCK_REALTIME stepped.
    pub(super) fn sample(&mut self, sink: &mut impl FnMut(GpuRow)) {
        let Some((before, real, after)) = narrowest_reading() else { return };
        let sample =
            Sample { mono: before + (after - before) / 2, half_width: (after - before + 1) / 2, real };
        if self.last_row_ns.is_none_or(|last| sample.mono - last >= ROW_EVERY_NS) {
            self.last_row_ns = Some(sample.mono);
            sink(GpuRow::Clock(ClockSample {
                before_ns: MonoNs(before),
                other_ns: real,
                after_ns: MonoNs(after),
                clock: WORDS.realtime.clone(),
                pid: None,
            }));
        }
        if let Some(loss) = self.add(sample) {
            sink(GpuRow::Loss(loss));
        }
    }

    fn add(&mut self, sample: Sample) -> Option<Loss> {
        let step = self.samples.back().and_then(|last| {
            let moved = (sample.offset_ns() - last.offset_ns()).abs();
            let slew = (sample.mono - last.mono) / 2_000;
            (moved > STEP_NS + slew).then(|| Loss {
                source: Text::from("clock.step"),
                reason: Text::from(format!(
                    "CLOCK_REALTIME stepped by {} ns",
                    sample.offset_ns() - last.offset_ns()
                )),
                pid: None,
                start_ns: MonoNs(last.mono),
                end_ns: MonoNs(sample.mono),
                count: 1,
            })
        });
        if self.samples.len() == MOST_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        step
    }

    /// The last reading's moment.
    pub(super) fn now(&self) -> MonoNs {
        MonoNs(self.samples.back().map_or(0, |sample| sample.mono))
    }

    /// Largest error of a conversion so far: half a bracket, and how far the offset moved between the readings.
    pub(super) fn residual_ns(&self) -> i64 {
        self.residual_ns
    }

    /// `raw_ns` of a process's CUPTI on CLOCK_MONOTONIC of the host. `None`: it is no time, or lies in the future.
    pub(super) fn convert(&mut self, raw_ns: u64, process: ProcessClock) -> Option<MonoNs> {
        let raw = i64::try_from(raw_ns).ok()?;
        let latest = *self.samples.back()?;
        let mono = if is_realtime(raw, latest, process.kind) {
            let (mono, residual) = self.realtime_to_mono(raw)?;
            self.residual_ns = self.residual_ns.max(residual);
            mono
        } else {
            raw.checked_sub(process.monotonic_offset_ns)?
        };
        (mono > 0 && mono <= latest.mono.saturating_add(FUTURE_NS)).then_some(MonoNs(mono))
    }

    fn realtime_to_mono(&self, real: i64) -> Option<(i64, i64)> {
        // CLOCK_REALTIME may step back: the newest pair of readings around the time is meant.
        let after = self.samples.iter().rposition(|sample| sample.real <= real).map_or(0, |index| index + 1);
        let (Some(later), true) = (self.samples.get(after), after > 0) else {
            let edge = self.samples.get(after.saturating_sub(1))?;
            return Some((real - edge.offset_ns(), edge.half_width));
        };
        let earlier = self.samples[after - 1];
        let moved = i128::from(later.offset_ns() - earlier.offset_ns());
        let span = i128::from(later.real - earlier.real).max(1);
        let offset = earlier.offset_ns() + (moved * i128::from(real - earlier.real) / span) as i64;
        let residual = earlier.half_width.max(later.half_width) + (moved.unsigned_abs() as i64);
        Some((real - offset, residual))
    }
}

/// Whether a time is one of CLOCK_REALTIME: the nearer clock, or the stated one where the clocks are too close.
fn is_realtime(raw: i64, latest: Sample, stated: ClockKind) -> bool {
    if latest.offset_ns().abs() < APART_NS {
        return stated == ClockKind::Realtime;
    }
    raw.abs_diff(latest.real) < raw.abs_diff(latest.mono)
}

/// On which clock a process's CUPTI is.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessClock {
    /// What its shim says.
    pub(super) kind: ClockKind,
    /// By how much its CLOCK_MONOTONIC is ahead of ours (time namespace).
    pub(super) monotonic_offset_ns: i64,
}

impl ProcessClock {
    /// A time of its CLOCK_MONOTONIC on ours.
    pub(super) fn monotonic(self, raw_ns: u64) -> MonoNs {
        MonoNs(i64::try_from(raw_ns).unwrap_or(i64::MAX).saturating_sub(self.monotonic_offset_ns))
    }
}

/// By how much the CLOCK_MONOTONIC of a process is ahead of the initial one (time namespaces, Linux 5.6 and newer; 0
/// where there are none).
pub(super) fn monotonic_offset_ns(pid: Pid) -> i64 {
    let offset = |pid: &str| {
        let text = fs::read_to_string(format!("/proc/{pid}/timens_offsets")).unwrap_or_default();
        parse_monotonic_offset(&text).unwrap_or(0)
    };
    offset(&pid.to_string()) - offset("self")
}

fn parse_monotonic_offset(text: &str) -> Option<i64> {
    let mut fields = text.lines().find_map(|line| line.strip_prefix("monotonic"))?.split_whitespace();
    let seconds: i64 = fields.next()?.parse().ok()?;
    let nanoseconds: i64 = fields.next()?.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

fn narrowest_reading() -> Option<(i64, i64, i64)> {
    let read = |clock| clock_gettime(clock).ok().map(|time| time.tv_sec() * 1_000_000_000 + time.tv_nsec());
    (0..TRIES)
        .filter_map(|_| {
            Some((
                read(ClockId::CLOCK_MONOTONIC)?,
                read(ClockId::CLOCK_REALTIME)?,
                read(ClockId::CLOCK_MONOTONIC)?,
            ))
        })
        .min_by_key(|(before, _, after)| after - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: i64 = 1_800_000_000_000_000_000;
    const REALTIME: ProcessClock = ProcessClock { kind: ClockKind::Realtime, monotonic_offset_ns: 0 };

    fn clocks(samples: &[(i64, i64)]) -> Clocks {
        let mut clocks = Clocks::default();
        for &(mono, offset) in samples {
            clocks.add(Sample { mono, half_width: 20, real: mono + offset });
        }
        clocks
    }

    #[test]
    fn times_between_readings_are_interpolated_and_the_error_is_kept() {
        let mut clocks = clocks(&[(1_000_000_000, EPOCH), (2_000_000_000, EPOCH + 10_000)]);
        let middle = (EPOCH + 1_500_000_000 + 5_000) as u64;
        assert_eq!(clocks.convert(middle, REALTIME), Some(MonoNs(1_500_000_000)));
        assert_eq!(clocks.residual_ns(), 10_020);
        assert_eq!(
            clocks.convert((EPOCH + 500_000_000) as u64, REALTIME),
            Some(MonoNs(500_000_000)),
            "before the first"
        );
        let after = (EPOCH + 2_100_000_000 + 10_000) as u64;
        assert_eq!(clocks.convert(after, REALTIME), Some(MonoNs(2_100_000_000)), "after the last");
    }

    #[test]
    fn a_time_tells_its_clock_whatever_the_shim_says() {
        let mut clocks = clocks(&[(10_000_000_000, EPOCH)]);
        let stated = ProcessClock { kind: ClockKind::Monotonic, monotonic_offset_ns: 0 };
        assert_eq!(clocks.convert(9_000_000_000, REALTIME), Some(MonoNs(9_000_000_000)));
        assert_eq!(clocks.convert((EPOCH + 9_000_000_000) as u64, stated), Some(MonoNs(9_000_000_000)));
    }

    #[test]
    fn what_cannot_be_a_time_is_none() {
        let mut clocks = clocks(&[(10_000_000_000, EPOCH)]);
        for raw in [u64::MAX, i64::MAX as u64, 0, 20_000_000_000, (EPOCH + 20_000_000_000) as u64] {
            assert_eq!(clocks.convert(raw, REALTIME), None, "{raw}");
        }
    }

    #[test]
    fn a_step_is_a_loss_and_a_slew_is_none() {
        let mut clocks = clocks(&[(1_000_000_000, EPOCH)]);
        let slewed = Sample { mono: 2_000_000_000, half_width: 20, real: EPOCH + 2_000_000_000 + 400_000 };
        assert_eq!(clocks.add(slewed), None);
        let stepped = Sample { mono: 3_000_000_000, half_width: 20, real: EPOCH + 13_000_000_000 };
        let loss = clocks.add(stepped).expect("ten seconds are a step");
        assert_eq!((loss.start_ns, loss.end_ns), (MonoNs(2_000_000_000), MonoNs(3_000_000_000)));
    }

    #[test]
    fn a_time_namespace_is_subtracted() {
        let text = "monotonic           86400         5\nboottime                0         0\n";
        assert_eq!(parse_monotonic_offset(text), Some(86_400_000_000_005));
        let mut clocks = clocks(&[(10_000_000_000, EPOCH)]);
        let process = ProcessClock { kind: ClockKind::Monotonic, monotonic_offset_ns: 86_400_000_000_005 };
        assert_eq!(clocks.convert(86_409_000_000_005, process), Some(MonoNs(9_000_000_000)));
    }

    #[test]
    fn a_reading_of_the_real_clocks_is_narrow() {
        let mut rows = Vec::new();
        let mut clocks = Clocks::default();
        clocks.sample(&mut |row| rows.push(row));
        clocks.sample(&mut |row| rows.push(row));
        let [GpuRow::Clock(row)] = rows.as_slice() else { panic!("one row a second: {rows:?}") };
        assert!(row.before_ns < row.after_ns && row.after_ns.0 - row.before_ns.0 < 1_000_000);
    }
}
