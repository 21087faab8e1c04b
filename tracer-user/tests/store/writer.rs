//! A bundle while it grows.

use std::fs;
use std::path::Path;

use gtrace::event::MonoNs;
use gtrace::store::schema::{GpuOp, Loss, Syscall, TableVisitor, visit_tables};
use gtrace::store::writer::SealPolicy;
use gtrace::store::{Bundle, BundleWriter, StoreError, Table};

use crate::samples::{meta, op, syscall};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_table_is_there_from_the_first_moment() {
    struct Present<'a>(&'a Path);
    impl TableVisitor for Present<'_> {
        fn visit<T: Table>(&mut self) {
            assert_eq!(names(&self.0.join(T::NAME)), ["part-00000.parquet"]);
            assert_eq!(Bundle::open(self.0).unwrap().read::<T>().unwrap(), []);
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    let _writer = BundleWriter::create(&path, meta(), None).unwrap();
    visit_tables(&mut Present(&path));
}

#[test]
fn rows_are_sealed_by_age_and_by_count() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    let policy = SealPolicy { rows: 3, age_ns: 100, ..SealPolicy::default() };
    let mut writer = BundleWriter::create_with(&path, meta(), None, policy).unwrap();
    writer.push(op(1, 20, 30));
    writer.push(syscall(1, 10));
    writer.seal_due(MonoNs(1000)).unwrap();
    writer.seal_due(MonoNs(1099)).unwrap();
    assert_eq!(writer.buffered_rows(), 2);
    writer.seal_due(MonoNs(1100)).unwrap();
    assert_eq!(writer.buffered_rows(), 0);
    writer.append(vec![op(2, 5, 6), op(3, 4, 5), op(4, 3, 4), op(5, 2, 3)]);
    assert_eq!(writer.buffered_rows(), 1);
    writer.seal_all().unwrap();
    assert_eq!(
        names(&path.join("gpu_ops")),
        ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet", "part-00003.parquet"]
    );
    let bundle = Bundle::open(&path).unwrap();
    assert_eq!(bundle.meta().rows["gpu_ops"], 5);
    assert_eq!(bundle.meta().rows["syscalls"], 1);
    let starts: Vec<i64> = bundle.read::<GpuOp>().unwrap().iter().map(|op| op.start_ns.0).collect();
    assert_eq!(starts, [2, 3, 4, 5, 20]);
}

#[test]
fn a_snapshot_replaces_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    let mut writer = BundleWriter::create(&path, meta(), None).unwrap();
    writer.snapshot(vec![syscall(1, 10), syscall(2, 20)]);
    writer.snapshot(vec![syscall(2, 20)]);
    writer.seal_all().unwrap();
    assert_eq!(Bundle::open(&path).unwrap().read::<Syscall>().unwrap(), [syscall(2, 20)]);
    writer.push(syscall(2, 20));
    writer.snapshot(Vec::<Syscall>::new());
    let meta = writer.finish(meta()).unwrap();
    assert_eq!(meta.rows["syscalls"], 1);
    assert_eq!(Bundle::open(&path).unwrap().read::<Syscall>().unwrap(), [syscall(2, 20)]);
}

#[test]
fn a_writer_dropped_keeps_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    let mut writer = BundleWriter::create(&path, meta(), None).unwrap();
    writer.push(syscall(1, 10));
    drop(writer);
    let bundle = Bundle::open(&path).unwrap();
    assert_eq!(bundle.read::<Syscall>().unwrap(), [syscall(1, 10)]);
    assert_eq!(bundle.meta().ended, "running");
}

#[test]
fn an_existing_folder_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let Err(StoreError::Exists(path)) = BundleWriter::create(dir.path(), meta(), None) else { panic!() };
    assert_eq!(path, dir.path());
    assert_eq!(names(dir.path()), [] as [String; 0]);
}

#[test]
fn a_missing_parent_is_an_error_that_names_it() {
    let error = BundleWriter::create(Path::new("/nonexistent/x.gtrace"), meta(), None).err().unwrap();
    assert!(error.to_string().starts_with("cannot create /nonexistent/x.gtrace: "), "{error}");
}

#[cfg(unix)]
#[test]
fn a_dangling_link_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (link, aim) = (dir.path().join("x.gtrace"), dir.path().join("aim"));
    std::os::unix::fs::symlink(&aim, &link).unwrap();
    assert!(matches!(BundleWriter::create(&link, meta(), None), Err(StoreError::Exists(_))));
    assert!(!aim.exists());
}

