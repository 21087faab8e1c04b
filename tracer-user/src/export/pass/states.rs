//! The tracks of threads' states, and the arrows along chains.

use std::collections::{BTreeMap, HashMap};

use super::Pass;
use super::ahead::Ahead;
use super::gaps::{Chains, Leaf, Wait, Who};
use crate::event::{MonoNs, RequestId};
use crate::export::ExportError;
use crate::export::select::Detail;
use crate::export::sink::{Anchor, Arrow, Describe, Details, Slice};
use crate::export::tracks::{Group, Row, Track};
use crate::store::schema::OffCpu;

/// The wake-ups on chains that the completion of a request made, by request.
pub type Requests = BTreeMap<RequestId, Vec<Anchor>>;

impl Pass<'_> {
    /// Writes the states of threads. Between two intervals off the CPU a thread was on one.
    pub(super) fn states(&mut self, chains: &Chains) -> Result<Requests, ExportError> {
        let mut requests = Requests::new();
        // Since when each thread runs; `None`: it is off the CPU for good.
        let mut running: HashMap<Who, Option<MonoNs>> = HashMap::new();
        for row in Ahead::<OffCpu>::scan(self.bundle)? {
            let row = row?;
            let who = (row.pid, row.tid);
            let keep = self.keeps_state(&row);
            if !self.counts.row::<OffCpu>(keep) {
                running.insert(who, row.on_ns);
                continue;
            }
            let since =
                running.insert(who, row.on_ns).unwrap_or_else(|| self.names.started(row.pid.0, row.tid.0));
            if let Some(since) = since.filter(|_| self.shows_running(who)) {
                self.running(who, since, row.off_ns)?;
            }
            self.off_cpu(&row)?;
            if let Some(woken) = row.woken_ns {
                self.wakes(&row, woken, chains, &mut requests)?;
            }
        }
        let mut running: Vec<_> = running.into_iter().collect();
        running.sort_unstable();
        for (who, since) in running {
            let end = self.names.ended(who.0.0, who.1.0).unwrap_or(self.story.end);
            if let Some(since) = since.filter(|since| *since < end)
                && self.shows_running(who)
            {
                self.running(who, since, end)?;
            }
        }
        // Gaps are shown whole, threads only in the time that is shown: there is nothing for an arrow to begin at outside.
        let selection = self.selection;
        let shown = |leaf: &&Leaf| selection.touches(leaf.segment.time, leaf.segment.time);
        for leaf in chains.leaves.iter().filter(shown) {
            let track = self.state_track(leaf.who)?;
            self.arrow(Arrow::Cause, Anchor { track, time: leaf.segment.time }, leaf.segment)?;
        }
        Ok(requests)
    }

    fn keeps_state(&self, row: &OffCpu) -> bool {
        let (touches, _) = self.selection.touches_open(row.off_ns, row.on_ns, self.story.end);
        let shown = self.selection.detail() != Detail::All || self.story.shows_states(row.pid, row.tid);
        self.keeps::<OffCpu>(row.id.0, touches && shown, || self.story.is_on_chain(row.pid, row.tid))
    }

    /// Whether it is shown that a thread runs.
    fn shows_running(&self, (pid, tid): Who) -> bool {
        match self.selection.detail() {
            Detail::All => self.story.shows_states(pid, tid),
            Detail::Chains => self.story.is_on_chain(pid, tid),
            Detail::Evidence | Detail::Gaps => false,
        }
    }

    fn state_track(&mut self, (pid, tid): Who) -> Result<Track, ExportError> {
        self.first(Group::Process(pid.0), &Row::Thread { tid: tid.0, calls: false })
    }

    fn running(&mut self, who: Who, start: MonoNs, end: MonoNs) -> Result<(), ExportError> {
        if start < end {
            self.state(who, start, end, "running", "thread_state_running", &())?;
        }
        Ok(())
    }

    fn off_cpu(&mut self, row: &OffCpu) -> Result<(), ExportError> {
        let who = (row.pid, row.tid);
        let back = row.on_ns.unwrap_or(self.story.end).max(row.off_ns);
        let woken = row.woken_ns.unwrap_or(back).clamp(row.off_ns, back);
        if row.off_ns < woken {
            let place =
                row.syscall.as_deref().map_or("outside a system call".into(), |call| format!("in {call}"));
            let name = match &*row.state {
                "stopped" | "traced" => row.state.to_string(),
                _ => format!("blocked {place}"),
            };
            let color = match (&*row.state, row.waker_kind.as_deref()) {
                (_, Some("block")) => "thread_state_iowait",
                ("uninterruptible", _) => "thread_state_uninterruptible",
                (_, None) => "thread_state_unknown",
                _ => "thread_state_sleeping",
            };
            self.state(who, row.off_ns, woken, &name, color, &Off(row))?;
        }
        if woken < back && row.woken_ns.is_some() {
            let name = if &*row.state == "preempted" { "preempted" } else { "runnable" };
            self.state(who, woken, back, name, "thread_state_runnable", &Queue(row))?;
        }
        Ok(())
    }

    fn state(
        &mut self,
        (pid, tid): Who,
        start: MonoNs,
        end: MonoNs,
        name: &str,
        color: &'static str,
        details: &dyn Describe,
    ) -> Result<(), ExportError> {
        if !self.selection.touches(start, end) {
            return Ok(());
        }
        let (start, end) = self.selection.clip(start, end);
        let row = Row::Thread { tid: tid.0, calls: false };
        let track = self.place_apart(Group::Process(pid.0), &row, start, end)?;
        let (category, color, launch) = ("state", Some(color), None);
        self.slice(&Slice { track, start, end, name, category, color, launch, details })
    }

    /// Arrows to the wake-up that ended a wait on a chain.
    fn wakes(
        &mut self,
        row: &OffCpu,
        woken: MonoNs,
        chains: &Chains,
        requests: &mut Requests,
    ) -> Result<(), ExportError> {
        let Some(waits) = chains.waits.get(&(row.pid, row.tid)) else { return Ok(()) };
        let first = waits.partition_point(|wait| wait.time < row.off_ns);
        let mut wakers: Vec<Option<Who>> = Vec::new();
        for Wait { time, waker } in &waits[first..] {
            if *time >= woken {
                break;
            }
            // Several segments may rest on one wait.
            if wakers.contains(waker) {
                continue;
            }
            wakers.push(*waker);
            let to = Anchor { track: self.state_track((row.pid, row.tid))?, time: woken };
            match waker {
                Some(waker) => {
                    let from = Anchor { track: self.state_track(*waker)?, time: woken };
                    self.arrow(Arrow::Wake, from, to)?;
                }
                None => {
                    if let Some(request) = row.request_id {
                        requests.entry(request).or_default().push(to);
                    }
                }
            }
        }
        Ok(())
    }
}

