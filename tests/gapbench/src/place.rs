//! Where the programs are, and where results go.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// Paths of this build.
#[derive(Clone, Debug, clap::Args)]
pub struct Place {
    /// Folder with gtrace, the workloads and the shim
    #[arg(long, default_value = "target/release")]
    pub release_dir: PathBuf,
    /// Folder with the simulated CUDA stack; what LD_LIBRARY_PATH says is used where it does not exist
    #[arg(long, default_value = "target/sim")]
    pub sim_path: PathBuf,
    /// Use this machine's GPU instead of the simulated one
    #[arg(long)]
    pub real_gpu: bool,
    /// Folder of the written tables
    #[arg(long, default_value = "docs")]
    pub docs: PathBuf,
    /// Folder for recordings and test files, on a real disk
    #[arg(long, default_value = "target/gapbench")]
    pub work: PathBuf,
}

impl Place {
    /// A program of the build.
    pub fn program(&self, name: &str) -> Command {
        self.environment(Command::new(self.release_dir.join(name)))
    }

    /// Another program, with the simulated CUDA stack unless the machine's GPU is wanted.
    pub fn environment(&self, mut command: Command) -> Command {
        if !self.real_gpu {
            command.env("LD_LIBRARY_PATH", self.library_path()).env("SIMCUDA_DEVICES", "4");
        }
        command
    }

    /// Lets the simulated devices of a program be those of all others that are started so.
    pub fn shared<'command>(&self, command: &'command mut Command) -> &'command mut Command {
        command.env("SIMCUDA_SHARED", self.work.join("devices"))
    }

    /// The shim.
    pub fn shim(&self) -> PathBuf {
        let shim = self.release_dir.join("libgtrace_cupti.so");
        std::path::absolute(&shim).unwrap_or(shim)
    }

    /// Folder for files that are read cold.
    pub fn data(&self) -> PathBuf {
        let data = self.work.join("data");
        std::path::absolute(&data).unwrap_or(data)
    }

    fn library_path(&self) -> OsString {
        let mut path =
            std::path::absolute(&self.sim_path).unwrap_or_else(|_| self.sim_path.clone()).into_os_string();
        if let Some(present) = std::env::var_os("LD_LIBRARY_PATH").filter(|present| !present.is_empty()) {
            path.push(":");
            path.push(present);
        }
        path
    }
}
