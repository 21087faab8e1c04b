//! Running one case under gtrace, and reading what is needed from its bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use gtrace::store::schema::{Gap as GapRow, GapSegment, Hop};
use gtrace::store::{Bundle, Meta};

use crate::beside::Beside;
use crate::case::{Case, Mode, Neighbour, Outside};
use crate::place::Place;
use crate::score::{Gap, Segment};
use crate::truth::{self, Planted};

/// How long a case runs.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    /// Rounds under `gtrace run`.
    pub rounds: u32,
    /// How long `gtrace attach` records.
    pub attach_ms: u32,
}

/// What a recorded case gives for scoring.
pub struct Recording {
    /// The bundle's gaps.
    pub gaps: Vec<Gap>,
    /// Their segments.
    pub segments: Vec<Segment>,
    /// What was planted.
    pub truth: Vec<Planted>,
    /// What the bundle says about itself.
    pub meta: Meta,
    /// Where it is.
    pub bundle: PathBuf,
}

/// Records a case and reads the result.
///
/// # Errors
/// A program cannot be started or fails, or the bundle cannot be read.
pub fn record(place: &Place, case: &Case, mode: Mode, length: Length) -> Result<Recording> {
    let files = Files::new(place, &format!("{}-{}", case.name(), mode.name()))?;
    let disk = (case.neighbour == Some(Neighbour::Disk))
        .then(|| Beside::start(place.program("workloads").arg("hammer").arg("--data").arg(place.data())))
        .transpose()?;
    let outside = case.outside.map(|outside| start_outside(place, outside)).transpose()?;
    let mut arguments = vec!["run".to_owned(), case.scenario.to_owned()];
    arguments.extend(["--data".into(), place.data().display().to_string()]);
    if let Some(Neighbour::Inside(kind)) = case.neighbour {
        arguments.extend(["--neighbour".into(), kind.to_owned()]);
    }
    if let (Some(Outside::Peer), Some(peer)) = (case.outside, &outside) {
        arguments.extend(["--peer".into(), peer.said().to_owned()]);
    }
    match mode {
        Mode::Run => run(place, &files, &arguments, length, &[])?,
        Mode::Attach => attach(place, &files, &arguments, length)?,
    }
    drop((disk, outside));
    read(&files)
}

struct Files {
    bundle: PathBuf,
    truth: PathBuf,
    log: PathBuf,
}

impl Files {
    /// Of a case of this name; what an earlier run left there is removed.
    fn new(place: &Place, base: &str) -> Result<Self> {
        std::fs::create_dir_all(place.data())
            .with_context(|| format!("cannot make {}", place.data().display()))?;
        let files = Self {
            bundle: place.work.join(format!("{base}.gtrace")),
            truth: std::path::absolute(place.work.join(format!("{base}.truth")))?,
            log: place.work.join(format!("{base}.log")),
        };
        if files.bundle.exists() {
            std::fs::remove_dir_all(&files.bundle)
                .with_context(|| format!("cannot remove the old {}", files.bundle.display()))?;
        }
        // The workload appends.
        let _ = std::fs::remove_file(&files.truth);
        Ok(files)
    }
}

/// Records a composed scenario on up to four GPUs, without one of its causes if that is named, and reads the result.
///
/// # Errors
/// The same.
pub fn composed(place: &Place, seed: u64, without: Option<&str>, rounds: u32) -> Result<Recording> {
    let files = Files::new(place, &format!("composed-{seed}-{}", without.unwrap_or("all")))?;
    let data = place.data().display().to_string();
    let mut arguments = vec!["run".to_owned(), "composed".into(), "--data".into(), data];
    arguments.extend(["--seed".into(), seed.to_string()]);
    if let Some(without) = without {
        arguments.extend(["--without".into(), without.to_owned()]);
    }
    // Read by the simulated driver only.
    run(place, &files, &arguments, Length { rounds, attach_ms: 0 }, &[("SIMCUDA_DEVICES", "4")])?;
    read(&files)
}

fn start_outside(place: &Place, outside: Outside) -> Result<Beside> {
    let command = match outside {
        Outside::Peer => "peer",
        Outside::Competitor => "compete",
        Outside::OtherUser => "share",
    };
    Beside::start(place.shared(&mut place.program("workloads")).arg(command))
}

fn run(
    place: &Place,
    files: &Files,
    arguments: &[String],
    length: Length,
    environment: &[(&str, &str)],
) -> Result<()> {
    let mut gtrace = place.program("gtrace");
    place.shared(&mut gtrace);
    gtrace.envs(environment.iter().copied());
    gtrace.arg("run").arg("-o").arg(&files.bundle).arg("--").arg(place.release_dir.join("workloads"));
    gtrace.args(arguments).args(["--rounds", &length.rounds.to_string()]).env("GTRACE_TRUTH", &files.truth);
    logged(&mut gtrace, &files.log)
}

