//! The page: nothing in it can be broken from inside, it stays bounded, its colours can be told apart, and it works in a
//! real browser.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use gtrace::event::{DeviceId, GapId, MonoNs};
use gtrace::report::{html, load};
use gtrace::store::Bundle;
use serde_json::Value;

use super::scene::{MS, Piece, START, Scene, hop};
use super::scenes;

fn page_of(bundle: &Bundle) -> String {
    let report = load::report(bundle, &|_| ()).expect("the bundle can be read");
    html::render(bundle, &report, &|_| ()).expect("the page can be made")
}

fn page(scene: Scene) -> String {
    let (_folder, bundle) = scene.bundle();
    page_of(&bundle)
}

/// Names that would be markup, a script, or the end of one.
const ATTACKS: [&str; 8] = [
    "<script>document.title='owned'</script>",
    "</script><script>document.title='owned'</script>",
    "\"><img src=x onerror=\"document.title='owned'\">",
    "' onmouseover='document.title=1",
    "<!--<script>",
    "]]></style><style>*{display:none}</style>",
    "javascript:alert(1)",
    "\u{202e}gpj\u{1b}[31m\u{2028}${document.title='owned'}`\\",
];

fn attacked() -> Scene {
    let mut scene = Scene::new(&["python3", ATTACKS[1]], 400 * MS);
    scene.meta.host = ATTACKS[0].into();
    scene.meta.kernel = ATTACKS[2].into();
    scene.meta.gtrace_version = ATTACKS[1].into();
    scene.meta.gpus[0].name = ATTACKS[2].into();
    scene.meta.gpu_missing = Some(ATTACKS[5].into());
    let mut at = START;
    for (index, attack) in ATTACKS.iter().enumerate() {
        let tid = 100 + index as i32;
        scene.thread(tid, tid, attack, Some(attack));
        scene.op(0, "kernel", attack, at, at + MS);
        at += 11 * MS;
        scene.op(0, "kernel", attack, at, at + MS);
        // Causes, stages and kinds come from a file as well.
        let cause = if index % 2 == 0 { "storage.read.device" } else { ATTACKS[1] };
        let piece = Piece::new(cause, 10 * MS).object(attack).thread(tid, tid).stage(ATTACKS[2]);
        let piece = piece.path(vec![
            hop((tid, tid), attack, "blocked", Some(attack), Some(attack), Some(attack)),
            hop((0, 0), attack, attack, Some(attack), Some(attack), None),
        ]);
        scene.gap("idle", at - 10 * MS, Some(attack), &[piece]);
        at += MS;
    }
    scene
}

#[test]
fn no_name_becomes_markup() {
    for scene in [attacked(), scenes::hostile()] {
        let page = page(scene);
        let scripts = page.matches("<script").count();
        assert_eq!(scripts, 2, "the data and the program");
        assert_eq!(page.matches("</script").count(), 2);
        assert_eq!(page.matches("<style").count(), 1);
        assert!(!page.contains("<img") && !page.contains("<!--"));
        assert!(!page.chars().any(|c| c == '\u{1b}' || c == '\u{202e}' || c == '\u{200b}' || c == '\u{7}'));
        assert!(page.contains("default-src 'none'") || page.contains("default-src &#39;none&#39;"));
    }
}

#[test]
fn it_needs_no_network() {
    let page = page(scenes::loader_bound());
    for word in ["http://", "https://", "url(", "@import", "src=", "href=\"/", "fetch(", "XMLHttpRequest"] {
        // The name of SVG's namespace is no address that anything asks.
        let found = page.replace("http://www.w3.org/2000/svg", "").contains(word);
        assert!(!found, "{word}");
    }
    assert!(!page.contains("innerHTML") && !page.contains("eval(") && !page.contains("document.write"));
}

fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"recording\">").expect("there is data");
    let (json, _) = rest.split_once("</script>").expect("it ends");
    serde_json::from_str(json).expect("it is JSON")
}

