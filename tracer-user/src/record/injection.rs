//! How the shim comes into a command that gtrace starts: the CUDA driver loads the library that this variable names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The driver's variable for libraries to load into a 64-bit process (CUPTI's own, documented for injection).
pub const VARIABLE: &str = "CUDA_INJECTION64_PATH";
/// NVTX's variable for the library that is told what programs mark.
pub const NVTX_VARIABLE: &str = "NVTX_INJECTION64_PATH";
/// Tells the shim to collect from the start, before the first context exists.
pub const START: &str = "GTRACE_START";
/// Tells the shim what to collect until the recorder says so.
pub const COLLECT: &str = "GTRACE_COLLECT";
/// Names the shim for gtrace, where it lies elsewhere than beside it.
pub const OVERRIDE: &str = "GTRACE_SHIM";
/// The shim's file.
pub const LIBRARY: &str = "libgtrace_cupti.so";

/// Why the GPU side cannot come up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// The variable is in use.
    #[error(
        "{VARIABLE} is set to {}, so the command loads that instead of gtrace's shim and the GPU side stays empty: unset \
         it for this command", .0.display()
    )]
    Taken(PathBuf),
    /// There is no shim.
    #[error(
        "gtrace's shim {LIBRARY} is neither beside the program nor in ../lib/gtrace, so the GPU side stays empty: name \
         it in {OVERRIDE}"
    )]
    NoShim,
    /// The shim that was named is not there.
    #[error("{OVERRIDE} names {}, which is no file, so the GPU side stays empty", .0.display())]
    NamedShimMissing(PathBuf),
}

/// The variable to set for the command; `None` if it is inherited with gtrace's own shim in it.
///
/// # Errors
/// Something is in the way. What is set already is never overwritten.
pub fn variable() -> Result<Option<(OsString, OsString)>, Obstacle> {
    let present = std::env::var_os(VARIABLE).filter(|present| !present.is_empty()).map(PathBuf::from);
    let named = std::env::var_os(OVERRIDE).filter(|named| !named.is_empty()).map(PathBuf::from);
    let program = std::env::current_exe().ok();
    choose(present, named, program.as_deref().and_then(Path::parent))
}

/// gtrace's library.
///
/// # Errors
/// It is not where it should be.
pub fn library() -> Result<PathBuf, Obstacle> {
    let named = std::env::var_os(OVERRIDE).filter(|named| !named.is_empty()).map(PathBuf::from);
    let program = std::env::current_exe().ok();
    find(named, program.as_deref().and_then(Path::parent))
}

fn choose(
    present: Option<PathBuf>,
    named: Option<PathBuf>,
    folder: Option<&Path>,
) -> Result<Option<(OsString, OsString)>, Obstacle> {
    if let Some(present) = present {
        let ours = present.file_name().is_some_and(|name| name == LIBRARY);
        return if ours { Ok(None) } else { Err(Obstacle::Taken(present)) };
    }
    Ok(Some((VARIABLE.into(), find(named, folder)?.into())))
}

fn find(named: Option<PathBuf>, folder: Option<&Path>) -> Result<PathBuf, Obstacle> {
    let shim = match named {
        Some(named) if named.is_file() => named,
        Some(named) => return Err(Obstacle::NamedShimMissing(named)),
        None => folder
            .into_iter()
            .flat_map(|folder| [folder.join(LIBRARY), folder.join("../lib/gtrace").join(LIBRARY)])
            .find(|place| place.is_file())
            .ok_or(Obstacle::NoShim)?,
    };
    // The command may change its working directory before it loads CUDA.
    Ok(shim.canonicalize().unwrap_or(shim))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_never_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let shim = folder.path().join(LIBRARY);
        assert_eq!(choose(None, None, Some(folder.path())), Err(Obstacle::NoShim));
        std::fs::write(&shim, "").expect("a file");
        let found = choose(None, None, Some(folder.path())).expect("beside").expect("to set");
        assert_eq!(found.1, shim.canonicalize().expect("there").into_os_string());
        let other = PathBuf::from("/opt/nsight/libToolsInjection64.so");
        assert_eq!(
            choose(Some(other.clone()), None, Some(folder.path())),
            Err(Obstacle::Taken(other.clone()))
        );
        assert_eq!(choose(Some(shim.clone()), None, None), Ok(None));
        assert_eq!(
            choose(None, Some(other.clone()), Some(folder.path())),
            Err(Obstacle::NamedShimMissing(other))
        );
        assert_eq!(choose(None, Some(shim), None), Ok(Some(found)));
    }
}
