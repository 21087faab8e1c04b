//! Small loops for measuring what recording costs: `micro MODE COUNT CPU [DIR]`.
//!
//! Prints `READY pid`, waits for a byte on standard input, runs, prints `RESULT nanoseconds-per-operation`, and waits for
//! another byte: a recorder attaches between `READY` and the first byte.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::clock::now_ns;
use crate::gpu::Gpu;
use crate::{cpu, files};

/// Folders and files in each of the tree for `scan`.
const TREE: (u64, u64) = (50, 200);

/// Runs one of the loops.
///
/// # Errors
/// Wrong usage, or a system call fails.
pub fn run(arguments: &[String]) -> Result<()> {
    let (mode, count, cpu, data) = match arguments {
        [mode, count, cpu] => (mode, count, cpu, std::env::temp_dir()),
        [mode, count, cpu, data] => (mode, count, cpu, PathBuf::from(data)),
        _ => bail!("usage: micro getppid|pread|pingpong|scan|cpu|launch COUNT CPU [DIR]"),
    };
    let count: u64 = count.parse().context("COUNT must be a number")?;
    cpu::pin(cpu.parse().context("CPU must be a number")?);
    match mode.as_str() {
        "getppid" => timed(count, getppid),
        "pread" => {
            let file = File::open(files::make(&data, "pread.bin", 4096)?)?;
            let mut buffer = [0; 512];
            timed(count, || Ok(file.read_exact_at(&mut buffer, 0)?))
        }
        "scan" => {
            let paths = tree(&data.join("tree"))?;
            let mut next = paths.iter().cycle();
            let mut buffer = [0; 4096];
            timed(count, || scan_one(next.next().context("the tree is empty")?, &mut buffer))
        }
        "cpu" => {
            let mut state = 1;
            timed(count, || {
                state = std::hint::black_box(cpu::xorshift(state, 1_000));
                Ok(())
            })
        }
        "launch" => launch(count),
        "pingpong" => pingpong(count),
        "echo" => echo(),
        other => bail!("there is no loop `{other}`"),
    }
}

/// Launches the shortest kernels; their queue is emptied before it is full.
fn launch(count: u64) -> Result<()> {
    let gpu = Gpu::open()?;
    let mut number = 0_u64;
    timed(count, || {
        number += 1;
        gpu.kernel(1)?;
        if number.is_multiple_of(500) { gpu.synchronize() } else { Ok(()) }
    })
}

/// Waits for the word to go, runs the loop, says how long one operation took.
fn timed(count: u64, mut operation: impl FnMut() -> Result<()>) -> Result<()> {
    println!("READY {}", std::process::id());
    if !go()? {
        return Ok(());
    }
    for _ in 0..count / 50 {
        operation()?;
    }
    let start = now_ns();
    for _ in 0..count {
        operation()?;
    }
    let took = now_ns() - start;
    println!("RESULT {:.3}", took as f64 / count as f64);
    go()?;
    Ok(())
}

fn go() -> Result<bool> {
    std::io::stdout().flush()?;
    Ok(std::io::stdin().lock().read(&mut [0])? == 1)
}

/// The real system call, which libc may not cache.
#[allow(clippy::unnecessary_wraps, reason = "all operations have the same shape")]
fn getppid() -> Result<()> {
    // SAFETY: the call has no arguments and no preconditions.
    unsafe { libc::syscall(libc::SYS_getppid) };
    Ok(())
}

fn scan_one(path: &Path, buffer: &mut [u8]) -> Result<()> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let read = file.read(buffer)?;
    if read as u64 != size {
        bail!("{} has {size} bytes, read {read}", path.display());
    }
    Ok(())
}

/// Makes the tree of small files, and lists it.
fn tree(root: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for folder in 0..TREE.0 {
        let folder = root.join(format!("d{folder:02}"));
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for file in 0..TREE.1 {
            let path = folder.join(format!("f{file:03}"));
            if !path.exists() {
                std::fs::write(&path, vec![b'x'; 1000])
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
            paths.push(path);
        }
    }
    Ok(paths)
}

/// One byte to a child process and back, both on one CPU: two pipe writes, two reads, two context switches.
fn pingpong(count: u64) -> Result<()> {
    let program = std::env::current_exe()?;
    let cpu = std::env::args().nth(4).unwrap_or_default();
    let mut child = Command::new(program)
        .args(["micro", "echo", "0", &cpu])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(mut to), Some(mut from)) = (child.stdin.take(), child.stdout.take()) else {
        bail!("the child has no pipes");
    };
    let mut byte = [0];
    timed(count, || {
        to.write_all(&byte)?;
        Ok(from.read_exact(&mut byte)?)
    })?;
    drop(to);
    child.wait()?;
    Ok(())
}

/// The child's side of `pingpong`: nothing but reads and writes.
fn echo() -> Result<()> {
    // Descriptors of our own: the library's standard output would collect bytes until a line ends.
    let mut from = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut to = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let mut byte = [0];
    while from.read(&mut byte)? == 1 {
        to.write_all(&byte)?;
    }
    Ok(())
}
