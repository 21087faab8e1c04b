//! The name of a bundle that was given none.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Target;
use crate::event::{Pid, Text};

/// Longest part of it that is the program's name.
const NAME_CHARACTERS: usize = 40;

/// `python3-4711-20260131-142309.gtrace`. The name is the target's own choice: only harmless characters are kept.
pub fn default_output(target: &Target, comm: &Text, root: Pid) -> PathBuf {
    let program = match target {
        Target::Run(line) => {
            line.words.first().and_then(|word| Path::new(word).file_name().map(OsString::from))
        }
        Target::Attach(_) => None,
    };
    let name = program.map_or_else(|| comm.to_string(), |name| name.to_string_lossy().into_owned());
    PathBuf::from(format!("{}-{root}-{}.gtrace", harmless(&name), local_time()))
}

fn harmless(name: &str) -> String {
    let mut plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' })
        .take(NAME_CHARACTERS)
        .collect();
    if plain.is_empty() || plain.starts_with(['.', '-']) {
        plain.insert(0, '_');
    }
    plain
}

/// `20260131-142309`, local time.
fn local_time() -> String {
    // SAFETY: time only returns a number when it is given no pointer.
    let now = unsafe { libc::time(std::ptr::null_mut()) };
    // SAFETY: tm is plain data, for which zero is a value.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of the right types.
    unsafe { libc::localtime_r(&raw const now, &raw mut parts) };
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}",
        parts.tm_year + 1900,
        parts.tm_mon + 1,
        parts.tm_mday,
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_characters_are_kept() {
        assert_eq!(harmless("python3.11"), "python3.11");
        assert_eq!(harmless("../a b\n"), "_..-a-b-");
        assert_eq!(harmless(""), "_");
        assert_eq!(harmless(&"x".repeat(100)).len(), NAME_CHARACTERS);
        let name = default_output(&Target::Attach(Pid(7)), &Text::from("-rf"), Pid(7));
        let name = name.to_str().expect("UTF-8");
        assert!(name.starts_with("_-rf-7-") && name.ends_with(".gtrace"), "{name}");
    }
}
