//! The GPU side of a session: where its rows go, and what is said of it.

use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use tracer_abi::kernel::CudaCallRecord;
use tracer_abi::shim::CollectMode;

use super::Notice;
use super::clients::{Clients, Move};
use super::collect::{Plan, Wish};
use super::injector::Injector;
use super::silence::Silence;
use crate::event::{MonoNs, Pid, Text};
use crate::record::clocks;
use crate::record::gpu::{GpuRow, GpuSide, maps_cuda};
use crate::record::inject::{Calls, Cupti, Driver, is_inherited};
use crate::record::probes::{CudaWatch, Probes};
use crate::record::procfs;
use crate::record::tree::Tree;
use crate::record::{injection, nvml};
use crate::store::meta::GpuFacts;
use crate::store::schema::Loss;
use crate::store::{BundleWriter, Meta};

/// How long the end of a recording waits for the shims' last buffers.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long CUDA calls are counted before CUPTI comes into a process.
const WATCH: Duration = Duration::from_secs(1);
/// Most processes named in a sentence.
const MAX_NAMED: usize = 4;

/// The GPU side, and which processes should have one.
#[derive(Default)]
pub struct GpuLink {
    side: GpuSide,
    /// Processes that have the CUDA driver loaded.
    cuda: BTreeSet<Pid>,
    /// Brings the shim into processes that run already.
    injector: Option<Injector>,
    /// Processes whose calls are being counted.
    watch: Option<Watch>,
    announced: bool,
    problems: Vec<String>,
    rows: u64,
    plan: Plan,
    /// Launches counted at the last second, and when that was.
    launches: Option<(u64, MonoNs)>,
    /// Processes whose CUPTI is watched for other clients.
    watched: BTreeSet<Pid>,
    clients: Clients,
    silence: Silence,
    /// Silent processes whose calls are being counted.
    listening: Option<Watch>,
    /// CUPTI is not to be used.
    no_cupti: bool,
    /// Processes whose driver's calls are recorded one by one.
    by_calls: BTreeSet<Pid>,
    /// The machine's GPUs, once they are known.
    devices: Vec<GpuFacts>,
    asked: Option<Receiver<Vec<GpuFacts>>>,
}

/// Processes with the CUDA driver whose calls are being counted.
struct Watch {
    /// Each with whether it has the driver only from its parent.
    pids: Vec<(Pid, bool)>,
    counting: CudaWatch,
    begun: MonoNs,
}

impl Watch {
    fn begin(pids: Vec<Pid>, probes: &mut Probes) -> Self {
        let drivers: Vec<Driver> = pids.iter().filter_map(|&pid| Driver::of(pid)).collect();
        let pids: Vec<(Pid, bool)> = pids.into_iter().map(|pid| (pid, is_inherited(pid))).collect();
        let work = pids.iter().any(|(_, inherited)| *inherited);
        Self { pids, counting: probes.watch_cuda(&drivers, work), begun: clocks::monotonic() }
    }

    /// Counts all calls that send work.
    fn begin_all(pids: Vec<Pid>, probes: &mut Probes) -> Self {
        let drivers: Vec<Driver> = pids.iter().filter_map(|&pid| Driver::of(pid)).collect();
        let pids = pids.into_iter().map(|pid| (pid, false)).collect();
        Self { pids, counting: probes.watch_cuda(&drivers, true), begun: clocks::monotonic() }
    }
}

impl GpuLink {
    /// A GPU side that collects what is wished for.
    pub fn new(wish: Wish, no_cupti: bool) -> Self {
        Self { plan: Plan::new(wish), no_cupti, ..Self::default() }
    }

