//! The programs load on this kernel.

use gtrace::record::probes::probe_check;

#[test]
fn every_probe_of_this_kernel_attaches() {
    let statuses = probe_check().expect("the programs load");
    for status in &statuses {
        println!("{} {} {:?}", status.attached, status.name, status.reason);
    }
    let failed: Vec<_> = statuses.iter().filter(|status| !status.attached).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}
