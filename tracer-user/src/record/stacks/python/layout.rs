//! Where CPython keeps things, by minor version, on 64-bit processors.
//!
//! 3.8 to 3.12: the structures of `Include/cpython` and `Include/internal` of each version. From 3.13 on the interpreter
//! says it itself, in `_Py_DebugOffsets` at the beginning of `_PyRuntime` (`Include/internal/pycore_runtime.h`,
//! `pycore_debug_offsets.h`), whose own layout changes with the minor version.

use tracer_abi::kernel::Offsets;

use crate::record::stacks::memory::{Memory, word_at};

/// What an offset may be at most: no structure of the interpreter is larger.
const MOST_OFFSET: u64 = 1 << 20;
/// Bytes of `_PyRuntime` that hold the offsets.
const DEBUG_BYTES: usize = 512;
/// The first bytes of `_PyRuntime` from 3.13 on.
const COOKIE: &[u8; 8] = b"xdebugpy";

/// How line tables are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineTable {
    /// `co_lnotab`: to 3.9.
    Lnotab,
    /// `co_linetable` of 3.10 (PEP 626).
    Ranges,
    /// `co_linetable` of 3.11 and later (PEP 657).
    Locations,
}

/// What the instruction of a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// `f_lasti`, in bytes: to 3.9.
    Bytes,
    /// `f_lasti`, in code units of two bytes: 3.10.
    Units,
    /// An address in the code object.
    Address,
}

/// The places of one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Minor version.
    pub minor: u8,
    /// `_PyRuntime.interpreters.main`.
    pub main_interpreter: u32,
    /// `PyInterpreterState.threads.head`.
    pub threads_head: u32,
    /// `PyThreadState.next`.
    pub thread_next: u32,
    /// `PyThreadState.interp`.
    pub thread_interpreter: u32,
    /// `PyThreadState.thread_id`: the thread pointer, on glibc and musl of x86-64.
    pub thread_id: u32,
    /// `PyThreadState.native_thread_id`: 3.11 and later.
    pub native_thread_id: Option<u32>,
    /// `frame`, `cframe` or `current_frame`.
    pub thread_frame: u32,
    /// `_PyCFrame.current_frame`.
    pub cframe_frame: u32,
    /// The frame before.
    pub frame_previous: u32,
    /// The code object.
    pub frame_code: u32,
    /// Where in it.
    pub frame_instruction: u32,
    /// What that is.
    pub instruction: Instruction,
    /// `co_filename`.
    pub code_filename: u32,
    /// `co_qualname`, `co_name` to 3.10.
    pub code_name: u32,
    /// `co_firstlineno`.
    pub code_first_line: u32,
    /// `co_lnotab` or `co_linetable`.
    pub code_lines: u32,
    /// `co_code_adaptive`.
    pub code_start: u32,
    /// How lines are written.
    pub line_table: LineTable,
    /// Bytes of a string's head, of ASCII and of other text.
    pub text_head: (u32, u32),
    /// How much longer the head of every object is: 16 bytes where there is no interpreter lock.
    pub longer: u32,
}

const TO_3_9: Layout = Layout {
    minor: 9,
    main_interpreter: 40,
    threads_head: 8,
    thread_next: 8,
    thread_interpreter: 16,
    thread_id: 176,
    native_thread_id: None,
    thread_frame: 24,
    cframe_frame: Offsets::ABSENT,
    frame_previous: 24,
    frame_code: 32,
    frame_instruction: 104,
    instruction: Instruction::Bytes,
    code_filename: 104,
    code_name: 112,
    code_first_line: 40,
    code_lines: 120,
    code_start: 0,
    line_table: LineTable::Lnotab,
    text_head: (48, 72),
    longer: 0,
};

const V3_10: Layout = Layout {
    minor: 10,
    frame_instruction: 96,
    instruction: Instruction::Units,
    line_table: LineTable::Ranges,
    ..TO_3_9
};

const V3_11: Layout = Layout {
    minor: 11,
    main_interpreter: 48,
    threads_head: 16,
    thread_id: 152,
    native_thread_id: Some(160),
    thread_frame: 56,
    cframe_frame: 8,
    frame_previous: 48,
    frame_code: 32,
    frame_instruction: 56,
    instruction: Instruction::Address,
    code_filename: 112,
    code_name: 128,
    code_first_line: 72,
    code_lines: 136,
    code_start: 184,
    line_table: LineTable::Locations,
    ..V3_10
};

const V3_12: Layout = Layout {
    minor: 12,
    threads_head: 72,
    thread_id: 136,
    native_thread_id: Some(144),
    cframe_frame: 0,
    frame_previous: 8,
    frame_code: 0,
    code_first_line: 68,
    code_start: 192,
    text_head: (40, 56),
    ..V3_11
};

/// Where in `_Py_DebugOffsets` each offset is.
struct DebugOffsets {
    threads_head: usize,
    thread_next: usize,
    thread_interpreter: usize,
    current_frame: usize,
    thread_id: usize,
    native_thread_id: usize,
    frame_previous: usize,
    frame_executable: usize,
    frame_instruction: usize,
    code_filename: usize,
    code_name: usize,
    code_lines: usize,
    code_first_line: usize,
    code_start: usize,
}

