//! Which processor's registers the probes of user space read: that of the machine that builds, unless
//! `CARGO_CFG_BPF_TARGET_ARCH` names another one (as aya's own build script has it).

fn main() {
    println!("cargo:rerun-if-env-changed=CARGO_CFG_BPF_TARGET_ARCH");
    println!("cargo:rustc-check-cfg=cfg(bpf_target_arch, values(\"x86_64\", \"aarch64\"))");
    let named = std::env::var("CARGO_CFG_BPF_TARGET_ARCH").ok();
    let host = std::env::var("HOST").unwrap_or_default();
    let arch = named.unwrap_or_else(|| host.split('-').next().unwrap_or_default().to_owned());
    println!("cargo:rustc-cfg=bpf_target_arch=\"{arch}\"");
}
