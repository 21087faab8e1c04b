//! gtrace.
pub mod event;
#[cfg(feature = "record")]
pub mod record;
pub mod store;
