//! A trace file from its first byte to its last, with memory for a window of it: header members and events, one after the
//! other, and what could not be read between them.

use std::io::{self, Read};

use super::cursor::{Cursor, Raw, Stop};

/// How much is read at once.
const WINDOW: usize = 1 << 20;
/// The longest event or header member. The longest seen in real traces (a list of all process groups) has 100 KB.
const LONGEST: usize = 16 << 20;

/// One complete event, its members where they lie.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Kind of event: `X` for an interval.
    pub phase: Raw<'a>,
    /// Category.
    pub category: Raw<'a>,
    /// Name.
    pub name: Raw<'a>,
    /// Process, or the device.
    pub pid: Raw<'a>,
    /// Thread, or the stream.
    pub tid: Raw<'a>,
    /// Start in µs.
    pub ts: Raw<'a>,
    /// Length in µs.
    pub dur: Raw<'a>,
    /// What else is said.
    pub args: Raw<'a>,
}

impl Event<'_> {
    const EMPTY: Self = Self {
        phase: Raw::Absent,
        category: Raw::Absent,
        name: Raw::Absent,
        pid: Raw::Absent,
        tid: Raw::Absent,
        ts: Raw::Absent,
        dur: Raw::Absent,
        args: Raw::Absent,
    };
}

/// A piece of a document.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// A member of the outer object other than the events.
    Header(&'a [u8], Raw<'a>),
    /// An event.
    Event(Event<'a>),
    /// Something in the list of events that is no event; reading went on at the next one.
    Malformed,
}

/// How a document ended.
#[derive(Debug)]
pub enum Ending {
    /// As it should.
    Whole,
    /// The text ends in the middle.
    Cut,
    /// Reading failed, or the compressed data is damaged or cut.
    Broken(io::Error),
}

/// Reading failed before there was a single piece.
#[derive(Debug, thiserror::Error)]
pub enum NotATrace {
    /// It is no JSON, or the outermost value is neither object nor list.
    #[error("it is no trace: the text begins neither with an object nor with a list of events")]
    NotJson,
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// It cannot be read at all.
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    Header,
    Events { in_object: bool },
    End,
}

/// What one step came to.
enum Step {
    Went(Place),
    Malformed,
}

/// Reads `source` to its end and gives each piece to `piece`.
///
/// # Errors
/// It is no trace at all.
pub fn read(source: impl Read, piece: &mut impl FnMut(Piece<'_>)) -> Result<Ending, NotATrace> {
    let mut window = Window { source, bytes: Vec::new(), start: 0, end: 0, failure: None, at_end: false };
    let mut place = Place::Start;
    while place != Place::End {
        let mut cursor = Cursor::new(&window.bytes[window.start..window.end]);
        let mut done = 0;
        let stopped = loop {
            match step(place, &mut cursor, piece) {
                Ok(Step::Went(next)) => {
                    place = next;
                    done = cursor.at();
                    if place == Place::End {
                        break None;
                    }
                }
                Ok(Step::Malformed) => break Some(Stop::Malformed),
                Err(stop) => break Some(stop),
            }
        };
        window.start += done;
        match stopped {
            None => {}
            Some(Stop::More) if window.fill() => {}
            Some(Stop::More) if place == Place::Start => return Err(window.nothing()),
            Some(_) => match (place, window.resume()) {
                (Place::Start, _) => return Err(NotATrace::NotJson),
                // Between header members there is no telling where the next begins; the events may.
                (_, true) => {
                    piece(Piece::Malformed);
                    place = match place {
                        Place::Header => Place::Events { in_object: true },
                        other => other,
                    };
                }
                (_, false) => {
                    return Ok(window.failure.take().map_or(Ending::Cut, Ending::Broken));
                }
            },
        }
    }
    // The rest of a compressed stream holds its checksum.
    Ok(window.drain().map_or(Ending::Whole, Ending::Broken))
}

fn step(place: Place, cursor: &mut Cursor<'_>, piece: &mut impl FnMut(Piece<'_>)) -> Result<Step, Stop> {
    match place {
        Place::Start => {
            // A byte order mark.
            for mark in [0xef, 0xbb, 0xbf] {
                if !cursor.take(mark)? {
                    break;
                }
            }
            match cursor.peek()? {
                b'{' => {
                    cursor.step();
                    Ok(Step::Went(Place::Header))
                }
                b'[' => {
                    cursor.step();
                    Ok(Step::Went(Place::Events { in_object: false }))
                }
                _ => Err(Stop::Malformed),
            }
        }
        Place::Header => {
            while cursor.take(b',')? {}
            if cursor.take(b'}')? {
                return Ok(Step::Went(Place::End));
            }
            let key = cursor.text()?;
            if !cursor.take(b':')? {
                return Err(Stop::Malformed);
            }
            if key == b"traceEvents" && cursor.take(b'[')? {
                return Ok(Step::Went(Place::Events { in_object: true }));
            }
            let value = cursor.value()?;
            piece(Piece::Header(key, value));
            Ok(Step::Went(Place::Header))
        }
        Place::Events { in_object } => {
            while cursor.take(b',')? {}
            match cursor.peek()? {
                b']' => {
                    cursor.step();
                    Ok(Step::Went(if in_object { Place::Header } else { Place::End }))
                }
                b'{' => {
                    let event = event(cursor)?;
                    piece(Piece::Event(event));
                    Ok(Step::Went(place))
                }
                b'}' | b':' => Ok(Step::Malformed),
                // `null` and the like between events.
                _ => {
                    // What is no JSON any more ends in an empty value.
                    if cursor.value()? == Raw::Bare(b"") {
                        return Ok(Step::Malformed);
                    }
                    piece(Piece::Malformed);
                    Ok(Step::Went(place))
                }
            }
        }
        Place::End => Ok(Step::Went(Place::End)),
    }
}

