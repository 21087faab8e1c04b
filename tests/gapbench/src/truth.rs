//! Reading what a workload says that it planted.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// One planted stall.
#[derive(Clone, Debug, Deserialize)]
pub struct Planted {
    /// Just before the act, CLOCK_MONOTONIC.
    pub start_ns: i64,
    /// Just after it.
    pub end_ns: i64,
    /// What it honestly consists of.
    pub cause: Causes,
    /// What goes with it in the same interval and is everywhere else, too: right there, not counted elsewhere.
    #[serde(default)]
    pub also: Option<Causes>,
    /// Its file or peer.
    pub object: Option<String>,
    /// The synchronising call that had emptied the queue.
    pub enabler: Option<String>,
    /// What was done, where a scenario does several things.
    #[serde(default)]
    pub deed: Option<String>,
    /// Other programs took the CPU from it meanwhile, says the kernel: it is left out of all sums.
    #[serde(default)]
    pub disturbed: bool,
    /// Where there are several ranks, the process that uses this one's GPU.
    #[serde(default)]
    pub gpu_pid: Option<i32>,
    /// Other ranks wait for this one meanwhile: what the chains of their waits lead over.
    #[serde(default)]
    pub late: Option<String>,
    /// The process that commits it.
    pub pid: i32,
    /// The thread that commits it.
    pub tid: i32,
}

/// A code of a cause or a prefix of one, or a list of them.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub enum Causes {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Causes {
    /// Whether a segment's cause is one of these, or below one of these.
    pub fn cover(&self, cause: &str) -> bool {
        let covers = |code: &str| {
            cause.strip_prefix(code).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        match self {
            Self::One(code) => covers(code),
            Self::Several(codes) => codes.iter().any(|code| covers(code)),
        }
    }
}

/// Planted stalls in order of time, to be found by time and by label.
pub struct Plan<'a> {
    lines: Vec<&'a Planted>,
    longest: i64,
    labels: Vec<&'a Planted>,
}

impl<'a> Plan<'a> {
    /// Of the lines of a truth.
    pub fn new(truth: &'a [Planted]) -> Self {
        let mut lines: Vec<&Planted> = truth.iter().collect();
        lines.sort_by_key(|line| line.start_ns);
        let longest = lines.iter().map(|line| line.end_ns - line.start_ns).max().unwrap_or(0);
        let mut labels: Vec<&Planted> = Vec::new();
        for line in truth {
            if !labels.iter().any(|known| known.cause == line.cause && known.object == line.object) {
                labels.push(line);
            }
        }
        Self { lines, longest, labels }
    }

    /// The stalls that overlap `[start, end)`.
    pub fn during(&self, start: i64, end: i64) -> impl Iterator<Item = &'a Planted> {
        let first = self.lines.partition_point(|line| line.start_ns < start - self.longest);
        let candidates = self.lines[first..].iter().take_while(move |line| line.start_ns < end);
        candidates.filter(move |line| line.end_ns > start).copied()
    }

    /// One stall for each distinct cause and object.
    pub fn labels(&self) -> impl Iterator<Item = &'a Planted> {
        self.labels.iter().copied()
    }
}

/// Reads the lines of a truth file.
///
/// # Errors
/// The file cannot be read, or a line is no JSON of this shape.
pub fn read(path: &Path) -> Result<Vec<Planted>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read the truth {}", path.display()))?;
    let parse = |(number, line)| {
        serde_json::from_str(line)
            .with_context(|| format!("{}: line {} is no truth", path.display(), number + 1))
    };
    text.lines().enumerate().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::{Causes, Plan, Planted};

    #[test]
    fn a_prefix_ends_at_a_dot() {
        let causes = Causes::One("storage.read".into());
        assert!(causes.cover("storage.read"));
        assert!(causes.cover("storage.read.device"));
        assert!(!causes.cover("storage.readahead"));
        assert!(!causes.cover("storage"));
    }

    #[test]
    fn stalls_are_found_by_time() {
        let stall = |start_ns, end_ns| Planted {
            start_ns,
            end_ns,
            cause: Causes::One("a".into()),
            also: None,
            object: None,
            enabler: None,
            deed: None,
            disturbed: false,
            gpu_pid: None,
            late: None,
            pid: 1,
            tid: 1,
        };
        let truth = [stall(50, 60), stall(0, 100), stall(70, 75)];
        let plan = Plan::new(&truth);
        let starts = |start, end| plan.during(start, end).map(|line| line.start_ns).collect::<Vec<_>>();
        assert_eq!(starts(60, 71), [0, 70]);
        assert_eq!(starts(55, 56), [0, 50]);
        assert!(starts(100, 200).is_empty());
        assert_eq!(plan.labels().count(), 1);
    }

    #[test]
    fn one_cause_or_several_are_read() {
        let line = r#"{"start_ns": 1, "end_ns": 2, "cause": "net.recv", "object": "a:1", "pid": 3, "tid": 4, "rank": 0}"#;
        let planted: Planted = serde_json::from_str(line).expect("a line of truth");
        assert_eq!((planted.cause, planted.object.as_deref()), (Causes::One("net.recv".into()), Some("a:1")));
        let line = r#"{"start_ns": 1, "end_ns": 2, "cause": ["a", "b"], "pid": 3, "tid": 4, "rank": 0}"#;
        let planted: Planted = serde_json::from_str(line).expect("a line of truth");
        assert!(planted.cause.cover("b.c") && planted.object.is_none());
    }
}
