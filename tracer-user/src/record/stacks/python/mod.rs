//! CPython: its interpreter found in a process, its frames named.
//!
//! The frames themselves are read in the kernel, at the instant of the sample (`tracer-ebpf/src/sample.rs`). Here the
//! kernel is told where a process keeps them, and what they mean is looked up afterwards, in memory that may have
//! changed: a code object is only believed if its type is `code`.

mod code;
mod layout;
mod lines;
mod text;

use std::collections::HashMap;

use tracer_abi::kernel::{PythonFrame, PythonProcess};

use super::memory::Memory;
use super::module::PythonSymbols;
use crate::event::Text;
use code::Code;
use layout::Layout;

/// Bytes of code objects that are kept of one process.
const MOST_BYTES: usize = 8 << 20;
/// Low bits of a reference to a code object that are no part of its address (3.14).
const TAGS: u64 = 7;

/// A frame of Python with its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFrame {
    /// `decode`
    pub function: Text,
    /// `/srv/train.py`
    pub file: Text,
    /// Its line.
    pub line: Option<i32>,
}

/// Why a process's Python frames cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is not up yet: look again.
    NotYet,
    /// This version, or this way of building it, is not known.
    Unknown,
}

/// The interpreter of a process.
#[derive(Debug)]
pub struct Interpreter {
    layout: Layout,
    code_type: u64,
    threads_head: u64,
    codes: HashMap<u64, Code>,
    bytes: usize,
}

impl Interpreter {
    /// Looks at an interpreter whose symbols are at `bias` plus their own addresses. `minor` is what its files' names say.
    ///
    /// # Errors
    /// It is not up yet, or not known.
    pub fn find(
        memory: &dyn Memory,
        symbols: PythonSymbols,
        bias: u64,
        minor: Option<u8>,
    ) -> Result<Self, Unreadable> {
        let runtime = bias.wrapping_add(symbols.runtime);
        let version =
            symbols.version.and_then(|at| memory.word(bias.wrapping_add(at))).and_then(layout::version);
        let minor =
            version.or_else(|| layout::said_version(runtime, memory)).or(minor).ok_or(Unreadable::Unknown)?;
        let layout = layout::of_version(minor, runtime, memory).ok_or(Unreadable::Unknown)?;
        let main = pointer(memory, runtime, layout.main_interpreter)?;
        let threads_head = main.wrapping_add(u64::from(layout.threads_head));
        let first = pointer(memory, threads_head, 0)?;
        // A build with other options would have the interpreter elsewhere.
        if pointer(memory, first, layout.thread_interpreter)? != main {
            return Err(Unreadable::Unknown);
        }
        Ok(Self {
            layout,
            code_type: bias.wrapping_add(symbols.code_type),
            threads_head,
            codes: HashMap::new(),
            bytes: 0,
        })
    }

    /// What the kernel has to know.
    #[must_use]
    pub fn for_kernel(&self, mm: u64) -> PythonProcess {
        let layout = &self.layout;
        // On arm64 `thread_id` is not the thread pointer but lies below it by a size that only the C library knows.
        let number = if cfg!(target_arch = "x86_64") { None } else { layout.native_thread_id };
        PythonProcess {
            mm,
            threads_head: self.threads_head,
            thread_next: layout.thread_next,
            thread_id: number.unwrap_or(layout.thread_id),
            thread_frame: layout.thread_frame,
            cframe_frame: layout.cframe_frame,
            frame_previous: layout.frame_previous,
            frame_code: layout.frame_code,
            frame_instruction: layout.frame_instruction,
            by_number: u32::from(number.is_some()),
        }
    }

    /// Names the frames of a sample, innermost first. `false`: some could not be read.
    pub fn name(&mut self, memory: &dyn Memory, frames: &[PythonFrame]) -> (Vec<NamedFrame>, bool) {
        let mut named = Vec::with_capacity(frames.len());
        let mut whole = true;
        for frame in frames {
            let address = frame.code & !TAGS;
            let Some(code) = self.code(memory, address) else {
                whole &= !self.codes.contains_key(&address);
                // What the interpreter puts between its own calls and Python's has no code object.
                whole &= frame.code == 0 || memory.word(address).is_some();
                continue;
            };
            if code.file.is_empty()
                || code.function.starts_with("<interpreter")
                || code.function.starts_with("<shim")
            {
                continue;
            }
            let (function, file) = (code.function.clone(), code.file.clone());
            let code = self.codes.get(&address);
            let line = code.and_then(|code| code.line(&self.layout, address, frame.instruction));
            named.push(NamedFrame { function, file, line });
        }
        (named, whole)
    }

