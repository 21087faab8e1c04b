//! Which libcupti.
//!
//! The one that the process has mapped, never a second copy; if it has none, the one that belongs to its CUDA runtime,
//! or else the loader's choice for the driver's version. No function of CUPTI is called before the real driver is known
//! to be mapped: libcupti 13.2 recurses to death without one.

use std::env;
use std::ffi::{CStr, CString, c_int};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::os::unix::Library;

use super::mapped::{base_name, mapped_objects};
use super::table::{Cupti, SUCCESS, result_name};
use crate::layout::{SIZES, Version};

/// CUPTI, bound.
pub struct Bound {
    /// Its functions. The library stays loaded: its handle is never closed.
    pub cupti: Cupti,
    /// Its version.
    pub version: Version,
    /// Its path.
    pub path: CString,
    /// Version of the driver (`13000`: CUDA 13.0).
    pub driver_version: u32,
}

/// Why nothing is bound.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what the variant's sentence speaks of")]
pub enum Refusal {
    /// No real driver.
    NoDriver(&'static str),
    /// The process has no memory left for this.
    NoMemory(&'static str),
    /// No libcupti anywhere. May change when the process loads more.
    NoCupti { driver_version: u32 },
    /// Two of them: each would see half.
    SeveralCuptis(Vec<CString>),
    /// It lacks a function.
    MissingFunction { path: CString, name: &'static str },
    /// `cuptiGetVersion` failed.
    NoVersion { path: CString, code: u32 },
    /// Older or newer than what can be read safely.
    UnknownVersion { path: CString, version: u32 },
    /// It says that a record is shorter than what would be read of it.
    UnknownLayout { path: CString, kind: u32, size: usize },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |path: &CString| path.to_string_lossy().into_owned();
        match self {
            Self::NoDriver(what) => write!(f, "there is no CUDA driver in the process: {what}"),
            Self::NoMemory(what) => write!(f, "the process has no memory left for {what}"),
            Self::NoCupti { driver_version } => write!(
                f,
                "no libcupti.so was found for CUDA {}.{}: install CUPTI (package nvidia-cuda-cupti, or cuda-cupti of the CUDA toolkit) where the process can load it",
                driver_version / 1000,
                driver_version % 1000 / 10
            ),
            Self::SeveralCuptis(paths) => {
                write!(f, "the process has mapped {} copies of libcupti:", paths.len())?;
                paths.iter().try_for_each(|path| write!(f, " {}", shown(path)))?;
                f.write_str("; make its libraries agree on one CUDA version")
            }
            Self::MissingFunction { path, name } => write!(f, "{} has no function {name}", shown(path)),
            Self::NoVersion { path, code } => {
                write!(f, "{} does not tell its version: {code}, {}", shown(path), result_name(*code))
            }
            Self::UnknownVersion { path, version } => {
                write!(
                    f,
                    "{} is version {version}, which this gtrace cannot read (CUDA 11.7 to 13.x)",
                    shown(path)
                )
            }
            Self::UnknownLayout { path, kind, size } => write!(
                f,
                "{} has records of kind {kind} of {size} bytes, shorter than any known version's",
                shown(path)
            ),
        }
    }
}

/// Binds CUPTI.
///
/// # Errors
/// See [`Refusal`].
pub fn bind() -> Result<Bound, Refusal> {
    let driver_version = driver_version()?;
    let objects = mapped_objects();
    let (library, cupti) = match mapped_cuptis(&objects).as_slice() {
        [] => load(&objects, driver_version).ok_or(Refusal::NoCupti { driver_version })?,
        [path] => {
            let library = open(path, libc::RTLD_NOLOAD).ok_or(Refusal::NoCupti { driver_version })?;
            let cupti = Cupti::load(&library);
            (library, cupti)
        }
        several => return Err(Refusal::SeveralCuptis(several.to_vec())),
    };
    // Never closed: CUPTI is in use for as long as the process lives.
    std::mem::forget(library);
    let path = path_of(&cupti).unwrap_or_default();
    if let Some(name) = cupti.missing() {
        return Err(Refusal::MissingFunction { path, name });
    }
    let version = checked_version(&cupti, &path)?;
    Ok(Bound { cupti, version, path, driver_version })
}

/// The version of CUPTI, once it is one whose records can be read.
fn checked_version(cupti: &Cupti, path: &CStr) -> Result<Version, Refusal> {
    let mut version = 0;
    let Some(get_version) = cupti.get_version else {
        return Err(Refusal::MissingFunction { path: path.into(), name: "cuptiGetVersion" });
    };
    // SAFETY: a number to fill.
    let code = unsafe { get_version(&raw mut version) };
    if code != SUCCESS {
        return Err(Refusal::NoVersion { path: path.into(), code });
    }
    if !(Version::OLDEST..Version::UNKNOWN).contains(&Version(version)) {
        return Err(Refusal::UnknownVersion { path: path.into(), version });
    }
    if let (true, Some(get_struct_size)) = (Version(version) >= Version::STRUCT_SIZE, cupti.get_struct_size) {
        for (kind, need) in SIZES {
            let mut size = 0;
            // SAFETY: a number to fill.
            let code = unsafe { get_struct_size(kind, version, &raw mut size) };
            if code == SUCCESS && size < need {
                return Err(Refusal::UnknownLayout { path: path.into(), kind, size });
            }
        }
    }
    Ok(Version(version))
}

/// The version of the driver that is mapped, if it is a real one.
fn driver_version() -> Result<u32, Refusal> {
    let driver =
        open(c"libcuda.so.1", libc::RTLD_NOLOAD).ok_or(Refusal::NoDriver("libcuda.so.1 is not loaded"))?;
    // The stub that the toolkit has for linking exports little and fails at everything.
    for name in [c"cuInit", c"cuGetExportTable"] {
        // SAFETY: only looked for, not called.
        let found = unsafe { driver.get::<unsafe extern "C" fn()>(name.to_bytes_with_nul()) };
        if found.is_err() {
            return Err(Refusal::NoDriver("its libcuda.so.1 is a stub"));
        }
    }
    // SAFETY: the type of the CUDA driver API since its beginning.
    let get = unsafe { driver.get::<unsafe extern "C" fn(*mut c_int) -> c_int>(b"cuDriverGetVersion\0") }
        .map_err(|_| Refusal::NoDriver("its libcuda.so.1 is a stub"))?;
    let mut version = 0;
    // SAFETY: a number to fill; the call works before and during cuInit.
    let code = unsafe { get(&raw mut version) };
    if code != 0 {
        return Err(Refusal::NoDriver("its libcuda.so.1 does not tell its version"));
    }
    Ok(u32::try_from(version).unwrap_or(0))
}

fn mapped_cuptis(objects: &[CString]) -> Vec<CString> {
    objects.iter().filter(|path| base_name(path).starts_with(b"libcupti.so")).cloned().collect()
}

/// Loads a libcupti that fits the process's CUDA runtime, or else its driver.
fn load(objects: &[CString], driver_version: u32) -> Option<(Library, Cupti)> {
    let runtime = objects.iter().find(|path| base_name(path).starts_with(b"libcudart.so"));
    let cuda_home = env::var_os("CUDA_HOME").map(PathBuf::from);
    candidates(runtime.map(CString::as_c_str), driver_version, cuda_home.as_deref()).iter().find_map(|path| {
        // A path that is none costs the loader a search; a name without folder is its own search.
        let is_name = !path.to_bytes().contains(&b'/');
        let there = is_name || Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())).exists();
        let library = if there { open(path, 0) } else { None }?;
        let cupti = Cupti::load(&library);
        Some((library, cupti))
    })
}

