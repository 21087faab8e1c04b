//! `gtrace doctor`: what this machine can record. Nothing is changed, and no library is loaded to look at it.

mod gpu;
mod kernel;
mod libraries;
mod system;

use clap::Args;
use serde::Serialize;

use super::{ExitStatus, Result, Ui};
use crate::report::escape::{escape_line, width};
use crate::report::text::Page;
use crate::report::text::style::{Look, Style, plural};

/// Arguments of `gtrace doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// As it should be.
    Ok,
    /// Something cannot be recorded.
    Limited,
    /// Nothing of that side can be recorded.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
struct Check {
    /// What.
    name: &'static str,
    /// How it is.
    state: State,
    /// In words.
    says: String,
    /// What to do, where it is not as it should be.
    remedy: Option<String>,
    /// Without it nothing can be recorded.
    essential: bool,
}

impl Check {
    fn ok(name: &'static str, says: impl Into<String>) -> Self {
        Self { name, state: State::Ok, says: says.into(), remedy: None, essential: false }
    }

    fn limited(name: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { state: State::Limited, remedy: Some(remedy.into()), ..Self::ok(name, says) }
    }

    fn missing(name: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { state: State::Missing, remedy: Some(remedy.into()), ..Self::ok(name, says) }
    }

    fn essential(self) -> Self {
        Self { essential: true, ..self }
    }

    /// Whether nothing can be recorded because of it.
    fn forbids(&self) -> bool {
        self.essential && self.state == State::Missing
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Findings<'a> {
    format: &'static str,
    version: u32,
    /// The host side can be recorded.
    can_record: bool,
    /// A real or simulated GPU side can be recorded: driver, shim and nothing in the way.
    can_record_gpu: bool,
    checks: &'a [Check],
}

/// Checks what this machine can record.
///
/// # Errors
/// stdout cannot be written.
pub fn run(args: &DoctorArgs, ui: &Ui) -> Result<ExitStatus> {
    let progress = ui.progress("trying the kernel's probes", None);
    let mut checks = kernel::checks();
    drop(progress);
    let gpu = gpu::checks();
    let can_record = !checks.iter().any(Check::forbids);
    let can_record_gpu = can_record && gpu.iter().all(|check| check.state != State::Missing);
    checks.extend(gpu);
    checks.extend(system::checks());
    let text = if args.json {
        let findings =
            Findings { format: "gtrace.doctor", version: 1, can_record, can_record_gpu, checks: &checks };
        crate::report::json::pretty(&findings)?
    } else {
        render(&checks, can_record, can_record_gpu, ui.style())
    };
    ui.print(&text)?;
    Ok(if can_record { ExitStatus::Done } else { ExitStatus::Failed })
}

fn render(checks: &[Check], can_record: bool, can_record_gpu: bool, style: Style) -> String {
    let mut page = Page { style, text: String::new() };
    let widest = checks.iter().map(|check| width(check.name)).max().unwrap_or(0);
    for check in checks {
        let (word, look) = match check.state {
            State::Ok => ("ok     ", Look::Good),
            State::Limited => ("limited", Look::Careful),
            State::Missing => ("MISSING", Look::Bad),
        };
        let lead = format!("{word}  {:widest$}  ", check.name);
        let mut lines = Page { style: Style { colors: false, ..style }, text: String::new() };
        lines.paragraph(&lead, &escape_line(&check.says));
        if let Some(remedy) = &check.remedy {
            let lead = format!("{:1$}", "", width(&lead));
            lines.paragraph(&format!("{lead}→ "), &escape_line(remedy));
        }
        page.text.push_str(&lines.text.replacen(word, &style.paint(look, word), 1));
    }
    page.line("");
    let limited = checks.iter().filter(|check| check.state != State::Ok).count();
    let verdict = match (can_record, can_record_gpu) {
        (false, _) => "This machine cannot record as it is: see what is missing above.".to_owned(),
        (true, false) => {
            "The host side can be recorded; the GPU side cannot (`gtrace demo` shows both on a simulated GPU).".to_owned()
        }
        (true, true) if limited == 0 => "Everything can be recorded.".to_owned(),
        (true, true) => format!("This machine can record; {} above.", plural(limited as u64, "remark")),
    };
    let look = if can_record { Look::Good } else { Look::Bad };
    page.line(&style.paint(look, &verdict));
    page.text
}

/// A small file's text; `None` if it is not there or not readable. Bounded: /proc and /sys can be mounted over.
fn read_small(path: &str) -> Option<String> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(64 * 1024).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_something_essential_forbids_recording() {
        assert!(!Check::missing("driver", "none", "install it").forbids());
        assert!(!Check::limited("kernel", "old", "update").essential().forbids());
        assert!(Check::missing("rights", "none", "use sudo").essential().forbids());
    }

    #[test]
    fn every_line_of_this_machine_has_words_and_problems_have_remedies() {
        let mut checks = kernel::checks();
        checks.extend(gpu::checks());
        checks.extend(system::checks());
        for check in &checks {
            assert!(!check.says.is_empty(), "{check:?}");
            assert_eq!(check.state == State::Ok, check.remedy.is_none(), "{check:?}");
        }
        let page = render(&checks, true, false, Style { colors: false, columns: 100 });
        assert!(page.lines().all(|line| width(line) <= 100), "{page}");
    }
}
