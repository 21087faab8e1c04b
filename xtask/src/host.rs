//! The machine: is this root, is there apt.

use std::process::Command;

use crate::process;

/// Whether this process may install packages and load eBPF programs.
pub fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).as_deref() == Some("0")
}

/// `apt-get` with the rights to install: as root, or by a sudo that asks no password. Nothing where neither is.
pub fn apt_get() -> Option<Command> {
    process::which("apt-get")?;
    let mut command = if is_root() {
        Command::new("apt-get")
    } else {
        process::output(Command::new("sudo").args(["-n", "true"]))?;
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "apt-get"]);
        sudo
    };
    command.env("DEBIAN_FRONTEND", "noninteractive");
    Some(command)
}

/// Whether a Debian package is installed.
pub fn has_package(name: &str) -> bool {
    let status = process::output(Command::new("dpkg-query").args(["-W", "-f=${Status}", name]));
    status.is_some_and(|status| status.ends_with("ok installed"))
}

/// Whether apt can install a package.
pub fn is_offered(name: &str) -> bool {
    let policy = process::output(Command::new("apt-cache").args(["policy", name])).unwrap_or_default();
    policy
        .lines()
        .any(|line| line.trim().strip_prefix("Candidate: ").is_some_and(|version| version != "(none)"))
}
