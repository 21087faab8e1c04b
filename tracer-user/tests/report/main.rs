//! The report and the explanation of a gap, from bundles made by hand through the store.

mod against;
mod golden;
mod html;
mod scene;
mod scenes;
mod sums;
