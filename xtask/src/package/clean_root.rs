//! The packages where nothing of the build is: a minimal Debian, made by mmdebstrap or copied from a folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{host, process};

/// The oldest distribution that the program is promised to run on.
const SUITE: &str = "bookworm";

/// What the packages must do there: run, find the shim and everything beside it, record a command on this kernel, and
/// make its report as text and as a page.
const TRIAL: &str = r#"
set -eu
gtrace --version
gtrace doctor > /tmp/doctor.txt || true
grep -q 'libgtrace_cupti.so' /tmp/doctor.txt || { cat /tmp/doctor.txt; echo 'doctor does not find the shim'; exit 1; }
prefix=$(dirname "$(dirname "$(command -v gtrace)")")
for file in share/man/man1/gtrace.1 share/man/man1/gtrace-report.1 share/bash-completion/completions/gtrace \
            share/zsh/site-functions/_gtrace share/doc/gtrace/LICENSE-MIT share/doc/gtrace/docs/causes.md; do
    test -s "$prefix/$file" || { echo "$prefix/$file is missing"; exit 1; }
done
bash -n "$prefix/share/bash-completion/completions/gtrace"
cd /tmp
rm -rf trial.gtrace trial.html
status=0
gtrace run -o trial.gtrace -- sh -c 'for i in 1 2 3 4 5; do cat /etc/passwd > /dev/null; sleep 0.05; done' || status=$?
test "$status" = 0 || { echo "gtrace run ended with $status"; exit 1; }
gtrace report trial.gtrace
gtrace report trial.gtrace -f html -o trial.html
grep -q 'No GPU work was seen\|Nothing is known of the GPU' trial.html
"#;

/// Installs and tries both packages.
///
/// # Errors
/// There is no clean root, or a package does not work in it.
pub fn check(deb: &Path, tarball: &Path, root: Option<&Path>, folder: &Path) -> Result<()> {
    if !host::is_root() {
        bail!("--check makes root file systems and records in them: run it as root");
    }
    for (what, file) in [("deb", deb), ("tarball", tarball)] {
        let clean = folder.join(format!("root-{what}"));
        remove(&clean)?;
        make(&clean, root)?;
        std::fs::copy(file, clean.join("tmp/package")).context("cannot copy the package into the root")?;
        let install = if what == "deb" {
            "dpkg -i /tmp/package"
        } else {
            "tar -xzf /tmp/package --strip-components=1 -C /usr/local"
        };
        let script = format!("set -eu\n{install}\n{TRIAL}");
        std::fs::write(clean.join("tmp/trial.sh"), script).context("cannot write into the root")?;
        let tried = process::run(&mut inside(&clean));
        remove(&clean)?;
        tried.with_context(|| format!("the {what} does not work in a clean {SUITE}"))?;
        println!("the {what} works in a clean root file system");
    }
    Ok(())
}

/// The trial in the root, with mounts of its own that end with it.
fn inside(root: &Path) -> Command {
    let mounts = r#"set -eu
mount -t proc proc "$0/proc"
mount --rbind /sys "$0/sys"
mount --rbind /dev "$0/dev"
exec chroot "$0" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash /tmp/trial.sh
"#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "bash", "-c", mounts]).arg(root);
    command
}

fn make(clean: &Path, from: Option<&Path>) -> Result<()> {
    if let Some(from) = from {
        return process::run(Command::new("cp").args(["-a", "--reflink=auto"]).arg(from).arg(clean));
    }
    if process::which("mmdebstrap").is_none() {
        bail!("--check needs mmdebstrap (`apt-get install mmdebstrap`), or a root file system in --root");
    }
    process::run(Command::new("mmdebstrap").args(["--quiet", "--variant=minbase", SUITE]).arg(clean))
}

fn remove(folder: &PathBuf) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    // Nothing is mounted in it: mounts were private to the shell that has ended.
    std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}
