//! What a person sees: results on stdout, everything else on stderr.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Global;
use super::failure::Failure;
use crate::report::escape::escape_line;
use crate::report::text::style::Style;

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// When writing to a terminal and `NO_COLOR` is not set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// After how long a command that still works shows a progress bar or says what it is doing.
const PATIENCE: Duration = Duration::from_secs(1);

/// The terminal, or what stands in its place.
#[derive(Clone, Debug)]
pub struct Ui {
    /// What goes to stderr: below 0 only warnings and errors, 0 what is being done, above 0 details.
    volume: i16,
    stderr_is_terminal: bool,
    stdout_colors: bool,
    stderr_colors: bool,
}

impl Ui {
    /// As the options and the environment say.
    #[must_use]
    pub fn new(global: &Global) -> Self {
        // https://no-color.org: set and not empty, whatever its value.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let colors = |terminal: bool| match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !no_color && !dumb,
        };
        Self {
            volume: if global.quiet { -1 } else { i16::from(global.verbose) },
            stderr_is_terminal: io::stderr().is_terminal() && !dumb,
            stdout_colors: colors(io::stdout().is_terminal()),
            stderr_colors: colors(io::stderr().is_terminal()),
        }
    }

    /// A silent one without colours, for tests and for commands that others call.
    #[must_use]
    pub fn silent() -> Self {
        Self { volume: -1, stderr_is_terminal: false, stdout_colors: false, stderr_colors: false }
    }

    /// How results on stdout are to look: colours, and the terminal's width.
    #[must_use]
    pub fn style(&self) -> Style {
        // Where there is no terminal, wide enough for a file that is read in an editor.
        let columns = console::Term::stdout().size_checked().map_or(120, |(_, columns)| usize::from(columns));
        Style { colors: self.stdout_colors, columns: columns.clamp(80, 180) }
    }

    /// How often `-v` was given.
    #[must_use]
    pub fn verbosity(&self) -> u8 {
        u8::try_from(self.volume).unwrap_or(0)
    }

    /// Prints a result on stdout, as it is (the caller has escaped what came from outside). A reader that has gone
    /// away (`gtrace report x | head`) is no error.
    ///
    /// # Errors
    /// stdout cannot be written.
    pub fn print(&self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }

    /// Says what is being done, unless `--quiet`.
    pub fn say(&self, line: &str) {
        if self.volume >= 0 {
            self.line(&escape_line(line));
        }
    }

    /// Says a detail, with `-v`.
    pub fn detail(&self, line: &str) {
        if self.volume > 0 {
            self.line(&escape_line(line));
        }
    }

    /// Says a warning, always.
    pub fn warn(&self, line: &str) {
        let (on, off) = self.paint("33;1");
        self.line(&format!("{on}warning:{off} {}", escape_line(line)));
    }

    /// Says an error in its three parts, always.
    pub fn error(&self, error: &anyhow::Error) {
        let parts = Failure::of(error);
        let (on, off) = self.paint("31;1");
        self.line(&format!("{on}error:{off} {}", escape_line(&parts.what)));
        if let Some(why) = &parts.why {
            self.line(&format!("  why: {}", escape_line(why)));
        }
        if let Some(remedy) = &parts.remedy {
            self.line(&format!("  try: {}", escape_line(remedy)));
        }
    }

    /// Begins work that may take long. On a terminal a bar appears after a second; elsewhere a plain line does, and
    /// another at the end. `total` is in whatever unit [`Progress::advance`] counts; `None` if it is not known.
    #[must_use]
    pub fn progress(&self, what: &str, total: Option<u64>) -> Progress {
        let bar = (self.stderr_is_terminal && self.volume >= 0).then(|| {
            let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
            let template = if total.is_some() {
                "{spinner} {msg} {bar:30} {percent}% {elapsed}"
            } else {
                "{spinner} {msg} {elapsed}"
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.set_message(what.to_owned());
            bar
        });
        Progress {
            ui: self.clone(),
            shared: Arc::new(Shared {
                what: what.to_owned(),
                began: Instant::now(),
                bar,
                announced: AtomicBool::new(false),
                done: AtomicU64::new(0),
                total,
            }),
        }
    }

    fn paint(&self, code: &str) -> (String, &'static str) {
        if self.stderr_colors { (format!("\u{1b}[{code}m"), "\u{1b}[0m") } else { (String::new(), "") }
    }

    #[allow(
        clippy::unused_self,
        reason = "the only place that writes to stderr belongs to the terminal's owner"
    )]
    fn line(&self, line: &str) {
        // A closed stderr must not stop the work.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
}

/// Work under way; ends when it is dropped.
#[derive(Clone)]
pub struct Progress {
    ui: Ui,
    shared: Arc<Shared>,
}

struct Shared {
    what: String,
    began: Instant,
    bar: Option<ProgressBar>,
    announced: AtomicBool,
    done: AtomicU64,
    total: Option<u64>,
}

impl Progress {
    /// So much more is done. Cheap enough for every batch, not for every row.
    pub fn advance(&self, more: u64) {
        let done = self.shared.done.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        if self.shared.began.elapsed() < PATIENCE {
            return;
        }
        let first = !self.shared.announced.swap(true, Ordering::Relaxed);
        if let Some(bar) = &self.shared.bar {
            if first {
                bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            bar.set_position(done.min(self.shared.total.unwrap_or(u64::MAX)));
        } else if first {
            self.ui.say(&format!("{} …", self.shared.what));
        }
    }

    /// Says something else about what is being done.
    pub fn describe(&self, what: &str) {
        if let Some(bar) = &self.shared.bar {
            bar.set_message(what.to_owned());
        }
        self.advance(0);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
