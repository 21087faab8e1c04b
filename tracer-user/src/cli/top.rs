//! `gtrace top`.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::Args;

use super::recording::{announce, failure};
use super::{ExitStatus, Result, Ui, parse_duration};
use crate::event::Pid;
use crate::record::{Notice, Request, Target, clocks, record};
use crate::report::escape::escape_line;
use crate::store::Bundle;
use crate::top::{self, SETTLED_NS, draw};

/// Rows reach the disk this soon.
const SEAL_AFTER: Duration = Duration::from_millis(900);

/// Arguments of `gtrace top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// The process; all its descendants are looked at with it.
    #[arg(value_name = "PID")]
    pub pid: i32,
    /// How long the stretch of time is that is looked at.
    #[arg(long, short, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    pub window: Duration,
    /// How often it is drawn; less often where looking takes long.
    #[arg(long, short, value_name = "TIME", value_parser = parse_duration, default_value = "1s")]
    pub interval: Duration,
    /// Stop after so long; without it: on Ctrl-C, or when the process ends.
    #[arg(long, short, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Bring nothing into the process: the GPU side is made of the driver's calls alone.
    #[arg(long)]
    pub no_cupti: bool,
}

/// Shows what the GPUs wait for while it happens.
///
/// # Errors
/// The process cannot be recorded.
pub fn run(args: &TopArgs, ui: &Ui) -> Result<ExitStatus> {
    let folder = Folder::new();
    let request = Request {
        target: Target::Attach(Pid(args.pid)),
        output: Some(folder.0.clone()),
        duration: args.duration,
        calls_over: crate::record::CALLS_OVER,
        stack_rate: crate::record::STACK_RATE,
        inject: !args.no_cupti,
        no_cupti: args.no_cupti,
        wish: crate::record::Wish::default(),
        owner: None,
        keep: Some(args.window + Duration::from_nanos(SETTLED_NS as u64)),
        seal_after: Some(SEAL_AFTER),
    };
    let done = Arc::new(AtomicBool::new(false));
    let mut screen: Option<JoinHandle<()>> = None;
    let recorded = record(&request, &mut |notice| match notice {
        // Not before: a thread that exists when the signals are caught would not catch them.
        Notice::HostAttached { root, name, output, missing_probes, .. } => {
            if !missing_probes.is_empty() {
                ui.warn(&format!("this kernel refused {} of the probes", missing_probes.len()));
            }
            let what = escape_line(&format!("{name} {root}"));
            let view =
                View { bundle: output, what, interval: args.interval, ui: ui.clone(), done: done.clone() };
            screen = std::thread::Builder::new().name("gtrace-top".into()).spawn(move || view.run()).ok();
        }
        notice @ (Notice::SteppedDown(_) | Notice::Client { .. }) => announce(notice, ui, ""),
        Notice::GpuAttached { .. } | Notice::CommandGoesOn | Notice::Ending(_) => {}
    });
    done.store(true, Ordering::Relaxed);
    if let Some(screen) = screen {
        let _ = screen.join();
    }
    let recorded =
        recorded.map_err(|error| failure(format!("cannot look at process {}", args.pid), &error))?;
    announce(Notice::Ending(ended(&recorded.meta.ended)), ui, "");
    Ok(ExitStatus::Done)
}

fn ended(how: &str) -> &'static str {
    match how {
        "target_exited" => "target_exited",
        "duration" => "duration",
        _ => "interrupted",
    }
}

/// The bundle's folder, which goes when the command does.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        // In memory where there is such a place: a few seconds of events are a few MB.
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        Self(parent.join(format!("gtrace-top-{}-{}.gtrace", std::process::id(), clocks::monotonic().0)))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The recorder made it anew, for its owner alone.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What draws.
struct View {
    bundle: PathBuf,
    what: String,
    interval: Duration,
    ui: Ui,
    done: Arc<AtomicBool>,
}

impl View {
    fn run(&self) {
        let terminal = io::stdout().is_terminal();
        let mut took = Duration::ZERO;
        // The first seconds are not whole yet.
        let mut next = Instant::now() + Duration::from_nanos(SETTLED_NS as u64) + self.interval;
        while self.wait_until(next) {
            next = Instant::now() + top::pause(self.interval, took);
            let began = Instant::now();
            let style = self.ui.style();
            let rows =
                console::Term::stdout().size_checked().map_or(40, |(rows, _)| usize::from(rows).max(12));
            let lines = match Bundle::open(&self.bundle)
                .map_err(Into::into)
                .and_then(|bundle| top::look(&bundle, clocks::monotonic()))
            {
                Ok(frame) => draw::lines(&frame, &self.what, style, rows.saturating_sub(1)),
                Err(error) => vec![self.what.clone(), String::new(), escape_line(&error.to_string())],
            };
            took = began.elapsed();
            if put(&lines, terminal).is_err() {
                // Nobody reads any more: the recording ends as on Ctrl-C.
                let _ = nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::Signal::SIGINT);
                return;
            }
        }
    }

    /// Whether there is another frame to draw.
    fn wait_until(&self, moment: Instant) -> bool {
        const STEP: Duration = Duration::from_millis(50);
        while !self.done.load(Ordering::Relaxed) {
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(STEP));
        }
        false
    }
}

/// On a terminal over the frame before, elsewhere below it.
fn put(lines: &[String], terminal: bool) -> io::Result<()> {
    let mut text = String::new();
    if terminal {
        text.push_str("\u{1b}[H");
        for line in lines {
            text.push_str(line);
            text.push_str("\u{1b}[K\n");
        }
        text.push_str("\u{1b}[J");
    } else {
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        text.push('\n');
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
