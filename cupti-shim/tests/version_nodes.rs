//! The library that was built loads where glibc is 2.28 (RHEL 8) and newer, whatever glibc it was linked with; it exports
//! one function; it is never unloaded.

#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

use object::elf::{DF_1_NODELETE, DT_FLAGS_1, DT_NEEDED, FileHeader64, STT_FUNC};
use object::read::elf::{Dyn, FileHeader, Sym};
use object::{Endianness, StringTable};

const OLDEST: (u32, u32) = (2, 28);

fn library() -> Vec<u8> {
    // target/debug/deps/version_nodes-… → target/debug
    let mut folder: PathBuf = std::env::current_exe().unwrap();
    folder.pop();
    let deps = folder.join("libgtrace_cupti.so");
    folder.pop();
    let top = folder.join("libgtrace_cupti.so");
    // `cargo test` makes the one in `deps`, `cargo build` copies it to the top: the newest is the one under test.
    let path = [deps, top]
        .into_iter()
        .filter(|path| path.exists())
        .max_by_key(|path| path.metadata().and_then(|meta| meta.modified()).ok());
    std::fs::read(path.expect("cargo builds the library for its tests")).unwrap()
}

fn parse_node(node: &str) -> Option<(u32, u32)> {
    let mut parts = node.strip_prefix("GLIBC_")?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[test]
fn no_symbol_needs_a_newer_glibc() {
    let data = library();
    let header = FileHeader64::<Endianness>::parse(&*data).unwrap();
    let endian = header.endian().unwrap();
    let sections = header.sections(endian, &*data).unwrap();
    let versions = sections.versions(endian, &*data).unwrap().expect("it needs glibc");
    let symbols = sections.symbols(endian, &*data, object::elf::SHT_DYNSYM).unwrap();

    let mut checked = 0;
    let mut exported = Vec::new();
    for (index, symbol) in symbols.enumerate() {
        let name = String::from_utf8_lossy(symbol.name(endian, symbols.strings()).unwrap()).into_owned();
        if !symbol.is_undefined(endian) {
            if symbol.st_type() == STT_FUNC {
                exported.push(name);
            }
            continue;
        }
        let version = versions.version_index(endian, index);
        let Some(version) = versions.version(version).unwrap() else { continue };
        let node = String::from_utf8_lossy(version.name());
        if let Some(node) = parse_node(&node) {
            assert!(node <= OLDEST, "{name} needs glibc {}.{}", node.0, node.1);
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} symbols of glibc were seen: the check does not see them");
    exported.sort();
    // What CUDA and NVTX call. Nothing else of the shim's can get in the way of a name of the program's.
    assert_eq!(
        exported,
        ["InitializeInjection", "InitializeInjectionNvtx2", "InitializeInjectionNvtxExtension"]
    );
}

#[test]
fn it_brings_threads_and_loader_of_an_old_glibc_and_stays() {
    let data = library();
    let header = FileHeader64::<Endianness>::parse(&*data).unwrap();
    let endian = header.endian().unwrap();
    let sections = header.sections(endian, &*data).unwrap();
    let (entries, link) = sections.dynamic(endian, &*data).unwrap().expect("it is a shared library");
    let strings: StringTable<'_> = sections.strings(endian, &*data, link).unwrap();
    let mut needed = Vec::new();
    let mut flags = 0;
    for entry in entries {
        match entry.tag(endian) {
            DT_NEEDED => {
                needed.push(String::from_utf8_lossy(entry.string(endian, strings).unwrap()).into_owned());
            }
            DT_FLAGS_1 => flags = entry.d_val(endian),
            _ => {}
        }
    }
    for library in ["libc.so.6", "libpthread.so.0", "libdl.so.2"] {
        assert!(needed.iter().any(|name| name == library), "{library} is not in {needed:?}");
    }
    assert!(!needed.iter().any(|name| name.contains("cuda") || name.contains("cupti")), "{needed:?}");
    assert_ne!(flags & u64::from(DF_1_NODELETE), 0);
}
