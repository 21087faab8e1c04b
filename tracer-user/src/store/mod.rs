//! The bundle: what a recording is on disk.

pub mod column;
pub mod meta;
pub mod schema;
pub mod table;