#[cfg(unix)]
#[test]
fn folders_and_files_are_the_owners_alone() {
    use std::os::unix::fs::MetadataExt as _;
    // Only root can give files away.
    let root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let owner = root.then_some((1234, 4321));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    let mut writer = BundleWriter::create(&path, meta(), owner).unwrap();
    writer.push(op(1, 2, 3));
    writer.finish(meta()).unwrap();
    Bundle::open(&path).unwrap().replace(vec![op(1, 2, 3)]).unwrap();
    let mut stack = vec![path];
    let mut files = 0;
    while let Some(path) = stack.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        assert_eq!(
            metadata.mode() & 0o777,
            if metadata.is_dir() { 0o700 } else { 0o600 },
            "{}",
            path.display()
        );
        if let Some((user, group)) = owner {
            assert_eq!((metadata.uid(), metadata.gid()), (user, group), "{}", path.display());
        }
        if metadata.is_dir() {
            stack.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            files += 1;
        }
    }
    assert!(files > 14, "{files}");
}

/// Where a table's folder is turned into a link while recording, the rows stay in the folder that was made.
#[cfg(unix)]
#[test]
fn a_table_swapped_for_a_link_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (path, aim) = (dir.path().join("x.gtrace"), dir.path().join("aim"));
    fs::create_dir(&aim).unwrap();
    let mut writer = BundleWriter::create(&path, meta(), None).unwrap();
    fs::rename(path.join("gpu_ops"), path.join("away")).unwrap();
    std::os::unix::fs::symlink(&aim, path.join("gpu_ops")).unwrap();
    writer.push(op(1, 2, 3));
    writer.seal_all().unwrap();
    assert_eq!(names(&aim), [] as [String; 0]);
    assert_eq!(names(&path.join("away")).len(), 2);
    let bundle = Bundle::open(&path).unwrap();
    assert!(matches!(bundle.read::<GpuOp>(), Err(StoreError::Io { .. })));
    assert!(matches!(bundle.replace(vec![op(1, 2, 3)]), Err(StoreError::Io { .. })));
    assert_eq!(names(&aim), [] as [String; 0]);
}

/// Where the disk refuses a part, what was sealed stays, and the bundle tells what is missing.
#[test]
fn what_cannot_be_written_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    let mut writer = BundleWriter::create(&path, meta(), None).unwrap();
    writer.push(op(1, 2, 3));
    writer.seal_all().unwrap();
    // A folder in the way of the next part's temporary name: what any error of the file system looks like, without root.
    fs::create_dir(path.join("gpu_ops/.part-00002.parquet.tmp")).unwrap();
    writer.append(vec![op(2, 12, 13), op(3, 10, 11)]);
    let error = writer.seal_all().unwrap_err();
    assert!(error.to_string().contains("gpu_ops/part-00002.parquet"), "{error}");
    writer.push(op(4, 20, 21));
    assert!(writer.seal_due(MonoNs(0)).is_err());
    let mut end = meta();
    end.ended_ns = Some(50);
    assert!(writer.finish(end).is_err());

    let bundle = Bundle::open(&path).unwrap();
    assert_eq!(bundle.read::<GpuOp>().unwrap(), [op(1, 2, 3)]);
    assert_eq!(bundle.meta().ended, "failed");
    assert_eq!(bundle.meta().losses["store.gpu_ops"], 3);
    let losses = bundle.read::<Loss>().unwrap();
    assert_eq!(losses.len(), 1);
    assert_eq!((losses[0].start_ns, losses[0].end_ns, losses[0].count), (MonoNs(10), MonoNs(50), 3));
}

/// A disk that fills up while recording: everything sealed stays, and what is missing is told, on that very disk.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "mounts a file system, which needs root"]
fn a_full_disk_ends_the_recording_and_keeps_it_readable() {
    struct Mounted<'a>(&'a Path);
    impl Drop for Mounted<'_> {
        fn drop(&mut self) {
            let _ = std::process::Command::new("umount").arg(self.0).status();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1536k", "none"])
        .arg(dir.path())
        .status()
        .unwrap();
    assert!(mounted.success(), "this test mounts a tmpfs: run it as root");
    let _mounted = Mounted(dir.path());
    let path = dir.path().join("x.gtrace");
    let mut writer = BundleWriter::create(&path, meta(), None).unwrap();
    let mut pushed = 0_i64;
    let error = loop {
        // Random times, so that they do not compress to nothing.
        let rows: Vec<GpuOp> = (0..10_000_i64)
            .map(|i| {
                let start = (pushed + i) * 100_000
                    + (pushed + i).wrapping_mul(6_364_136_223_846_793_005).rem_euclid(99_999);
                op(
                    pushed + i,
                    start,
                    start + 1 + i.wrapping_mul(2_862_933_555_777_941_757).rem_euclid(99_999),
                )
            })
            .collect();
        pushed += 10_000;
        writer.append(rows);
        if let Err(error) = writer.seal_all() {
            break error;
        }
        assert!(pushed < 10_000_000, "the disk never filled up");
    };
    assert!(error.is_disk_full(), "{error}");
    writer.push(op(0, 5, 6));
    assert!(writer.finish(meta()).unwrap_err().is_disk_full());

    let bundle = Bundle::open(&path).unwrap();
    assert_eq!(bundle.meta().ended, "disk_full");
    let kept = bundle.read::<GpuOp>().unwrap().len() as i64;
    let lost: i64 = bundle.read::<Loss>().unwrap().iter().map(|loss| loss.count).sum();
    assert!(kept > 0 && lost > 0, "{kept} {lost}");
    assert_eq!(kept + lost, pushed + 1);
    assert_eq!(bundle.meta().losses["store.gpu_ops"], lost as u64);
    assert!(names(&path.join("gpu_ops")).iter().all(|name| name.starts_with("part-")));
}

