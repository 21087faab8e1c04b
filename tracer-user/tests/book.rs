//! The book: every page is in it, and every link leads somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

fn pages() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(docs()).expect("there is a folder of documentation");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    paths.filter(|path| path.extension().is_some_and(|kind| kind == "md")).collect()
}

/// The targets of a page's links, without its examples.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    let mut example = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            example = !example;
        }
        if example {
            continue;
        }
        let mut rest = line;
        while let Some((_, after)) = rest.split_once("](") {
            let Some((target, more)) = after.split_once(')') else { break };
            links.push(target.to_owned());
            rest = more;
        }
    }
    links
}

#[test]
fn every_page_is_in_the_summary() {
    let summary = std::fs::read_to_string(docs().join("SUMMARY.md")).expect("there is a summary");
    let listed: BTreeSet<String> = links(&summary).into_iter().collect();
    for page in pages() {
        let name = page.file_name().expect("a page has a name").to_string_lossy().into_owned();
        assert!(name == "SUMMARY.md" || listed.contains(&name), "{name} is not in docs/SUMMARY.md");
    }
}

#[test]
fn every_link_leads_somewhere() {
    let mut dead = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page can be read");
        for link in links(&text) {
            if link.contains("://") || link.starts_with('#') {
                continue;
            }
            let target = docs().join(link.split('#').next().unwrap_or_default());
            if !target.exists() {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

/// Each document of the manifests says what it is, and what it mounts it has.
#[test]
fn the_manifests_are_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/kubernetes");
    for entry in std::fs::read_dir(folder).expect("there are manifests") {
        let path = entry.expect("it can be listed").path();
        let text = std::fs::read_to_string(&path).expect("a manifest can be read");
        assert!(!text.contains('\t'), "{}: YAML knows no tabs", path.display());
        for document in text.split("\n---\n") {
            let value = |key: &str| {
                let lines = document
                    .lines()
                    .filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix(key));
                lines.map(|value| value.trim().to_owned()).collect::<Vec<_>>()
            };
            assert_eq!((value("apiVersion:").len(), value("kind:").len()), (1, 1), "{}", path.display());
            let names = value("name:");
            let mounted =
                document.split("volumeMounts:").nth(1).and_then(|rest| rest.split("volumes:").next());
            for line in mounted.unwrap_or_default().lines() {
                if let Some(name) = line.trim().strip_prefix("- name: ") {
                    let count = names.iter().filter(|known| *known == name).count();
                    assert_eq!(count, 2, "{}: {name} is mounted and no volume", path.display());
                }
            }
        }
    }
}
