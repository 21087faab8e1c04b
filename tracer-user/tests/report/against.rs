//! One recording against another.

use gtrace::report::compare::{self, Comparison, Verdict};
use gtrace::report::text::style::Style;

use super::scene::{MS, Piece, START, Scene};
use super::scenes;

/// Steps of 10 ms of computing, each after a read and a decode that last what `length` says, in ns.
fn training(steps: i64, read: impl Fn(i64) -> i64, decode: impl Fn(i64) -> i64) -> Scene {
    let mut scene = Scene::new(&["python3", "train.py"], 60_000 * MS);
    scene.thread(100, 100, "python3", Some("main"));
    let mut at = START;
    scene.op(0, "kernel", "step", at, at + 10 * MS);
    for step in 0..steps {
        at += 10 * MS;
        let pieces = [
            Piece::new("storage.read.device", read(step)).stage("data_loading").object("/data/x"),
            Piece::new("host.cpu.user", decode(step)).stage("data_loading"),
        ];
        let length = read(step) + decode(step);
        scene.op(0, "kernel", "step", at + length, at + length + 10 * MS);
        scene.gap("idle", at, None, &pieces);
        at += length;
    }
    scene
}

/// A number between 0 and 1 that looks drawn by lot.
fn lot(step: i64, seed: i64) -> f64 {
    let mixed =
        (step.wrapping_mul(0x9e37_79b9) ^ seed.wrapping_mul(0x85eb_ca6b)).wrapping_mul(0x27d4_eb2f) as u64;
    ((mixed >> 7) % 10_000) as f64 / 10_000.0
}

fn around(ms: f64, spread: f64, seed: i64) -> impl Fn(i64) -> i64 {
    move |step| ((ms + spread * (lot(step, seed) - 0.5)) * MS as f64) as i64
}

fn compared(after: Scene, before: Scene) -> Comparison {
    let ((_a, after), (_b, before)) = (after.bundle(), before.bundle());
    let mut comparison = compare::compare(&after, &before, &|_| ()).expect("both can be read");
    comparison.after.path = "after.gtrace".into();
    comparison.before.path = "before.gtrace".into();
    comparison
}

fn of<'a>(comparison: &'a Comparison, code: &str) -> &'a compare::Change {
    comparison.causes.iter().find(|change| change.name == code).expect("the cause is listed")
}

#[test]
fn a_fix_is_seen_and_what_did_not_change_is_not() {
    let before = training(300, around(8.0, 4.0, 1), around(5.0, 4.0, 2));
    let after = training(300, around(2.0, 1.0, 3), around(5.0, 4.0, 4));
    let comparison = compared(after, before);
    assert_eq!(comparison.waiting.verdict, Verdict::Better);
    let read = of(&comparison, "storage.read.device");
    assert_eq!(read.verdict, Verdict::Better);
    // 8 of 23 ms before, 2 of 17 ms after.
    assert!((read.before / 1e6 - 347.8).abs() < 15.0 && (read.after / 1e6 - 117.6).abs() < 10.0, "{read:?}");
    assert!(
        comparison.kernels.verdict == Verdict::Better && comparison.kernels.after > 55.0,
        "{:?}",
        comparison.kernels
    );
    let sum: f64 = comparison.causes.iter().map(|change| change.change).sum();
    assert!((sum - comparison.waiting.change).abs() < 1.0, "the causes add up");
}

#[test]
fn two_recordings_of_the_same_do_not_differ() {
    let one = training(300, around(8.0, 6.0, 1), around(5.0, 4.0, 2));
    let other = training(290, around(8.0, 6.0, 11), around(5.0, 4.0, 12));
    let comparison = compared(one, other);
    assert_eq!(comparison.waiting.verdict, Verdict::Same, "{:?}", comparison.waiting);
    assert!(
        comparison.causes.iter().all(|change| change.verdict == Verdict::Same),
        "{:?}",
        comparison.causes
    );
}

#[test]
fn a_recording_against_itself_has_no_change() {
    let comparison = compared(scenes::loader_bound(), scenes::loader_bound());
    assert!(comparison.causes.iter().chain(&comparison.stages).all(|change| change.change == 0.0));
    assert_eq!(comparison.waiting.verdict, Verdict::Same);
    assert!(comparison.doubts.is_empty(), "{:?}", comparison.doubts);
}

