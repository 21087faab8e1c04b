//! One process as samples meet it: what it has mapped, and its interpreter.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracer_abi::kernel::{PythonFrame, SampleRecord, sample_flags};

use super::mappings::{self, Mapping};
use super::memory::ProcessMemory;
use super::module::Module;
use super::modules::Modules;
use super::python::{Interpreter, NamedFrame, Unreadable};
use super::unwind::{Cache, Stack, Unwinder};
use crate::event::{Pid, Text};
use crate::store::schema::Frame;

/// A process's map is read again for an address outside it, but not more often.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// An interpreter that was not up is looked for again after so long, longer each time.
const FIRST_LOOK: Duration = Duration::from_millis(20);
const LAST_LOOK: Duration = Duration::from_secs(5);
/// Frames of one sample that are kept.
const MOST_FRAMES: usize = 96;
/// Files that are read for one sample: the next sample reads on.
const MOST_FILES: usize = 16;
/// The interpreter's own loop: what lies outside it are Python's frames.
const LOOP: &str = "_PyEval_EvalFrame";
const INTERPRETER: &str = "interpreter";

/// One process, from one `exec` to the next.
pub struct Process {
    pid: Pid,
    mm: u64,
    /// A file is read when a stack leads through it: most of what a program has mapped is never met.
    mappings: Vec<(Mapping, Option<Arc<Module>>)>,
    unwinder: Unwinder,
    mapped: Instant,
    python: Python,
    /// When a sample was of it last, as the worker counts.
    pub used: u64,
}

enum Python {
    /// Looked for again at this time, and so long after it.
    Sought(Instant, Duration),
    /// No file of it is an interpreter, or it is of a kind that is not known.
    None,
    Found(Box<Interpreter>),
}

/// A sample with its names.
pub struct Named {
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// Some are missing at the outer end or in between.
    pub incomplete: bool,
}

impl Process {
    /// A process that was not met before, or that has executed another program since.
    pub fn new(pid: Pid, mm: u64, modules: &mut Modules) -> Self {
        let now = Instant::now();
        let mut process = Self {
            pid,
            mm,
            mappings: Vec::new(),
            unwinder: Unwinder::default(),
            mapped: now,
            python: Python::None,
            used: 0,
        };
        process.read_map(modules);
        process
    }

    /// Whether a sample is of this process.
    pub fn is(&self, record: &SampleRecord) -> bool {
        self.mm == record.mm
    }

    /// The interpreter, if it was found at this call: the kernel has to be told.
    pub fn find_python(&mut self) -> Option<tracer_abi::kernel::PythonProcess> {
        let Python::Sought(when, wait) = self.python else { return None };
        let now = Instant::now();
        if now < when {
            return None;
        }
        self.python = Python::None;
        let memory = ProcessMemory(self.pid);
        let minor = self.mappings.iter().find_map(|(mapping, _)| mapping.python);
        for (mapping, module) in &self.mappings {
            let Some(module) = module else { continue };
            let (Some(symbols), Some(bias)) = (module.python, module.bias(mapping)) else { continue };
            match Interpreter::find(&memory, symbols, bias, mapping.python.or(minor)) {
                Ok(found) => {
                    let told = found.for_kernel(self.mm);
                    self.python = Python::Found(Box::new(found));
                    return Some(told);
                }
                Err(Unreadable::NotYet) => {
                    self.python = Python::Sought(now + wait, (wait * 2).min(LAST_LOOK));
                }
                Err(Unreadable::Unknown) => {}
            }
        }
        None
    }

    fn read_map(&mut self, modules: &mut Modules) {
        self.mapped = Instant::now();
        let (found, python) = mappings::read(self.pid);
        if found.is_empty() {
            // It has ended: what was known of it still holds.
            return;
        }
        let same = found.len() == self.mappings.len()
            && found.iter().zip(&self.mappings).all(|(new, (old, _))| new == old);
        if same {
            return;
        }
        self.unwinder = Unwinder::default();
        let known = std::mem::take(&mut self.mappings);
        self.mappings = found
            .into_iter()
            .map(|mut mapping| {
                mapping.python = mapping.python.or(python);
                let module =
                    known.iter().find(|(old, _)| *old == mapping).and_then(|(_, module)| module.clone());
                if let Some(module) = &module {
                    self.unwinder.add(&mapping, module);
                }
                (mapping, module)
            })
            .collect();
        // The program itself, and what may be an interpreter's library.
        for index in 0..self.mappings.len() {
            if index == 0 || self.mappings[index].0.name.contains("python") {
                self.load(index, modules);
            }
        }
        let is_python = |(_, module): &(Mapping, Option<Arc<Module>>)| {
            module.as_ref().is_some_and(|module| module.python.is_some())
        };
        if matches!(self.python, Python::None) && self.mappings.iter().any(is_python) {
            self.python = Python::Sought(self.mapped, FIRST_LOOK);
        }
    }

    /// Reads the file behind a mapping, if that was not done yet. `false`: it was.
    fn load(&mut self, index: usize, modules: &mut Modules) -> bool {
        let Some((mapping, place @ None)) = self.mappings.get_mut(index) else { return false };
        let module = modules.get(self.pid, mapping);
        self.unwinder.add(mapping, &module);
        *place = Some(module);
        true
    }

