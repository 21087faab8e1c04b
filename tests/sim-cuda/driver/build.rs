//! The library has the SONAME of the real one, since programs look for it with `RTLD_NOLOAD` by that name, and is
//! never unmapped, since its threads live on.
fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
