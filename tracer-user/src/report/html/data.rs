//! What the page's script reads. Rows are arrays, texts are numbers in one list; times count in ns from the beginning of the
//! recording, so that JavaScript's numbers hold them exactly.

use std::collections::HashMap;

use serde::ser::SerializeTuple as _;
use serde::{Serialize, Serializer};

/// The GPUs' time.
#[derive(Debug, Serialize)]
pub struct Timeline {
    /// Each device's time in columns.
    pub devices: Vec<Device>,
    /// How many gaps the recording has.
    pub total_gaps: u64,
    /// The longest of them, the longest first.
    pub gaps: Vec<Gap>,
    /// Chains; a segment's number 1 is the first.
    pub chains: Vec<Vec<Hop>>,
    /// Texts and causes.
    #[serde(flatten)]
    pub strings: Lists,
}

/// A device's window in equal columns.
#[derive(Debug, Serialize)]
pub struct Device {
    /// Its number.
    #[serde(rename = "device")]
    pub number: i32,
    /// Its name.
    pub name: String,
    /// Start of the window.
    pub start: i64,
    /// Its end.
    pub end: i64,
    /// Length of one column.
    pub column_ns: i64,
    /// Waiting in each: cause and ns.
    pub columns: Vec<Vec<(u32, i64)>>,
}

/// Writes a row as an array.
macro_rules! array_row {
    ($(#[doc = $doc:literal])* pub struct $row:ident [$count:literal] { $( $(#[doc = $field_doc:literal])* $field:ident: $type:ty, )* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $row { $( $(#[doc = $field_doc])* pub $field: $type, )* }

        impl Serialize for $row {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut row = serializer.serialize_tuple($count)?;
                $( row.serialize_element(&self.$field)?; )*
                row.end()
            }
        }
    };
}

array_row! {
    /// A gap.
    pub struct Gap [9] {
        /// Its number.
        id: i64,
        /// The GPU.
        device: i32,
        /// 0 idle, 1 only copies, 2 only communication.
        kind: u8,
        /// Start.
        start: i64,
        /// Length.
        length: i64,
        /// The cause that most of it has.
        cause: u32,
        /// Its stage (text).
        stage: u32,
        /// What had drained the launch queue (text), 0 nothing.
        enabler: u32,
        /// The longest segments, in order of time.
        segments: Vec<Segment>,
    }
}

array_row! {
    /// A piece of a gap.
    pub struct Segment [8] {
        /// Start, from the gap's.
        start: i64,
        /// Length.
        length: i64,
        /// Cause.
        cause: u32,
        /// Stage (text).
        stage: u32,
        /// Object (text), 0 none.
        object: u32,
        /// Thread at the end of the chain (text), 0 none.
        thread: u32,
        /// Chain, 0 none.
        chain: u32,
        /// 1 if it is inferred.
        inferred: u8,
    }
}

array_row! {
    /// A hop of a chain.
    pub struct Hop [3] {
        /// The thread or device (text).
        who: u32,
        /// What it did (text).
        does: u32,
        /// How the next one ended its wait (text), 0: it is the cause.
        edge: u32,
    }
}

/// The lists that numbers stand for.
#[derive(Debug, Serialize)]
pub struct Lists {
    /// Texts; the first is empty.
    pub texts: Vec<String>,
    /// Causes: code, words, class of its colour.
    pub causes: Vec<(String, &'static str, &'static str)>,
}

/// Collects texts and causes, each once.
#[derive(Debug)]
pub struct Strings {
    lists: Lists,
    numbers: HashMap<String, u32>,
    cause_numbers: HashMap<String, u32>,
    bytes: usize,
}

impl Default for Strings {
    fn default() -> Self {
        Self {
            lists: Lists { texts: vec![String::new()], causes: Vec::new() },
            numbers: HashMap::from([(String::new(), 0)]),
            cause_numbers: HashMap::new(),
            bytes: 0,
        }
    }
}

impl Strings {
    /// The number of a text.
    pub fn add(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.lists.texts.len() as u32;
        self.lists.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        self.bytes += text.len() + 8;
        number
    }

    /// The number of a cause.
    pub fn cause(&mut self, code: &str, says: &'static str, color: &'static str) -> u32 {
        if let Some(number) = self.cause_numbers.get(code) {
            return *number;
        }
        let number = self.lists.causes.len() as u32;
        self.lists.causes.push((code.to_owned(), says, color));
        self.cause_numbers.insert(code.to_owned(), number);
        self.bytes += code.len() + says.len() + 16;
        number
    }

    /// Roughly what they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The lists.
    #[must_use]
    pub fn finish(self) -> Lists {
        self.lists
    }
}
