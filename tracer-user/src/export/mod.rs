//! Recordings for other programs. One module a format.

pub mod chrome;
