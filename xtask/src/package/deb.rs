//! The Debian package: an `ar` archive of two tarballs, written here so that no packaging tools are needed.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Package, tar};

/// Writes `gtrace_VERSION_MACHINE.deb`.
pub fn write(folder: &Path, package: &Package) -> Result<PathBuf> {
    let stage = folder.join("deb");
    if stage.exists() {
        fs::remove_dir_all(&stage).with_context(|| format!("cannot remove {}", stage.display()))?;
    }
    let root = stage.join("root");
    fs::create_dir_all(&root).with_context(|| format!("cannot make {}", root.display()))?;
    let size = copy_tree(&package.tree, &root.join("usr"))?;
    fs::write(stage.join("control"), control(package, size))?;
    let (data, meta) = (stage.join("data.tar.gz"), stage.join("control.tar.gz"));
    tar(&root, &data, &[Path::new("./usr")])?;
    tar(&stage, &meta, &[Path::new("./control")])?;
    let mut archive = b"!<arch>\n".to_vec();
    member(&mut archive, "debian-binary", b"2.0\n");
    member(&mut archive, "control.tar.gz", &fs::read(&meta)?);
    member(&mut archive, "data.tar.gz", &fs::read(&data)?);
    let file = folder.join(format!("gtrace_{}_{}.deb", package.version, package.machine));
    fs::write(&file, archive).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

fn control(package: &Package, bytes: u64) -> String {
    let (major, minor) = package.glibc;
    format!(
        "Package: gtrace\nVersion: {}\nArchitecture: {}\nMaintainer: gtrace developers <gtrace@localhost>\n\
         Installed-Size: {}\nDepends: libc6 (>= {major}.{minor}), libgcc-s1\nSection: devel\nPriority: optional\n\
         Description: why did this GPU not go on working?\n \
         gtrace records a program on its host (scheduler, system calls, disks, network, by eBPF) and on its GPUs\n \
         (kernels, copies, synchronisation, by CUPTI), and gives every nanosecond in which a GPU did no compute one\n \
         exact cause, or says why it cannot.\n",
        package.version,
        package.machine,
        bytes.div_ceil(1024),
    )
}

/// Adds a file to an `ar` archive.
fn member(archive: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    let mut header = String::new();
    // Name, time, owner, group, mode, size, each of a fixed width. Writing to a String cannot fail.
    let _ = writeln!(header, "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`", 1, 0, 0, "100644", bytes.len());
    archive.extend_from_slice(header.as_bytes());
    archive.extend_from_slice(bytes);
    if bytes.len() % 2 == 1 {
        archive.push(b'\n');
    }
}

/// Copies a tree and returns its size.
fn copy_tree(from: &Path, to: &Path) -> Result<u64> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    let mut size = 0;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        size += if entry.file_type()?.is_dir() {
            copy_tree(&path, &copy)?
        } else {
            fs::copy(&path, &copy).with_context(|| format!("cannot copy {}", path.display()))?
        };
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::member;

    #[test]
    fn members_have_headers_of_sixty_bytes_and_even_lengths() {
        let mut archive = Vec::new();
        member(&mut archive, "debian-binary", b"2.0\n");
        assert_eq!(archive.len(), 64);
        member(&mut archive, "data.tar.gz", b"odd");
        assert_eq!(archive.len(), 64 + 64);
        assert!(archive[..60].ends_with(b"`\n") && archive[64..].starts_with(b"data.tar.gz     "));
    }
}
