//! The command, and the other commands on what it makes.

use std::path::Path;
use std::process::{Command, Output};

use super::folder::{in_memory, traces};
use super::small::{document, events};

fn gtrace(words: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gtrace")).args(words).current_dir(folder).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn one_file_becomes_a_recording_that_every_command_reads() {
    let folder = in_memory();
    std::fs::write(folder.path().join("t.json"), document(&events())).unwrap();
    let imported = gtrace(&["import", "t.json"], folder.path());
    assert_eq!(imported.status.code(), Some(0), "{imported:?}");
    assert!(stdout(&imported).contains("host.data_loader"), "{}", stdout(&imported));
    for words in [
        &["report", "t.gtrace", "--format", "json"][..],
        &["explain", "t.gtrace", "--gap", "0"],
        &["analyze", "t.gtrace"],
        &["export", "t.gtrace", "--format", "chrome", "-o", "t.chrome.json"],
    ] {
        let output = gtrace(words, folder.path());
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
    }
    let explained = stdout(&gtrace(&["explain", "t.gtrace", "--gap", "0"], folder.path()));
    assert!(explained.contains("aten::mm") && explained.contains("markers"), "{explained}");
    let again = gtrace(&["import", "t.json"], folder.path());
    assert_eq!(again.status.code(), Some(1));
    let several = gtrace(&["import", "t.json", "t.json"], folder.path());
    assert_eq!(several.status.code(), Some(2), "several files need a folder");
}

#[test]
fn a_cut_trace_ends_with_the_status_of_an_incomplete_recording() {
    let folder = in_memory();
    let text = document(&events());
    std::fs::write(folder.path().join("t.json"), &text[..text.len() - 60]).unwrap();
    let output = gtrace(&["import", "t.json", "--no-report"], folder.path());
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the trace is incomplete"), "{output:?}");
}

#[test]
fn eight_ranks_and_who_held_them_up() {
    let Some(real) = traces("eight_ranks_and_who_held_them_up") else { return };
    let folder = in_memory();
    let files: Vec<String> = (0..8)
        .map(|rank| real.join(format!("megatron_tp8_rank{rank}.json.gz")).display().to_string())
        .collect();
    let mut words: Vec<&str> = vec!["import", "-o", "run"];
    words.extend(files.iter().map(String::as_str));
    let output = gtrace(&words, &folder.path().canonicalize().unwrap());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = stdout(&output);
    assert!(
        text.contains("Ranks 0 and 6 held up the others.")
            || text.contains("Ranks 6 and 0 held up the others."),
        "{text}"
    );
    for rank in 0..8 {
        assert!(folder.path().join(format!("run/rank={rank}/meta.json")).is_file());
    }
}

#[test]
fn of_several_files_the_good_ones_are_kept() {
    let folder = in_memory();
    let whole = document(&events());
    let ranked = |rank: i64| whole.replacen('{', &format!("{{\"distributedInfo\": {{\"rank\": {rank}}},"), 1);
    std::fs::write(folder.path().join("a.json"), ranked(1)).unwrap();
    std::fs::write(folder.path().join("b.json"), "no trace").unwrap();
    std::fs::write(folder.path().join("c.json"), ranked(1)).unwrap();
    std::fs::write(folder.path().join("d.json"), ranked(-7)).unwrap();
    let output = gtrace(
        &["import", "a.json", "b.json", "c.json", "d.json", "-o", "run"],
        &folder.path().canonicalize().unwrap(),
    );
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("left out: cannot import b.json"), "{told}");
    assert!(told.contains("another of the files is of rank 1"), "{told}");
    assert!(told.contains("2 of 4 files are not in run"), "{told}");
    let mut names: Vec<_> = std::fs::read_dir(folder.path().join("run"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    // A rank below 0 is none: the file's place stands for it.
    assert_eq!(names, ["rank=1", "rank=3"]);
    let none = gtrace(&["import", "b.json", "b.json", "-o", "none"], &folder.path().canonicalize().unwrap());
    assert_eq!(none.status.code(), Some(1), "{none:?}");
    assert!(!folder.path().join("none").exists());
}

#[test]
fn an_interrupted_import_leaves_nothing() {
    use std::io::Write as _;
    use std::os::unix::process::ExitStatusExt as _;

    let folder = in_memory();
    let pipe = folder.path().join("t.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut import = Command::new(env!("CARGO_BIN_EXE_gtrace"))
        .args(["import", "t.json", "-o", "t.gtrace"])
        .current_dir(folder.path())
        .spawn()
        .unwrap();
    // Held open: the trace goes on.
    let mut file = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    let text = document(&events());
    file.write_all(&text.as_bytes()[..text.len() / 2]).unwrap();
    let output = folder.path().join("t.gtrace");
    while !output.join("meta.json").exists() {
        assert!(import.try_wait().unwrap().is_none(), "it ended early");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &import.id().to_string()]).status().unwrap().success());
    assert_eq!(import.wait().unwrap().signal(), Some(2));
    assert!(!output.exists());
}

#[test]
fn parts_that_are_gone_are_lost_time() {
    let folder = in_memory();
    std::fs::write(folder.path().join("t.json"), document(&events())).unwrap();
    assert_eq!(gtrace(&["import", "t.json"], folder.path()).status.code(), Some(0));
    std::fs::remove_dir_all(folder.path().join("t.gtrace/markers")).unwrap();
    let analyzed = gtrace(&["analyze", "t.gtrace"], folder.path());
    assert_eq!(analyzed.status.code(), Some(0), "{analyzed:?}");
    let report = stdout(&gtrace(&["report", "t.gtrace"], folder.path()));
    assert!(report.contains("markers: parts of it are gone"), "{report}");
    assert!(report.contains("unknown.lost_events") && !report.contains("host.data_loader"), "{report}");
}
