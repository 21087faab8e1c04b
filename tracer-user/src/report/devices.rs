//! Each GPU's time, from its ops and its gaps. The two are counted independently, so that an error in either shows.

use std::collections::BTreeMap;

use super::model::{Device, Totals};
use super::union::Union;
use crate::store::meta::GpuInfo;
use crate::store::schema::{Gap, GpuOp};

/// Collects devices.
#[derive(Debug, Default)]
pub struct DeviceTally {
    devices: BTreeMap<i32, Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    device: Device,
    any_op: Union,
    seen: bool,
}

impl DeviceTally {
    /// Counts an op; they come in order of their starts.
    pub fn op(&mut self, op: &GpuOp) {
        let entry = self.devices.entry(op.device.0).or_default();
        let (start, end) = (op.start_ns.0, op.end_ns.0.max(op.start_ns.0));
        let device = &mut entry.device;
        if entry.seen {
            device.window_start_ns = device.window_start_ns.min(start);
            device.window_end_ns = device.window_end_ns.max(end);
        } else {
            (device.window_start_ns, device.window_end_ns) = (start, end);
            entry.seen = true;
        }
        match &*op.kind {
            "memcpy" | "memset" => device.copies += 1,
            _ => device.kernels += 1,
        }
        device.bytes = device.bytes.saturating_add(op.bytes.unwrap_or(0).max(0));
        entry.any_op.add(start, end);
    }

    /// Counts a gap.
    pub fn gap(&mut self, gap: &Gap) {
        let device = &mut self.devices.entry(gap.device.0).or_default().device;
        let length = (gap.end_ns - gap.start_ns).0;
        device.gaps += 1;
        match &*gap.kind {
            "exposed_comm" => device.exposed_comm_ns += length,
            "exposed_copy" => device.exposed_copy_ns += length,
            _ => device.idle_ns += length,
        }
    }

    /// The devices with their sums. `recording` is its beginning and end.
    #[must_use]
    pub fn finish(self, gpus: &[GpuInfo], recording: (i64, i64)) -> (Vec<Device>, Totals) {
        let mut totals = Totals::default();
        let devices = self.devices.into_iter().map(|(number, entry)| {
            let Entry { mut device, any_op, .. } = entry;
            device.device = number;
            device.name =
                gpus.iter().find(|gpu| gpu.device == number).map(|gpu| gpu.name.clone()).unwrap_or_default();
            device.compute_ns = device.window_ns() - device.gap_ns();
            device.imbalance_ns = device.window_ns() - any_op.length() - device.idle_ns;
            device.edge_before_ns = (device.window_start_ns - recording.0).max(0);
            device.edge_after_ns = (recording.1 - device.window_end_ns).max(0);
            totals.window_ns += device.window_ns();
            totals.compute_ns += device.compute_ns;
            totals.gap_ns += device.gap_ns();
            totals.gaps += device.gaps;
            device
        });
        (devices.collect(), totals)
    }
}
