//! CPU time that the hypervisor took from this machine: `steal` of `/proc/stat`.

use super::read::read_bounded;
use crate::event::DurationNs;

/// The first line is wanted alone.
const BYTES: usize = 4 << 10;

/// Of all CPUs since the machine began; 0 where the hypervisor does not tell.
#[must_use]
pub fn stolen() -> DurationNs {
    // SAFETY: no preconditions.
    let ticks_a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let text = read_bounded("/proc/stat", BYTES).unwrap_or_default();
    parse(&text, ticks_a_second)
}

/// `cpu  user nice system idle iowait irq softirq steal guest guest_nice`, in ticks.
fn parse(text: &[u8], ticks_a_second: i64) -> DurationNs {
    let text = String::from_utf8_lossy(text);
    let ticks = text
        .lines()
        .next()
        .filter(|line| line.starts_with("cpu "))
        .and_then(|line| line.split_ascii_whitespace().nth(8)?.parse::<i64>().ok())
        .unwrap_or(0);
    DurationNs(ticks.saturating_mul(1_000_000_000 / ticks_a_second.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_number() {
        let text = b"cpu  1 2 3 4 5 6 7 80 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(parse(text, 100), DurationNs(800_000_000));
        assert_eq!(parse(b"cpu  1 2 3", 100), DurationNs(0));
        assert_eq!(parse(b"", 0), DurationNs(0));
        assert!(stolen() >= DurationNs(0));
    }
}
