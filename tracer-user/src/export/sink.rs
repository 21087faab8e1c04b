//! What every trace format takes: tracks, slices, arrows, counters.
//!
//! One pass over a bundle ([`super::pass`]) makes these; each format writes them in its own way.

use std::io;

use super::names::Names;
use super::tracks::{Group, NewTrack, Track};
use crate::event::{CorrelationId, MonoNs, Pid};

/// A trace format that takes what is exported, as it is read.
///
/// A group is named before its tracks, a track before what lies on it. Slices of one track come in order of their start, of
/// equal starts the outer one first, and nest.
pub trait Sink {
    /// A process of the trace, or what stands for one.
    fn group(&mut self, group: &NewGroup<'_>) -> io::Result<()>;
    /// A track.
    fn track(&mut self, track: &NewTrack<'_>, names: &Names) -> io::Result<()>;
    /// A slice of a track.
    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()>;
    /// An arrow.
    fn arrow(&mut self, arrow: Arrow, from: Anchor, to: Anchor) -> io::Result<()>;
    /// A counter has this value from this moment on.
    fn counter(&mut self, track: Track, time: MonoNs, value: i64) -> io::Result<()>;
    /// The end, with what the trace says about itself. Returns the size of it all in bytes.
    fn finish(&mut self, about: &dyn Describe) -> io::Result<u64>;
}

/// A group that is used for the first time.
pub struct NewGroup<'a> {
    /// Which.
    pub group: Group,
    /// Its id as a process of the trace.
    pub pid: i64,
    /// Its name.
    pub name: &'a str,
    /// What else is known: a GPU's model. May be empty.
    pub label: &'a str,
    /// Its place among the groups.
    pub rank: i32,
}

/// A slice of a track.
pub struct Slice<'a> {
    /// Where.
    pub track: Track,
    /// From.
    pub start: MonoNs,
    /// To. Never before `start`.
    pub end: MonoNs,
    /// What is written on it.
    pub name: &'a str,
    /// What kind of slice it is.
    pub category: &'static str,
    /// One of the names that catapult has colours for (its `color_scheme`); `None`: the viewer picks one by name.
    pub color: Option<&'static str>,
    /// The launch that this slice is an end of: the call, or the op.
    pub launch: Option<Launch>,
    /// What a click on it shows.
    pub details: &'a dyn Describe,
}

/// A point at which an arrow begins or ends: in the slice of `track` around that time.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    /// Where.
    pub track: Track,
    /// When.
    pub time: MonoNs,
}

/// What an arrow says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrow {
    /// From a launch to its first op. Both slices carry [`Slice::launch`], too.
    Launch,
    /// From who or what ended a wait on a causal chain to the thread that waited.
    Wake,
    /// From the last thread of a chain to the segment that it explains.
    Cause,
}

impl Arrow {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Wake => "wake",
            Self::Cause => "cause",
        }
    }
}

/// A launch: what joins a call and its ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Launch {
    /// The process.
    pub pid: Pid,
    /// The correlation id in it.
    pub correlation: CorrelationId,
}

/// Something with details.
pub trait Describe {
    /// Tells them.
    fn describe(&self, to: &mut dyn Details);
}

/// No details.
impl Describe for () {
    fn describe(&self, _: &mut dyn Details) {}
}

/// Takes details: keys of ours, values from outside, which are escaped and bounded.
pub trait Details {
    /// A string.
    fn text(&mut self, key: &'static str, value: &str);
    /// A whole number.
    fn integer(&mut self, key: &'static str, value: i64);
    /// A list of strings.
    fn list(&mut self, key: &'static str, values: &mut dyn Iterator<Item = String>);
    /// A whole number under a name from outside.
    fn named(&mut self, name: &str, value: i64);
    /// Details of their own.
    fn group(&mut self, key: &'static str, details: &dyn Describe);

    /// A string, if there is one.
    fn text_if(&mut self, key: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    /// A whole number, if there is one.
    fn integer_if(&mut self, key: &'static str, value: Option<i64>) {
        if let Some(value) = value {
            self.integer(key, value);
        }
    }
}

/// Whole numbers by name.
impl<K: AsRef<str>> Describe for Vec<(K, i64)> {
    fn describe(&self, to: &mut dyn Details) {
        for (key, value) in self {
            to.named(key.as_ref(), *value);
        }
    }
}
