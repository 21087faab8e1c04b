//! What can be said of a process before it is touched.

use super::elf::{self, Mapped};
use super::refusal::Refusal;
use crate::event::{Pid, Tid};
use crate::record::procfs::read_bounded;

/// Bytes of a map that are read.
const MOST_MAP_BYTES: usize = 16 << 20;
/// Bytes of a status that are read.
const MOST_STATUS_BYTES: usize = 64 << 10;
/// Instructions of the C library's start-up code that are overwritten for a moment.
pub const PLACE_BYTES: u64 = 32;

/// Addresses in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The C library's start-up code, which has run once and never will again.
    pub place: u64,
    /// What is there by the program's file.
    pub place_bytes: Vec<u8>,
    /// `dlopen`, or glibc's own name for it.
    pub dlopen: u64,
    /// `dlsym`.
    pub dlsym: u64,
    /// `dlerror`, 0 where there is none.
    pub dlerror: u64,
    /// `__errno_location`.
    pub errno_location: u64,
}

/// The files that a process has mapped, each once, in order of address.
pub fn files(pid: Pid) -> Vec<Mapped> {
    let Ok(map) = read_bounded(format!("/proc/{pid}/maps"), MOST_MAP_BYTES) else { return Vec::new() };
    let mut files: Vec<Mapped> = Vec::new();
    for line in String::from_utf8_lossy(&map).lines() {
        let Some(file) = mapped(line) else { continue };
        if !files.iter().any(|known| known.path == file.path) {
            files.push(file);
        }
    }
    files
}

/// `start-end perms offset dev inode path`, where the mapping is of a file's beginning.
fn mapped(line: &str) -> Option<Mapped> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let (_permissions, offset) = (fields.next()?, fields.next()?);
    let path = fields.nth(2)?.trim_start();
    (path.starts_with('/') && u64::from_str_radix(offset, 16).ok()? == 0).then_some(())?;
    Some(Mapped {
        path: path.to_owned(),
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
    })
}

/// Whether an address range lies in one writable mapping.
pub fn is_writable(pid: Pid, from: u64, to: u64) -> bool {
    let Ok(map) = read_bounded(format!("/proc/{pid}/maps"), MOST_MAP_BYTES) else { return false };
    String::from_utf8_lossy(&map).lines().any(|line| {
        let mut fields = line.splitn(3, ' ');
        let range = fields.next().and_then(|range| range.split_once('-'));
        let Some((start, end)) = range else { return false };
        let number = |text| u64::from_str_radix(text, 16).unwrap_or(0);
        number(start) <= from && to <= number(end) && fields.next().is_some_and(|p| p.starts_with("rw"))
    })
}

/// Looks at everything that can be looked at from outside.
///
/// # Errors
/// It is not to be touched.
pub fn examine(pid: Pid) -> Result<Addresses, Refusal> {
    let status =
        read_bounded(format!("/proc/{pid}/status"), MOST_STATUS_BYTES).map_err(|_| Refusal::Ended(pid))?;
    let status = String::from_utf8_lossy(&status);
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if let Some(tracer) =
        field("TracerPid:").and_then(|tracer| tracer.parse().ok()).filter(|&tracer| tracer != 0)
    {
        return Err(Refusal::Traced { pid, tracer: Pid(tracer) });
    }
    if field("x86_Thread_features:").is_some_and(|features| features.contains("shstk")) {
        return Err(Refusal::ShadowStack(pid));
    }
    let files = files(pid);
    let named = |part: &str| files.iter().find(|file| name(file).starts_with(part));
    if named("ld-musl").is_some() || named("libc.musl").is_some() {
        return Err(Refusal::OtherLibc(pid, "it uses musl"));
    }
    let program = program(pid, &files).ok_or(Refusal::Ended(pid))?;
    let program_bytes = program.read(pid).ok_or(Refusal::Ended(pid))?;
    if !elf::is_native(&program_bytes) {
        return Err(Refusal::OtherArchitecture(pid));
    }
    let libc = named("libc.so.6").or_else(|| named("libc-2."));
    let libc = libc.ok_or(Refusal::OtherLibc(pid, "it has no libc.so.6"))?;
    // glibc before 2.34 has these in a library of their own, which libcuda brings along.
    let libdl = named("libdl.so.2").or_else(|| named("libdl-2."));
    let images: Vec<(u64, Vec<u8>)> = [Some(libc), libdl]
        .into_iter()
        .flatten()
        .filter_map(|file| Some((file.start, file.read(pid)?)))
        .collect();
    let find = |name: &str| images.iter().find_map(|(start, bytes)| elf::function(bytes, *start, name));
    let need = |name: &'static str| find(name).ok_or(Refusal::NoSymbol(pid, name));
    let place = elf::entry(&program_bytes, program.start).ok_or(Refusal::NoPlace(pid))?;
    let place_bytes = elf::bytes_at(&program_bytes, program.start, place, PLACE_BYTES)
        .filter(|code| super::arch::is_start_up_code(code))
        .ok_or(Refusal::NoPlace(pid))?
        .to_vec();
    Ok(Addresses {
        place,
        place_bytes,
        dlopen: find("dlopen")
            .or_else(|| find("__libc_dlopen_mode"))
            .ok_or(Refusal::NoSymbol(pid, "dlopen"))?,
        dlsym: find("dlsym").or_else(|| find("__libc_dlsym")).ok_or(Refusal::NoSymbol(pid, "dlsym"))?,
        dlerror: find("dlerror").unwrap_or(0),
        errno_location: need("__errno_location")?,
    })
}

