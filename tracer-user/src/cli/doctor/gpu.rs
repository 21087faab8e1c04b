//! The GPU side: driver, libraries, and what would be in the shim's way.

use super::libraries::{self, Library};
use super::{Check, read_small};
use crate::record::injection;

pub fn checks() -> Vec<Check> {
    vec![driver(), libcuda(), libcupti(), shim(), nvtx(), other_tools()]
}

fn driver() -> Check {
    let Some(text) = read_small("/proc/driver/nvidia/version") else {
        return Check::missing(
            "NVIDIA driver",
            "not loaded: there is no /proc/driver/nvidia/version",
            "install the driver, or pass the GPU into this machine; without one only the host side is recorded",
        );
    };
    let gpus = gpu_names();
    let version = text.lines().next().and_then(driver_version).unwrap_or("of unknown version");
    let names = if gpus.is_empty() { "no GPU".to_owned() } else { gpus.join(", ") };
    Check::ok("NVIDIA driver", format!("{version}, {names}"))
}

/// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Fri …` and the same with `Open Kernel Module for x86_64`.
fn driver_version(line: &str) -> Option<&str> {
    line.split_whitespace().find(|word| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.contains('.')
            && word.chars().all(|c| c.is_ascii_digit() || c == '.')
    })
}

fn gpu_names() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/proc/driver/nvidia/gpus") else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| read_small(&entry.path().join("information").to_string_lossy()))
        .filter_map(|text| {
            let model = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
            Some(model.trim().to_owned())
        })
        .collect();
    names.sort();
    names
}

fn libcuda() -> Check {
    let found = libraries::find(&libraries::loader_folders(), "libcuda.so");
    if found.is_empty() {
        return Check::missing(
            "libcuda",
            "not found where the loader looks",
            "install the driver's user-space part (libcuda1, nvidia-driver-cuda), or name its folder in LD_LIBRARY_PATH",
        );
    }
    Check::ok("libcuda", listed(&found))
}

/// A process may bring its own: the shim uses what the process has loaded. So this is a remark only.
fn libcupti() -> Check {
    let found = libraries::find(&libraries::cupti_folders(), "libcupti.so");
    if found.is_empty() {
        return Check::limited(
            "libcupti",
            "not found in the usual places; programs that bring their own (PyTorch's wheels do) are recorded all the same",
            "install CUPTI for the driver's CUDA version (cuda-cupti-12-x, or pip install nvidia-cuda-cupti-cu12)",
        );
    }
    Check::ok("libcupti", listed(&found))
}

fn listed(found: &[Library]) -> String {
    let words: Vec<String> = found
        .iter()
        .take(6)
        .map(|library| {
            let path = library.path.display();
            if library.path.file_name().is_some_and(|name| name.to_string_lossy() == library.file) {
                path.to_string()
            } else {
                format!("{path} ({})", library.file)
            }
        })
        .collect();
    let more = found.len().saturating_sub(words.len());
    words.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

fn shim() -> Check {
    match injection::variable() {
        Ok(Some((_, path))) => Check::ok("shim", path.to_string_lossy()),
        Ok(None) => Check::ok("shim", format!("{} is set to it already", injection::VARIABLE)),
        Err(obstacle @ injection::Obstacle::Taken(_)) => Check::limited(
            "shim",
            obstacle.to_string(),
            format!("unset {}, or end the other tool first", injection::VARIABLE),
        ),
        Err(obstacle) => Check::missing(
            "shim",
            obstacle.to_string(),
            format!("build it (cargo xtask build) or install it beside gtrace ({})", injection::LIBRARY),
        ),
    }
}

fn nvtx() -> Check {
    match std::env::var_os("NVTX_INJECTION64_PATH").filter(|value| !value.is_empty()) {
        None => Check::ok("NVTX", "NVTX_INJECTION64_PATH is not set"),
        Some(path) => Check::ok(
            "NVTX",
            format!("NVTX_INJECTION64_PATH is {}: markers go to that tool", path.to_string_lossy()),
        ),
    }
}

/// Tools that hold CUPTI's only subscription in the processes that they started (error 39 for everybody else).
const TOOLS: &[&str] = &["nsys", "nsys-launcher", "ncu", "cuda-gdb", "compute-sanitiz", "nvprof"];

fn other_tools() -> Check {
    let running = running(TOOLS);
    if running.is_empty() {
        return Check::ok("other profilers", "none running");
    }
    Check::limited(
        "other profilers",
        format!("running: {}", running.join(", ")),
        "the processes under them have one place for a CUPTI client, and it is taken: end them first",
    )
}

fn running(names: &[&str]) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut found: Vec<String> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|pid| {
            let comm = read_small(&format!("/proc/{pid}/comm"))?;
            let comm = comm.trim();
            names.contains(&comm).then(|| format!("{comm} {pid}"))
        })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_versions() {
        let closed =
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Fri Jan 17 17:10:37 UTC 2025";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build";
        assert_eq!(driver_version(closed), Some("570.86.15"));
        assert_eq!(driver_version(open), Some("580.65.06"));
        assert_eq!(driver_version("NVRM version: what"), None);
    }

    #[test]
    fn a_running_program_is_found_by_its_name() {
        let own = read_small("/proc/self/comm").expect("the kernel has a name for this process");
        let own = own.trim();
        let found = running(&[own]);
        assert!(found.iter().any(|name| name.ends_with(&format!(" {}", std::process::id()))), "{found:?}");
        assert_eq!(running(&["no-such-program"]), Vec::<String>::new());
    }
}
