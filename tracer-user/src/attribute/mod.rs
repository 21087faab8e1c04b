//! Every GPU gap to its cause: pure, without input or output of its own.
//!
//! ```text
//! rows ─> timeline ─> busy, gaps ─> walk (thread_time, wake_edge, launch) ─> leaf ─> lost ─> conserve ─> segments
//!                         roles ───────────────────────────────────────────┘ stage, enabler, ledger
//! ```
//!
//! The promise: every nanosecond in which a GPU did no compute is assigned to exactly one cause, the sum is exact, and
//! what cannot be known is named as unknown with its reason. See `docs/how-it-works.md`.

pub mod block;
mod bundle;
pub mod busy;
pub mod cause;
pub mod conserve;
mod cuda_call;
mod enabler;
pub mod frame;
pub mod gaps;
mod launch;
mod leaf;
pub mod ledger;
mod lost;
pub mod names;
pub mod path;
pub mod role;
pub mod segment;
pub mod stage;
pub mod steps;
mod system_call;
mod thread_time;
pub mod timeline;
mod wait;
mod wake_edge;
mod walk;
pub mod what_if;

#[cfg(test)]
mod tests;

pub use bundle::{
    BundleError, Summary, analyze_bundle, name_roles, read_timeline, read_timeline_until, rows_to_read,
};
pub use cause::Cause;
pub use conserve::Violation;
pub use leaf::traced::STANDARD_INPUT;
pub use ledger::Ledger;
pub use stage::Stage;
pub use timeline::{Timeline, TimelineBuilder};

use block::{Block, Found};
use gaps::DeviceTime;
use role::Roles;

/// What the attribution found.
#[derive(Debug, Default)]
pub struct Analysis {
    /// What each device did.
    pub devices: Vec<DeviceTime>,
    /// The threads' roles.
    pub roles: Roles,
    /// All gaps with their causes.
    pub found: Block,
}

/// Attributes every gap of a timeline and keeps all of it. [`analyze_bundle`] keeps only what is being written.
///
/// # Errors
/// Time does not add up: a defect of gtrace, not of the recording.
pub fn analyze(timeline: &Timeline) -> Result<Analysis, Violation> {
    let found = Found::new(timeline)?;
    let whole = found.walk_all()?;
    Ok(Analysis { devices: found.devices, roles: found.roles, found: whole })
}