fn name(file: &Mapped) -> &str {
    file.path.rsplit('/').next().unwrap_or(&file.path)
}

/// The program itself among the mapped files.
fn program(pid: Pid, files: &[Mapped]) -> Option<Mapped> {
    let link = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let link = link.to_string_lossy();
    files.iter().find(|file| file.path == link).cloned()
}

/// A line of its status, by the line's beginning. `None`: it is gone, or the kernel does not tell that.
pub fn status_field(pid: Pid, name: &str) -> Option<String> {
    let status = read_bounded(format!("/proc/{pid}/status"), MOST_STATUS_BYTES).ok()?;
    let status = String::from_utf8_lossy(&status);
    status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

/// The process that made it, if it lives.
pub fn parent(pid: Pid) -> Option<Pid> {
    let parent = status_field(pid, "PPid:")?.parse().ok()?;
    (parent > 1).then_some(Pid(parent))
}

/// The program's threads.
pub fn threads(pid: Pid) -> Vec<(i32, std::path::PathBuf)> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks.flatten().filter_map(|task| Some((task.file_name().to_str()?.parse().ok()?, task.path()))).collect()
}

/// The program's threads that wait in a system call, with its number.
pub fn waiting_threads(pid: Pid) -> Vec<(Tid, i64)> {
    threads(pid)
        .into_iter()
        .filter_map(|(tid, folder)| {
            let call = read_bounded(folder.join("syscall"), 256).ok()?;
            // `running`, or `number arguments… stack-pointer program-counter`.
            let number = String::from_utf8_lossy(&call).split(' ').next()?.trim().parse().ok()?;
            Some((Tid(tid), number))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_map_are_read() {
        let line =
            "7f0000000000-7f0000002000 r--p 00000000 fe:00 1234                       /usr/lib/libc.so.6";
        let file = mapped(line).expect("a file");
        assert_eq!((file.path.as_str(), file.start), ("/usr/lib/libc.so.6", 0x7f00_0000_0000));
        assert_eq!(mapped("7f0000000000-7f0000002000 r-xp 00001000 fe:00 1234 /usr/lib/libc.so.6"), None);
        assert_eq!(
            mapped("7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]"),
            None
        );
        for broken in ["", "x", "1-2", "1-2 r--p", "g-h r--p 0 0 0 /x", "1-2 r--p 0 0 0"] {
            assert_eq!(mapped(broken), None, "{broken}");
        }
    }

    #[test]
    fn the_own_stack_is_writable_and_the_own_code_is_not() {
        let own = Pid(std::process::id() as i32);
        let here = 0_u64;
        let address = &raw const here as u64;
        assert!(is_writable(own, address - 64, address + 8));
        let code = is_writable as *const () as u64;
        assert!(!is_writable(own, code, code + 1));
    }
}
