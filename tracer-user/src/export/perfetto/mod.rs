//! Perfetto's own format, protocol buffers: <https://perfetto.dev/docs/reference/synthetic-track-event>.
//!
//! All packets are of one sequence, and stamped with the nanoseconds of `CLOCK_MONOTONIC` that the tables have. Slices are
//! written as their begin and end, on each track in order of time and properly nested. A viewer's arrow leads from slice to
//! slice; where ours begins or ends within one, an instant marks the moment and carries it.

mod annotations;
mod fields;
mod intern;
mod wire;

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::names::Names;
use super::sink::{Anchor, Arrow, Describe, Launch, NewGroup, Sink, Slice};
use super::text::bounded;
use super::tracks::{Group, NewTrack, Row, Track};
use crate::event::MonoNs;
use annotations::{Annotations, Strings};
use fields::{clock, counter, defaults, event, packet, process, thread, trace, track};
use wire::Message;

/// The one sequence of packets.
const SEQUENCE: u64 = 1;
/// Identities of tracks: of groups, of what is in them, and of what the trace says about itself.
const GROUPS: u64 = 1 << 40;
const TRACKS: u64 = 2 << 40;
const ABOUT: u64 = 3 << 40;
/// The track that all others hang on.
const ROOT: u64 = 0;
/// Flow ids of launches have this bit, those of other arrows do not.
const LAUNCH: u64 = 1 << 63;

/// Writes a `Trace`.
pub struct Perfetto<W> {
    out: W,
    bytes: u64,
    strings: Strings,
    /// Of each track: the ends that are still to be written, the innermost last.
    open: BTreeMap<i64, Vec<MonoNs>>,
    arrows: u64,
    started: MonoNs,
    packet: Vec<u8>,
    event: Vec<u8>,
}

/// What kind of event, where, and what of it is not an annotation.
struct Event<'a> {
    kind: u64,
    track: u64,
    time: MonoNs,
    name: Option<(&'a str, &'static str)>,
    flow: Option<(u32, u64)>,
    details: &'a dyn Describe,
}