    /// Looks for the rings of a tree that lives already, and for processes that use CUDA without one. `inject`: brings
    /// the shim into these, now and when others come to use CUDA.
    pub fn attach(&mut self, tree: &Tree, inject: bool, probes: &mut Probes) {
        self.injector = inject.then(Injector::new);
        self.asked = Some(nvml::ask());
        if let Some(announcements) = probes.take_ring_announcements() {
            // Without it rings are found a little later, by looking for them.
            let _ = self.side.listen(announcements);
        }
        self.plan(clocks::monotonic());
        let pids: Vec<Pid> = tree.members().filter(|&pid| maps_cuda(pid)).collect();
        if !pids.is_empty() {
            // Before any shim, one that is there already as well, hears of us.
            let watch = Watch::begin(pids, probes);
            std::thread::sleep(WATCH);
            self.end_watch(watch, probes);
        }
        self.scan(tree);
        self.inject(tree, clocks::monotonic(), probes);
        if self.no_cupti {
            // A command that starts now will most likely load one of these.
            for driver in Driver::installed() {
                probes.record_cuda_calls(&Calls::of(&driver));
            }
            self.go_by_calls(&tree.members().collect::<Vec<_>>(), probes);
        }
    }

    /// Records the calls of the driver one by one in these processes, where they use CUDA.
    fn go_by_calls(&mut self, pids: &[Pid], probes: &mut Probes) {
        for &pid in pids {
            if !maps_cuda(pid) || !self.by_calls.insert(pid) {
                continue;
            }
            match Driver::of(pid) {
                Some(driver) if probes.record_cuda_calls(&Calls::of(&driver)) => {}
                _ => self.problems.push(format!("the driver's calls in process {pid} cannot be recorded")),
            }
        }
    }

    /// Where CUPTI is not wanted, or refused, the driver's calls are recorded instead.
    fn look_for_calls(&mut self, tree: &Tree, probes: &mut Probes) {
        if self.no_cupti {
            let members: Vec<Pid> = tree.members().filter(|pid| !self.by_calls.contains(pid)).collect();
            self.go_by_calls(&members, probes);
            return;
        }
        let refused = self.side.refused();
        let refused: Vec<Pid> = refused.into_iter().filter(|pid| !self.by_calls.contains(pid)).collect();
        let left: Vec<Pid> = self
            .injector
            .iter()
            .flat_map(Injector::refused)
            .filter(|pid| self.cuda.contains(pid) && !self.by_calls.contains(pid))
            .collect();
        self.go_by_calls(&[refused, left].concat(), probes);
    }

    /// Takes the driver's calls that came.
    pub fn take_calls(&mut self, calls: &[CudaCallRecord], tree: &mut Tree, writer: &mut BundleWriter) {
        let (rows, by_calls) = (&mut self.rows, &self.by_calls);
        let wanted: Vec<CudaCallRecord> = calls
            .iter()
            .filter(|call| self.no_cupti || by_calls.contains(&Pid(call.tgid as i32)))
            .copied()
            .collect();
        self.side.take_calls(&wanted, &mut |row| push(row, rows, writer));
        for pid in self.side.bounds() {
            tree.owns_gpu(pid);
        }
    }

    /// Brings the shim into processes that use CUDA by now.
    pub fn inject(&mut self, tree: &Tree, now: MonoNs, probes: &mut Probes) {
        if self.injector.is_none() {
            return;
        }
        if let Some(watch) = self.watch.take() {
            if (now - watch.begun).0 < WATCH.as_nanos() as i64 {
                self.watch = Some(watch);
                return;
            }
            self.end_watch(watch, probes);
        }
        let Some(injector) = &mut self.injector else { return };
        let members: Vec<Pid> = tree.members().collect();
        let with_ring = self.side.pids().collect();
        let due = injector.due(&members, &with_ring, now);
        // Those that have come to have the driver since are watched until the next look.
        let (known, new): (Vec<Pid>, Vec<Pid>) = due.into_iter().partition(|pid| self.cuda.contains(pid));
        for pid in known {
            injector.enter(pid);
            // Its memfd is reported, too; but without it nothing comes at all.
            self.side.scan([pid]);
        }
        if !new.is_empty() {
            self.watch = Some(Watch::begin(new, probes));
        }
    }

