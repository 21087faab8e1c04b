//! The shim and the GPU side of the recorder, unmodified, on the simulated CUDA stack: a client process launches, copies
//! and waits; what arrives here must be what it did.
//!
//! The client is this same binary (`client.rs`), started again with another environment.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client;
mod faults;
mod hostile;
mod life;
mod matrix;
mod modes;
mod nccl;
mod real_nccl;
mod record;
mod target;

fn main() {
    if let Ok(work) = std::env::var(client::WORK) {
        return client::run(&work);
    }
    let tests: Vec<(&str, fn())> = [
        record::TESTS,
        faults::TESTS,
        life::TESTS,
        modes::TESTS,
        hostile::TESTS,
        matrix::TESTS,
        nccl::TESTS,
        real_nccl::TESTS,
    ]
    .concat();
    let mut wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if std::env::args().any(|argument| argument == "--list") {
        for (name, _) in &tests {
            println!("{name}: test");
        }
        return;
    }
    if wanted.is_empty() {
        wanted.push(String::new());
    }
    let mut failed = 0;
    for (name, test) in tests.iter().filter(|(name, _)| wanted.iter().any(|part| name.contains(part))) {
        // One after the other: the clients want a CPU each.
        let result = std::panic::catch_unwind(test);
        println!("test {name} ... {}", if result.is_ok() { "ok" } else { "FAILED" });
        failed += usize::from(result.is_err());
    }
    assert_eq!(failed, 0, "tests failed");
}
