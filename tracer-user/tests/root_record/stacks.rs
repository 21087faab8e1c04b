//! Stack samples of real programs.

use std::collections::BTreeMap;
use std::path::Path;

use gtrace::store::Table as _;
use gtrace::store::schema::{Frame, Loss, Sample};

use crate::gtrace::{Target, expect_status, gtrace, python, rows, run_python};

/// The innermost Python function of each sample of a thread of `pid`, counted; none as "".
fn python_functions(samples: &[Sample]) -> BTreeMap<String, usize> {
    let mut functions = BTreeMap::new();
    for sample in samples {
        let frame = sample.frames.iter().find(|frame| &*frame.kind == "python");
        let function = frame.and_then(|frame| frame.function.as_deref()).unwrap_or_default().to_owned();
        *functions.entry(function).or_default() += 1;
    }
    functions
}

fn functions_of(frames: &[Frame]) -> Vec<&str> {
    frames.iter().filter_map(|frame| frame.function.as_deref()).collect()
}

/// Computes in a function that is known, on lines that are known, and in one that calls a library.
const PROGRAM: &str = r"
import time, zlib
DATA = bytes(range(256)) * 2000
class Loader:
    def decode(self):
        return zlib.compress(DATA, 9)
def collate_fn(count):
    total = 0
    for index in range(count):
        total += index * index
    return total
def main():
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        collate_fn(100000)
        Loader().decode()
