//! `docs/kernels.md`, from the lists of what is probed.

use std::fmt::Write as _;

use super::features::FEATURES;
use super::programs::{OLDEST, PROGRAMS, ProgramSpec};

/// The text of the page.
#[must_use]
pub fn kernels_markdown() -> String {
    let (major, minor) = OLDEST;
    let mut page = format!(
        "<!-- Generated from tracer-user/src/record/probes by `GTRACE_BLESS=1 cargo test -p gtrace kernels_page`. -->\n\
         # Kernels\n\n\
         gtrace needs Linux {major}.{minor} or later, built with type information (`CONFIG_DEBUG_INFO_BTF`), on x86-64 or arm64. \
         Every probe is tried when a recording begins. One that the kernel does not have, or refuses, is left out; \
         the recording, its report and `gtrace doctor` then name it, with the reason and with what cannot be known without \
         it. Nothing is guessed in its place.\n\n\
         Seen working: 6.1 and 6.18. Versions of the columns below are those from which the kernel has what a probe needs.\n\n\
         ## Tracepoints\n\n\
         | raw tracepoint | since | only on | without it |\n|---|---|---|---|\n"
    );
    let mut done: Vec<&str> = Vec::new();
    for spec in PROGRAMS {
        if done.contains(&spec.tracepoint) {
            continue;
        }
        done.push(spec.tracepoint);
        // Of several programs for one tracepoint the oldest counts: each serves its own kernels.
        let since =
            PROGRAMS.iter().filter(|other| other.tracepoint == spec.tracepoint).map(|other| other.since);
        let (major, minor) = since.min().unwrap_or(spec.since);
        let only_on = spec.only_on.unwrap_or("");
        let _ = writeln!(page, "| `{}` | {major}.{minor} | {only_on} | {} |", spec.tracepoint, without(spec));
    }
    page.push_str(
        "\n## Readings\n\nFields of the kernel's structures, found by its type information, and addresses of its functions, \
         which `/proc/kallsyms` shows to root.\n\n\
         | probe | since | what is read | without it |\n|---|---|---|---|\n",
    );
    for feature in FEATURES {
        let (major, minor) = feature.since.max(OLDEST);
        let codes = codes(feature.unknowable);
        let _ = writeln!(
            page,
            "| `{}` | {major}.{minor} | {} | unknowable: {codes} |",
            feature.name, feature.reads
        );
    }
    page.push_str(
        "\n## Clock\n\n\
         | probe | since | what it is | without it |\n|---|---|---|---|\n\
         | `cpu_clock` | 5.15 | a software event on each CPU (`PERF_COUNT_SW_CPU_CLOCK`); the helper `bpf_task_pt_regs` | \
         no stack samples: `host.cpu.user` names the program, not the function |\n",
    );
    page
}

fn without(spec: &ProgramSpec) -> String {
    if spec.essential {
        return "nothing can be recorded".into();
    }
    let mut text = match spec.unknowable {
        [] if spec.supplement => "some waits end later than they did, and read unknown".into(),
        [] => "nothing is lost".into(),
        codes => format!("unknowable: {}", self::codes(codes)),
    };
    if let Some(partner) = spec.partner {
        let _ = write!(text, " (left out without `{partner}`)");
    }
    text
}

fn codes(codes: &[&str]) -> String {
    let is_code = |code: &str| code.contains('.') && !code.contains(' ');
    let words: Vec<String> =
        codes.iter().map(|&code| if is_code(code) { format!("`{code}`") } else { code.to_owned() }).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `GTRACE_BLESS=1` rewrites the page.
    #[test]
    fn kernels_page() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/kernels.md");
        if std::env::var_os("GTRACE_BLESS").is_some() {
            std::fs::write(path, kernels_markdown()).expect("docs/kernels.md is writable");
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == kernels_markdown(),
            "docs/kernels.md is stale: GTRACE_BLESS=1 cargo test -p gtrace kernels_page"
        );
    }

    #[test]
    fn every_probe_has_one_line() {
        let page = kernels_markdown();
        for spec in PROGRAMS {
            let lines = page.lines().filter(|line| line.starts_with(&format!("| `{}` |", spec.tracepoint)));
            assert_eq!(lines.count(), 1, "{}", spec.tracepoint);
        }
        for feature in FEATURES {
            assert!(page.contains(&format!("| `{}` |", feature.name)));
            assert!(PROGRAMS.iter().all(|spec| spec.program != feature.name), "{} is twofold", feature.name);
        }
    }
}