#[test]
fn the_timeline_has_all_of_the_waiting() {
    for scene in [scenes::loader_bound(), scenes::two_devices(), scenes::lossy()] {
        let waited: i64 = scene.gaps.iter().map(|gap| (gap.end_ns - gap.start_ns).0).sum();
        let data = data(&page(scene));
        let columns = data["devices"].as_array().expect("devices").iter().flat_map(|device| {
            device["columns"]
                .as_array()
                .expect("columns")
                .iter()
                .flat_map(|column| column.as_array().expect("a list"))
        });
        assert_eq!(columns.map(|part| part[1].as_i64().expect("ns")).sum::<i64>(), waited);
        let gaps = data["gaps"].as_array().expect("gaps");
        let of_gaps: i64 = gaps.iter().map(|gap| gap[4].as_i64().expect("ns")).sum();
        assert_eq!(of_gaps, waited);
        let segments = gaps.iter().flat_map(|gap| gap[8].as_array().expect("segments"));
        assert_eq!(segments.map(|segment| segment[1].as_i64().expect("ns")).sum::<i64>(), waited);
    }
}

/// Many gaps whose names differ and are long.
fn crowded(gaps: i64) -> Scene {
    let mut scene = Scene::new(&["python3", "train.py"], gaps * 10_000 + MS);
    scene.thread(100, 100, "python3", Some("main"));
    let mut at = START;
    scene.op(0, "kernel", "k", at, at + 1_000);
    for index in 0..gaps {
        let length = 1_000 + index % 977;
        let object = format!("/data/{}/{index}", "x".repeat(150));
        let chain = vec![hop((100, 100), "python3", "blocked", Some("read"), Some(&object), None)];
        scene.op(0, "kernel", "k", at + 1_000 + length, at + 2_000 + length);
        scene.gap(
            "idle",
            at + 1_000,
            None,
            &[Piece::new("storage.read.device", length).object(&object).thread(100, 100).path(chain)],
        );
        at += 1_000 + length;
    }
    scene
}

#[test]
fn its_size_is_bounded_and_the_longest_stay() {
    let page = page(crowded(30_000));
    assert!(page.len() < 9 << 20, "{} bytes", page.len());
    let data = data(&page);
    let gaps = data["gaps"].as_array().expect("gaps");
    assert_eq!(data["total_gaps"], 30_000);
    assert!(gaps.len() <= html::GAPS && gaps.len() >= 1_000, "{}", gaps.len());
    let lengths: Vec<i64> = gaps.iter().map(|gap| gap[4].as_i64().expect("ns")).collect();
    assert!(lengths.is_sorted_by(|a, b| a >= b));
    assert_eq!(lengths[0], 1_976);
    assert!(page.contains(" longest of 30,000 gaps are drawn one by one"));
}

#[test]
fn many_devices_stay_bounded() {
    let mut scene = Scene::new(&["./train"], 1_000 * MS);
    scene.thread(100, 100, "train", Some("main"));
    for device in 0..200 {
        scene.op(device, "kernel", "k", START, START + MS);
        scene.op(device, "kernel", "k", START + 500 * MS, START + 501 * MS);
        let gap = scene.gap("idle", START + MS, None, &[Piece::new("net.recv", 499 * MS)]);
        assert_eq!((gap, scene.gaps[device as usize].device), (GapId(i64::from(device)), DeviceId(device)));
    }
    let page = page(scene);
    assert!(page.len() < 2 << 20, "{} bytes", page.len());
    assert!(page.contains("136 more GPUs with"));
}

/// A colour as red, green and blue.
fn rgb(hex: &str) -> [f64; 3] {
    let part = |at: usize| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal")) / 255.0;
    [part(1), part(3), part(5)]
}

