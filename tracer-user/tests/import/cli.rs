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
