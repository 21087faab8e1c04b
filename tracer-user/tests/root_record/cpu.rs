//! What keeps a thread from its CPU beside other tasks: its own mask, and interrupts.

use std::path::{Path, PathBuf};

use gtrace::store::schema::{Interrupt, OffCpu, Process};

use crate::gtrace::{expect_status, rows, run_python};

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_the_mask_of_a_thread_that_waits_for_a_cpu_is_told() {
    if cpus() < 2 {
        eprintln!("not run: this machine has one CPU");
        return;
    }
    // Two processes on one CPU; the parent tells itself apart by what it may run on before.
    let program = r"
import os, time
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
child = os.fork()
end = time.time() + 1
while time.time() < end: pass
if child: os.waitpid(child, 0)
";
    let folder = tempfile::tempdir().unwrap();
    let (bundle, output) = run_python(folder.path(), program, &[]);
    expect_status(&output, 0);
    let own: Vec<i32> = rows::<Process>(&bundle)
        .iter()
        .filter(|process| !process.outside && !process.kernel)
        .map(|process| process.pid.0)
        .collect();
    let waits: Vec<OffCpu> = rows(&bundle);
    let pinned = waits.iter().filter(|wait| own.contains(&wait.pid.0) && wait.allowed_cpus == Some(1));
    assert!(pinned.clone().count() > 50, "{} waits with a mask of one CPU", pinned.count());
    for wait in &waits {
        let (Some(woken), Some(on)) = (wait.woken_ns, wait.on_ns) else { continue };
        let runnable = on - woken;
        assert!(wait.forbidden_idle_ns.is_none_or(|idle| idle <= runnable), "{wait:?}");
        assert!(wait.allowed_cpus.is_none_or(|allowed| allowed >= 1), "{wait:?}");
    }
}

/// The CPUs to which a network device's packets are handed, put back at the end.
struct Steering(PathBuf, String);

impl Steering {
    fn to_last_cpu() -> Option<Self> {
        let path = Path::new("/sys/class/net/lo/queues/rx-0/rps_cpus").to_owned();
        let before = std::fs::read_to_string(&path).ok()?;
        let mask = format!("{:x}", 1_u64 << (cpus() - 1).min(31));
        std::fs::write(&path, mask).ok()?;
        Some(Self(path, before))
    }
}

impl Drop for Steering {
    fn drop(&mut self) {
        let _ = std::fs::write(&self.0, &self.1);
    }
}

#[test]
#[ignore = "loads eBPF programs, which needs root"]
fn root_interrupts_that_take_long_from_user_code_are_told() {
    if cpus() < 2 {
        eprintln!("not run: this machine has one CPU");
        return;
    }
    let Some(_steering) = Steering::to_last_cpu() else {
        eprintln!("not run: packets cannot be steered on this kernel (CONFIG_RPS)");
        return;
    };
    // A process on the first CPU sends; the packets are delivered on the last one, where another computes.
    let program = r"
import os, socket, time
last = os.cpu_count() - 1
end = time.time() + 2
if os.fork() == 0:
    os.sched_setaffinity(0, {0})
    to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    to.bind(('127.0.0.1', 0))
    by = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    by.connect(to.getsockname())
    while time.time() < end: by.send(bytes(1400))
    os._exit(0)
os.sched_setaffinity(0, {last})
while time.time() < end: pass
os.wait()
print(os.getpid())
";
    let folder = tempfile::tempdir().unwrap();
    let (bundle, output) = run_python(folder.path(), program, &[]);
    expect_status(&output, 0);
    let pid: i32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    let interrupts: Vec<Interrupt> = rows(&bundle);
    let network = interrupts.iter().filter(|one| one.pid.0 == pid && &*one.name == "NET_RX").count();
    assert!(network > 5, "{network} of {interrupts:?}");
    let waits: Vec<OffCpu> = rows(&bundle);
    for one in interrupts.iter().filter(|one| one.pid.0 == pid) {
        assert!(one.start_ns < one.end_ns, "{one:?}");
        // It ran while it was interrupted.
        let off = waits.iter().find(|wait| {
            wait.tid == one.tid && wait.off_ns < one.start_ns && wait.on_ns.is_none_or(|on| on > one.end_ns)
        });
        assert!(off.is_none(), "{one:?} while off the CPU: {off:?}");
    }
}
