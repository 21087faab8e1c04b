//! gtrace answers one question exactly: why did this GPU not go on working?
//!
//! The modules follow the data: `record` turns the host and the GPU into typed [`event`]s, [`store`] keeps them as
//! Parquet tables, `attribute` gives every gap its cause, [`report`] shows it, and [`cli`] is the command line.
pub mod attribute;
pub mod cli;
pub mod collective;
pub mod event;
pub mod export;
pub mod import;
#[cfg(feature = "record")]
pub mod record;
pub mod report;
pub mod store;
#[cfg(feature = "record")]
pub mod top;
