//! Makes the library loadable where glibc is older than where it was linked.
//!
//! A linker binds each symbol to its newest version. `dlopen`, `pthread_create` and their like got new version nodes in
//! glibc 2.34 when they moved to libc.so.6, and `stat64`, `fstat64` and `gettid` are younger than 2.28 as symbols; the
//! standard library uses all of them. Each of these names is defined here, hidden from other libraries, as a jump to
//! the old version of the function, or as the bare system call. What remains needs glibc 2.18.
//!
//! `tests/version_nodes.rs` checks the library that was built.

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod x86_64;

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "aarch64"))]
mod aarch64;