const FREE_THREADED: usize = 16;
const INTERPRETERS_HEAD: usize = 40;

const DEBUG_3_13: DebugOffsets = DebugOffsets {
    threads_head: 72,
    thread_next: 168,
    thread_interpreter: 176,
    current_frame: 184,
    thread_id: 192,
    native_thread_id: 200,
    frame_previous: 232,
    frame_executable: 240,
    frame_instruction: 248,
    code_filename: 280,
    code_name: 296,
    code_lines: 304,
    code_first_line: 312,
    code_start: 344,
};

const DEBUG_3_14: DebugOffsets = DebugOffsets {
    threads_head: 72,
    thread_next: 192,
    thread_interpreter: 200,
    current_frame: 208,
    thread_id: 216,
    native_thread_id: 224,
    frame_previous: 256,
    frame_executable: 264,
    frame_instruction: 272,
    code_filename: 320,
    code_name: 336,
    code_lines: 344,
    code_first_line: 352,
    code_start: 384,
};

/// The layout of a version, from the interpreter's memory where it says it itself. `None`: this version is not known.
#[must_use]
pub fn of_version(minor: u8, runtime: u64, memory: &dyn Memory) -> Option<Layout> {
    match minor {
        8 | 9 => Some(Layout { minor, ..TO_3_9 }),
        10 => Some(V3_10),
        11 => Some(V3_11),
        12 => Some(V3_12),
        13 => said(minor, &DEBUG_3_13, &memory.bytes(runtime, DEBUG_BYTES)?),
        14 => said(minor, &DEBUG_3_14, &memory.bytes(runtime, DEBUG_BYTES)?),
        _ => None,
    }
}

/// The version that the interpreter says it is (3.13 and later).
#[must_use]
pub fn said_version(runtime: u64, memory: &dyn Memory) -> Option<u8> {
    let bytes = memory.bytes(runtime, 16)?;
    bytes.starts_with(COOKIE).then_some(())?;
    version(word_at(&bytes, 8)?)
}

/// The minor version in `PY_VERSION_HEX`.
#[must_use]
pub fn version(hex: u64) -> Option<u8> {
    (hex >> 24 == 3).then_some((hex >> 16) as u8)
}

fn said(minor: u8, places: &DebugOffsets, bytes: &[u8]) -> Option<Layout> {
    bytes.starts_with(COOKIE).then_some(())?;
    (version(word_at(bytes, 8)?)? == minor).then_some(())?;
    let offset = |at| word_at(bytes, at).filter(|&offset| offset < MOST_OFFSET).map(|offset| offset as u32);
    let longer = if word_at(bytes, FREE_THREADED)? == 0 { 0 } else { 16 };
    Some(Layout {
        minor,
        // `main` follows `head`.
        main_interpreter: offset(INTERPRETERS_HEAD)? + 8,
        threads_head: offset(places.threads_head)?,
        thread_next: offset(places.thread_next)?,
        thread_interpreter: offset(places.thread_interpreter)?,
        thread_id: offset(places.thread_id)?,
        native_thread_id: Some(offset(places.native_thread_id)?),
        thread_frame: offset(places.current_frame)?,
        cframe_frame: Offsets::ABSENT,
        frame_previous: offset(places.frame_previous)?,
        frame_code: offset(places.frame_executable)?,
        frame_instruction: offset(places.frame_instruction)?,
        instruction: Instruction::Address,
        code_filename: offset(places.code_filename)?,
        code_name: offset(places.code_name)?,
        code_first_line: offset(places.code_first_line)?,
        code_lines: offset(places.code_lines)?,
        code_start: offset(places.code_start)?,
        line_table: LineTable::Locations,
        text_head: (40 + longer, 56 + longer),
        longer,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::stacks::memory::tests::Image;

    #[test]
    fn what_the_interpreter_says_counts_if_it_is_sane() {
        let mut bytes = vec![0_u8; DEBUG_BYTES];
        let mut put = |at: usize, value: u64| bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        put(0, u64::from_ne_bytes(*COOKIE));
        put(8, 0x030e_0af0);
        put(INTERPRETERS_HEAD, 800);
        put(DEBUG_3_14.threads_head, 7344);
        put(DEBUG_3_14.code_start, 208);
        let mut image = Image::default();
        image.put(0x1000, &bytes);
        let layout = of_version(14, 0x1000, &image).expect("3.14 is known");
        assert_eq!((layout.main_interpreter, layout.threads_head, layout.code_start), (808, 7344, 208));
        assert_eq!(said_version(0x1000, &image), Some(14));
        assert!(of_version(13, 0x1000, &image).is_none(), "another version");
        assert!(of_version(14, 0x2000, &image).is_none(), "nothing there");
        assert!(of_version(15, 0x1000, &image).is_none(), "not known");
        bytes[DEBUG_3_14.code_start + 7] = 0xff;
        let mut image = Image::default();
        image.put(0x1000, &bytes);
        assert!(of_version(14, 0x1000, &image).is_none(), "no structure is that large");
    }
}