/// WCAG 2's contrast.
fn contrast(a: &str, b: &str) -> f64 {
    let light = |hex: &str| {
        let linear = rgb(hex)
            .map(|part| if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    };
    let (a, b) = (light(a), light(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn everything_can_be_told_from_its_ground() {
    let css = include_str!("../../src/report/html/page/theme.css");
    let themes: Vec<HashMap<&str, &str>> = css
        .split('{')
        .filter(|block| block.contains("--ground:"))
        .map(|block| {
            let variables = block
                .lines()
                .filter_map(|line| line.trim().strip_prefix("--")?.strip_suffix(';')?.split_once(": "));
            variables.collect()
        })
        .collect();
    assert_eq!(themes.len(), 3, "light, dark by the system, dark by choice");
    assert_eq!(themes[1], themes[2]);
    for theme in &themes {
        for ground in ["paper", "inset", "ground"] {
            for text in ["ink", "faint", "accent", "good", "careful", "bad"] {
                let ratio = contrast(theme[text], theme[ground]);
                assert!(ratio >= 4.5, "{text} on {ground}: {ratio:.2}");
            }
        }
        for shape in ["busy", "copy", "comm", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c0", "cu"] {
            for ground in ["paper", "inset"] {
                let ratio = contrast(theme[shape], theme[ground]);
                assert!(ratio >= 3.0, "{shape} on {ground}: {ratio:.2}");
            }
        }
    }
}

/// The browser, if there is one.
fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("GTRACE_TEST_CHROMIUM").map(PathBuf::from);
    let folders = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let known = ["chromium", "chromium-browser", "google-chrome"];
    named.or_else(|| {
        folders?.iter().flat_map(|folder| known.map(|name| folder.join(name))).find(|path| path.is_file())
    })
}

/// Opens a page in the browser, lets `script` work on it, and returns what that script returned; with whether the window
/// is narrow. `None`: there is no browser.
fn in_browser(page: &str, script: &str, size: (u32, u32)) -> Option<Value> {
    let browser = chromium()?;
    let folder = tempfile::tempdir().expect("a temporary folder");
    // The page's policy lets no other script in: the test's carries the page's own nonce.
    let (_, rest) = page.split_once("<script nonce=\"").expect("there is a script");
    let (nonce, _) = rest.split_once('"').expect("it has a nonce");
    let probe = format!(
        "<script nonce=\"{nonce}\">window.addEventListener('load', () => {{\n\
         const answer = document.createElement('pre'); answer.id = 'answer-of-the-test';\n\
         let value; try {{ value = (() => {{ {script} }})(); }} catch (error) {{ value = {{ error: String(error) }}; }}\n\
         answer.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(value))));\n\
         document.body.append(answer); }});</script></body>"
    );
    let file = folder.path().join("page.html");
    std::fs::write(&file, page.replace("</body>", &probe)).expect("the page is written");
    let dom = run(&browser, folder.path(), &file, size, &["--dump-dom"]);
    let (_, rest) =
        dom.rsplit_once("id=\"answer-of-the-test\">").unwrap_or_else(|| panic!("no answer in {dom:.2000}"));
    let (encoded, _) = rest.split_once("</pre>").expect("the answer ends");
    Some(serde_json::from_slice(&from_base64(encoded)).expect("the answer is JSON"))
}

fn run(browser: &Path, home: &Path, file: &Path, (width, height): (u32, u32), arguments: &[&str]) -> String {
    let output = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=5000",
            "--hide-scrollbars",
        ])
        .arg(format!("--user-data-dir={}", home.join("profile").display()))
        .arg(format!("--window-size={width},{height}"))
        .args(arguments)
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the browser starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn from_base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let bits = text.bytes().filter(|byte| *byte != b'=').map(|byte| u32::from(value(byte)));
    let (mut bytes, mut held, mut count) = (Vec::new(), 0_u32, 0);
    for six in bits {
        held = (held << 6) | six;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((held >> count) as u8);
        }
    }
    bytes
}

const NO_BROWSER: &str = "SKIPPED: no chromium on this machine (GTRACE_TEST_CHROMIUM names one elsewhere)";

