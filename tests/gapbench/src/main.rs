//! Attribution with a known answer.
fn main() {}
