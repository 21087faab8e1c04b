//! The programs load on this kernel.

use gtrace::record::probes::probe_check;

#[test]
#[ignore = "loads eBPF programs: needs root"]
fn every_probe_of_this_kernel_attaches() {
    let statuses = probe_check().expect("the programs load");
    let failed: Vec<_> = statuses.iter().filter(|status| !status.attached).collect();
    assert!(statuses.len() > 20 && failed.is_empty(), "{failed:#?}");
}
