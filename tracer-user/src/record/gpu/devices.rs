//! One number for each GPU of the recording.

use std::collections::HashMap;

use tracer_abi::shim::DeviceRecord;

use crate::event::{DeviceId, Pid};
use crate::store::meta::GpuInfo;

/// GPUs of a recording that are kept. A process that invents more gets the last number.
const MOST: usize = 1024;

/// The GPUs of the recording. Each process counts its own from 0 (`CUDA_VISIBLE_DEVICES` reorders); the UUID makes them
/// one, so that two processes on one GPU share its timeline.
#[derive(Default)]
pub(super) struct Devices {
    gpus: Vec<GpuInfo>,
    by_uuid: HashMap<[u8; 16], DeviceId>,
    by_process: HashMap<(Pid, u32), DeviceId>,
}

impl Devices {
    /// Takes what a process's CUPTI says of a device.
    pub(super) fn describe(&mut self, pid: Pid, record: &DeviceRecord, name: &[u8]) {
        if self.by_process.contains_key(&(pid, record.device)) {
            return;
        }
        let known = self.by_uuid.get(&record.uuid).copied().filter(|_| record.uuid != [0; 16]);
        let device = known.unwrap_or_else(|| {
            let uuid = if record.uuid == [0; 16] { String::new() } else { hex(&record.uuid) };
            let name = String::from_utf8_lossy(name).into_owned();
            let device = self.add(name, uuid, record.multiprocessors, record.memory_bytes);
            self.by_uuid.insert(record.uuid, device);
            device
        });
        self.by_process.insert((pid, record.device), device);
    }

    /// The number of a process's device, once it was described.
    pub(super) fn get(&self, pid: Pid, device: u32) -> Option<DeviceId> {
        self.by_process.get(&(pid, device)).copied()
    }

    /// The number of a process's device; a new one if it was never described.
    pub(super) fn get_or_invent(&mut self, pid: Pid, device: u32) -> DeviceId {
        if let Some(known) = self.get(pid, device) {
            return known;
        }
        let invented = self.add(String::new(), String::new(), 0, 0);
        self.by_process.insert((pid, device), invented);
        invented
    }

    /// All of them.
    pub(super) fn all(&self) -> &[GpuInfo] {
        &self.gpus
    }

    fn add(&mut self, name: String, uuid: String, multiprocessors: u32, memory_bytes: u64) -> DeviceId {
        if self.gpus.len() < MOST {
            let device = self.gpus.len() as i32;
            self.gpus.push(GpuInfo { device, name, uuid, multiprocessors, memory_bytes });
        }
        DeviceId(self.gpus.len() as i32 - 1)
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // a String takes everything
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(device: u32, uuid: u8) -> DeviceRecord {
        DeviceRecord {
            uuid: [uuid; 16],
            memory_bytes: 1 << 30,
            device,
            multiprocessors: 132,
            capability_major: 9,
            capability_minor: 0,
            copy_engines: 3,
            is_mig: 0,
            name_length: 3,
            reserved: 0,
        }
    }

    #[test]
    fn one_gpu_has_one_number_however_processes_count() {
        let mut devices = Devices::default();
        devices.describe(Pid(1), &record(0, 0xA), b"GPU");
        devices.describe(Pid(1), &record(1, 0xB), b"GPU");
        devices.describe(Pid(2), &record(0, 0xB), b"GPU");
        assert_eq!(devices.get(Pid(2), 0), devices.get(Pid(1), 1));
        assert_ne!(devices.get(Pid(1), 0), devices.get(Pid(1), 1));
        assert_eq!(devices.all().len(), 2);
        assert_eq!(devices.all()[0].uuid, "0a".repeat(16));
    }

    #[test]
    fn devices_that_were_never_described_stay_apart() {
        let mut devices = Devices::default();
        assert_ne!(devices.get_or_invent(Pid(1), 0), devices.get_or_invent(Pid(2), 0));
        assert_eq!(devices.get_or_invent(Pid(1), 0), devices.get_or_invent(Pid(1), 0));
        for device in 0..3 * MOST as u32 {
            devices.get_or_invent(Pid(3), device);
        }
        assert_eq!(devices.all().len(), MOST);
    }
}
