//! One pass over the bundle: what is selected of it, as tracks, slices, arrows and counters.

mod about;
mod ahead;
mod calls;
mod counters;
mod gaps;
mod host;
mod ops;
mod order;
mod states;

use super::counts::Counts;
use super::select::{Detail, Selection};
use super::sink::{Anchor, Arrow, NewGroup, Sink, Slice};
use super::story::{Evidence, Story};
use super::tracks::{Fresh, Group, NewTrack, Row, Track, Tracks};
use super::{ExportError, names::Names};
use crate::event::MonoNs;
use crate::store::{Bundle, Table};

/// Writes one whole trace; returns its size in bytes and what is in it.
pub fn write(
    bundle: &Bundle,
    story: &Story,
    selection: &Selection,
    choice: &str,
    sink: &mut dyn Sink,
) -> Result<(u64, Counts), ExportError> {
    let mut pass = Pass {
        bundle,
        story,
        selection,
        evidence: story.evidence(selection),
        names: &story.names,
        sink,
        tracks: Tracks::default(),
        counts: Counts::default(),
    };
    let chains = pass.gaps()?;
    if selection.detail() == Detail::Gaps {
        pass.skip_the_rest()?;
    } else {
        let launches = pass.ops()?;
        pass.calls(&launches)?;
        let requests = pass.states(&chains)?;
        pass.block_io(&requests)?;
        pass.overhead()?;
    }
    pass.losses()?;
    let about = pass.about(choice);
    let bytes = pass.sink.finish(&about).map_err(ExportError::out)?;
    Ok((bytes, pass.counts))
}

/// One writing of a trace.
struct Pass<'a> {
    bundle: &'a Bundle,
    story: &'a Story,
    selection: &'a Selection,
    evidence: Evidence,
    names: &'a Names,
    sink: &'a mut dyn Sink,
    tracks: Tracks,
    counts: Counts,
}

impl Pass<'_> {
    /// Whether a row is exported that touches the selection, or does not; `on_chain`: it is of a thread that a causal chain
    /// runs through.
    fn keeps<T: Table>(&self, row: i64, touches: bool, on_chain: impl FnOnce() -> bool) -> bool {
        match self.selection.detail() {
            Detail::All => touches,
            Detail::Chains => touches && on_chain(),
            Detail::Evidence => touches && self.evidence.has::<T>(row),
            Detail::Gaps => false,
        }
    }

    /// The track for a slice; it may lie in another one.
    fn place(&mut self, group: Group, row: &Row, start: MonoNs, end: MonoNs) -> Result<Track, ExportError> {
        let track = self.tracks.place(group, row, start, end);
        self.announce()?;
        Ok(track)
    }

    /// The track for a slice in which and around which no other one may lie.
    fn place_apart(
        &mut self,
        group: Group,
        row: &Row,
        start: MonoNs,
        end: MonoNs,
    ) -> Result<Track, ExportError> {
        let track = self.tracks.place_apart(group, row, start, end);
        self.announce()?;
        Ok(track)
    }

    /// The first track of a row.
    fn first(&mut self, group: Group, row: &Row) -> Result<Track, ExportError> {
        let track = self.tracks.first(group, row);
        self.announce()?;
        Ok(track)
    }

    /// Names what is used for the first time.
    fn announce(&mut self) -> Result<(), ExportError> {
        if !self.tracks.has_fresh() {
            return Ok(());
        }
        for fresh in self.tracks.fresh() {
            match fresh {
                Fresh::Group(group, pid) => {
                    let (name, label) = self.named(group);
                    let rank = self.names.order(group);
                    self.sink.group(&NewGroup { group, pid, name: &name, label: &label, rank })
                }
                Fresh::Track { group, row, lane, track, parent, rank } => {
                    self.sink.track(&NewTrack { track, group, row: &row, lane, parent, rank }, self.names)
                }
            }
            .map_err(ExportError::out)?;
        }
        Ok(())
    }

    /// A group's name, and what else is known of it.
    fn named(&self, group: Group) -> (String, String) {
        match group {
            Group::Gpu(device) => {
                let gpu = self.bundle.meta().gpus.iter().find(|gpu| gpu.device == device);
                (format!("GPU {device}"), gpu.map_or_else(String::new, |gpu| gpu.name.clone()))
            }
            Group::Process(pid) => (self.names.process(pid), String::new()),
            Group::BlockDevices => ("block devices".into(), String::new()),
            Group::Losses => ("lost events".into(), String::new()),
        }
    }

    fn slice(&mut self, slice: &Slice<'_>) -> Result<(), ExportError> {
        self.sink.slice(slice).map_err(ExportError::out)
    }

    fn arrow(&mut self, arrow: Arrow, from: Anchor, to: Anchor) -> Result<(), ExportError> {
        self.sink.arrow(arrow, from, to).map_err(ExportError::out)
    }
}