#[test]
fn a_browser_runs_no_foreign_script() {
    let script = "
        for (const button of document.querySelectorAll('button')) button.click();
        for (const details of document.querySelectorAll('details')) details.open = true;
        return { title: document.title, images: document.images.length, scripts: document.scripts.length,
                 handlers: document.querySelectorAll('[onmouseover],[onerror],[onclick],[onload]').length,
                 shown: getComputedStyle(document.body).display, chain: document.querySelectorAll('.chain li').length };";
    let Some(seen) = in_browser(&page(attacked()), script, (1280, 900)) else {
        println!("{NO_BROWSER}");
        return;
    };
    assert!(
        seen["title"].as_str().is_some_and(|title| title.starts_with("gtrace: python3 </script>")),
        "{seen}"
    );
    assert_eq!((&seen["images"], &seen["handlers"]), (&0.into(), &0.into()), "{seen}");
    // The data, the program, and this test's.
    assert_eq!(seen["scripts"], 3, "{seen}");
    assert_eq!(seen["shown"], "block");
    assert_eq!(seen["chain"], 2, "{seen}");
}

#[test]
fn a_browser_shows_the_chain_by_keyboard() {
    let script = "
        const lanes = document.getElementById('lanes');
        const press = (key, options = {}) => lanes.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...options }));
        const title = () => document.querySelector('#gap h3').textContent;
        const seen = { first: title(), focusable: lanes.tabIndex };
        lanes.focus();
        press('ArrowRight'); seen.next = title(); seen.said = document.getElementById('said').textContent;
        press('ArrowLeft'); seen.back = title();
        press('0'); seen.all = document.getElementById('range').textContent;
        press('+'); seen.zoomed = document.getElementById('range').textContent;
        press('Enter'); seen.focus = document.activeElement.id;
        seen.hops = [...document.querySelectorAll('#chain li')].map((hop) => hop.textContent);
        const rows = [...document.querySelectorAll('#gap tbody button')];
        rows[1].click();
        seen.other = [...document.querySelectorAll('#chain li')].map((hop) => hop.textContent);
        document.querySelector('button[data-gap=\"4\"]').click();
        seen.listed = title();
        const pen = document.getElementById('canvas').getContext('2d');
        const pixels = pen.getImageData(0, 0, pen.canvas.width, pen.canvas.height).data;
        const colors = new Set();
        for (let at = 0; at < pixels.length; at += 4) colors.add(`${pixels[at]},${pixels[at + 1]},${pixels[at + 2]}`);
        seen.drawn = ['47,111,222', '194,87,12'].every((color) => colors.has(color));
        return seen;";
    let Some(seen) = in_browser(&page(scenes::loader_bound()), script, (1280, 900)) else {
        println!("{NO_BROWSER}");
        return;
    };
    assert_eq!(
        seen["first"], "Gap 0 of GPU 0: 13.06 ms, no work at all, 26.00 ms after the beginning",
        "{seen}"
    );
    assert!(seen["next"].as_str().is_some_and(|title| title.starts_with("Gap 1 of GPU 0")), "{seen}");
    assert!(seen["said"].as_str().is_some_and(|said| said.starts_with("Gap 1 of GPU 0: 13.06 ms")), "{seen}");
    assert_eq!(seen["back"], seen["first"]);
    assert_eq!(seen["all"], "20.00 ms to 216.40 ms of the recording, 196.40 ms seen", "{seen}");
    assert!(seen["zoomed"].as_str().is_some_and(|range| range.ends_with("98.20 ms seen")), "{seen}");
    assert_eq!((&seen["focus"], &seen["focusable"]), (&"gap".into(), &0.into()));
    assert_eq!(
        seen["hops"],
        serde_json::json!([
            "python3 100 (main thread) was blocked in futex on 0x7f10aa00until the next one woke it:",
            "pt_pin 100/105 (pinning thread) was blocked in read on pipe:[4242]until the next one woke it:",
            "python3 101 (loader worker) was blocked in pread64 on /data/shard-00.binuntil its block request completed:",
            "nvme0n1 worked on /data/shard-00.binthis is the cause: the disk was reading"
        ])
    );
    assert_eq!(seen["other"].as_array().map(Vec::len), Some(3), "{seen}");
    assert!(seen["listed"].as_str().is_some_and(|title| title.starts_with("Gap 4 of GPU 0")), "{seen}");
    assert_eq!(seen["drawn"], true, "the two largest causes have their colours");
}

