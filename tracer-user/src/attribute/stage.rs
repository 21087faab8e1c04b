//! What the program was at when the GPU had nothing to do: by the roles on the causal chain, the cause and the files.

use super::cause::Cause;
use super::names::Names;
use super::path::PathHop;
use super::role::Role;
use super::system_call::SystemCall;

/// A stage of a training or serving loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Stage {
    /// Reading and preparing data.
    DataLoading,
    /// Copying data to the GPU.
    H2d,
    /// Launching and running the model.
    ForwardBackward,
    /// Collectives.
    Communication,
    /// Saving state.
    Checkpoint,
    /// Waiting for or answering requests.
    Serving,
    /// Setting up.
    Startup,
    /// Something else.
    Other,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Self; 8] = [
        Self::DataLoading,
        Self::H2d,
        Self::ForwardBackward,
        Self::Communication,
        Self::Checkpoint,
        Self::Serving,
        Self::Startup,
        Self::Other,
    ];

    /// Its name in the tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DataLoading => "data_loading",
            Self::H2d => "h2d",
            Self::ForwardBackward => "forward_backward",
            Self::Communication => "communication",
            Self::Checkpoint => "checkpoint",
            Self::Serving => "serving",
            Self::Startup => "startup",
            Self::Other => "other",
        }
    }
}

/// The stage of a segment with this cause at the end of this chain; `hops` come with their thread's role.
#[must_use]
pub fn stage_of<'a>(
    names: &Names,
    cause: Cause,
    hops: impl Iterator<Item = (&'a PathHop, Option<Role>)>,
) -> Stage {
    match cause {
        Cause::CommWaitOrTransfer | Cause::CommWaitRank | Cause::CommTransfer => return Stage::Communication,
        Cause::AppNoRequest => return Stage::Serving,
        Cause::HostDataLoader => return Stage::DataLoading,
        Cause::CommInit
        | Cause::CudaInit
        | Cause::CudaModuleLoad
        | Cause::CudaJit
        | Cause::CudaGraphBuild => {
            return Stage::Startup;
        }
        _ => {}
    }
    let mut threads = 0;
    let mut saves = false;
    let mut reads = false;
    let mut to_device = false;
    for (hop, role) in hops {
        threads += usize::from(hop.tid.0 != 0);
        match role {
            Some(Role::DataLoaderWorker | Role::PinMemory) => return Stage::DataLoading,
            Some(Role::Checkpoint) => return Stage::Checkpoint,
            Some(Role::Server) => return Stage::Serving,
            Some(Role::NcclProxy) => return Stage::Communication,
            _ => {}
        }
        to_device |= names.get(hop.object).starts_with("HtoD") || names.get(hop.call).contains("HtoD");
        let on_file = names.get(hop.object).contains('/');
        match SystemCall::of(names.get(hop.call)) {
            SystemCall::Fsync => saves = true,
            SystemCall::Write if on_file => saves = true,
            SystemCall::Read | SystemCall::Metadata if on_file => reads = true,
            _ => {}
        }
    }
    match cause {
        Cause::StorageFsync
        | Cause::StorageWriteDevice
        | Cause::StorageWriteQueue
        | Cause::StorageWriteThrottled => Stage::Checkpoint,
        Cause::StorageReadDevice
        | Cause::StorageReadQueue
        | Cause::StorageReadThrottled
        | Cause::StorageMetadata
        | Cause::StorageRemote => Stage::DataLoading,
        _ if saves => Stage::Checkpoint,
        _ if reads => Stage::DataLoading,
        Cause::CopyPageable | Cause::CopyPinned if to_device => Stage::H2d,
        Cause::HostExec | Cause::HostFork => Stage::Startup,
        // The launching thread itself, on a CPU or wanting one.
        Cause::HostCpuUser
        | Cause::HostCpuKernel
        | Cause::HostWakeLatency
        | Cause::HostIrq
        | Cause::HostOperator
        | Cause::HostPython
            if threads <= 1 =>
        {
            Stage::ForwardBackward
        }
        _ if threads <= 1 && cause.code().starts_with("host.runq.") => Stage::ForwardBackward,
        _ if matches!(cause.family(), "cuda" | "gpu" | "copy") => Stage::ForwardBackward,
        _ => Stage::Other,
    }
}
