//! The `gtrace` command.
fn main() {}