#[test]
fn a_browser_finds_names_for_everything_and_no_overflow() {
    let script = "
        const unnamed = [...document.querySelectorAll('button, a, [tabindex=\"0\"]')].filter((control) =>
            !(control.getAttribute('aria-label') || control.textContent.trim())).map((control) => control.outerHTML.slice(0, 80));
        const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
        const dangling = [...document.querySelectorAll('[aria-labelledby], [aria-describedby]')].flatMap((element) =>
            ['aria-labelledby', 'aria-describedby'].map((name) => element.getAttribute(name)).filter((id) => id && !ids.includes(id)));
        const headings = [...document.querySelectorAll('main h1, main h2, main h3, main h4')].map((heading) => Number(heading.tagName[1]));
        const jumps = headings.filter((level, index) => index > 0 && level > headings[index - 1] + 1).length;
        const untitled = [...document.querySelectorAll('table')].filter((table) => !table.caption || table.querySelector('th:not([scope])')).length;
        return { unnamed, dangling, jumps, untitled, h1: document.querySelectorAll('h1').length, lang: document.documentElement.lang,
                 doubled: ids.length - new Set(ids).size, landmarks: document.querySelectorAll('header, main, footer, nav').length,
                 positive: document.querySelectorAll('[tabindex]:not([tabindex=\"0\"]):not([tabindex=\"-1\"])').length,
                 wide: document.documentElement.scrollWidth - document.documentElement.clientWidth };";
    for (scene, size) in [
        (scenes::loader_bound(), (1280, 900)),
        (scenes::two_devices(), (500, 900)),
        (scenes::no_gpu(), (500, 900)),
        (scenes::hostile(), (500, 900)),
    ] {
        let Some(seen) = in_browser(&page(scene), script, size) else {
            println!("{NO_BROWSER}");
            return;
        };
        for empty in ["unnamed", "dangling"] {
            assert_eq!(seen[empty], serde_json::json!([]), "{seen}");
        }
        for zero in ["jumps", "untitled", "doubled", "positive", "wide"] {
            assert_eq!(seen[zero], 0, "{zero}: {seen}");
        }
        assert_eq!(
            (&seen["h1"], &seen["landmarks"], &seen["lang"]),
            (&1.into(), &4.into(), &"en".into()),
            "{seen}"
        );
    }
}

#[test]
fn a_browser_prints_it() {
    let Some(browser) = chromium() else {
        println!("{NO_BROWSER}");
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("page.html");
    std::fs::write(&file, page(scenes::loader_bound())).expect("the page is written");
    let pdf = folder.path().join("page.pdf");
    let print = format!("--print-to-pdf={}", pdf.display());
    run(&browser, folder.path(), &file, (1280, 900), &[&print]);
    let pdf = std::fs::read(pdf).expect("it was printed");
    assert!(pdf.starts_with(b"%PDF") && pdf.len() > 20_000);
}

#[test]
fn without_gpu_work_there_is_no_empty_chart() {
    let page = page(scenes::no_gpu());
    assert!(!page.contains("id=\"lanes\"") && !page.contains("id=\"causes\""));
    assert!(page.contains("no process of the tree loaded libcuda"));
    let data = data(&page);
    assert_eq!(data["total_gaps"], 0);
    assert_eq!(MonoNs(START).0, START);
}
