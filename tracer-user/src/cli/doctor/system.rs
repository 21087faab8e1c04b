//! The rest of the machine: limits that people know from other tools, and room for the recording.

use super::{Check, read_small};
use crate::report::text::style::{bytes, plural};

pub fn checks() -> Vec<Check> {
    vec![perf(), yama(), memlock(), container(), cpus(), disk()]
}

fn perf() -> Check {
    let level = read_small("/proc/sys/kernel/perf_event_paranoid");
    let level = level.as_deref().map_or("not there", str::trim);
    Check::ok(
        "perf events",
        format!("perf_event_paranoid is {level}; neither perf events nor tracefs are needed"),
    )
}

fn yama() -> Check {
    match read_small("/proc/sys/kernel/yama/ptrace_scope").as_deref().map(str::trim) {
        None => Check::ok("ptrace", "not restricted (no Yama)"),
        Some("3") => Check::ok("ptrace", "forbidden by Yama (ptrace_scope is 3); `gtrace run` needs none"),
        Some(scope) => Check::ok("ptrace", format!("Yama's ptrace_scope is {scope}; root may")),
    }
}

/// Before Linux 5.11 eBPF maps counted against it; the recorder raises it itself where it may.
fn memlock() -> Check {
    let limits = read_small("/proc/self/limits").unwrap_or_default();
    let hard = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))
        .and_then(|line| line.split_whitespace().nth(1));
    let says = match hard {
        Some("unlimited") => "unlimited".to_owned(),
        Some(limit) => {
            let limit = limit.parse().map_or_else(|_| limit.to_owned(), bytes);
            format!("at most {limit}; counted for eBPF before Linux 5.11 only")
        }
        None => "its limit cannot be read".to_owned(),
    };
    Check::ok("locked memory", says)
}

fn container() -> Check {
    let different: Vec<&str> =
        ["mnt", "net", "ipc", "uts"].into_iter().filter(|kind| differs(kind)).collect();
    if different.is_empty() {
        return Check::ok("container", "none: the namespaces are those of the first process");
    }
    Check::ok(
        "container",
        format!("own namespaces ({}); processes elsewhere are recorded all the same", different.join(", ")),
    )
}

fn differs(kind: &str) -> bool {
    let of = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/{kind}")).ok();
    matches!((of("1"), of("self")), (Some(first), Some(own)) if first != own)
}

fn cpus() -> Check {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let says = plural(count as u64, "CPU");
    if count > 1 {
        Check::ok("CPUs", says)
    } else {
        Check::limited("CPUs", says, "the recorder will take turns with the target: give it a CPU of its own")
    }
}

fn disk() -> Check {
    const LITTLE: u64 = 1 << 30;
    match nix::sys::statvfs::statvfs(".") {
        Ok(found) => {
            let free = found.blocks_available().saturating_mul(found.fragment_size());
            let says =
                format!("{} free in the working directory", bytes(i64::try_from(free).unwrap_or(i64::MAX)));
            if free < LITTLE {
                let remedy = "free some or record elsewhere (-o): a busy program writes some MB a second";
                Check::limited("room", says, remedy)
            } else {
                Check::ok("room", says)
            }
        }
        Err(error) => Check::limited("room", format!("unknown ({})", error.desc()), "check it with df"),
    }
}
