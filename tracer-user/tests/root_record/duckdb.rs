//! The tables in DuckDB while a recorder writes them, and after it was killed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::gtrace::{Target, gtrace, wait_until};

/// Prints the rows of each table, as `table rows`, read by DuckDB from the files as they lie.
const COUNT: &str = r#"
import duckdb, os, sys
for table in sorted(os.listdir(sys.argv[1])):
    folder = os.path.join(sys.argv[1], table)
    if os.path.isdir(folder):
        files = os.path.join(folder, "*.parquet").replace("'", "''")
        rows = duckdb.sql(f"SELECT * FROM '{files}'").fetchall()
        print(table, len(rows))
"#;

/// Leaves its CPU about every millisecond.
const LOOP: &str = r"
import os, time
print('ready', flush=True)
while True:
    os.stat('/')
    time.sleep(0.001)
";

fn test_python() -> std::ffi::OsString {
    std::env::var_os("GTRACE_TEST_PYTHON").unwrap_or_else(|| "python3".into())
}

fn count(bundle: &Path) -> Vec<(String, u64)> {
    let output = Command::new(test_python()).args(["-c", COUNT]).arg(bundle).output().unwrap();
    assert!(
        output.status.success(),
        "{}\nIf the package duckdb is missing, `cargo xtask setup` installs it.",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| {
            let (table, rows) = line.split_once(' ').unwrap();
            (table.to_owned(), rows.parse().unwrap())
        })
        .collect()
}

fn rows(counts: &[(String, u64)], table: &str) -> u64 {
    counts.iter().find(|(name, _)| name == table).unwrap_or_else(|| panic!("{table} in {counts:?}")).1
}

/// Switches from a CPU to another task that a process made itself, of which the loop makes one each millisecond.
fn voluntary_switches(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    line.trim().parse().unwrap()
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_duckdb_reads_a_recording_under_way_and_one_whose_recorder_was_killed() {
    let mut target = Target::python(LOOP);
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("it's.gtrace");
    let mut recorder = gtrace()
        .args(["attach", &target.pid().to_string(), "--no-report", "-o"])
        .arg(&bundle)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the bundle is there", || bundle.join("meta.json").exists());
    // Each look sees every table, and no fewer rows than the look before.
    let mut before = count(&bundle);
    let began = Instant::now();
    let mut looks = 0;
    while rows(&before, "off_cpu") < 3000 || looks < 5 {
        assert!(began.elapsed() < Duration::from_secs(120), "{before:?}");
        let now = count(&bundle);
        assert_eq!(now.len(), before.len(), "{now:?}");
        for (table, earlier) in before.iter().filter(|(table, _)| table == "off_cpu" || table == "syscalls") {
            assert!(rows(&now, table) >= *earlier, "{table}: {before:?}, then {now:?}");
        }
        before = now;
        looks += 1;
    }
    assert!(recorder.try_wait().unwrap().is_none(), "it records still");
    // SIGKILL: nothing of the recorder's runs after it.
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let after = count(&bundle);
    assert_eq!(after.len(), before.len());
    assert!(rows(&after, "off_cpu") >= rows(&before, "off_cpu"), "{before:?}, then {after:?}");
    assert!(rows(&after, "processes") > 0 && rows(&after, "threads") > 0, "{after:?}");
    // The target goes on.
    let switches = voluntary_switches(target.pid());
    wait_until("the target goes on", || voluntary_switches(target.pid()) > switches + 500);
    assert!(target.lives());
}
