//! Lays the simulated CUDA stack out in a folder, ready for `LD_LIBRARY_PATH`.
//!
//! The folder holds real copies under the real names, not links, since tools know the libraries by the names in
//! `/proc/<pid>/maps`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};

/// What to lay out.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    libraries: PathBuf,
    without: Vec<String>,
}

impl Layout {
    /// From the libraries that cargo built beside the running program (a binary or a test of this workspace).
    ///
    /// # Errors
    /// If the program's own path cannot be told.
    pub fn new() -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let folder = program.parent().unwrap_or(Path::new("/"));
        let libraries = if folder.ends_with("deps") { folder.to_owned() } else { folder.join("deps") };
        Ok(Self { libraries, without: Vec::new() })
    }

    /// From the libraries of a build folder (`target/debug`).
    #[must_use]
    pub fn from_build(folder: &Path) -> Self {
        Self { libraries: folder.join("deps"), without: Vec::new() }
    }

    /// Leaves this exported function out, as if the library were too old to have it.
    #[must_use]
    pub fn without(mut self, symbol: &str) -> Self {
        self.without.push(symbol.to_owned());
        self
    }

    /// Leaves out what the CUPTI of this CUDA version (`12.4`) does not have.
    #[must_use]
    pub fn cupti_version(mut self, version: &str) -> Self {
        self.without.extend(sim_libcupti13::absent_in(version).into_iter().map(str::to_owned));
        self
    }

    /// Writes the folder.
    ///
    /// # Errors
    /// If a library was not built, or the folder cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let libraries = [
            ("libsim_libcuda.so", "libcuda.so.1", "libcuda.so"),
            ("libsim_libcupti12.so", "libcupti.so.12", ""),
            ("libsim_libcupti13.so", "libcupti.so.13", "libcupti.so"),
            ("libsim_libnvidia_ml.so", "libnvidia-ml.so.1", ""),
            ("libsim_libnccl.so", "libnccl.so.2", "libnccl.so"),
        ];
        for (built, name, link) in libraries {
            let built = self.libraries.join(built);
            let mut image = fs::read(&built).map_err(|e| {
                io::Error::new(e.kind(), format!("{}: {e}; build it with cargo first", built.display()))
            })?;
            for symbol in &self.without {
                hide(&mut image, symbol)?;
            }
            replace(&folder.join(name), &image)?;
            if !link.is_empty() {
                let _ = fs::remove_file(folder.join(link));
                std::os::unix::fs::symlink(name, folder.join(link))?;
            }
        }
        Ok(())
    }
}

/// Writes a file anew, so that programs that have the old one mapped keep it.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|present| present == content) {
        return Ok(());
    }
    let temporary = path.with_extension(format!("new.{}", std::process::id()));
    fs::write(&temporary, content)?;
    fs::rename(&temporary, path)
}

/// Makes an exported symbol one that nobody finds: its name in the dynamic string table gets another first letter, so
/// that it does not match its hash any more.
fn hide(image: &mut [u8], symbol: &str) -> io::Result<()> {
    let file: ElfFile64 = ElfFile64::parse(&*image).map_err(io::Error::other)?;
    let names = file.section_by_name(".dynstr").and_then(|section| section.file_range());
    let (start, len) = names.ok_or_else(|| io::Error::other("the library has no dynamic string table"))?;
    let names = &mut image[start as usize..(start + len) as usize];
    let wanted = format!("\0{symbol}\0");
    if let Some(at) = names.windows(wanted.len()).position(|window| window == wanted.as_bytes()) {
        names[at + 1] = b'-';
    }
    Ok(())
}