/// Where a libcupti may be, best first.
fn candidates(runtime: Option<&CStr>, driver_version: u32, cuda_home: Option<&Path>) -> Vec<CString> {
    let driver_major = driver_version / 1000;
    // `libcudart.so.13`, `libcudart.so.12.4.127`
    let runtime_major = runtime.and_then(|path| {
        let digits = base_name(path).strip_prefix(b"libcudart.so.")?.split(|byte| *byte == b'.').next()?;
        std::str::from_utf8(digits).ok()?.parse::<u32>().ok()
    });
    let majors = runtime_major
        .filter(|major| *major <= driver_major)
        .map_or_else(|| (11..=driver_major.min(13)).rev().collect::<Vec<_>>(), |major| vec![major]);
    let folder = runtime.and_then(|path| Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())).parent());
    let mut paths = Vec::new();
    for major in majors {
        let sonames = if major == 11 {
            vec!["libcupti.so.11.8".to_owned(), "libcupti.so.11.7".to_owned()]
        } else {
            vec![format!("libcupti.so.{major}")]
        };
        for soname in sonames {
            if let Some(folder) = folder {
                paths.push(folder.join(&soname));
                paths.push(folder.join("../../cuda_cupti/lib").join(&soname));
                paths.push(folder.join("../extras/CUPTI/lib64").join(&soname));
            }
            let toolkits = cuda_home.map(PathBuf::from).into_iter().chain([
                PathBuf::from(format!("/usr/local/cuda-{major}.{}", driver_version % 1000 / 10)),
                PathBuf::from(format!("/usr/local/cuda-{major}")),
                PathBuf::from("/usr/local/cuda"),
            ]);
            paths.extend(toolkits.map(|toolkit| toolkit.join("extras/CUPTI/lib64").join(&soname)));
            paths.push(PathBuf::from(soname));
        }
    }
    paths.into_iter().filter_map(|path| CString::new(path.into_os_string().as_bytes()).ok()).collect()
}

