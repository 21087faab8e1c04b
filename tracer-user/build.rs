//! Embeds the eBPF object into the library, where one has been built.
//!
//! `GTRACE_BPF_OBJECT` names it; without that variable it is `target/bpf/gtrace.bpf.o`, where `cargo xtask build` puts
//! it. With neither, nothing is embedded and recording says so at run time: a plain `cargo build` needs no eBPF
//! toolchain.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=GTRACE_BPF_OBJECT");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("bpf_object.rs");
    let source = match object() {
        // `object` needs the alignment of an ELF header: a plain `include_bytes!` has none.
        Some(path) => {
            let path =
                path.to_str().expect("the path of the eBPF object is UTF-8").escape_default().to_string();
            format!(
                "#[repr(C, align(8))]\nstruct Aligned<T: ?Sized>(T);\n\
                 static ALIGNED: &Aligned<[u8]> = &Aligned(*include_bytes!(\"{path}\"));\n\
                 static OBJECT: Option<&[u8]> = Some(&ALIGNED.0);\n"
            )
        }
        None => "static OBJECT: Option<&[u8]> = None;\n".to_owned(),
    };
    fs::write(&out, source).unwrap_or_else(|error| panic!("cannot write {}: {error}", out.display()));
}

fn object() -> Option<PathBuf> {
    if let Some(named) = env::var_os("GTRACE_BPF_OBJECT") {
        let path = PathBuf::from(named);
        println!("cargo::rerun-if-changed={}", path.display());
        assert!(path.is_file(), "GTRACE_BPF_OBJECT={} is no file", path.display());
        return Some(path);
    }
    let manifest = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let folder = Path::new(&manifest).parent()?.join("target").join("bpf");
    // The folder is watched rather than the file: a watched path that does not exist would make every build a full one.
    if fs::create_dir_all(&folder).is_ok() {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    let path = folder.join("gtrace.bpf.o");
    path.is_file().then_some(path)
}
