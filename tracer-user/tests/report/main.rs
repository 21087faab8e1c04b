//! The report and the explanation of a gap, from bundles made by hand through the store.

mod golden;
mod scene;
mod scenes;
mod sums;
