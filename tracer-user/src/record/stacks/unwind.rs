//! From registers and the top of the stack to return addresses, by the tables (`.eh_frame`) that compilers leave for
//! exceptions, and by frame pointers where a file has none.

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, UnwindRegsNative, Unwinder as _,
    UnwinderNative,
};
use tracer_abi::kernel::SampleRecord;

use super::mappings::Mapping;
use super::module::{Bytes, Module};

/// Frames that a stack is followed for.
const MOST_FRAMES: usize = 64;

/// Rules found so far, shared by all processes.
pub type Cache = CacheNative<MayAllocateDuringUnwind>;

/// What a process has mapped, for unwinding.
#[derive(Default)]
pub struct Unwinder {
    modules: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
}

/// The addresses of a stack, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// Each inside the instruction that was running, or that made the call.
    pub addresses: Vec<u64>,
    /// The end of the stack was found.
    pub complete: bool,
}

impl Unwinder {
    /// Takes in a mapping.
    pub fn add(&mut self, mapping: &Mapping, module: &Module) {
        let Some(bias) = module.bias(mapping) else { return };
        let unwind = &module.unwind;
        let range = |part: &Option<(u64, Bytes)>| {
            part.as_ref().map(|(at, bytes)| *at..at.saturating_add(bytes.len() as u64))
        };
        let bytes = |part: &Option<(u64, Bytes)>| part.as_ref().map(|(_, bytes)| bytes.clone());
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: unwind.text.clone(),
            got_svma: unwind.got.clone(),
            eh_frame_svma: range(&unwind.eh_frame),
            eh_frame: bytes(&unwind.eh_frame),
            eh_frame_hdr_svma: range(&unwind.eh_frame_hdr),
            eh_frame_hdr: bytes(&unwind.eh_frame_hdr),
            ..ExplicitModuleSectionInfo::default()
        };
        let module = framehop::Module::new(String::new(), mapping.start..mapping.end, bias, sections);
        self.modules.add_module(module);
    }

    /// Unwinds a sample.
    pub fn unwind(&self, record: &SampleRecord, stack: &[u8], cache: &mut Cache) -> Stack {
        let mut found = Stack::default();
        let sp = record.sp;
        let mut read = |address: u64| {
            let from = address.checked_sub(sp).and_then(|from| usize::try_from(from).ok()).ok_or(())?;
            let bytes = stack.get(from..from.checked_add(8).ok_or(())?).ok_or(())?;
            bytes.try_into().map(u64::from_ne_bytes).map_err(|_| ())
        };
        let mut frames = self.modules.iter_frames(record.ip, registers(record), cache, &mut read);
        while found.addresses.len() < MOST_FRAMES {
            match frames.next() {
                Ok(Some(frame)) => found.addresses.push(frame.address_for_lookup()),
                Ok(None) => {
                    found.complete = true;
                    break;
                }
                Err(_) => break,
            }
        }
        found
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(record: &SampleRecord) -> UnwindRegsNative {
    UnwindRegsNative::new(record.ip, record.sp, record.fp)
}

#[cfg(target_arch = "aarch64")]
fn registers(record: &SampleRecord) -> UnwindRegsNative {
    UnwindRegsNative::new(record.lr, record.sp, record.fp)
}
