//! The questions that people ask of a half-busy GPU, answered in the order in which they are asked. Each answer names what
//! it rests on and how much time it is about; a question without evidence is not answered.

use serde::Serialize;

use super::findings::{percent, share};
use super::model::{Cause, Report};
use super::text::style::{bytes, count, plural, time};
use super::wording::{self, is_prefix};

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// What is asked: a stable name.
    pub question: &'static str,
    /// The answer, in a sentence or two.
    pub says: String,
    /// GPU time that it is about.
    pub ns: i64,
    /// Of it, resting on edges recorded as they happened.
    pub exact_ns: i64,
    /// Where the evidence is: tables and views of the recording.
    pub evidence: &'static str,
    /// What to change, where something is to be changed.
    pub change: Option<String>,
    /// The experiment that would show it to be wrong.
    pub disproof: Option<String>,
}

/// A share that is not worth an answer.
const WORTH: f64 = 0.02;
/// Reads of this size on average are small: a disk then does what it can in requests, not in bytes.
const SMALL_READ: i64 = 128 << 10;
/// A thread that is on its CPU for so much of the recording has no more to give.
const BUSY: f64 = 0.9;

/// All answers, in order.
#[must_use]
pub fn answers(report: &Report) -> Vec<Answer> {
    let asked: [fn(&Report) -> Option<Answer>; 12] = [
        computing,
        waiting_for,
        data_against_compute,
        disk_against_decode,
        small_files,
        one_core,
        loader,
        sync_points,
        slow_rank,
        dips,
        held_without_work,
        does_it_matter,
    ];
    asked.iter().filter_map(|ask| ask(report)).collect()
}

/// Gap time of causes, and what of it is exact.
fn sum<'a>(causes: impl Iterator<Item = &'a Cause>) -> (i64, i64) {
    causes.fold((0, 0), |(ns, exact), cause| (ns + cause.ns, exact + cause.exact_ns))
}

fn of(report: &Report, families: &[&str]) -> (i64, i64) {
    sum(report.causes.iter().filter(|cause| families.iter().any(|family| is_prefix(family, &cause.cause))))
}

/// Gap time of a cause while data is loaded.
fn loading(report: &Report, family: &str) -> i64 {
    let causes = report.causes.iter().filter(|cause| is_prefix(family, &cause.cause));
    causes
        .flat_map(|cause| &cause.stages)
        .filter(|stage| stage.name == "data_loading")
        .map(|stage| stage.ns)
        .sum()
}

fn stage(report: &Report, name: &str) -> i64 {
    report.stages.iter().find(|stage| stage.stage == name).map_or(0, |stage| stage.ns)
}

fn answer(
    question: &'static str,
    (ns, exact_ns): (i64, i64),
    evidence: &'static str,
    says: String,
) -> Answer {
    Answer { question, says, ns, exact_ns, evidence, change: None, disproof: None }
}

impl Answer {
    /// With the advice for this cause.
    fn advised(mut self, cause: &str, stage: &str) -> Self {
        if let Some(remedy) = super::advice::for_cause(cause, stage) {
            self.change = remedy.change.first().map(|change| (*change).to_owned());
            self.disproof = Some(remedy.disproof.to_owned());
        }
        self
    }
}

fn computing(report: &Report) -> Option<Answer> {
    let totals = &report.totals;
    if totals.window_ns <= 0 {
        return None;
    }
    let says = format!(
        "it computes {} of the time and waits {}",
        percent(totals.compute_ns, totals.window_ns),
        percent(totals.gap_ns, totals.window_ns)
    );
    Some(answer("is the GPU computing or waiting", (totals.gap_ns, report.trust.exact_ns), "gaps", says))
}

/// What people call the things that a GPU waits for.
const NEEDS: [(&str, &[&str]); 9] = [
    ("storage", &["storage", "memory.major_fault", "memory.swap"]),
    ("CPU work", &["host.cpu", "host.operator", "host.python", "host.data_loader", "host.marked", "host.gc"]),
    ("a CPU", &["host.runq", "host.wake_latency", "host.irq"]),
    ("memory", &["memory.reclaim", "memory.compaction", "memory.cow", "memory.unmap"]),
    ("the network", &["net"]),
    ("other GPUs", &["comm", "gpu.dependency", "copy.peer"]),
    (
        "its own synchronisation and copies",
        &["cuda.sync", "copy.pageable", "copy.pinned", "copy.device", "copy.memset"],
    ),
    ("launches, since the work is small", &["cuda.launch", "gpu.submit_latency"]),
    ("requests", &["app.no_request"]),
];

