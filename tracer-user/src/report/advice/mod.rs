//! What to change for a cause, and the experiment that would show the advice to be wrong.

mod app;
mod cuda;
mod device;
mod host;
mod memory;
mod network;
mod storage;

use super::wording::is_prefix;

/// Advice for a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// What to change, the most promising first.
    pub change: &'static [&'static str],
    /// The experiment that would show it to be wrong.
    pub disproof: &'static str,
}

/// The advice for `cause` while the program was at `stage`. `None`: there is nothing to change (unknown causes have
/// their remedies in the trust section).
#[must_use]
pub fn for_cause(cause: &str, stage: &str) -> Option<Remedy> {
    remedies()
        .filter(|(code, only, _)| is_prefix(code, cause) && only.is_none_or(|only| only == stage))
        .max_by_key(|(code, only, _)| (code.len(), only.is_some()))
        .map(|(_, _, remedy)| *remedy)
}

/// What makes unknown time known in the next recording.
#[must_use]
pub fn for_unknown(cause: &str) -> &'static str {
    match cause {
        "unknown.lost_events" => {
            "record again for a shorter time or with less beside it, so that no event is lost"
        }
        "unknown.invalid_record" => {
            "use another version of CUPTI: this one gives records that cannot be right"
        }
        "unknown.not_recorded_thread" => {
            "record the root of the process tree that all parts belong to, so that every thread is seen"
        }
        "unknown.not_scheduled" => {
            "look at the machine's steal time (column st of vmstat): a virtual CPU may have been late"
        }
        "unknown.no_waker" | "unknown.interrupt" => {
            "see below which probes are missing; `gtrace doctor` says how to get them"
        }
        "unknown.no_launch_record" | "unknown.before_attach" => {
            "record for longer, or from the start with `gtrace run`: these began before the recording did"
        }
        "unknown.depth" => "look at the chain with `gtrace explain`",
        _ => "look at one of these gaps with `gtrace explain`",
    }
}

/// The advice for gaps before which a synchronising call had drained the launch queue.
pub const ENABLER: Remedy = Remedy {
    change: &[
        "synchronise less often: keep losses and metrics on the GPU and read them (.item(), .cpu(), print) every N steps",
        "copy results back with non_blocking=True and look at them a step later",
        "wait for an event of the step before (torch.cuda.Event) instead of the whole stream",
    ],
    disproof: "leave the call out for a few steps: if the gaps stay as long, the host needs that time anyway",
};

const DATA: Option<&str> = Some("data_loading");
const CHECKPOINT: Option<&str> = Some("checkpoint");

/// A code (or family), the stage that the advice is only for, and the advice.
type Entry = (&'static str, Option<&'static str>, Remedy);

/// All advice; the longest code wins, then the one for the stage.
const FAMILIES: [&[Entry]; 7] = [
    host::REMEDIES,
    storage::REMEDIES,
    memory::REMEDIES,
    network::REMEDIES,
    cuda::REMEDIES,
    device::REMEDIES,
    app::REMEDIES,
];

fn remedies() -> impl Iterator<Item = &'static Entry> {
    FAMILIES.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::wording::CAUSES;

    #[test]
    fn the_stage_and_the_longest_code_win() {
        let read = for_cause("storage.read.device", "data_loading").expect("there is advice");
        assert!(read.change[0].contains("num_workers"));
        let other = for_cause("storage.read.device", "other").expect("there is advice");
        assert!(!other.change[0].contains("num_workers"));
        let limit = for_cause("storage.read.throttled", "data_loading").expect("there is advice");
        assert!(limit.change[0].contains("io.max"));
    }

    #[test]
    fn every_cause_that_somebody_can_change_has_advice() {
        let without = ["gpu.queued", "app.no_work", "host.user", "host.stopped"];
        for (code, _) in CAUSES {
            let family = !code.contains('.') || ["host.cpu"].contains(code);
            if family || code.starts_with("unknown") || without.contains(code) {
                continue;
            }
            assert!(for_cause(code, "other").is_some(), "{code}");
        }
    }

    #[test]
    fn every_remedy_can_be_disproved() {
        for (code, _, remedy) in remedies() {
            assert!(!remedy.change.is_empty() && !remedy.disproof.is_empty(), "{code}");
        }
    }
}
