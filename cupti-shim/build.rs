//! Link options of the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |key: &str, value: &str| std::env::var(key).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        // CUPTI keeps pointers to our call-backs for ever: once loaded, always loaded.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
        // Before glibc 2.34 threads and dlopen lived in libraries of their own, which must be in our scope there (see
        // `src/old_glibc.rs`). Later ones keep them as empty files.
        println!(
            "cargo:rustc-cdylib-link-arg=-Wl,--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,--as-needed"
        );
    }
}
