//! Bundles that are not what gtrace wrote.

use std::fs;
use std::path::{Path, PathBuf};

use gtrace::event::MonoNs;
use gtrace::store::schema::{GapSegment, GpuOp, SCHEMA_MAJOR, Syscall};
use gtrace::store::{Bundle, BundleWriter, StoreError};
use proptest::prelude::*;

use crate::arbitrary::{Words, rows};
use crate::samples::{meta, op, syscall};

fn bundle(dir: &Path) -> PathBuf {
    let path = dir.join("x.gtrace");
    let mut writer = BundleWriter::create(&path, meta(), None).unwrap();
    writer.append((0..200).map(|i| syscall(i, i * 10)).collect());
    writer.append(rows::<GapSegment>(50, &mut Words::new(&[1, 77, u64::MAX, 1 << 40, 12345])));
    writer.finish(meta()).unwrap();
    path
}

#[test]
fn a_newer_major_version_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = bundle(dir.path());
    let text =
        format!(r#"{{"schema": {{"major": {}, "minor": 3}}, "gtrace_version": "9.9"}}"#, SCHEMA_MAJOR + 1);
    fs::write(path.join("meta.json"), text).unwrap();
    let error = Bundle::open(&path).err().unwrap().to_string();
    assert!(error.contains(&format!("has schema {}.3", SCHEMA_MAJOR + 1)), "{error}");
    assert!(error.contains("gtrace 9.9"), "{error}");
}

#[test]
fn a_newer_minor_version_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = bundle(dir.path());
    let text =
        format!(r#"{{"schema": {{"major": {SCHEMA_MAJOR}, "minor": 99}}, "host": "h", "unheard_of": [1]}}"#);
    fs::write(path.join("meta.json"), text).unwrap();
    assert_eq!(Bundle::open(&path).unwrap().meta().host, "h");
}

#[test]
fn no_bundle_is_told_apart_from_a_broken_one() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(Bundle::open(dir.path()), Err(StoreError::NotABundle(_))));
    assert!(matches!(Bundle::open(&dir.path().join("none")), Err(StoreError::Io { .. })));
    for text in
        ["", "{", "[]", "{\"schema\": 3}", "null", "{\"schema\":{\"major\":1,\"minor\":0},\"gpus\":7}"]
    {
        fs::write(dir.path().join("meta.json"), text).unwrap();
        assert!(matches!(Bundle::open(dir.path()), Err(StoreError::Meta { .. })), "{text}");
    }
}

#[test]
fn missing_tables_are_empty_and_unfinished_parts_unseen() {
    let dir = tempfile::tempdir().unwrap();
    let path = bundle(dir.path());
    fs::remove_dir_all(path.join("gpu_ops")).unwrap();
    fs::write(path.join("syscalls/.part-00009.parquet.tmp"), "half").unwrap();
    let bundle = Bundle::open(&path).unwrap();
    assert_eq!(bundle.read::<GpuOp>().unwrap(), []);
    assert_eq!(bundle.read::<Syscall>().unwrap().len(), 200);
}

#[cfg(unix)]
#[test]
fn links_pipes_and_folders_are_no_parts() {
    let dir = tempfile::tempdir().unwrap();
    let path = bundle(dir.path());
    let part = path.join("syscalls/part-00002.parquet");
    std::os::unix::fs::symlink(path.join("syscalls/part-00001.parquet"), &part).unwrap();
    let read = || Bundle::open(&path).unwrap().read::<Syscall>();
    assert!(matches!(read(), Err(StoreError::Io { path, .. }) if path == part));
    fs::remove_file(&part).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&part).status().unwrap();
    assert!(made.success());
    assert!(matches!(read(), Err(StoreError::Io { path, .. }) if path == part));
    fs::remove_file(&part).unwrap();
    fs::create_dir(&part).unwrap();
    assert!(matches!(read(), Err(StoreError::Io { path, .. }) if path == part));
}

#[test]
fn rows_of_another_table_are_an_error_that_names_the_column() {
    let dir = tempfile::tempdir().unwrap();
    let path = bundle(dir.path());
    fs::copy(path.join("syscalls/part-00001.parquet"), path.join("gpu_ops/part-00001.parquet")).unwrap();
    let error = Bundle::open(&path).unwrap().read::<GpuOp>().unwrap_err().to_string();
    assert!(error.ends_with("gpu_ops/part-00001.parquet: table `gpu_ops` has no column `op_id`"), "{error}");
}

#[test]
fn a_scan_tells_of_rows_out_of_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    BundleWriter::create(&path, meta(), None).unwrap().finish(meta()).unwrap();
    let batch = <GpuOp as gtrace::store::Table>::to_batch(&[op(1, 10, 11), op(2, 5, 6)]);
    let file = fs::File::create(path.join("gpu_ops/part-00001.parquet")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let bundle = Bundle::open(&path).unwrap();
    let starts: Vec<MonoNs> = bundle.read::<GpuOp>().unwrap().iter().map(|op| op.start_ns).collect();
    assert_eq!(starts, [MonoNs(5), MonoNs(10)]);
    let scan: Result<Vec<GpuOp>, _> = bundle.scan().unwrap().collect();
    assert!(matches!(scan, Err(StoreError::Damaged { .. })));
}

/// Reads a part with these bytes: rows or an error that names the file, never a panic.
fn read_damaged(path: &Path, table: &str, bytes: &[u8]) {
    let part = path.join(table).join("part-00001.parquet");
    fs::write(&part, bytes).unwrap();
    let bundle = Bundle::open(path).unwrap();
    let done = if table == "syscalls" {
        bundle.read::<Syscall>().map(drop)
    } else {
        bundle.read::<GapSegment>().map(drop)
    };
    match done {
        Ok(()) => {}
        Err(StoreError::Damaged { path, .. } | StoreError::Rows { path, .. }) => assert_eq!(path, part),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn truncated_parts_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = bundle(dir.path());
    let part = path.join("syscalls/part-00001.parquet");
    let whole = fs::read(&part).unwrap();
    for length in (0..whole.len()).step_by(37) {
        fs::write(&part, &whole[..length]).unwrap();
        let error = Bundle::open(&path).unwrap().read::<Syscall>().unwrap_err();
        assert!(matches!(&error, StoreError::Damaged { path, .. } if *path == part), "{length}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bits_never_panic(flips in prop::collection::vec((any::<prop::sample::Index>(), 0_u32..8), 100)) {
        let dir = tempfile::tempdir().unwrap();
        let path = bundle(dir.path());
        for table in ["syscalls", "gap_segments"] {
            let whole = fs::read(path.join(table).join("part-00001.parquet")).unwrap();
            for (at, bit) in &flips {
                let mut bytes = whole.clone();
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
                read_damaged(&path, table, &bytes);
            }
        }
    }
}
