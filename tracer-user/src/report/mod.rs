//! What a recording says: the report, and the explanation of one gap.
//!
//! [`load`] reads a bundle's tables once, in order of time, into tallies (one file each: devices, ledger, gaps, disks,
//! CPU time, losses) and makes a [`model::Report`] of them; [`text`] prints it for people, [`html`]
//! as a page for a browser, `serde` for programs.

pub mod advice;
pub mod compare;
mod cpu_time;
mod devices;
mod disks;
pub mod escape;
pub mod explain;
pub mod findings;
mod functions;
mod gap_list;
mod gil;
mod histogram;
pub mod html;
pub mod json;
mod late_ranks;
pub mod ledger;
pub mod load;
pub mod model;
pub mod names;
pub mod questions;
pub mod steps;
pub mod table;
pub mod text;
mod trust;
mod union;
pub mod what_if;
pub mod wording;
