//! The simulated CUPTI.

/// Exported functions that the CUPTI of a CUDA version does not have.
pub fn absent_in(_version: &str) -> Vec<&'static str> {
    Vec::new()
}
