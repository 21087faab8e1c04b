//! The kernel and the rights on it.

use super::{Check, read_small};
use crate::record::preflight;
use crate::record::probes::{OLDEST, ProbeError, probe_check};
use crate::report::text::style::plural;

pub fn checks() -> Vec<Check> {
    vec![kernel(), rights(), namespaces(), types(), lockdown(), probes()]
}

fn kernel() -> Check {
    let release = read_small("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let says = format!("Linux {release} on {}", std::env::consts::ARCH);
    if !matches!(std::env::consts::ARCH, "x86_64" | "aarch64") {
        return Check::missing("kernel", says, "record on x86-64 or arm64").essential();
    }
    match version(release) {
        Some(found) if found >= OLDEST => Check::ok("kernel", says),
        Some(_) => Check::missing("kernel", says, "use Linux 5.11 or newer (docs/kernels.md)").essential(),
        None => Check::limited("kernel", says, "its version cannot be read; Linux 5.11 or newer is needed"),
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn rights() -> Check {
    if nix::unistd::geteuid().is_root() {
        Check::ok("rights", "root")
    } else {
        Check::missing("rights", "not root: eBPF programs cannot be loaded", "run it with sudo").essential()
    }
}

/// In a pid namespace of its own, gtrace would see other pids than the kernel's records name.
fn namespaces() -> Check {
    match preflight::check_pid_namespace() {
        Ok(()) if user_namespace_is_initial() => Check::ok("namespaces", "the host's own pids and users"),
        Ok(()) => Check::missing(
            "namespaces",
            "inside a user namespace, where the kernel refuses eBPF to everybody",
            "run it outside of the (rootless) container",
        )
        .essential(),
        Err(error) => Check::missing(
            "namespaces",
            error.to_string(),
            "run it on the host, or start the container with the host's pids (docker: --pid=host --privileged)",
        )
        .essential(),
    }
}

fn user_namespace_is_initial() -> bool {
    let map = read_small("/proc/self/uid_map").unwrap_or_default();
    let numbers: Vec<&str> = map.split_whitespace().collect();
    numbers.is_empty() || numbers == ["0", "0", "4294967295"]
}

fn types() -> Check {
    const PATH: &str = "/sys/kernel/btf/vmlinux";
    if std::fs::metadata(PATH).is_ok_and(|file| file.len() > 0) {
        return Check::ok("type information", format!("BTF at {PATH}"));
    }
    let remedy = if std::fs::metadata("/sys/kernel").is_ok() {
        "use a kernel with CONFIG_DEBUG_INFO_BTF (every common distribution's since 2021)"
    } else {
        "mount sysfs: mount -t sysfs sysfs /sys"
    };
    Check::missing("type information", format!("no BTF at {PATH}"), remedy).essential()
}

fn lockdown() -> Check {
    let Some(text) = read_small("/sys/kernel/security/lockdown") else {
        return Check::ok("lockdown", "not in this kernel, or securityfs is not mounted");
    };
    let mode = text.split('[').nth(1).and_then(|rest| rest.split(']').next()).unwrap_or("unknown").to_owned();
    match mode.as_str() {
        "confidentiality" => Check::missing(
            "lockdown",
            "confidentiality: eBPF programs may not read kernel memory",
            "boot with lockdown=integrity (or without lockdown=)",
        )
        .essential(),
        _ => Check::ok("lockdown", mode),
    }
}

/// Loads and attaches every probe as a recording does, and takes them away again.
fn probes() -> Check {
    let statuses = match probe_check() {
        Ok(statuses) => statuses,
        Err(error) => {
            let remedy = match error {
                ProbeError::NotBuilt | ProbeError::Mismatch(_) => "build it whole: cargo xtask build",
                ProbeError::NotPermitted => "run it with sudo",
                _ => "see the lines above; if they are all ok, please report it with this message",
            };
            return Check::missing("probes", error.to_string(), remedy).essential();
        }
    };
    let missing: Vec<_> = statuses.iter().filter(|status| !status.attached).collect();
    let all = plural(statuses.len() as u64, "probe");
    if missing.is_empty() {
        return Check::ok("probes", format!("{all} loaded, attached and taken away again"));
    }
    let words: Vec<String> = missing
        .iter()
        .map(|status| {
            let reason = status.reason.as_deref().unwrap_or("no reason given");
            format!("{} ({reason}; unknowable without it: {})", status.name, status.unknowable.join(", "))
        })
        .collect();
    Check::limited(
        "probes",
        format!("{} of {all} missing: {}", missing.len(), words.join("; ")),
        "what depends on them will read unknown; a newer kernel may have them",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_versions() {
        assert_eq!(version("6.18.0-rc1+"), Some((6, 18)));
        assert_eq!(version("5.11.0"), Some(OLDEST));
        assert_eq!(version("5.15.0-1053-aws"), Some((5, 15)));
        assert_eq!(version("what"), None);
        assert!(version("5.4.0") < Some(OLDEST));
    }
}
