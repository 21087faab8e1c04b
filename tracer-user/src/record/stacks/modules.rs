//! The files whose code was sampled, each read once and kept while memory allows.

use std::collections::HashMap;
use std::sync::Arc;

use super::mappings::{FileId, Mapping};
use super::module::Module;
use crate::event::Pid;

/// Bytes of names and unwind tables that are kept.
const MOST_BYTES: usize = 64 << 20;

/// Modules by file.
#[derive(Default)]
pub struct Modules {
    known: HashMap<FileId, (Arc<Module>, u64)>,
    bytes: usize,
    uses: u64,
}

impl Modules {
    /// The module that a mapping is of.
    pub fn get(&mut self, pid: Pid, mapping: &Mapping) -> Arc<Module> {
        self.uses += 1;
        if mapping.file.1 == 0 {
            return Arc::new(Module::default());
        }
        if let Some((module, used)) = self.known.get_mut(&mapping.file) {
            *used = self.uses;
            return Arc::clone(module);
        }
        let module = Arc::new(Module::read(pid, mapping));
        self.bytes += module.size;
        self.known.insert(mapping.file, (Arc::clone(&module), self.uses));
        while self.bytes > MOST_BYTES && self.known.len() > 1 {
            let oldest = self.known.iter().min_by_key(|(_, (_, used))| *used).map(|(file, _)| *file);
            if let Some((module, _)) = oldest.and_then(|file| self.known.remove(&file)) {
                self.bytes -= module.size;
            }
        }
        module
    }
}
