//! What a trace says about itself: what it is of, and what it leaves out.

use super::Pass;
use crate::export::Counts;
use crate::export::sink::{Describe, Details};
use crate::store::Meta;

/// It.
pub struct About<'a> {
    meta: &'a Meta,
    choice: &'a str,
    threads: String,
    counts: Counts,
}

impl<'a> Pass<'a> {
    pub(super) fn about<'b>(&self, choice: &'b str) -> About<'b>
    where
        'a: 'b,
    {
        About {
            meta: self.bundle.meta(),
            choice,
            threads: self.story.threads_in_words(self.selection.detail()),
            counts: self.counts.clone(),
        }
    }
}

impl Describe for About<'_> {
    fn describe(&self, to: &mut dyn Details) {
        let Self { meta, choice, threads, counts } = self;
        let rows = |which: fn((u64, u64)) -> u64| -> Vec<(&str, i64)> {
            counts.tables().map(|(table, counts)| (table, which(counts) as i64)).collect()
        };
        let losses: Vec<(&str, i64)> =
            meta.losses.iter().map(|(source, count)| (source.as_str(), *count as i64)).collect();
        to.text("written_by", concat!("gtrace ", env!("CARGO_PKG_VERSION")));
        to.text("recorded_by", &format!("gtrace {}", meta.gtrace_version));
        to.text("host", &meta.host);
        to.text("kernel", &meta.kernel);
        to.text("command", &meta.command.join(" "));
        to.text("ended", &meta.ended);
        to.text(
            "clock",
            "the recording began at start_mono_ns of CLOCK_MONOTONIC; add utc_offset_ns to that for UTC",
        );
        to.text("start_mono_ns", &meta.started_ns.to_string());
        to.text("utc_offset_ns", &meta.utc_offset_ns.to_string());
        to.text("choice", choice);
        to.text("threads", threads);
        to.group("exported_rows", &rows(|(exported, _)| exported));
        to.group("left_out_rows", &rows(|(_, left_out)| left_out));
        to.group("lost_events", &losses);
    }
}
