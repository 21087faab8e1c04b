//! A recording of each version of the schema, kept as it was written: what an older gtrace recorded still opens.
//!
//! `GTRACE_BLESS=1 cargo test -p gtrace --test store fixtures` writes the one of the current version if there is none yet. One
//! that is there is never changed.

use std::path::{Path, PathBuf};

use gtrace::store::meta::SchemaVersion;
use gtrace::store::schema::{Gap, GapSegment, GpuOp, OffCpu, Syscall, TableVisitor, visit_tables};
use gtrace::store::{Bundle, Table};
use gtrace::{attribute, report};

use crate::story;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn the_current_version_has_one() {
    let SchemaVersion { major, minor } = SchemaVersion::CURRENT;
    let place = folder().join(format!("schema-{major}.{minor}"));
    if std::env::var_os("GTRACE_BLESS").is_some() && !place.exists() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.gtrace");
        story::write(&path);
        copy(&path, &place);
    }
    assert!(
        place.join("meta.json").is_file(),
        "the schema has a new version: GTRACE_BLESS=1 cargo test -p gtrace --test store fixtures keeps a recording of it"
    );
}

struct Readable<'a>(&'a Bundle, u64);

impl TableVisitor for Readable<'_> {
    fn visit<T: Table>(&mut self) {
        let rows = self.0.read::<T>().unwrap_or_else(|error| panic!("{}: {error}", self.0.path().display()));
        self.1 += rows.len() as u64;
    }
}

#[test]
fn every_version_still_opens_and_says_the_same() {
    let mut versions = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let kept = entry.unwrap().path();
        let name = kept.file_name().unwrap().to_string_lossy().into_owned();
        let Some(version) = name.strip_prefix("schema-") else { continue };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.gtrace");
        copy(&kept, &path);
        let bundle = Bundle::open(&path).unwrap();
        let schema = bundle.meta().schema;
        assert_eq!(format!("{}.{}", schema.major, schema.minor), version);

        let mut readable = Readable(&bundle, 0);
        visit_tables(&mut readable);
        assert!(readable.1 > 30, "{version}: {} rows", readable.1);
        // The story's rows, column by column where versions could differ.
        let ops = bundle.read::<GpuOp>().unwrap();
        assert_eq!((ops.len(), &*ops[0].kind), (4, "kernel"), "{version}");
        let waits = bundle.read::<OffCpu>().unwrap();
        assert!(waits.iter().any(|wait| wait.waker_kind.as_deref() == Some("block")), "{version}");
        assert!(bundle.read::<Syscall>().unwrap().iter().any(|call| &*call.name == "pread64"), "{version}");
        let waited: i64 = bundle.read::<Gap>().unwrap().iter().map(|gap| (gap.end_ns - gap.start_ns).0).sum();
        let covered: i64 =
            bundle.read::<GapSegment>().unwrap().iter().map(|part| (part.end_ns - part.start_ns).0).sum();
        assert_eq!((waited, covered), (465_000, 465_000), "{version}");

        let said = report::load::report(&bundle, &|_| ()).unwrap();
        assert_eq!((said.totals.gap_ns, said.trust.uncovered_gaps), (waited, 0), "{version}");
        attribute::analyze_bundle(&bundle, &|_| ()).unwrap();
        versions.push(version.to_owned());
    }
    assert!(versions.len() >= 2, "{versions:?}");
}