    fn mapping_of(&self, address: u64) -> Option<usize> {
        let after = self.mappings.partition_point(|(mapping, _)| mapping.start <= address);
        let found = after.checked_sub(1)?;
        (address < self.mappings[found].0.end).then_some(found)
    }

    /// Unwinds a sample; a file that it leads into for the first time is read, and it is unwound again.
    fn unwind(
        &mut self,
        record: &SampleRecord,
        stack: &[u8],
        modules: &mut Modules,
        cache: &mut Cache,
    ) -> Stack {
        for _ in 0..MOST_FILES {
            let found = self.unwinder.unwind(record, stack, cache);
            let mut places = found.addresses.iter().filter_map(|&address| self.mapping_of(address));
            let Some(unread) = places.find(|&place| self.mappings[place].1.is_none()) else { return found };
            self.load(unread, modules);
        }
        self.unwinder.unwind(record, stack, cache)
    }

    /// Names the frames of a sample.
    pub fn name(
        &mut self,
        record: &SampleRecord,
        python: &[PythonFrame],
        stack: &[u8],
        modules: &mut Modules,
        cache: &mut Cache,
    ) -> Named {
        if self.mapping_of(record.ip).is_none() && self.mapped.elapsed() >= LOOK_AGAIN {
            self.read_map(modules);
        }
        let stack = self.unwind(record, stack, modules, cache);
        let mut incomplete = !stack.complete;
        let (named, whole) = match &mut self.python {
            Python::Found(interpreter) => interpreter.name(&ProcessMemory(self.pid), python),
            _ => (Vec::new(), true),
        };
        let mut frames: Vec<Frame> =
            stack.addresses.into_iter().map(|address| self.native_frame(address)).collect();
        if !named.is_empty() {
            // From the interpreter's loop outwards Python's own frames stand for the native ones.
            frames.truncate(inside_loop(&frames));
            incomplete = record.flags & sample_flags::PYTHON_CUT != 0;
        }
        incomplete |= !whole || frames.len() + named.len() > MOST_FRAMES;
        frames.extend(named.into_iter().map(python_frame));
        frames.truncate(MOST_FRAMES);
        Named { frames, incomplete }
    }

    fn native_frame(&self, address: u64) -> Frame {
        let place = self.mapping_of(address).map(|place| &self.mappings[place]);
        let module = place.and_then(|(_, module)| module.as_ref());
        let own = place.zip(module).and_then(|((mapping, _), module)| module.own_address(mapping, address));
        let function = module.zip(own).and_then(|(module, own)| module.function(own));
        Frame {
            kind: Text::from(match module {
                Some(module) if module.python.is_some() => INTERPRETER,
                _ => "native",
            }),
            file: None,
            line: None,
            module: place.map(|(mapping, _)| mapping.name.clone()).filter(|name| !name.is_empty()),
            address: if function.is_none() { own.and_then(|own| i64::try_from(own).ok()) } else { None },
            function,
        }
    }
}

/// How many of the innermost native frames the interpreter's loop has called. Where it has no symbol: those up to the
/// interpreter, and of its own the leaf.
fn inside_loop(frames: &[Frame]) -> usize {
    let is_loop = |frame: &Frame| frame.function.as_ref().is_some_and(|function| function.starts_with(LOOP));
    frames.iter().position(is_loop).unwrap_or_else(|| {
        let first = frames.iter().position(|frame| &*frame.kind == INTERPRETER).unwrap_or(frames.len());
        match frames.first() {
            Some(leaf) if first == 0 && leaf.function.is_some() => 1,
            _ => first,
        }
    })
}

fn python_frame(frame: NamedFrame) -> Frame {
    Frame {
        kind: Text::from("python"),
        function: Some(frame.function),
        file: Some(frame.file),
        line: frame.line,
        module: None,
        address: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn native(kind: &str, function: Option<&str>) -> Frame {
        Frame {
            kind: kind.into(),
            function: function.map(Text::from),
            file: None,
            line: None,
            module: Some("m".into()),
            address: None,
        }
    }

    #[test]
    fn native_frames_end_at_the_interpreters_loop() {
        let inflate = native("native", Some("inflate"));
        let call = native(INTERPRETER, Some("PyObject_Call"));
        let unnamed = native(INTERPRETER, None);
        let own_loop = native(INTERPRETER, Some("_PyEval_EvalFrameDefault"));
        let count = |frames: &[&Frame]| inside_loop(&frames.iter().copied().cloned().collect::<Vec<_>>());
        assert_eq!(count(&[&inflate, &call, &own_loop, &call]), 2);
        assert_eq!(count(&[&own_loop, &call]), 0);
        assert_eq!(count(&[&inflate, &unnamed, &call]), 1);
        assert_eq!(count(&[&call, &unnamed]), 1);
        assert_eq!(count(&[&unnamed, &call]), 0);
        assert_eq!(count(&[&inflate, &inflate]), 2);
        assert_eq!(count(&[]), 0);
    }
}