    /// Those that use CUDA are known as such from now on; they are entered at the next look.
    fn end_watch(&mut self, watch: Watch, probes: &mut Probes) {
        let counted = probes.end_watch(watch.counting);
        let calls = counted.calls;
        let launched: f64 =
            watch.pids.iter().filter_map(|(pid, _)| counted.launches_per_second.get(pid)).sum();
        self.plan.launches_before(launched);
        let works = |pid: &Pid| calls.work.get(pid).is_some_and(|&calls| calls > 0);
        self.cuda.extend(
            watch.pids.iter().filter(|(pid, inherited)| !inherited || works(pid)).map(|(pid, _)| *pid),
        );
        if let Some(injector) = &mut self.injector {
            injector.look_again(self.cuda.iter().copied());
        }
        self.side.note_graph_launches(calls.graphs);
    }

    /// Looks once more: a process may have been forked while the tree was taken in.
    pub fn scan(&mut self, tree: &Tree) {
        self.side.scan(tree.members());
    }

    /// What is due once a second: windows, less where collecting slows the program down, other clients of CUPTI, silence.
    pub fn second(
        &mut self,
        now: MonoNs,
        tree: &Tree,
        probes: &mut Probes,
        writer: &mut BundleWriter,
        notify: &mut dyn FnMut(Notice),
    ) {
        self.look_for_calls(tree, probes);
        if let Some(devices) = self.asked.as_ref().and_then(|asked| asked.try_recv().ok()) {
            self.asked = None;
            self.learn_devices(devices, tree);
        }
        let launches = self.side.counted().map(|(_, launches, _)| launches).sum::<u64>();
        let before = self.launches.replace((launches, now));
        let collecting = self.side.wanted().mode != CollectMode::Paused;
        if let Some((launched, then)) = before
            && collecting
            && now > then
            && self.clients.present().next().is_none()
        {
            let per_second = launches.saturating_sub(launched) as f64 * 1e9 / (now - then).0 as f64;
            if let Some(step) = self.plan.second(per_second, now) {
                notify(Notice::SteppedDown(step));
            }
        }
        self.plan(now);
        self.look_for_clients(now, probes, notify);
        if collecting {
            self.listen(now, probes, writer);
        }
    }

    /// Takes what the management library says, beside what it said before.
    fn learn_devices(&mut self, devices: Vec<GpuFacts>, tree: &Tree) {
        let members: BTreeSet<Pid> = tree.members().collect();
        for mut device in devices {
            for holder in &mut device.holders {
                holder.recorded = members.contains(&Pid(holder.pid));
            }
            match self.devices.iter_mut().find(|known| known.uuid == device.uuid && known.pci == device.pci) {
                Some(known) => {
                    let before = std::mem::take(&mut known.holders);
                    let gone = before
                        .into_iter()
                        .filter(|holder| device.holders.iter().all(|present| present.pid != holder.pid));
                    device.holders.extend(gone.collect::<Vec<_>>());
                    *known = device;
                }
                None => self.devices.push(device),
            }
        }
    }

    fn plan(&mut self, now: MonoNs) {
        let (wanted, why) = self.plan.now(now);
        self.side.collect(wanted, why);
    }

    fn look_for_clients(&mut self, now: MonoNs, probes: &mut Probes, notify: &mut dyn FnMut(Notice)) {
        let collecting: Vec<Pid> = self.side.counted().map(|(pid, ..)| pid).collect();
        for &pid in &collecting {
            if self.watched.insert(pid)
                && let Some(cupti) = Cupti::of(pid)
                && !probes.watch_cupti(&cupti)
            {
                self.problems.push(format!("other clients of CUPTI in process {pid} cannot be noticed"));
            }
        }
        if collecting.is_empty() {
            return;
        }
        let calls = probes.cupti_clients();
        for pid in collecting {
            match calls.get(&pid).and_then(|calls| self.clients.look(pid, calls, now)) {
                Some(Move::Taken(since)) => {
                    self.side.taken(pid, since);
                    notify(Notice::Client { pid: pid.0, here: true });
                }
                Some(Move::Restart) => {
                    self.side.restart(pid);
                    notify(Notice::Client { pid: pid.0, here: false });
                }
                None => {}
            }
        }
    }