fn attach(place: &Place, files: &Files, arguments: &[String], length: Length) -> Result<()> {
    let mut workload = place.program("workloads");
    place.shared(&mut workload).args(arguments).args(["--rounds", "0"]);
    workload.env("GTRACE_TRUTH", &files.truth).env("CUDA_INJECTION64_PATH", place.shim());
    workload.env("NVTX_INJECTION64_PATH", place.shim());
    let mut workload = Beside::start(&mut workload)?;
    let mut gtrace = place.program("gtrace");
    gtrace.arg("attach").arg(workload.pid().to_string()).arg("-o").arg(&files.bundle);
    gtrace.args(["--duration", &format!("{}ms", length.attach_ms)]);
    let recorded = logged(&mut gtrace, &files.log);
    workload.signal(libc::SIGTERM);
    let status = workload.wait()?;
    recorded?;
    if !status.success() {
        bail!("the workload ended with {status} after it was recorded");
    }
    Ok(())
}

/// Runs gtrace with its output in a file; that file's end is part of the error if it fails.
fn logged(gtrace: &mut Command, log: &Path) -> Result<()> {
    let file = std::fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let status = gtrace
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .status()
        .with_context(|| format!("cannot start {}", gtrace.get_program().display()))?;
    if status.success() {
        return Ok(());
    }
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(12)..].join("\n  ");
    bail!("gtrace ended with {status}; {} ends with:\n  {tail}", log.display());
}

/// Where the gaps of each device are put. Each device has a time of its own, far from the others': what is right on one does
/// not make another right.
struct Devices {
    /// By gap: how far its times are moved, and whether only a collective ran.
    places: BTreeMap<i64, (i64, bool)>,
    /// By device.
    devices: BTreeMap<i64, Device>,
}

/// What scoring needs of a device.
#[derive(Default)]
struct Device {
    /// The processes that used it.
    pids: BTreeSet<i32>,
    /// When only collectives ran.
    waits: Vec<(i64, i64)>,
}

impl Devices {
    fn of(gaps: &[GapRow]) -> Self {
        let mut found = Self { places: BTreeMap::new(), devices: BTreeMap::from([(0, Device::default())]) };
        for gap in gaps {
            let (device, communication) = (i64::from(gap.device.0), &*gap.kind == "exposed_comm");
            let entry = found.devices.entry(device).or_default();
            entry.pids.extend(gap.pid.map(|pid| pid.0));
            if communication {
                entry.waits.push((gap.start_ns.0, gap.end_ns.0));
            }
            found.places.insert(gap.gap_id.0, (apart(device), communication));
        }
        found
    }

    /// What was planted on each device: on those of other ranks a late one's act, while they wait for it.
    fn truth(&self, lines: &[Planted]) -> Vec<Planted> {
        let mut all = Vec::new();
        for (&device, Device { pids, waits }) in &self.devices {
            for line in lines {
                let own = line.gpu_pid.is_none_or(|pid| pids.contains(&pid));
                let whole = [(line.start_ns, line.end_ns)];
                let parts = match (own, &line.late) {
                    (true, _) => &whole[..],
                    (false, Some(_)) => waits,
                    (false, None) => &[],
                };
                let first = parts.partition_point(|(_, end)| *end <= line.start_ns);
                for (start, end) in parts[first..].iter().take_while(|(start, _)| *start < line.end_ns) {
                    let start_ns = line.start_ns.max(*start) + apart(device);
                    let end_ns = line.end_ns.min(*end) + apart(device);
                    all.push(Planted { start_ns, end_ns, ..line.clone() });
                }
            }
        }
        all
    }
}

/// How far the times of a device are moved.
fn apart(device: i64) -> i64 {
    device * 1_000_000_000_000_000
}

fn objects(path: &[Hop]) -> Vec<String> {
    path.iter().filter_map(|hop| Some(hop.object.as_ref()?.as_str().to_owned())).collect()
}

fn read(files: &Files) -> Result<Recording> {
    let bundle = Bundle::open(&files.bundle)?;
    let rows = bundle.read::<GapRow>()?;
    let devices = Devices::of(&rows);
    let place = |gap: i64| devices.places.get(&gap).copied().unwrap_or_default();
    let gaps = rows.into_iter().map(|gap| Gap {
        id: gap.gap_id.0,
        start: gap.start_ns.0 + place(gap.gap_id.0).0,
        end: gap.end_ns.0 + place(gap.gap_id.0).0,
        enabler: gap.enabler.map(|enabler| enabler.as_str().to_owned()),
        device: gap.device.0,
    });
    let segments = bundle.read::<GapSegment>()?.into_iter().map(|segment| Segment {
        gap: segment.gap_id.0,
        seq: segment.seq,
        start: segment.start_ns.0 + place(segment.gap_id.0).0,
        end: segment.end_ns.0 + place(segment.gap_id.0).0,
        cause: segment.cause.as_str().to_owned(),
        object: segment.object.map(|object| object.as_str().to_owned()),
        chain_objects: objects(&segment.path),
        pid: segment.pid.map(|pid| pid.0),
        tid: segment.tid.map(|tid| tid.0),
        exact: segment.confidence.as_str() == "exact",
        communication: place(segment.gap_id.0).1,
    });
    Ok(Recording {
        gaps: gaps.collect(),
        segments: segments.collect(),
        truth: devices.truth(&truth::read(&files.truth)?),
        meta: bundle.meta().clone(),
        bundle: files.bundle.clone(),
    })
}