fn waiting_for(report: &Report) -> Option<Answer> {
    let mut needs: Vec<(&str, (i64, i64))> = NEEDS
        .iter()
        .map(|(name, families)| (*name, of(report, families)))
        .filter(|(_, (ns, _))| *ns > 0)
        .collect();
    needs.sort_by_key(|(_, (ns, _))| std::cmp::Reverse(*ns));
    let (_, first) = *needs.first()?;
    let parts: Vec<String> = needs
        .iter()
        .filter(|(_, (ns, _))| share(*ns, report.totals.gap_ns) >= WORTH)
        .map(|(name, (ns, _))| format!("{name} {} ({})", time(*ns), percent(*ns, report.totals.gap_ns)))
        .collect();
    let largest = report.causes.first()?;
    let at = largest.stages.first().map_or("other", |stage| stage.name.as_str());
    let answer = answer("what does it wait for", first, "gap_segments, idle_by_cause", parts.join(", "));
    Some(answer.advised(&largest.cause, at))
}

fn data_against_compute(report: &Report) -> Option<Answer> {
    let data = stage(report, "data_loading");
    let worth = share(data, report.totals.window_ns) >= WORTH;
    let mut says = format!(
        "it waits {:.2} s for data for each second of computing",
        data as f64 / report.totals.compute_ns.max(1) as f64
    );
    if let Some(steps) = report.steps.iter().max_by_key(|steps| steps.count) {
        let data = steps.stages.iter().find(|stage| stage.name == "data_loading").map_or(0, |stage| stage.ns);
        says = format!("{says}: {} and {} of an average step", time(data), time(steps.compute_ns));
    }
    worth.then(|| answer("data preparation against computing", (data, 0), "steps, step_times", says))
}

fn disk_against_decode(report: &Report) -> Option<Answer> {
    let (disk, cpu) = (loading(report, "storage"), loading(report, "host.cpu"));
    if share(disk + cpu, report.totals.window_ns) < WORTH {
        return None;
    }
    let mut says = format!("while loading data the disk takes {} and the CPU {}", time(disk), time(cpu));
    let busiest = report.disks.iter().max_by_key(|disk| disk.busy_ns).filter(|disk| disk.reads > 0);
    if let Some(disk) = busiest {
        let seconds = ((report.recording.ended_ns - report.recording.started_ns) as f64 / 1e9).max(1e-9);
        says = format!(
            "{says}; {} gives {}/s in {:.0} reads a second of {}, each {} (99 of 100 within {})",
            disk.device,
            bytes((disk.read_bytes as f64 / seconds) as i64),
            disk.reads as f64 / seconds,
            bytes(disk.read_bytes / disk.reads as i64),
            time(disk.median_ns),
            time(disk.p99_ns)
        );
    }
    let cause = if disk >= cpu { "storage.read.device" } else { "host.cpu.user" };
    Some(
        answer("storage against decoding", (disk + cpu, 0), "block_io, block_latency", says)
            .advised(cause, "data_loading"),
    )
}

fn small_files(report: &Report) -> Option<Answer> {
    let metadata = of(report, &["storage.metadata", "storage.remote"]);
    let read: (i64, u64) = report
        .disks
        .iter()
        .fold((0, 0), |(bytes, reads), disk| (bytes + disk.read_bytes, reads + disk.reads));
    let mean = read.0 / (read.1 as i64).max(1);
    let files = report
        .causes
        .iter()
        .filter(|cause| is_prefix("storage.read", &cause.cause))
        .map(|cause| cause.object_count)
        .max();
    let files = files.unwrap_or(0);
    let reading = of(report, &["storage.read"]);
    let small = mean < SMALL_READ && files > 100 && share(reading.0, report.totals.gap_ns) >= WORTH;
    let opening = share(metadata.0, report.totals.gap_ns) >= WORTH;
    if !small && !opening {
        return None;
    }
    let says = format!(
        "opening and listing files takes {}; {} waited for, {} a read on average",
        time(metadata.0),
        plural(files, "file"),
        bytes(mean)
    );
    let answer = answer(
        "many small files",
        (metadata.0 + reading.0, metadata.1 + reading.1),
        "syscalls, slow_files",
        says,
    );
    Some(answer.advised("storage.metadata", "data_loading"))
}

fn one_core(report: &Report) -> Option<Answer> {
    let length = report.recording.ended_ns - report.recording.started_ns;
    let busy = report.threads.iter().filter(|thread| share(thread.on_cpu_ns.unwrap_or(0), length) >= BUSY);
    let (mut names, mut ns) = (Vec::new(), 0);
    for thread in busy {
        names.push(super::text::thread(&thread.thread));
        ns += thread.ns;
    }
    let worth = !names.is_empty() && share(ns, report.totals.gap_ns) >= WORTH;
    let what = if names.len() == 1 {
        "one thread has its CPU all the time"
    } else {
        "these threads have their CPUs all the time"
    };
    names.truncate(4);
    let cpus = plural(u64::from(report.recording.cpus), "CPU");
    worth.then(|| {
        answer(
            "one busy core or all",
            (ns, 0),
            "off_cpu",
            format!("{what}, on a machine of {cpus}: {}", names.join(", ")),
        )
    })
}