    /// Whether processes from which nothing comes are idle, or not heard.
    fn listen(&mut self, now: MonoNs, probes: &mut Probes, writer: &mut BundleWriter) {
        let due = self.silence.look(self.side.counted(), now);
        if let Some(watch) = self.listening.take() {
            let counted = probes.end_watch(watch.counting);
            for (pid, _) in watch.pids {
                let calls = counted.work.get(&pid).copied().unwrap_or(0);
                let Some(since) = self.silence.heard(pid, calls, now) else { continue };
                let row = Loss {
                    source: Text::from("cupti.silent"),
                    reason: Text::from("the process calls the driver, and no record of CUPTI comes"),
                    pid: Some(pid),
                    start_ns: since,
                    end_ns: now,
                    count: calls as i64,
                };
                *writer.meta_mut().losses.entry(row.source.to_string()).or_default() += calls;
                writer.push(row);
            }
        }
        if !due.is_empty() && self.watch.is_none() {
            self.listening = Some(Watch::begin_all(due, probes));
        }
    }

    /// Takes what has come, and says so when it is the first.
    pub fn drain(&mut self, tree: &mut Tree, writer: &mut BundleWriter, notify: &mut dyn FnMut(Notice)) {
        let rows = &mut self.rows;
        self.side.drain(&mut |row| push(row, rows, writer));
        self.problems.extend(self.side.take_problems().iter().map(ToString::to_string));
        for process in self.side.processes() {
            tree.owns_gpu(Pid(process.pid));
        }
        if self.side.attached() && !self.announced {
            self.announced = true;
            let pids = self
                .side
                .processes()
                .iter()
                .filter(|process| process.records > 0)
                .map(|process| process.pid)
                .collect();
            notify(Notice::GpuAttached { pids });
        }
    }

    /// Asks the shims for the rest and takes it.
    pub fn finish(&mut self, tree: &mut Tree, writer: &mut BundleWriter) {
        // While the shims flush.
        let asked = nvml::ask();
        let rows = &mut self.rows;
        self.side.finish(PATIENCE, &mut |row| push(row, rows, writer));
        self.problems.extend(self.side.take_problems().iter().map(ToString::to_string));
        for process in self.side.processes() {
            tree.owns_gpu(Pid(process.pid));
        }
        if let Ok(devices) = asked.recv_timeout(PATIENCE) {
            self.learn_devices(devices, tree);
        }
    }

    /// Rows that came.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What `meta.json` says of the GPU side. `command`: gtrace started the root of the tree.
    pub fn describe(&self, command: bool, meta: &mut Meta) {
        meta.gpus = self.side.gpus();
        meta.gpu_processes = self.side.processes();
        meta.clock_residual_ns = self.side.clock_residual_ns();
        let works: BTreeSet<i32> = meta
            .gpu_processes
            .iter()
            .filter(|process| process.records > 0)
            .map(|process| process.pid)
            .chain(self.side.bounds().map(|pid| pid.0))
            .collect();
        meta.gpu_devices.clone_from(&self.devices);
        for holder in meta.gpu_devices.iter_mut().flat_map(|device| &mut device.holders) {
            holder.sent_work = works.contains(&holder.pid);
        }
        meta.gpu_bounds = self.side.bounds().map(|pid| pid.0).collect();
        meta.gpu_missing = self.missing(command, meta);
    }

    /// Why there is no GPU side, or not all of it.
    fn missing(&self, command: bool, meta: &Meta) -> Option<String> {
        if self.no_cupti && !meta.gpu_bounds.is_empty() {
            return None;
        }
        let by_calls =
            if meta.gpu_bounds.is_empty() { "" } else { "; its gaps are bounds from the driver's calls" };
        self.why_missing(command, meta).map(|why| format!("{why}{by_calls}"))
    }

