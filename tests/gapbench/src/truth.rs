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
    /// Its file or peer.
    pub object: Option<String>,
    /// The synchronising call that had emptied the queue.
    pub enabler: Option<String>,
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
    use super::{Causes, Planted};

    #[test]
    fn a_prefix_ends_at_a_dot() {
        let causes = Causes::One("storage.read".into());
        assert!(causes.cover("storage.read"));
        assert!(causes.cover("storage.read.device"));
        assert!(!causes.cover("storage.readahead"));
        assert!(!causes.cover("storage"));
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
