//! A GPU's steps as bars, one beside the other: what each took, and how much of it the GPU computed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::markup::Markup;
use crate::report::text::style::{plural, time};
use crate::store::schema::Step;
use crate::store::{Bundle, StoreError};

/// Bars of one GPU; of more steps each bar is the mean of some.
const BARS: usize = 240;
/// A bar is drawn up to so many times the length that 19 of 20 do not exceed.
const HIGHEST: i64 = 2;

/// The parts of a step (computing, only copying, only communicating, idle), from the ground up, each with its class of the style
/// sheet. Idle time has the grey of other causes here: on the ground of a chart its own could not be told from nothing.
const PARTS: [&str; 4] = ["busy", "copy", "comm", "c0"];

/// A bar: the mean length of each part.
type Bar = [i64; 4];

/// The bars of each GPU.
#[derive(Debug, Default)]
pub struct StepCharts {
    devices: BTreeMap<i32, Vec<Bar>>,
}

impl StepCharts {
    /// Reads the steps of an analysed bundle.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn collect(bundle: &Bundle) -> Result<Self, StoreError> {
        let mut devices: BTreeMap<i32, Vec<Bar>> = BTreeMap::new();
        for step in bundle.scan::<Step>()? {
            let step = step?;
            let bar = [step.compute_ns.0, step.exposed_copy_ns.0, step.exposed_comm_ns.0, step.idle_ns.0];
            devices.entry(step.device.0).or_default().push(bar.map(|ns| ns.max(0)));
        }
        Ok(Self { devices })
    }

    /// Draws those of one GPU, if there are any.
    pub fn draw(&self, page: &mut Markup, device: i32) {
        let Some(steps) = self.devices.get(&device).filter(|steps| steps.len() > 1) else { return };
        let together = steps.len().div_ceil(BARS);
        let bars: Vec<Bar> = steps.chunks(together).map(mean).collect();
        let mut lengths: Vec<i64> = bars.iter().map(length).collect();
        let longest = lengths.iter().max().copied().unwrap_or(0);
        lengths.sort_unstable();
        let usual = lengths.get(lengths.len() * 19 / 20).copied().unwrap_or(longest);
        let high = longest.min(usual.saturating_mul(HIGHEST)).max(1);
        let label = format!(
            "{} in order of time, each as a bar of its parts: computing, only copying, only communicating, idle",
            plural(steps.len() as u64, "step")
        );
        let view = [
            ("class", "bars"),
            ("viewBox", "0 0 1000 100"),
            ("preserveAspectRatio", "none"),
            ("role", "img"),
            ("aria-label", label.as_str()),
        ];
        page.with("svg", &view, |page| {
            page.with("rect", &[("class", "ground"), ("width", "1000"), ("height", "100")], |_| ());
            let width = 1000.0 / bars.len() as f64;
            for (index, bar) in bars.iter().enumerate() {
                column(page, index as f64 * width, width, bar, high);
            }
        });
        let mut words = format!("height: {}", time(high));
        // Writing to a String cannot fail.
        if together > 1 {
            let _ = write!(words, "; each bar is the mean of {together} steps");
        }
        let cut = bars.iter().filter(|bar| length(bar) > high).count() as u64;
        if cut > 0 {
            let _ =
                write!(words, "; {} cut off at the top, the longest {}", plural(cut, "bar"), time(longest));
        }
        page.leaf("p", &[("class", "faint")], &words);
    }
}

fn length(bar: &Bar) -> i64 {
    bar.iter().sum()
}

fn mean(steps: &[Bar]) -> Bar {
    let count = steps.len().max(1) as i64;
    let mut sums = [0; 4];
    for step in steps {
        for (sum, ns) in sums.iter_mut().zip(step) {
            *sum += ns;
        }
    }
    sums.map(|sum| sum / count)
}

/// One bar; what is higher than the chart is cut, and its top marked.
fn column(page: &mut Markup, x: f64, width: f64, bar: &Bar, high: i64) {
    let (x, wide) = (format!("{x:.2}"), format!("{:.2}", width * 0.86));
    let mut below = 0;
    for (class, ns) in PARTS.into_iter().zip(bar) {
        let seen = (*ns).min(high - below);
        if seen <= 0 {
            continue;
        }
        let at = |ns: i64| ns as f64 * 100.0 / high as f64;
        let (y, tall) = (format!("{:.2}", 100.0 - at(below + seen)), format!("{:.2}", at(seen)));
        page.with(
            "rect",
            &[("class", class), ("x", &x), ("width", &wide), ("y", &y), ("height", &tall)],
            |_| (),
        );
        below += seen;
    }
    if length(bar) > high {
        page.with("rect", &[("class", "worse"), ("x", &x), ("width", &wide), ("height", "3")], |_| ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(steps: Vec<Bar>) -> String {
        let mut page = Markup::default();
        StepCharts { devices: BTreeMap::from([(0, steps)]) }.draw(&mut page, 0);
        page.finish()
    }

    #[test]
    fn many_steps_share_bars() {
        let page = drawn(vec![[10, 0, 0, 10]; 10_000]);
        assert_eq!(page.matches("class=\"busy\"").count(), 239);
        assert!(page.contains("each bar is the mean of 42 steps") && page.len() < 100_000);
    }

    #[test]
    fn a_step_that_is_far_longer_is_cut_and_said() {
        let mut steps = vec![[1_000_000, 0, 0, 1_000_000]; 40];
        steps[7] = [1_000_000, 0, 0, 90_000_000];
        let page = drawn(steps);
        assert_eq!(page.matches("class=\"worse\"").count(), 1);
        assert!(page.contains("height: 4.00 ms; 1 bar cut off at the top, the longest 91.00 ms"), "{page}");
    }

    #[test]
    fn no_steps_no_chart() {
        assert_eq!(drawn(vec![]), "");
        assert_eq!(drawn(vec![[1, 0, 0, 0]]), "");
    }
}