fn loader(report: &Report) -> Option<Answer> {
    let workers: Vec<_> = report
        .threads
        .iter()
        .filter(|thread| thread.thread.role.as_deref() == Some("dataloader_worker"))
        .collect();
    let data = stage(report, "data_loading");
    if workers.is_empty() || share(data, report.totals.window_ns) < WORTH {
        return None;
    }
    let length = (report.recording.ended_ns - report.recording.started_ns).max(1);
    let on_cpu: i64 = workers.iter().filter_map(|worker| worker.on_cpu_ns).sum();
    let mean = on_cpu / workers.len() as i64;
    let says = format!(
        "empty when the GPU waited; {} on its chains, each on a CPU {} of the time",
        if workers.len() == 1 {
            "1 thread of its workers was".to_owned()
        } else {
            format!("{} threads of its workers were", count(workers.len() as u64))
        },
        percent(mean, length)
    );
    Some(
        answer("the loader's queue", (data, 0), "threads, off_cpu, waits", says)
            .advised("host.cpu.user", "data_loading"),
    )
}

fn sync_points(report: &Report) -> Option<Answer> {
    let first = report.enablers.first()?;
    if share(first.ns, report.totals.gap_ns) < WORTH {
        return None;
    }
    let says = format!(
        "{} had emptied the launch queue before {} of {}",
        first.call,
        plural(first.gaps, "gap"),
        time(first.ns)
    );
    let mut answer = answer("synchronisation points", (first.ns, first.ns), "gaps.enabler, cuda_sync", says);
    answer.change = super::advice::ENABLER.change.first().map(|change| (*change).to_owned());
    answer.disproof = Some(super::advice::ENABLER.disproof.to_owned());
    Some(answer)
}

fn slow_rank(report: &Report) -> Option<Answer> {
    let comm = of(report, &["comm"]);
    if share(comm.0, report.totals.gap_ns) < WORTH {
        return None;
    }
    let late = of(report, &["comm.wait_rank"]);
    let objects = report
        .causes
        .iter()
        .filter(|cause| is_prefix("comm.wait_rank", &cause.cause))
        .flat_map(|cause| &cause.objects);
    let says = match objects.max_by_key(|object| object.ns) {
        Some(rank) => format!("{} of it for {}", time(late.0), rank.name),
        None => "collectives alone take this time; who was late is not in this recording".to_owned(),
    };
    Some(answer("the slow rank", comm, "collectives", says).advised("comm", "communication"))
}

fn dips(report: &Report) -> Option<Answer> {
    let (steps, periodic) = report.steps.iter().find_map(|steps| Some((steps, steps.periodic.as_ref()?)))?;
    let longer = (periodic.median_ns - steps.median_ns).max(0) * periodic.count as i64;
    let mut says = format!(
        "one step in {} takes {} instead of {}",
        periodic.every,
        time(periodic.median_ns),
        time(steps.median_ns)
    );
    if let Some(stage) = periodic.stage.as_deref().filter(|stage| *stage != "other") {
        says = format!("{says}: {}", wording::stage(stage));
    }
    let at = periodic.stage.clone().unwrap_or_default();
    let answer = answer("periodic dips", (longer, 0), "steps, slow_steps", says);
    Some(if at == "checkpoint" { answer.advised("storage.write", "checkpoint") } else { answer })
}

fn held_without_work(report: &Report) -> Option<Answer> {
    let idle: i64 = report.devices.iter().map(|device| device.edge_before_ns + device.edge_after_ns).sum();
    let length: i64 = report
        .devices
        .iter()
        .map(|device| device.window_ns() + device.edge_before_ns + device.edge_after_ns)
        .sum();
    (share(idle, length) >= 0.1).then(|| {
        let says = format!(
            "{} of the recording lie before the first work or after the last ({})",
            time(idle),
            percent(idle, length)
        );
        answer("a GPU held without work", (idle, 0), "gpu_ops, meta.json", says)
    })
}

fn does_it_matter(report: &Report) -> Option<Answer> {
    let requests = of(report, &["app.no_request"]);
    if share(requests.0, report.totals.gap_ns) >= 0.5 {
        let says = "nothing is wrong: no request was waiting while the GPU idled".to_owned();
        return Some(
            answer("does it matter", requests, "gap_segments", says).advised("app.no_request", "serving"),
        );
    }
    let steps = report.steps.iter().max_by_key(|steps| steps.count)?;
    let Some(best) = report.what_if.first() else {
        let says = format!("{:.2} steps a second", steps.per_second);
        return Some(answer("does it matter", (report.totals.gap_ns, 0), "steps", says));
    };
    let says = format!(
        "{:.2} steps a second; {:.2} without the time of {}",
        steps.per_second,
        steps.per_second * best.gain(),
        best.cause
    );
    Some(answer("does it matter", (best.played_ns - best.alone_ns, 0), "steps, what_if", says))
}
