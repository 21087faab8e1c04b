//! Traces of the PyTorch profiler (Kineto), of torch 1.8 to today: JSON in Chrome's trace event format.
//!
//! ```text
//! bytes ─> document (header members, events) ─> events (kind, times, args) ─> rows
//!             cursor (tokens)                     decimal, text, args, copies
//! ```

mod args;
mod copies;
mod cursor;
mod decimal;
mod document;
mod events;
mod header;
mod kind;
mod text;

use std::io::Read;

pub use document::NotATrace;
use document::{Ending, Piece};
pub use header::Header;

use super::tables::Tables;

/// What reading a trace came to.
#[derive(Debug)]
pub struct Outcome {
    /// What stands around the events.
    pub header: Header,
    /// Complete events, of whatever kind.
    pub events: u64,
    /// Pieces that were no event.
    pub malformed: u64,
    /// Why the end is missing, if it is.
    pub cut: Option<String>,
}

/// Reads a trace into `tables`.
///
/// # Errors
/// It is no trace at all. Whatever else is wrong with it is counted among the losses.
pub fn read(source: impl Read, tables: &mut Tables) -> Result<Outcome, NotATrace> {
    let mut header = Header::default();
    let mut events = events::Events::new(tables);
    let ending = document::read(source, &mut |piece| match piece {
        Piece::Event(event) => events.event(&event),
        Piece::Header(key, value) => header.member(key, value),
        Piece::Malformed => events.malformed(),
    })?;
    events.end();
    let (seen, malformed) = (events.seen, events.malformed);
    let cut = match ending {
        Ending::Whole => None,
        Ending::Cut => Some("the text ends in the middle".to_owned()),
        Ending::Broken(error) => Some(format!("reading it failed in the middle: {error}")),
    };
    if cut.is_some() {
        // Events are in no order of time: what is missing may have been anywhere.
        tables.lose_everything("the end of the file is missing");
    }
    Ok(Outcome { header, events: seen, malformed, cut })
}
