//! A CPU quota that holds the recorded program back is seen by its own counters, and only then.

use std::path::Path;

use gtrace::store::Bundle;
use gtrace::store::schema::Process;

use crate::group::GroupFolder;
use crate::gtrace::{Target, expect_status, gtrace, rows};

const BUSY: &str = "print('ready', flush=True)\nwhile True: pass\n";

/// A control group of the CPU controller, removed at the end.
struct Group(GroupFolder);

impl Group {
    /// In the hierarchy of whichever version has the controller here.
    fn make() -> Self {
        let name = format!("gtrace-test-{}", std::process::id());
        let v1 = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"].map(Path::new);
        if let Some(root) = v1.into_iter().find(|root| root.join("cpu.cfs_quota_us").exists()) {
            std::fs::create_dir(root.join(&name)).unwrap();
            return Self(GroupFolder(root.join(name)));
        }
        let root = Path::new("/sys/fs/cgroup");
        // Fails where it is given to the groups below already, or where that is not allowed: then the next line does.
        let _ = std::fs::write(root.join("cgroup.subtree_control"), "+cpu");
        std::fs::create_dir(root.join(&name)).unwrap();
        Self(GroupFolder(root.join(name)))
    }

    fn take(&self, pid: i32) {
        std::fs::write(self.0.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    /// A fifth of a CPU.
    fn limit(&self) {
        let v1 = self.0.0.join("cpu.cfs_quota_us");
        if v1.exists() {
            std::fs::write(v1, "20000").unwrap();
        } else {
            std::fs::write(self.0.0.join("cpu.max"), "20000 100000").unwrap();
        }
    }
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_a_quota_is_seen_when_it_holds_the_program_back() {
    let group = Group::make();
    let target = Target::python(BUSY);
    group.take(target.pid());
    let folder = tempfile::tempdir().unwrap();
    let record = |name: &str| {
        let bundle = folder.path().join(name);
        let output = gtrace()
            .args(["attach", &target.pid().to_string(), "--no-report", "--duration", "2s", "-o"])
            .arg(&bundle)
            .output()
            .unwrap();
        // No GPU side.
        expect_status(&output, 3);
        let processes: Vec<Process> = rows(&bundle);
        let own = processes.iter().find(|process| process.pid.0 == target.pid()).unwrap().clone();
        let throttled = Bundle::open(&bundle).unwrap().meta().cpu_throttled_ns.clone();
        throttled.get(own.cgroup.as_deref().unwrap_or_default()).copied()
    };
    assert_eq!(record("free.gtrace"), None, "it has no quota");
    group.limit();
    let throttled = record("held-back.gtrace").expect("its quota is used up all the time");
    assert!(throttled > 500_000_000, "{throttled} ns of 2 s, of which it may run a fifth");
}
