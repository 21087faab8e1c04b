//! A small trace of known contents, whole and with one thing changed.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use gtrace::attribute::analyze_bundle;
use gtrace::import::{ImportError, Imported, import_file};
use gtrace::store::Bundle;

use super::folder::in_memory;

/// Two steps of a loop: the loader, an operator, a launch, a kernel; a copy; a synchronisation.
pub fn events() -> Vec<String> {
    let mut events = vec![
        r#"{"ph": "M", "name": "process_name", "pid": 42, "tid": 0, "ts": 1000, "args": {"name": "python3"}}"#.to_owned(),
    ];
    for step in 0..2_i64 {
        let at = |us: i64| 1_000 + step * 1_000 + us;
        let id = 10 + step * 10;
        events.push(format!(
            r#"{{"ph": "X", "cat": "user_annotation", "name": "enumerate(DataLoader)#_Iter.__next__", "pid": 42, "tid": 42, "ts": {}, "dur": 400, "args": {{"External id": 1}}}}"#,
            at(100)
        ));
        events.push(format!(
            r#"{{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 42, "tid": 42, "ts": {}.250, "dur": 100.5, "args": {{"Input Dims": [[1, 2], []], "Call stack": "a.py(1): f;b.py(2): \"g\""}}}}"#,
            at(520)
        ));
        events.push(format!(
            r#"{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 42, "tid": 42, "ts": {}, "dur": 10, "args": {{"cbid": 211, "correlation": {id}}}}}"#,
            at(600)
        ));
        events.push(format!(
            r#"{{"ph": "X", "cat": "kernel", "name": "gemm<float, 4>", "pid": 0, "tid": 7, "ts": {}.125, "dur": 50.25, "args": {{"device": 0, "context": 1, "stream": 7, "correlation": {id}, "grid": [8, 4, 1], "block": [128, 1, 1]}}}}"#,
            at(620)
        ));
        events.push(format!(
            r#"{{"ph": "s", "id": {id}, "pid": 42, "tid": 42, "ts": {}, "cat": "ac2g", "name": "ac2g"}}"#,
            at(600)
        ));
    }
    events
}

/// The text of a trace of these events.
pub fn document(events: &[String]) -> String {
    format!(
        "{{\n\"schemaVersion\": 1,\n\"deviceProperties\": [{{\"id\": 0, \"name\": \"GPU X\", \"numSms\": 80}}],\n\"traceEvents\": [\n{}\n],\n\"traceName\": \"t\"\n}}\n",
        events.join(",\n")
    )
}

/// What came of importing and analysing some bytes.
pub struct Came {
    pub imported: Imported,
    pub bundle: Bundle,
    _folder: tempfile::TempDir,
}

impl Came {
    /// Refused records of a source.
    pub fn refused(&self, source: &str) -> i64 {
        self.imported.refused.iter().filter(|(from, ..)| *from == source).map(|(.., count)| count).sum()
    }
}

/// Imports and analyses bytes under this name.
pub fn import(name: &str, bytes: &[u8]) -> Result<Came, ImportError> {
    let folder = in_memory();
    let file = folder.path().join(name);
    std::fs::write(&file, bytes).unwrap();
    let output = folder.path().join("out.gtrace");
    match import_file(&file, &output) {
        Ok(imported) => {
            let bundle = Bundle::open(&output).unwrap();
            analyze_bundle(&bundle, &|_| {}).unwrap();
            Ok(Came { imported, bundle, _folder: folder })
        }
        Err(error) => {
            assert!(!output.exists(), "a failed import leaves nothing behind: {error}");
            Err(error)
        }
    }
}

/// Compresses bytes.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A small export of Nsight Systems: one launch and its kernel, a copy, a call.
pub fn export(folder: &Path) -> PathBuf {
    let path = folder.join("small.sqlite");
    let database = rusqlite::Connection::open(&path).unwrap();
    let process: i64 = 42 << 24;
    let thread = process + 43;
    database
        .execute_batch(&format!(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
             INSERT INTO StringIds VALUES (1, 'gemm<float>'), (2, 'cudaLaunchKernel_v7000'), (3, 'poll');
             CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
                streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER);
             INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 2000, 0, 1, 7, 5, {process}, 1), (9000, 9500, 0, 1, 7, 6, {process}, 1);
             CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
                correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
             INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500, 600, {thread}, 5, 2, 0), (8000, 8100, {thread}, 6, 2, 0);
             CREATE TABLE OSRT_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER, returnValue INTEGER);
             INSERT INTO OSRT_API VALUES (2500, 7000, {thread}, 3, 0);"
        ))
        .unwrap();
    path
}
