//! What the GPU side hands out.

use crate::store::schema::{ClockSample, Collective, CudaApi, CudaOverhead, CudaSync, GpuOp, Loss, Marker};

/// A row of one of the tables that the GPU side fills.
#[derive(Clone, Debug, PartialEq)]
pub enum GpuRow {
    /// Work of the device.
    Op(GpuOp),
    /// A call of the CUDA API.
    Api(CudaApi),
    /// A synchronisation.
    Sync(CudaSync),
    /// CUPTI's own cost.
    Overhead(CudaOverhead),
    /// A marked range.
    Marker(Marker),
    /// A collective, after its kernel.
    Collective(Collective),
    /// A reading of another clock.
    Clock(ClockSample),
    /// Something that is missing.
    Loss(Loss),
}
