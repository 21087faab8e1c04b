//! Chrome trace-event JSON, for chrome://tracing (catapult's trace viewer), ui.perfetto.dev, speedscope and all that read it.
//!
//! Slices are written as their begin and end, not as begin and length: viewers read times as doubles, and begin plus length is
//! then not always the begin of what follows at once. Two times that are the same are the same text.
//!
//! The format: <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.

mod json;

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::names::Names;
use super::sink::{Anchor, Arrow, Describe, Details as _, NewGroup, Sink, Slice};
use super::tracks::{NewTrack, Row, Track};
use crate::event::MonoNs;
use json::Object;

/// Writes `{"traceEvents": […], "otherData": {…}}`.
pub struct Chrome<W> {
    out: W,
    base: MonoNs,
    bytes: u64,
    written: bool,
    arrows: i64,
    /// Names of counters: this format has no tracks for them.
    counters: BTreeMap<i64, String>,
    /// Of each thread of the trace: the slices whose end is still to be written, the innermost last.
    open: BTreeMap<i64, Vec<Open>>,
    text: String,
}

/// A slice whose end is still to be written.
struct Open {
    track: Track,
    end: MonoNs,
    name: String,
    color: Option<&'static str>,
}

impl<W: Write> Chrome<W> {
    /// Times are written relative to `base`: a viewer's doubles then hold them exactly for 104 days.
    pub fn begin(out: W, base: MonoNs) -> io::Result<Self> {
        let (counters, open, text) = (BTreeMap::new(), BTreeMap::new(), String::new());
        let mut this = Self { out, base, bytes: 0, written: false, arrows: 0, counters, open, text };
        this.raw("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        Ok(this)
    }

    fn raw(&mut self, text: &str) -> io::Result<()> {
        self.bytes += text.len() as u64;
        self.out.write_all(text.as_bytes())
    }

    fn event(&mut self, fill: impl FnOnce(&mut Object<'_>)) -> io::Result<()> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        text.push_str(if self.written { ",\n" } else { "\n" });
        self.written = true;
        let mut object = Object::begin(&mut text);
        fill(&mut object);
        object.end();
        let written = self.raw(&text);
        self.text = text;
        written
    }

    /// What all but metadata begin with.
    fn timed(
        &mut self,
        phase: &'static str,
        track: Track,
        time: MonoNs,
        fill: impl FnOnce(&mut Object<'_>),
    ) -> io::Result<()> {
        let base = self.base;
        self.event(|event| {
            event.word("ph", phase);
            event.integer("pid", track.pid);
            event.integer("tid", track.tid);
            event.micros("ts", i128::from(time.0) - i128::from(base.0));
            fill(event);
        })
    }

    fn end(&mut self, open: &Open) -> io::Result<()> {
        // speedscope wants to hear the name again, catapult the colour.
        self.timed("E", open.track, open.end, |event| {
            event.text("name", &open.name);
            color(event, open.color);
        })
    }

    /// A property of a track or of its process (`ph: M`).
    fn metadata(
        &mut self,
        track: Track,
        name: &'static str,
        fill: impl FnOnce(&mut Object<'_>),
    ) -> io::Result<()> {
        self.event(|event| {
            event.word("ph", "M");
            event.integer("pid", track.pid);
            event.integer("tid", track.tid);
            event.word("name", name);
            let mut args = event.object("args");
            fill(&mut args);
            args.end();
        })
    }
}

impl<W: Write> Sink for Chrome<W> {
    fn group(&mut self, new: &NewGroup<'_>) -> io::Result<()> {
        let track = Track { pid: new.pid, tid: 0 };
        self.metadata(track, "process_name", |args| args.text("name", new.name))?;
        self.metadata(track, "process_sort_index", |args| args.integer("sort_index", new.rank.into()))?;
        if !new.label.is_empty() {
            self.metadata(track, "process_labels", |args| args.text("labels", new.label))?;
        }
        Ok(())
    }

    fn track(&mut self, new: &NewTrack<'_>, names: &Names) -> io::Result<()> {
        let mut name = names.row(new.group, new.row);
        if matches!(new.row, Row::Counter(..)) {
            self.counters.insert(new.track.tid, name);
            return Ok(());
        }
        if new.lane > 0 {
            name = format!("{name} ({})", new.lane + 1);
        }
        self.metadata(new.track, "thread_name", |args| args.text("name", &name))?;
        self.metadata(new.track, "thread_sort_index", |args| args.integer("sort_index", new.rank.into()))
    }

    /// `ph: B` and, later, `E`; `X` if it has no length, since ends go before begins of the same time.
    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        // What has ended by now; of what ends together the innermost first.
        while let Some(open) = self.open.get_mut(&slice.track.tid)
            && let Some(ended) = open.pop_if(|open| open.end <= slice.start)
        {
            self.end(&ended)?;
        }
        let empty = slice.start == slice.end;
        self.timed(if empty { "X" } else { "B" }, slice.track, slice.start, |event| {
            if empty {
                event.micros("dur", 0);
            }
            event.text("name", slice.name);
            event.word("cat", slice.category);
            color(event, slice.color);
            event.details("args", slice.details);
        })?;
        if !empty {
            let Slice { track, end, color, .. } = *slice;
            let open = Open { track, end, name: slice.name.to_owned(), color };
            self.open.entry(slice.track.tid).or_default().push(open);
        }
        Ok(())
    }

    /// `ph: s` and `f`.
    fn arrow(&mut self, arrow: Arrow, from: Anchor, to: Anchor) -> io::Result<()> {
        self.arrows += 1;
        let id = self.arrows;
        for (phase, anchor) in [("s", from), ("f", to)] {
            self.timed(phase, anchor.track, anchor.time, |event| {
                event.word("name", arrow.name());
                event.word("cat", arrow.name());
                event.integer("id", id);
                if phase == "f" {
                    // To the slice around it, not to the next one.
                    event.word("bp", "e");
                }
            })?;
        }
        Ok(())
    }

    /// `ph: C`.
    fn counter(&mut self, track: Track, time: MonoNs, value: i64) -> io::Result<()> {
        let name = self.counters.get(&track.tid).cloned().unwrap_or_default();
        self.timed("C", track, time, |event| {
            event.text("name", &name);
            let mut args = event.object("args");
            args.integer("value", value);
            args.end();
        })
    }

    fn finish(&mut self, about: &dyn Describe) -> io::Result<u64> {
        for open in std::mem::take(&mut self.open).into_values() {
            open.iter().rev().try_for_each(|open| self.end(open))?;
        }
        let mut text = String::from("\n],\"otherData\":");
        let mut object = Object::begin(&mut text);
        about.describe(&mut object);
        object.end();
        text.push_str("}\n");
        self.raw(&text)?;
        self.out.flush()?;
        Ok(self.bytes)
    }
}

fn color(event: &mut Object<'_>, name: Option<&'static str>) {
    if let Some(name) = name {
        event.word("cname", name);
    }
}