#[inline]
fn event<'a>(cursor: &mut Cursor<'a>) -> Result<Event<'a>, Stop> {
    let mut event = Event::EMPTY;
    cursor.members(|key, value| {
        let member = match key {
            b"ph" => &mut event.phase,
            b"cat" => &mut event.category,
            b"name" => &mut event.name,
            b"pid" => &mut event.pid,
            b"tid" => &mut event.tid,
            b"ts" => &mut event.ts,
            b"dur" => &mut event.dur,
            b"args" => &mut event.args,
            _ => return,
        };
        *member = value;
    })?;
    Ok(event)
}

struct Window<R> {
    source: R,
    bytes: Vec<u8>,
    /// What is not parsed yet.
    start: usize,
    end: usize,
    failure: Option<io::Error>,
    at_end: bool,
}

impl<R: Read> Window<R> {
    /// Reads on. `false`: nothing came, or what begins here is too long.
    fn fill(&mut self) -> bool {
        if self.at_end || self.end - self.start >= LONGEST {
            return false;
        }
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.bytes.len() < self.end + WINDOW {
            self.bytes.resize(self.end + WINDOW.max(self.end), 0);
        }
        let had = self.end;
        while self.end - had < WINDOW / 2 {
            match self.source.read(&mut self.bytes[self.end..]) {
                Ok(0) => {
                    self.at_end = true;
                    break;
                }
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failure = Some(error);
                    self.at_end = true;
                    break;
                }
            }
        }
        self.end > had
    }

    /// Steps to the next thing that looks like the beginning of an event, after the byte at which parsing stopped.
    fn resume(&mut self) -> bool {
        // What could not be read begins behind the comma.
        let unread = &self.bytes[self.start..self.end];
        let begins = unread.iter().position(|byte| !byte.is_ascii_whitespace() && *byte != b',').unwrap_or(0);
        let mut from = self.start + begins + 1;
        loop {
            let rest = self.bytes.get(from..self.end).unwrap_or_default();
            for at in memchr::memchr_iter(b'{', rest) {
                if is_event_start(&self.bytes[self.start..self.end], from - self.start + at) {
                    self.start = from + at;
                    return true;
                }
            }
            // Nothing in the window: what is in it is given up, but for the start of a brace that is cut off.
            let kept = (self.end - self.start).min(64);
            self.start = self.end - kept;
            if !self.fill() {
                return false;
            }
            from = self.start + 1;
        }
    }

    fn nothing(&mut self) -> NotATrace {
        match self.failure.take() {
            Some(error) => NotATrace::Unreadable(error),
            None if self.end == self.start || self.bytes[self.start..self.end].trim_ascii().is_empty() => {
                NotATrace::Empty
            }
            None => NotATrace::NotJson,
        }
    }

    fn drain(&mut self) -> Option<io::Error> {
        if let Some(failure) = self.failure.take() {
            return Some(failure);
        }
        while !self.at_end {
            match self.source.read(&mut self.bytes) {
                Ok(0) => self.at_end = true,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Some(error),
            }
        }
        None
    }
}

/// Whether the brace at `at` opens an event: behind a comma or the list's bracket, before a member of an event.
fn is_event_start(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at].iter().rev().find(|byte| !byte.is_ascii_whitespace());
    if !matches!(before, Some(b',' | b'[')) {
        return false;
    }
    let inside = bytes[at + 1..].trim_ascii_start();
    [&b"\"ph\""[..], b"\"name\"", b"\"cat\"", b"\"pid\"", b"\"tid\"", b"\"ts\""]
        .iter()
        .any(|key| inside.starts_with(key))
}