/// At the end, a table in many small parts is put together; one of few parts is left as it is.
#[test]
fn many_small_parts_become_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    let policy = SealPolicy { rows: 10, ..SealPolicy::default() };
    let mut writer = BundleWriter::create_with(&path, meta(), None, policy).unwrap();
    // Parts that overlap in time.
    writer.append((0..95).map(|i| op(i, (i * 37) % 95, 200)).collect());
    writer.append((0..25).map(|i| syscall(i, i)).collect());
    writer.seal_all().unwrap();
    assert_eq!(names(&path.join("gpu_ops")).len(), 11);
    let finished = writer.finish(meta()).unwrap();
    assert_eq!(names(&path.join("gpu_ops")), ["part-00000.parquet"]);
    assert_eq!(names(&path.join("syscalls")).len(), 4);
    assert_eq!((finished.rows["gpu_ops"], finished.rows["syscalls"]), (95, 25));
    assert!(names(&path).iter().all(|name| !name.starts_with('.')));
    let starts: Vec<i64> =
        Bundle::open(&path).unwrap().read::<GpuOp>().unwrap().iter().map(|op| op.start_ns.0).collect();
    assert_eq!(starts, (0..95).collect::<Vec<i64>>());
}

/// However long it goes on: the disk holds the last stretch, all of it, and little more.
#[test]
fn a_rotating_bundle_keeps_its_last_stretch() {
    const SECOND: i64 = 1_000_000_000;
    const KEEP: i64 = 10 * SECOND;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.gtrace");
    let policy = SealPolicy { rows: 64, age_ns: SECOND, keep_ns: Some(KEEP), ..SealPolicy::default() };
    let began = meta().started_ns;
    let mut writer = BundleWriter::create_with(&path, meta(), None, policy).unwrap();
    let mut ends = Vec::new();
    for second in 0..300_i64 {
        let now = began + second * SECOND;
        // A hundred short ones, and one that has lasted for a minute.
        for i in 0..100 {
            ends.push(now - i * 1_000);
            writer.push(op(ends.len() as i64 - 1, now - i * 1_000 - 500, now - i * 1_000));
        }
        ends.push(now);
        writer.push(op(ends.len() as i64 - 1, now - 60 * SECOND, now));
        writer.seal_due(MonoNs(now)).unwrap();
        if second % 60 != 59 {
            continue;
        }
        writer.seal_all().unwrap();
        let bundle = Bundle::open(&path).unwrap();
        let there: std::collections::HashSet<i64> =
            bundle.read::<GpuOp>().unwrap().iter().map(|op| op.op_id.0).collect();
        let last = ends.iter().enumerate().filter(|(_, end)| **end > now - KEEP);
        assert!(last.clone().all(|(id, _)| there.contains(&(id as i64))));
        assert!(there.len() < 15 * 101, "{} rows", there.len());
        let from = bundle.meta().started_ns;
        assert!(from <= now - KEEP + SECOND && from > now - KEEP - 4 * SECOND, "{}", (now - from) / SECOND);
        assert_eq!(bundle.meta().began_ns, Some(began));
        assert!(
            ends.iter()
                .enumerate()
                .filter(|(_, end)| **end > from)
                .all(|(id, _)| there.contains(&(id as i64)))
        );
    }
    writer.push(Loss {
        source: "x".into(),
        reason: "y".into(),
        pid: None,
        start_ns: MonoNs(began),
        end_ns: MonoNs(began + 1),
        count: 1,
    });
    let finished = writer.finish(meta()).unwrap();
    let bundle = Bundle::open(&path).unwrap();
    assert_eq!(finished.rows["gpu_ops"], bundle.count::<GpuOp>().unwrap());
    assert_eq!((bundle.count::<Loss>().unwrap(), bundle.missing().unwrap().len()), (1, 0));
}
