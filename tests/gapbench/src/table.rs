//! Results as a table, as JSON, and as docs/accuracy.md.

use std::fmt::Write as _;

use serde::Serialize;

use crate::score::{ENOUGH, LEFT_OUT_AT_MOST, Score, UNKNOWN_AT_MOST};

/// The result of one case in one mode.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The case.
    pub name: String,
    /// `run` or `attach`.
    pub mode: &'static str,
    /// Its score, or why there is none.
    pub score: Result<Score, String>,
}

impl Outcome {
    /// Whether it passes.
    pub fn passes(&self) -> bool {
        self.score.as_ref().is_ok_and(Score::passes)
    }
}

#[derive(Serialize)]
struct JsonRow<'a> {
    name: &'a str,
    mode: &'a str,
    passes: bool,
    #[serde(flatten)]
    score: Option<JsonScore>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonScore {
    recall: f64,
    precision: f64,
    unknown: f64,
    exact: f64,
    thread: f64,
    enabler: f64,
    conservation_ns: i64,
    gaps: usize,
    planted_ms: f64,
    left_out: f64,
}

/// All outcomes as a JSON list.
///
/// # Errors
/// Never in practice: the shape is fixed.
pub fn json(outcomes: &[Outcome]) -> serde_json::Result<String> {
    let rows: Vec<JsonRow<'_>> = outcomes
        .iter()
        .map(|outcome| JsonRow {
            name: &outcome.name,
            mode: outcome.mode,
            passes: outcome.passes(),
            score: outcome.score.as_ref().ok().map(|score| JsonScore {
                recall: score.recall,
                precision: score.precision,
                unknown: score.unknown,
                exact: score.exact,
                thread: score.thread,
                enabler: score.enabler,
                conservation_ns: score.conservation_ns,
                gaps: score.gaps,
                planted_ms: millis(score.planted_ns),
                left_out: score.left_out,
            }),
            error: outcome.score.as_ref().err().map(String::as_str),
        })
        .collect();
    serde_json::to_string_pretty(&rows)
}

/// All outcomes as a Markdown table, which reads well on a terminal too.
pub fn markdown(outcomes: &[Outcome]) -> String {
    let head = [
        "scenario",
        "mode",
        "recall",
        "precision",
        "unknown",
        "exact",
        "thread",
        "enabler",
        "gaps",
        "planted ms",
        "left out",
        "error ns",
        "",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for outcome in outcomes {
        let mut row = vec![outcome.name.clone(), outcome.mode.into()];
        if let Ok(score) = &outcome.score {
            row.extend([
                format!("{:.3}", score.recall),
                format!("{:.3}", score.precision),
                format!("{:.4}", score.unknown),
                format!("{:.3}", score.exact),
                format!("{:.3}", score.thread),
                format!("{:.3}", score.enabler),
                score.gaps.to_string(),
                format!("{:.1}", millis(score.planted_ns)),
                format!("{:.3}", score.left_out),
                score.conservation_ns.to_string(),
                verdict(outcome, score),
            ]);
        } else {
            row.resize(head.len() - 1, "-".into());
            row.push("NOT RECORDED".into());
        }
        rows.push(row);
    }
    aligned(&rows)
}

fn verdict(outcome: &Outcome, score: &Score) -> String {
    if outcome.passes() {
        return "passes".into();
    }
    let low = [
        ("recall", score.recall),
        ("precision", score.precision),
        ("thread", score.thread),
        ("enabler", score.enabler),
    ];
    let mut why: Vec<&str> =
        low.into_iter().filter(|(_, share)| *share < ENOUGH).map(|(name, _)| name).collect();
    if score.unknown > UNKNOWN_AT_MOST {
        why.push("unknown");
    }
    if score.left_out > LEFT_OUT_AT_MOST {
        why.push("disturbed");
    }
    if score.conservation_ns != 0 {
        why.push("conservation");
    }
    format!("FAILS: {}", why.join(", "))
}

/// Rows as a Markdown table with columns of even width.
pub fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (column, width) in widths.iter().enumerate() {
            let cell = row.get(column).map_or("", String::as_str);
            let _ = write!(text, "| {cell:width$} ");
        }
        text.push_str("|\n");
        if number == 0 {
            for width in &widths {
                let _ = write!(text, "|{}", "-".repeat(width + 2));
            }
            text.push_str("|\n");
        }
    }
    text
}

fn millis(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Score {
        Score {
            recall: 0.99,
            precision: 0.98,
            exact: 1.0,
            thread: 1.0,
            enabler: 1.0,
            gaps: 40,
            planted_ns: 1_500_000,
            ..Score::default()
        }
    }

    #[test]
    fn the_table_says_what_fails() {
        let bad = Score { precision: 0.5, unknown: 0.2, ..good() };
        let outcomes = [
            Outcome { name: "sleep".into(), mode: "run", score: Ok(good()) },
            Outcome { name: "lock".into(), mode: "attach", score: Ok(bad) },
            Outcome { name: "decode".into(), mode: "run", score: Err("no root".into()) },
        ];
        let text = markdown(&outcomes);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(lines[2].contains("| passes"), "{text}");
        assert!(lines[3].contains("FAILS: precision, unknown"), "{text}");
        assert!(lines[4].contains("NOT RECORDED"), "{text}");
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
    }

    #[test]
    fn the_json_has_the_documented_names() {
        let text = json(&[Outcome { name: "sleep".into(), mode: "run", score: Ok(good()) }]).expect("JSON");
        let rows: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        for name in ["name", "mode", "recall", "precision", "unknown", "exact", "gaps", "planted_ms"] {
            assert!(rows[0].get(name).is_some(), "{name} is missing in {text}");
        }
        assert_eq!(rows[0]["planted_ms"], 1.5);
    }
}