main()
";

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_python_functions_samples_name_it_with_its_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (bundle, output) = run_python(folder.path(), PROGRAM, &[]);
    expect_status(&output, 0);
    let samples: Vec<Sample> = rows(&bundle);
    let functions = python_functions(&samples);
    let all = samples.len();
    let of = |name: &str| functions.get(name).copied().unwrap_or(0);
    // 3.8 to 3.10 know no qualified names.
    let decode = of("Loader.decode") + of("decode");
    assert!(all > 50, "{all}");
    assert!(of("collate_fn") * 20 > all && decode * 20 > all, "{functions:?} of {all}");
    assert!((of("collate_fn") + decode) * 10 > all * 7, "{functions:?} of {all}");
    let (mut compressing, mut whole) = (0, 0);
    for sample in &samples {
        let frames = &sample.frames;
        let Some(first) = frames.iter().position(|frame| &*frame.kind == "python") else { continue };
        let inner = &frames[first];
        match inner.function.as_deref() {
            Some("collate_fn") => {
                assert!(matches!(inner.line, Some(7..=11)), "{frames:?}");
                let outer = functions_of(&frames[first..]);
                assert!(outer.starts_with(&["collate_fn", "main"]), "{frames:?}");
                assert_eq!(frames[first + 1].line, Some(15), "{frames:?}");
                // The module's code object is freed at the program's end.
                whole += usize::from(outer.ends_with(&["main", "<module>"]));
            }
            Some("Loader.decode" | "decode") => {
                assert!(matches!(inner.line, Some(5 | 6)), "{frames:?}");
                let native = functions_of(&frames[..first]);
                compressing += usize::from(native.contains(&"deflate"));
            }
            _ => {}
        }
    }
    assert!(whole * 20 > of("collate_fn") * 19, "{whole}");
    // Through functions of the library that have no names: by its unwind tables.
    assert!(compressing * 10 > decode * 8, "{compressing} of {decode} in the library");
    assert_eq!(rows::<Loss>(&bundle).iter().filter(|loss| loss.source.contains("sample")).count(), 0);
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn threads_and_forked_processes_have_frames_of_their_own() {
    const FORKS: &str = r"
import os, threading, time
def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
def in_a_thread():
    spin(0.7)
def in_a_child():
    spin(0.7)
thread = threading.Thread(target=in_a_thread)
thread.start()
thread.join()
if os.fork() == 0:
    in_a_child()
    os._exit(0)
os.wait()
";
    let folder = tempfile::tempdir().unwrap();
    let (bundle, output) = run_python(folder.path(), FORKS, &[]);
    expect_status(&output, 0);
    let samples: Vec<Sample> = rows(&bundle);
    for caller in ["in_a_thread", "in_a_child"] {
        let own: Vec<&Sample> =
            samples.iter().filter(|sample| functions_of(&sample.frames).contains(&caller)).collect();
        assert!(own.len() > 20, "{caller}: {} of {}", own.len(), samples.len());
        let is_main = own.iter().all(|sample| sample.pid.0 == sample.tid.0);
        assert_eq!(is_main, caller == "in_a_child");
    }
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_native_programs_function_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("run.gtrace");
    // Debian's, stripped: what it exports and what the C library exports have names.
    let output = gtrace()
        .args(["run", "--no-report", "-o"])
        .arg(&bundle)
        .args(["--", "sh", "-c", "head -c 60000000 /dev/zero | sha256sum"])
        .output()
        .unwrap();
    expect_status(&output, 0);
    let samples: Vec<Sample> = rows(&bundle);
    let sums: Vec<&Sample> = samples
        .iter()
        .filter(|sample| {
            sample
                .frames
                .iter()
                .any(|frame| frame.module.as_deref().is_some_and(|m| m.starts_with("sha256sum")))
        })
        .collect();
    assert!(sums.len() > 10, "{} of {}", sums.len(), samples.len());
    // Either the crypto library's or its own function, which has no symbol: then the address says where.
    assert!(sums.iter().all(|sample| {
        let leaf = &sample.frames[0];
        leaf.function.is_some() || leaf.address.is_some() || leaf.module.is_none()
    }));
    // Up to the start of the program, by the unwind tables.
    let whole = sums.iter().filter(|sample| {
        functions_of(&sample.frames).iter().any(|function| function.starts_with("__libc_start"))
    });
    assert!(whole.count() * 2 > sums.len());
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn garbage_in_the_interpreters_memory_harms_nothing() {
    // The program gives its own frames and code objects other contents: the first word of the frame chain leads in a
    // circle, then into nothing, and a code object's name is a number.
    const HOSTILE: &str = r#"
import ctypes, os, sys, threading, time
def victim():
    end = time.monotonic() + 3
    while time.monotonic() < end:
        pass
def poke(address, value):
    ctypes.memmove(address, value.to_bytes(8, sys.byteorder), 8)
code = victim.__code__
name = next(offset for offset in range(0, 200, 8)
            if int.from_bytes(ctypes.string_at(id(code) + offset, 8), sys.byteorder) == id(code.co_filename))
print("ready", flush=True)
started = time.monotonic()
threading.Thread(target=victim, daemon=True).start()
old = int.from_bytes(ctypes.string_at(id(code) + name, 8), sys.byteorder)
for step in range(200):
    for value in (8, 2**64 - 8, id(code), id(step), old):
        poke(id(code) + name, value)
        time.sleep(0.002)
poke(id(code) + name, old)
os._exit(7)
"#;
    let folder = tempfile::tempdir().unwrap();
    let (bundle, output) = run_python(folder.path(), HOSTILE, &[]);
    expect_status(&output, 7);
    let samples: Vec<Sample> = rows(&bundle);
    assert!(samples.len() > 50, "{}", samples.len());
    for text in samples.iter().flat_map(|sample| &sample.frames).filter_map(|frame| frame.file.as_deref()) {
        assert!(text.len() < 8192);
    }
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn without_stacks_there_are_no_samples_and_a_rate_is_kept() {
    const SPIN: &str = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass";
    let folder = tempfile::tempdir().unwrap();
    let record = |name: &str, options: &[&str]| {
        let bundle = folder.path().join(name);
        let output = gtrace()
            .args(["run", "--no-report", "-o"])
            .arg(&bundle)
            .args(options)
            .arg("--")
            .arg(python())
            .args(["-c", SPIN])
            .output()
            .unwrap();
        expect_status(&output, 0);
        rows::<Sample>(&bundle).len()
    };
    assert_eq!(record("none.gtrace", &["--no-stacks"]), 0);
    let (few, many) =
        (record("few.gtrace", &["--stack-rate", "20"]), record("many.gtrace", &["--stack-rate", "500"]));
    assert!(few > 5 && few < 60, "{few}");
    assert!(many > few * 5, "{few} and {many}");
}

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn a_process_that_runs_already_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("attach.gtrace");
    let target = Target::python(
        "import time\ndef hot():\n    end = time.monotonic() + 60\n    while time.monotonic() < end: pass\nprint('ready', flush=True)\nhot()",
    );
    let output = gtrace()
        .args(["attach", "--no-report", "--duration", "1s", "-o"])
        .arg(&bundle)
        .arg(target.pid().to_string())
        .output()
        .unwrap();
    assert!(bundle.join(Sample::NAME).exists(), "{}", String::from_utf8_lossy(&output.stderr));
    let samples: Vec<Sample> = rows(&bundle);
    let functions = python_functions(&samples);
    let hot = functions.get("hot").copied().unwrap_or(0);
    assert!(hot > 20 && hot * 10 > samples.len() * 8, "{functions:?}");
}

/// `GTRACE_TEST_PYTHONS=/opt/py39/bin/python3.9:/usr/bin/python3.13 …`: the same with other interpreters; one in a folder
/// with a root file system of its own (`/srv/root/usr/bin/python3.9`) is run in it.
#[test]
#[ignore = "loads eBPF programs: needs root"]
fn other_interpreters_that_are_asked_for() {
    let Ok(interpreters) = std::env::var("GTRACE_TEST_PYTHONS") else { return };
    for interpreter in interpreters.split(':').filter(|path| !path.is_empty()) {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("run.gtrace");
        let mut command = gtrace();
        command.args(["run", "--no-report", "-o"]).arg(&bundle).arg("--");
        match interpreter.split_once("/usr/bin/") {
            Some((root, _)) if !root.is_empty() && Path::new(root).join("lib64").exists() => {
                command.arg("chroot").arg(root).arg(interpreter.strip_prefix(root).unwrap_or(interpreter));
            }
            _ => {
                command.arg(interpreter);
            }
        }
        let output = command.args(["-c", PROGRAM]).output().unwrap();
        expect_status(&output, 0);
        let samples: Vec<Sample> = rows(&bundle);
        let functions = python_functions(&samples);
        let of = |name: &str| functions.get(name).copied().unwrap_or(0);
        let known = of("collate_fn") + of("Loader.decode") + of("decode");
        assert!(
            known > 50 && known * 10 > samples.len() * 7,
            "{interpreter}: {functions:?} of {}",
            samples.len()
        );
        let lines_are_right = samples.iter().all(|sample| {
            let inner = sample.frames.iter().find(|frame| &*frame.kind == "python");
            inner.is_none_or(|frame| {
                frame.function.as_deref() != Some("collate_fn") || matches!(frame.line, Some(7..=11))
            })
        });
        assert!(lines_are_right, "{interpreter}");
    }
}
