//! `cargo xtask test`: every check, one after the other, and one line at the end that counts them.
//!
//! All of it uses the release profile, so that one build serves the tests, the lints' build scripts and the programs
//! that are run end to end.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{build, delegate, host, process, sim_path, toolchain, workspace};

/// What to run.
#[derive(clap::Args)]
pub struct Args {
    /// Stop before what records for real (eBPF programs need root)
    #[arg(long)]
    no_root: bool,
}

/// Runs the command.
///
/// # Errors
/// The build fails, or a check cannot be started.
pub fn run(args: &Args) -> Result<ExitCode> {
    let mut count = Count::default();
    build::run()?;
    count.check("format", format_check())?;
    count.check("lints", lints())?;
    count.cargo_test(&mut tests(&[]))?;
    if args.no_root || !host::is_root() {
        println!("NOT RUN (they load eBPF programs, which needs root): root tests, demo, gapbench");
    } else {
        count.cargo_test(&mut tests(&["--ignored", "--test-threads=1"]))?;
        count.check("demo", demo())?;
        count.check("gapbench --quick", delegate::gapbench_command("score", &["--quick".into()]))?;
    }
    println!("{} passed, {} failed", count.passed, count.failed.len());
    for name in &count.failed {
        println!("failed: {name}");
    }
    Ok(if count.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Checks that passed, and those that did not.
#[derive(Default)]
struct Count {
    passed: u64,
    failed: Vec<String>,
}

impl Count {
    /// Runs one check that either passes or fails.
    fn check(&mut self, name: &str, mut command: Command) -> Result<()> {
        if process::run_lines(&mut command, |_| {})? {
            self.passed += 1;
        } else {
            self.failed.push(name.to_owned());
        }
        Ok(())
    }

    /// Runs `cargo test` and counts what it counts.
    fn cargo_test(&mut self, command: &mut Command) -> Result<()> {
        let before = self.failed.len();
        let passed = process::run_lines(command, |line| {
            if let Some(name) = failed_test(line) {
                self.failed.push(name.to_owned());
            }
            self.passed += passed_tests(line).unwrap_or(0);
        })?;
        if !passed && self.failed.len() == before {
            self.failed.push(process::display(command));
        }
        Ok(())
    }
}

/// How many tests passed, from the line that ends one test program.
fn passed_tests(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("test result: ")?;
    let (_, counts) = rest.split_once(". ")?;
    counts.split_once(" passed")?.0.parse().ok()
}

/// The test's name, from the line of a failed test.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

fn format_check() -> Command {
    let mut cargo = toolchain::cargo();
    cargo.args(["fmt", "--all", "--check"]);
    cargo
}

fn lints() -> Command {
    let mut cargo = toolchain::cargo();
    cargo.args(["clippy", "--release", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    cargo
}

/// `cargo test` over the workspace; the environment says where the build's programs are.
fn tests(arguments: &[&str]) -> Command {
    let mut cargo = toolchain::cargo();
    cargo
        .env("GTRACE_TEST_BIN_DIR", workspace::target().join("release"))
        .env("GTRACE_TEST_PYTHON", workspace::python())
        .env("GTRACE_SIM_PATH", sim_path::folder())
        .args(["test", "--release", "--locked", "--workspace", "--no-fail-fast", "--"])
        .args(arguments);
    build::embed_ebpf(&mut cargo);
    cargo
}

fn demo() -> Command {
    let bundle = workspace::target().join("demo.gtrace");
    // What an earlier run left; if it cannot be removed, the demo says so.
    let _ = std::fs::remove_dir_all(&bundle);
    let mut gtrace = Command::new(workspace::release("gtrace"));
    gtrace.args(["demo", "--out"]).arg(bundle);
    gtrace
}

#[cfg(test)]
mod tests {
    use super::{failed_test, passed_tests};

    #[test]
    fn cargo_lines_are_counted() {
        let line =
            "test result: ok. 17 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(passed_tests(line), Some(17));
        let line = "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(passed_tests(line), Some(3));
        assert_eq!(passed_tests("running 17 tests"), None);
        assert_eq!(failed_test("test score::tests::sums ... FAILED"), Some("score::tests::sums"));
        assert_eq!(failed_test("test score::tests::sums ... ok"), None);
    }
}