fn open(path: &CStr, flags: c_int) -> Option<Library> {
    let name = std::ffi::OsStr::from_bytes(path.to_bytes());
    // SAFETY: CUPTI's and the driver's initialisers are meant to run in any process.
    unsafe { Library::open(Some(name), libc::RTLD_NOW | libc::RTLD_LOCAL | flags) }.ok()
}

/// The file that the functions are in.
fn path_of(cupti: &Cupti) -> Option<CString> {
    let function = cupti.get_version?;
    let mut info = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: an address and a struct to fill.
    let found = unsafe { libc::dladdr(function as *const libc::c_void, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a string of the dynamic linker that lives as long as the library, which is never closed.
    Some(unsafe { CStr::from_ptr(info.dli_fname) }.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtimes_own_cupti_comes_first() {
        let runtime = c"/venv/nvidia/cuda_runtime/lib/libcudart.so.12.4.127";
        let paths = candidates(Some(runtime), 13_000, None);
        assert_eq!(paths[0].as_c_str(), c"/venv/nvidia/cuda_runtime/lib/libcupti.so.12");
        assert_eq!(paths[1].as_c_str(), c"/venv/nvidia/cuda_runtime/lib/../../cuda_cupti/lib/libcupti.so.12");
        assert_eq!(paths.last().map(CString::as_c_str), Some(c"libcupti.so.12"), "no other major version");
    }

    #[test]
    fn without_a_runtime_the_driver_decides_and_older_ones_follow() {
        let paths = candidates(None, 12_040, Some(Path::new("/opt/cuda")));
        let names: Vec<&[u8]> = paths.iter().map(|path| base_name(path)).collect();
        assert_eq!(paths[0].as_c_str(), c"/opt/cuda/extras/CUPTI/lib64/libcupti.so.12");
        assert!(names.iter().all(|name| !name.ends_with(b".13")), "never newer than the driver");
        assert!(names.contains(&b"libcupti.so.11.8".as_slice()));
    }

    #[test]
    fn a_process_without_a_driver_is_refused_before_anything_of_cupti_is_called() {
        assert!(matches!(bind(), Err(Refusal::NoDriver(_))));
    }

    #[test]
    fn several_copies_are_told_apart_from_other_libraries() {
        let objects = [c"/a/libcupti.so.12", c"/b/libcupti.so.13", c"/c/libcuptish.so", c"/c/libc.so.6"]
            .map(CString::from);
        assert_eq!(mapped_cuptis(&objects).len(), 2);
        let message = Refusal::SeveralCuptis(mapped_cuptis(&objects)).to_string();
        assert!(message.contains("/a/libcupti.so.12") && message.contains("/b/libcupti.so.13"), "{message}");
    }
}