#[test]
fn a_cause_that_is_new_is_worse() {
    let before = training(300, around(2.0, 1.0, 1), around(5.0, 2.0, 2));
    let mut after = training(300, around(2.0, 1.0, 1), around(5.0, 2.0, 2));
    for segment in after.segments.iter_mut().filter(|segment| &*segment.cause == "host.cpu.user") {
        segment.cause = "host.runq.contention".into();
    }
    let comparison = compared(after, before);
    assert_eq!(of(&comparison, "host.runq.contention").verdict, Verdict::Worse);
    assert_eq!(of(&comparison, "host.cpu.user").verdict, Verdict::Better);
    assert_eq!(comparison.waiting.verdict, Verdict::Same);
}

#[test]
fn what_cannot_be_compared_is_said() {
    let comparison = compared(scenes::no_gpu(), scenes::lossy());
    assert_eq!(comparison.waiting.verdict, Verdict::Unclear);
    let doubts = comparison.doubts.join("\n");
    for part in [
        "the recording after has no GPU work",
        "of the recording before, 1200 events were lost",
        "the programs differ",
    ] {
        assert!(doubts.contains(part), "{doubts}");
    }
    let page = compare::text::render(&comparison, Style { colors: false, columns: 100 });
    assert!(page.contains("There is nothing to compare"), "{page}");
}

#[test]
fn in_words() {
    let before = training(120, around(8.0, 4.0, 1), around(5.0, 4.0, 2));
    let after = training(120, around(2.0, 1.0, 3), around(7.0, 1.0, 4));
    let comparison = compared(after, before);
    insta::assert_snapshot!(compare::text::render(&comparison, Style { colors: false, columns: 110 }));
}

#[test]
fn the_page_escapes_and_says_the_same() {
    let mut after = training(60, around(2.0, 1.0, 3), around(7.0, 1.0, 4));
    after.meta.command = vec!["</script><script>alert(1)</script>".into()];
    after.meta.host = "<img src=x>".into();
    for segment in &mut after.segments {
        segment.stage = "\"><b>x".into();
    }
    let before = training(60, around(8.0, 4.0, 1), around(5.0, 4.0, 2));
    let comparison = compared(after, before);
    let page = compare::html::render(&comparison);
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("<b>"));
    assert!(page.contains("The GPUs wait less") && page.contains("storage.read.device"));
}

/// The same training with its steps found.
fn with_steps(mut scene: Scene) -> Scene {
    let gaps: Vec<(i64, i64)> = scene.gaps.iter().map(|gap| (gap.start_ns.0, gap.end_ns.0)).collect();
    for (number, (start, end)) in gaps.into_iter().enumerate() {
        scene.step(number as i64, (start, end + 10 * MS), 10 * MS, None);
    }
    scene
}

#[test]
fn with_steps_in_both_it_is_per_step() {
    let before = with_steps(training(240, around(8.0, 4.0, 1), around(5.0, 4.0, 2)));
    let after = with_steps(training(300, around(2.0, 1.0, 3), around(5.0, 4.0, 4)));
    let comparison = compared(after, before);
    assert_eq!(comparison.per, compare::Per::Step);
    let read = of(&comparison, "storage.read.device");
    // 8 ms a step before, 2 after, to what the lot makes of it.
    assert!((read.before / 1e6 - 8.0).abs() < 0.2 && (read.after / 1e6 - 2.0).abs() < 0.1, "{read:?}");
    assert_eq!((read.verdict, of(&comparison, "host.cpu.user").verdict), (Verdict::Better, Verdict::Same));
    assert!((comparison.kernels.before - 1.0).abs() < 0.01, "{:?}", comparison.kernels);
    // Steps in one alone do not compare.
    let before = training(240, around(8.0, 4.0, 1), around(5.0, 4.0, 2));
    let after = with_steps(training(300, around(2.0, 1.0, 3), around(5.0, 4.0, 4)));
    assert_eq!(compared(after, before).per, compare::Per::Second);
}