/// A thread off the CPU.
struct Off<'a>(&'a OffCpu);

impl Describe for Off<'_> {
    fn describe(&self, to: &mut dyn Details) {
        let Self(row) = self;
        to.text("state", &row.state);
        to.text_if("syscall", row.syscall.as_deref());
        to.text("woken_by", row.waker_kind.as_deref().unwrap_or("not seen"));
        to.text_if("waker", row.waker_comm.as_deref());
        to.integer_if("waker_tid", row.waker_tid.map(|tid| i64::from(tid.0)));
        to.text_if("waker_in", row.waker_syscall.as_deref());
        to.text_if("delivered", row.waker_object.as_deref());
        to.integer_if("request", row.request_id.map(|request| request.0));
        to.text_if("since", row.before_attach.then_some("before the recording"));
        to.integer("row", row.id.0);
    }
}

/// A thread that waits for a CPU.
struct Queue<'a>(&'a OffCpu);

impl Describe for Queue<'_> {
    fn describe(&self, to: &mut dyn Details) {
        let Self(row) = self;
        to.text_if("kept_off_by", row.culprit_comm.as_deref());
        to.integer_if("culprit_tid", row.culprit_tid.map(|tid| i64::from(tid.0)));
        to.integer_if("culprit_ns", row.culprit_ns.map(|ns| ns.0));
        to.integer("others_ns", row.others_ns.0);
        to.integer("idle_ns", row.idle_ns.0);
        to.integer_if("cpu", row.on_cpu.map(i64::from));
        to.integer("row", row.id.0);
    }
}
