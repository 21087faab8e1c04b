//! For tests: dies at a named place, as if killed there.

/// Names the place.
const VARIABLE: &str = "GTRACE_INJECT_FAULT";

/// Kills this program with SIGKILL if the test asked for this place.
pub fn here(place: &str) {
    if std::env::var_os(VARIABLE).is_some_and(|wanted| wanted == place) {
        // SAFETY: no preconditions.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
}