    /// The code object at an address, as it was when a sample saw it.
    fn code(&mut self, memory: &dyn Memory, address: u64) -> Option<&Code> {
        if self.bytes > MOST_BYTES {
            self.codes.clear();
            self.bytes = 0;
        }
        let (layout, code_type) = (&self.layout, self.code_type);
        let known = self.codes.get_mut(&address).map(|code| code.holds(memory, layout, code_type, address));
        let replaced = match known {
            Some(true) => None,
            Some(false) => {
                // Freed since: what the sample saw is what was known, unless another code object lies there by now.
                Code::read(memory, layout, code_type, address).map(|code| (code, true))
            }
            None => Some((Code::read(memory, layout, code_type, address)?, false)),
        };
        if let Some((code, ambiguous)) = replaced {
            self.bytes += code.size();
            self.codes.insert(address, code);
            if ambiguous {
                return None;
            }
        }
        self.codes.get(&address)
    }
}

fn pointer(memory: &dyn Memory, base: u64, offset: u32) -> Result<u64, Unreadable> {
    match memory.word(base.wrapping_add(u64::from(offset))) {
        Some(0) | None => Err(Unreadable::NotYet),
        Some(pointer) => Ok(pointer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::stacks::memory::tests::Image;

    #[test]
    fn garbage_is_no_interpreter() {
        let symbols = PythonSymbols { runtime: 0x1000, code_type: 0x9000, version: None };
        let find = |image: &Image, minor| {
            Interpreter::find(image, symbols, 0, minor).map(|found| found.layout.minor)
        };
        let mut image = Image::default();
        assert_eq!(find(&image, Some(11)), Err(Unreadable::NotYet));
        assert_eq!(find(&image, None), Err(Unreadable::Unknown));
        assert_eq!(find(&image, Some(7)), Err(Unreadable::Unknown));
        image.put(0x1000, &[0x41; 4096]);
        assert_eq!(find(&image, Some(11)), Err(Unreadable::NotYet), "pointers that lead nowhere");
        assert_eq!(find(&image, Some(13)), Err(Unreadable::Unknown), "it does not say where things are");
        // A list of threads whose first belongs to another interpreter.
        let mut image = Image::default();
        let mut runtime = vec![0_u8; 4096];
        runtime[48..56].copy_from_slice(&0x3000_u64.to_ne_bytes());
        image.put(0x1000, &runtime);
        let mut interpreter = vec![0_u8; 64];
        interpreter[16..24].copy_from_slice(&0x4000_u64.to_ne_bytes());
        image.put(0x3000, &interpreter);
        image.put(0x4000, &[0x42; 256]);
        assert_eq!(find(&image, Some(11)), Err(Unreadable::Unknown));
        let mut thread = vec![0_u8; 256];
        thread[16..24].copy_from_slice(&0x3000_u64.to_ne_bytes());
        let mut whole = Image::default();
        whole.put(0x1000, &runtime);
        whole.put(0x3000, &interpreter);
        whole.put(0x4000, &thread);
        assert_eq!(find(&whole, Some(11)), Ok(11));
    }

    #[test]
    fn frames_of_garbage_have_no_names() {
        let mut image = Image::default();
        image.put(0x1000, &[0x41; 512]);
        let layout = layout::of_version(11, 0, &image).expect("known");
        let mut interpreter =
            Interpreter { layout, code_type: 0x9000, threads_head: 0, codes: HashMap::new(), bytes: 0 };
        let frame = |code| PythonFrame { code, instruction: 7 };
        assert_eq!(interpreter.name(&image, &[frame(0x1000), frame(0)]), (Vec::new(), true));
        assert_eq!(interpreter.name(&image, &[frame(0x5000), frame(u64::MAX)]), (Vec::new(), false));
    }
}