    fn why_missing(&self, command: bool, meta: &Meta) -> Option<String> {
        let with_ring: BTreeSet<Pid> = meta.gpu_processes.iter().map(|process| Pid(process.pid)).collect();
        let without: Vec<Pid> = self.cuda.difference(&with_ring).copied().collect();
        if !without.is_empty() {
            let refusal = self.injector.as_ref().and_then(|injector| injector.refusal(&without));
            return Some(match (refusal, &self.injector) {
                (Some(refusal), _) => format!("GPU side not attached: {refusal}"),
                // A zombie has a `stat` until its parent asks for it, but nothing else.
                (None, Some(_)) if without.iter().all(|&pid| ended(pid)) => {
                    format!("GPU side not attached: process {} ended before it came up", named(&without))
                }
                (None, Some(_)) => format!(
                    "GPU side not attached: gtrace's library is in process {}, but its ring did not come up",
                    named(&without)
                ),
                (None, None) => not_injected(&without),
            });
        }
        if let Some(problem) = self.problems.first() {
            return Some(format!("GPU side not attached: {problem}"));
        }
        if let Some((pid, reason)) =
            meta.gpu_processes.iter().find_map(|process| Some((process.pid, process.refused.as_ref()?)))
        {
            return Some(format!("GPU side not attached: in process {pid} {reason}"));
        }
        if meta.gpu_processes.iter().any(|process| process.records > 0) {
            return None;
        }
        Some(match (with_ring.first(), command) {
            (Some(pid), _) => {
                format!("GPU side not attached: process {pid} loaded the shim, but no GPU record came")
            }
            (None, true) => {
                "no GPU side: no process of the command loaded the CUDA driver, or none with gtrace's shim"
                    .to_owned()
            }
            (None, false) => "no GPU side: no recorded process used CUDA".to_owned(),
        })
    }
}

fn ended(pid: Pid) -> bool {
    procfs::stat(pid).is_none_or(|stat| matches!(stat.state, b'Z' | b'X'))
}

/// The sentence for processes that use CUDA and have no shim.
fn not_injected(pids: &[Pid]) -> String {
    let (noun, verb) = if pids.len() == 1 { ("process", "was") } else { ("processes", "were") };
    format!(
        "GPU side not attached: {noun} {} {verb} started without gtrace's shim; leave out --no-cupti, or \
         start the program with {}=…/{}",
        named(pids),
        injection::VARIABLE,
        injection::LIBRARY
    )
}

fn named(pids: &[Pid]) -> String {
    let mut names: Vec<String> = pids.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    if pids.len() > MAX_NAMED {
        names.push("…".to_owned());
    }
    names.join(", ")
}

fn push(row: GpuRow, rows: &mut u64, writer: &mut BundleWriter) {
    match row {
        GpuRow::Op(row) => {
            *rows += 1;
            writer.push(row);
        }
        GpuRow::Api(row) => {
            *rows += 1;
            writer.push(row);
        }
        GpuRow::Sync(row) => {
            *rows += 1;
            writer.push(row);
        }
        GpuRow::Overhead(row) => writer.push(row),
        GpuRow::Marker(row) => writer.push(row),
        GpuRow::Collective(row) => writer.push(row),
        GpuRow::Clock(row) => writer.push(row),
        GpuRow::Loss(row) => {
            *writer.meta_mut().losses.entry(row.source.to_string()).or_default() += row.count.max(0) as u64;
            writer.push(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::meta::GpuProcess;

    #[test]
    fn what_is_missing_is_said_exactly() {
        let mut link = GpuLink::default();
        let mut meta = Meta::default();
        assert!(
            link.missing(false, &meta).is_some_and(|reason| reason.contains("no recorded process used CUDA"))
        );
        link.cuda.insert(Pid(7));
        let reason = link.missing(false, &meta).expect("a reason");
        assert!(
            reason.contains("process 7 was started without") && reason.contains("CUDA_INJECTION64_PATH="),
            "{reason}"
        );
        meta.gpu_processes.push(GpuProcess { pid: 7, ..GpuProcess::default() });
        assert!(link.missing(false, &meta).is_some_and(|reason| reason.contains("no GPU record came")));
        meta.gpu_processes[0].records = 5;
        assert_eq!(link.missing(false, &meta), None);
        meta.gpu_processes[0].refused = Some("CUPTI is in use by another profiler".into());
        assert!(link.missing(false, &meta).is_some_and(|reason| reason.contains("another profiler")));
    }
}
