//! GPU programs with planted stalls.
fn main() {}
