//! Which glibc a program or library asks for.

use std::path::Path;

use anyhow::{Context, Result};

/// The newest `GLIBC_2.x` among the version names of a file; 2.0 if it names none.
pub fn newest(file: &Path) -> Result<(u32, u32)> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(newest_name(&bytes))
}

/// Version names are strings of their own in the file's dynamic string table.
fn newest_name(bytes: &[u8]) -> (u32, u32) {
    const LEAD: &[u8] = b"\0GLIBC_";
    let mut newest = (2, 0);
    for (at, _) in bytes.windows(LEAD.len()).enumerate().filter(|(_, window)| *window == LEAD) {
        let rest = &bytes[at + LEAD.len()..];
        let name: String =
            rest.iter().take(12).take_while(|byte| **byte != 0).map(|byte| char::from(*byte)).collect();
        let mut numbers = name.split('.').map(str::parse::<u32>);
        if let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) {
            newest = newest.max((major, minor));
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::newest_name;

    #[test]
    fn the_newest_counts_by_number() {
        assert_eq!(newest_name(b"x\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.2.5\0GLIBC_PRIVATE\0"), (2, 34));
        assert_eq!(newest_name(b"needs GLIBC_2.99 or so\0"), (2, 0));
    }
}
