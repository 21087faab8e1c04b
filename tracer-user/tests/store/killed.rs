//! What is left of a recording whose recorder was killed.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use gtrace::event::MonoNs;
use gtrace::store::schema::GpuOp;
use gtrace::store::writer::SealPolicy;
use gtrace::store::{Bundle, BundleWriter};

use crate::samples::{meta, op};

const PLACE: &str = "GTRACE_TEST_KILLED";

/// The recorder's part, in a process of its own: writes until it is killed.
#[test]
fn the_one_to_be_killed() {
    let Some(path) = std::env::var_os(PLACE) else { return };
    let policy = SealPolicy { rows: 1000, age_ns: 20_000_000, queued: 2, keep_ns: None };
    let mut writer = BundleWriter::create_with(Path::new(&path), meta(), None, policy).unwrap();
    let begin = Instant::now();
    for id in 0.. {
        writer.push(op(id, id * 10, id * 10 + 5));
        writer.seal_due(MonoNs(begin.elapsed().as_nanos() as i64)).unwrap();
        if id % 50 == 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

#[test]
fn a_killed_recorder_loses_only_what_was_not_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    let mut recorder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::the_one_to_be_killed"])
        .env(PLACE, &path)
        .spawn()
        .unwrap();
    // While it records, the bundle can be read at any moment, and only ever grows.
    let begin = Instant::now();
    let mut before = 0;
    while before < 20_000 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{before} rows");
        std::thread::sleep(Duration::from_millis(20));
        if !path.join("meta.json").exists() {
            continue;
        }
        let rows = whole(&path);
        assert!(rows >= before);
        before = rows;
    }
    // SIGKILL: nothing of the recorder's runs after it.
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let rows = whole(&path);
    assert!(rows >= before);
    assert_eq!(Bundle::open(&path).unwrap().meta().ended, "running");
    // The table can be given other rows all the same.
    Bundle::open(&path).unwrap().replace(vec![op(1, 2, 3)]).unwrap();
    assert_eq!(whole(&path), 1);
}

/// How many ops there are: from the first on without a hole, since each part has its name only when it is whole.
fn whole(path: &Path) -> usize {
    let rows = Bundle::open(path).unwrap().read::<GpuOp>().unwrap();
    let first = rows.first().map_or(0, |row| row.op_id.0);
    assert!(rows.iter().enumerate().all(|(index, row)| row.op_id.0 == first + index as i64));
    rows.len()
}
