//! The bundle: what a recording is on disk.
//!
//! A bundle is a folder. Each table of [`schema`] is a folder in it with Parquet files ("parts") `part-00001.parquet` …;
//! `meta.json` says what was recorded and how. [`BundleWriter`] grows it while recording, [`Bundle`] reads it and takes the
//! results of the analysis.

pub mod bundle;
pub mod column;
pub mod docs;
mod encode;
mod error;
mod folder;
pub mod meta;
mod part;
pub mod schema;
pub mod table;
mod views;
pub mod writer;

pub use bundle::Bundle;
pub use error::StoreError;
pub use folder::Owner;
pub use meta::Meta;
pub use table::Table;
pub use writer::BundleWriter;