impl<W: Write> Perfetto<W> {
    /// Begins a trace of a recording that began at `started`; `utc_offset_ns` makes that UTC.
    pub fn begin(out: W, started: MonoNs, utc_offset_ns: i64) -> io::Result<Self> {
        let mut this = Self {
            out,
            bytes: 0,
            strings: Strings::default(),
            open: BTreeMap::new(),
            arrows: 0,
            started,
            packet: Vec::new(),
            event: Vec::new(),
        };
        this.packet(|message| {
            message.uint(packet::SEQUENCE_FLAGS, packet::INCREMENTAL_STATE_CLEARED);
            message.message(packet::TRACE_PACKET_DEFAULTS, |defaults| {
                defaults.uint(defaults::TIMESTAMP_CLOCK_ID, clock::MONOTONIC);
            });
        })?;
        let utc = started.0.saturating_add(utc_offset_ns);
        this.packet(|message| {
            message.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                for (id, time) in [(clock::MONOTONIC, started.0), (clock::REALTIME, utc)] {
                    snapshot.message(clock::CLOCKS, |one| {
                        one.uint(clock::CLOCK_ID, id).uint(clock::TIMESTAMP, stamp(MonoNs(time)));
                    });
                }
                snapshot.uint(clock::PRIMARY_TRACE_CLOCK, clock::MONOTONIC);
            });
        })?;
        this.descriptor(ROOT, |root| {
            root.uint(track::CHILD_ORDERING, track::CHILDREN_BY_RANK)
                .uint(track::PROCESS_ORDERING, track::PROCESSES_BY_RANK)
                .uint(track::THREAD_ORDERING, track::THREADS_BY_RANK);
        })?;
        Ok(this)
    }

    fn packet(&mut self, fill: impl FnOnce(&mut Message<'_>)) -> io::Result<()> {
        self.packet.clear();
        Message::at_end_of(&mut self.packet).message(trace::PACKET, |message| {
            message.uint(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
            fill(message);
        });
        self.bytes += self.packet.len() as u64;
        self.out.write_all(&self.packet)
    }

    fn descriptor(&mut self, uuid: u64, fill: impl FnOnce(&mut Message<'_>)) -> io::Result<()> {
        self.packet(|message| {
            message.message(packet::TRACK_DESCRIPTOR, |descriptor| {
                descriptor.uint(track::UUID, uuid);
                fill(descriptor);
            });
        })
    }

    fn event(&mut self, new: &Event<'_>) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.event);
        bytes.clear();
        self.strings.fresh.clear();
        let mut message = Message::at_end_of(&mut bytes);
        message.uint(event::TYPE, new.kind).uint(event::TRACK_UUID, new.track);
        if let Some((name, category)) = new.name {
            let name = bounded(name);
            match self.strings.name(&name) {
                Some(id) => message.uint(event::NAME_IID, id),
                None => message.string(event::NAME, &name),
            };
            if let Some(id) = self.strings.category(category) {
                message.uint(event::CATEGORY_IIDS, id);
            }
        }
        if let Some((field, id)) = new.flow {
            message.fixed64(field, id);
        }
        new.details.describe(&mut Annotations {
            message: &mut message,
            field: event::DEBUG_ANNOTATIONS,
            strings: &mut self.strings,
        });
        let fresh = std::mem::take(&mut self.strings.fresh);
        let written = self.packet(|message| {
            message
                .uint(packet::TIMESTAMP, stamp(new.time))
                .uint(packet::SEQUENCE_FLAGS, packet::NEEDS_INCREMENTAL_STATE);
            if !fresh.is_empty() {
                message.bytes(packet::INTERNED_DATA, &fresh);
            }
            message.bytes(packet::TRACK_EVENT, &bytes);
        });
        self.strings.fresh = fresh;
        self.event = bytes;
        written
    }

    fn end(&mut self, track: u64, time: MonoNs) -> io::Result<()> {
        self.event(&Event { kind: event::SLICE_END, track, time, name: None, flow: None, details: &() })
    }

    fn instant(&mut self, arrow: Arrow, at: Anchor, flow: (u32, u64)) -> io::Result<()> {
        self.event(&Event {
            kind: event::INSTANT,
            track: uuid(at.track),
            time: at.time,
            name: Some((arrow.name(), "chain")),
            flow: Some(flow),
            details: &(),
        })
    }
}

impl<W: Write> Sink for Perfetto<W> {
    fn group(&mut self, new: &NewGroup<'_>) -> io::Result<()> {
        self.descriptor(group_uuid(new.pid), |descriptor| {
            descriptor.int(track::SIBLING_ORDER_RANK, new.rank.into());
            let name = match new.label {
                "" => bounded(new.name),
                label => format!("{} ({})", bounded(new.name), bounded(label)).into(),
            };
            match new.group {
                Group::Process(pid) if i64::from(pid) == new.pid => {
                    descriptor.message(track::PROCESS, |one| {
                        one.int(process::PID, pid.into()).string(process::PROCESS_NAME, &name);
                    });
                }
                _ => {
                    descriptor.string(track::NAME, &name);
                    descriptor.uint(track::CHILD_ORDERING, track::CHILDREN_BY_RANK);
                }
            }
        })
    }

    fn track(&mut self, new: &NewTrack<'_>, names: &Names) -> io::Result<()> {
        let name = bounded(&names.row(new.group, new.row)).into_owned();
        self.descriptor(uuid(new.track), |descriptor| {
            descriptor.int(track::SIBLING_ORDER_RANK, new.rank.into());
            match (new.group, new.row) {
                (Group::Process(pid), Row::Thread { tid, calls: true })
                    if new.lane == 0 && i64::from(*tid) == new.track.tid =>
                {
                    let name = bounded(&names.thread(pid, *tid)).into_owned();
                    descriptor.message(track::THREAD, |one| {
                        one.int(thread::PID, pid.into()).int(thread::TID, (*tid).into());
                        one.string(thread::THREAD_NAME, &name);
                    });
                }
                (_, row) => {
                    let parent = new.parent.map_or(group_uuid(new.track.pid), uuid);
                    descriptor.uint(track::PARENT_UUID, parent).string(track::NAME, &name);
                    if let Row::Counter(what, _) = row {
                        descriptor.message(track::COUNTER, |one| {
                            one.uint(counter::UNIT, counter::COUNT);
                            one.string(counter::UNIT_NAME, what.unit());
                        });
                        descriptor.string(track::DESCRIPTION, what.explained());
                    }
                }
            }
        })
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let track = uuid(slice.track);
        // What has ended by now; of what ends together the innermost first.
        while let Some(ends) = self.open.get_mut(&slice.track.tid)
            && let Some(end) = ends.pop_if(|end| *end <= slice.start)
        {
            self.end(track, end)?;
        }
        self.event(&Event {
            kind: event::SLICE_BEGIN,
            track,
            time: slice.start,
            name: Some((slice.name, slice.category)),
            flow: slice.launch.and_then(flow_of).map(|id| (event::FLOW_IDS, id)),
            details: slice.details,
        })?;
        self.open.entry(slice.track.tid).or_default().push(slice.end);
        Ok(())
    }

    fn arrow(&mut self, arrow: Arrow, from: Anchor, to: Anchor) -> io::Result<()> {
        if arrow == Arrow::Launch {
            // Its slices carry it: one instant for every launch would bury the track.
            return Ok(());
        }
        self.arrows += 1;
        self.instant(arrow, from, (event::FLOW_IDS, self.arrows))?;
        self.instant(arrow, to, (event::TERMINATING_FLOW_IDS, self.arrows))
    }

    fn counter(&mut self, track: Track, time: MonoNs, value: i64) -> io::Result<()> {
        let track = uuid(track);
        self.packet(|message| {
            message
                .uint(packet::TIMESTAMP, stamp(time))
                .uint(packet::SEQUENCE_FLAGS, packet::NEEDS_INCREMENTAL_STATE)
                .message(packet::TRACK_EVENT, |one| {
                    one.uint(event::TYPE, event::COUNTER)
                        .uint(event::TRACK_UUID, track)
                        .int(event::COUNTER_VALUE, value);
                });
        })
    }

    fn finish(&mut self, about: &dyn Describe) -> io::Result<u64> {
        for (tid, ends) in std::mem::take(&mut self.open) {
            for end in ends.into_iter().rev() {
                self.end(TRACKS + tid as u64, end)?;
            }
        }
        self.descriptor(ABOUT, |descriptor| {
            descriptor
                .string(track::NAME, "about this trace")
                .int(track::SIBLING_ORDER_RANK, i64::from(i32::MAX));
        })?;
        self.event(&Event {
            kind: event::INSTANT,
            track: ABOUT,
            time: self.started,
            name: Some(("about this trace", "about")),
            flow: None,
            details: about,
        })?;
        self.out.flush()?;
        Ok(self.bytes)
    }
}

/// A moment as the format has it: no time lies before the machine's start.
fn stamp(time: MonoNs) -> u64 {
    time.0.max(0) as u64
}

fn group_uuid(pid: i64) -> u64 {
    GROUPS + pid as u64
}

fn uuid(track: Track) -> u64 {
    TRACKS + track.tid as u64
}

/// The id that a launch's call and its op share; `None`: no CUDA makes such numbers.
fn flow_of(launch: Launch) -> Option<u64> {
    let pid = u64::try_from(launch.pid.0).ok().filter(|pid| *pid < 1 << 23)?;
    let correlation = u64::try_from(launch.correlation.0).ok().filter(|id| *id < 1 << 40)?;
    Some(LAUNCH | pid << 40 | correlation)
}
