//! Which CUDA version's CUPTI this is: what it exports, its kinds, its layouts.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use crate::sizes::{KINDS, VERSIONS};

/// A version of CUPTI.
pub struct Version {
    /// CUDA version.
    pub cuda: (u32, u32),
    /// What `cuptiGetVersion` says.
    pub library: u32,
    sizes: [usize; KINDS.len()],
}

/// Functions that are newer than CUDA 11.7, with their first version.
const NEWER: [(&str, (u32, u32)); 29] = [
    ("cuptiGetErrorMessage", (12, 2)),
    ("cuptiActivityEnableDriverApi", (12, 5)),
    ("cuptiActivityEnableRuntimeApi", (12, 5)),
    ("cuptiActivityEnableAllSyncRecords", (12, 8)),
    ("cuptiActivityEnableHWTrace", (12, 8)),
    ("cuptiSubscribe_v2", (13, 0)),
    ("cuptiActivityEnableCudaEventDeviceTimestamps", (13, 0)),
    ("cuptiActivityRegisterCallbacks_v2", (13, 2)),
    ("cuptiActivityEnable_v2", (13, 2)),
    ("cuptiActivityDisable_v2", (13, 2)),
    ("cuptiActivityEnableAndDump_v2", (13, 2)),
    ("cuptiActivitySetAttribute_v2", (13, 2)),
    ("cuptiActivityGetAttribute_v2", (13, 2)),
    ("cuptiActivityGetEnabledKinds", (13, 2)),
    ("cuptiActivityGetStructSize", (13, 2)),
    ("cuptiGetEnabledCallbacks", (13, 2)),
    ("cuptiActivityGetNextRecord_v2", (13, 3)),
    ("cuptiActivityGetNumDroppedRecords_v2", (13, 3)),
    ("cuptiActivityEnableDriverApi_v2", (13, 3)),
    ("cuptiActivityEnableRuntimeApi_v2", (13, 3)),
    ("cuptiActivityPushExternalCorrelationId_v2", (13, 3)),
    ("cuptiActivityPopExternalCorrelationId_v2", (13, 3)),
    ("cuptiGetTimestamp_v2", (13, 3)),
    ("cuptiIsTracingSessionRunning", (13, 3)),
    // Not exported by the simulation; named so that a list of absent symbols is right about them too.
    ("cuptiActivityEnableDeviceGraph", (12, 3)),
    ("cuptiGetGraphExecId", (12, 3)),
    ("cuptiEnableCigMode", (12, 5)),
    ("cuptiActivityEnableAllocationSource", (12, 6)),
    ("cuptiGetCudaEventId", (13, 4)),
];

/// Exported functions that the CUPTI of a CUDA version (`12.4`) does not have.
#[must_use]
pub fn absent_in(version: &str) -> Vec<&'static str> {
    let Some(cuda) = parse(version) else { return Vec::new() };
    NEWER.iter().filter(|(_, first)| cuda < *first).map(|(name, _)| *name).collect()
}

fn parse(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The version that this library is: of `SIMCUDA_CUPTI_VERSION`, else of its file name.
pub fn get() -> &'static Version {
    static VERSION: OnceLock<Version> = OnceLock::new();
    VERSION.get_or_init(|| {
        let wanted = std::env::var("SIMCUDA_CUPTI_VERSION").ok();
        let found = wanted.as_deref().and_then(parse).and_then(of);
        if let (Some(text), None) = (&wanted, &found) {
            eprintln!("simulated CUPTI: SIMCUDA_CUPTI_VERSION={text} is not known");
        }
        let default = if file_name().contains("13") { (13, 0) } else { (12, 4) };
        found.or_else(|| of(default)).unwrap_or(Version {
            cuda: (12, 4),
            library: 22,
            sizes: [0; KINDS.len()],
        })
    })
}

fn of(cuda: (u32, u32)) -> Option<Version> {
    let (cuda, library, sizes) = VERSIONS.iter().find(|(version, ..)| *version == cuda).copied()?;
    Some(Version { cuda, library, sizes })
}

impl Version {
    /// Bytes of a record of a kind, `None` if the version has no such kind or the simulation does not make it.
    pub fn size(&self, kind: u32) -> Option<usize> {
        let kind = match kind {
            3 => 10,
            5 => 4,
            kind => kind,
        };
        let at = KINDS.iter().position(|known| *known == kind)?;
        Some(self.sizes[at]).filter(|size| *size > 0)
    }

    /// Whether the version knows a kind.
    pub fn has_kind(&self, kind: u32) -> bool {
        let first = match kind {
            1..=51 => (11, 7),
            52 => (11, 8),
            53 | 54 => (12, 8),
            55 => (12, 9),
            56..=58 => (13, 1),
            59 => (13, 2),
            _ => return false,
        };
        self.cuda >= first
    }

    /// Whether the version has a function.
    pub fn has(&self, function: &str) -> bool {
        NEWER.iter().find(|(name, _)| *name == function).is_none_or(|(_, first)| self.cuda >= *first)
    }
}

/// The name of the file that this code was loaded from.
fn file_name() -> String {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let address = get as fn() -> &'static Version as *const c_void;
    // SAFETY: `info` is valid for the call to fill, and is all zeroes if it does not.
    let info = unsafe {
        libc::dladdr(address, info.as_mut_ptr());
        info.assume_init()
    };
    if info.dli_fname.is_null() {
        return String::new();
    }
    // SAFETY: the dynamic loader's own string.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned();
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Bytes of a kind's record in the release `xxyyzz`.
pub fn size_in(kind: u32, release: u32) -> Option<usize> {
    of((release / 10_000, release / 100 % 100))?.size(kind)
}
