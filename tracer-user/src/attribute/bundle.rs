//! The attribution of a bundle.

/// The attribution of a bundle failed.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {}
/// Stub until the store is there.
pub fn analyze_bundle() {}
