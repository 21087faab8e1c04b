//! The stream of trace events.

use std::io::{self, Write};

use super::json::Object;
use super::tracks::Track;
use crate::event::MonoNs;

/// A slice of a track.
pub struct Slice<'a> {
    pub track: Track,
    pub start: MonoNs,
    pub end: MonoNs,
    pub name: &'a str,
    pub category: &'static str,
    /// One of the names that the viewer has colours for (catapult's `color_scheme`); `None`: it picks one by name.
    pub color: Option<&'static str>,
    pub args: Object,
}

/// A point at which an arrow begins or ends: in the slice of `track` around that time.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    pub track: Track,
    pub time: MonoNs,
}

/// Writes `{"traceEvents": […], "otherData": {…}}`.
pub struct Events<W> {
    out: W,
    base: MonoNs,
    bytes: u64,
    written: u64,
    arrows: i64,
}

impl<W: Write> Events<W> {
    /// Times are written relative to `base`: a viewer's doubles then hold them exactly for 104 days.
    pub fn begin(out: W, base: MonoNs) -> io::Result<Self> {
        let mut events = Self { out, base, bytes: 0, written: 0, arrows: 0 };
        events.raw("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        Ok(events)
    }

    /// Writes a slice (`ph: X`).
    pub fn slice(&mut self, slice: Slice<'_>) -> io::Result<()> {
        let duration = i128::from(slice.end.0) - i128::from(slice.start.0);
        let event = self
            .event("X", slice.track, slice.start)
            .micros("dur", duration.max(0))
            .text("name", slice.name)
            .text("cat", slice.category)
            .text_if("cname", slice.color)
            .object("args", slice.args);
        self.write(event)
    }

    /// Writes an arrow (`ph: s` and `f`) from the slice around one point to the slice around the other.
    pub fn arrow(&mut self, category: &'static str, from: Anchor, to: Anchor) -> io::Result<()> {
        self.arrows += 1;
        for (phase, anchor) in [("s", from), ("f", to)] {
            let event = self
                .event(phase, anchor.track, anchor.time)
                .text("name", category)
                .text("cat", category)
                .integer("id", self.arrows)
                // The slice around it, not the next one.
                .text_if("bp", (phase == "f").then_some("e"));
            self.write(event)?;
        }
        Ok(())
    }

    /// Writes a property of a track or of its process (`ph: M`).
    pub fn metadata(&mut self, track: Track, name: &'static str, args: Object) -> io::Result<()> {
        let event = Object::default()
            .text("ph", "M")
            .integer("pid", track.pid)
            .integer("tid", track.tid)
            .text("name", name)
            .object("args", args);
        self.write(event)
    }

    /// Writes the end; returns the size of it all.
    pub fn finish(&mut self, about: Object) -> io::Result<u64> {
        self.raw("\n],\"otherData\":")?;
        self.raw(&about.finish())?;
        self.raw("}\n")?;
        self.out.flush()?;
        Ok(self.bytes)
    }

    fn event(&self, phase: &str, track: Track, time: MonoNs) -> Object {
        Object::default()
            .text("ph", phase)
            .integer("pid", track.pid)
            .integer("tid", track.tid)
            .micros("ts", i128::from(time.0) - i128::from(self.base.0))
    }

    fn write(&mut self, event: Object) -> io::Result<()> {
        self.raw(if self.written == 0 { "\n" } else { ",\n" })?;
        self.written += 1;
        self.raw(&event.finish())
    }

    fn raw(&mut self, text: &str) -> io::Result<()> {
        self.bytes += text.len() as u64;
        self.out.write_all(text.as_bytes())
    }
}
