//! The written pages: what every one of them says about where and when it was measured.

use std::path::Path;

use anyhow::{Context, Result};
use gtrace::store::Meta;

/// `2026-11-30`, of now, in UTC.
pub fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = civil(since.as_secs() / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

/// Year, month and day of a number of days since 1970-01-01, counted in years that begin in March, so that the leap day
/// is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// The machine and GPU side of a recording, in one line.
pub fn setting(meta: &Meta) -> String {
    let gpu = meta.gpus.first().map_or_else(|| "no GPU".to_owned(), |gpu| gpu.name.clone());
    let cupti = meta.gpu_processes.first().map_or_else(
        || "no CUPTI".to_owned(),
        |process| format!("CUPTI API version {}", process.cupti_version),
    );
    format!("Linux {}, {} CPUs, GPU: {gpu}, {cupti}, gtrace {}", meta.kernel, meta.cpus, meta.gtrace_version)
}

/// Writes a page.
///
/// # Errors
/// It cannot be written.
pub fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_017), (2000, 3, 1));
        assert_eq!(civil(20_453), (2025, 12, 31));
    }
}
