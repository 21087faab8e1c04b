//! What stands around the events: devices, the place in a distributed job, the clock's origin.

use serde_json::Value;

use super::cursor::Raw;
use super::text::decode;
use crate::store::meta::GpuInfo;

/// What the outer object says.
#[derive(Debug, Default)]
pub struct Header {
    /// The GPUs. Traces of other tools and of 2021 may have none.
    pub gpus: Vec<GpuInfo>,
    /// Place in the job.
    pub rank: Option<i32>,
    /// Ranks of the job.
    pub world_size: Option<i32>,
    /// Nanoseconds to add to the events' times for UTC. Since torch 2.4; before, times were UTC themselves.
    pub base_ns: i64,
    /// Host, where it is said.
    pub host: String,
}

impl Header {
    /// Takes in a member; those of no use, or of another shape, are left.
    pub fn member(&mut self, key: &[u8], value: Raw<'_>) {
        match key {
            b"deviceProperties" => self.gpus = json(value).map(|value| gpus(&value)).unwrap_or_default(),
            b"distributedInfo" => {
                let info = json(value).unwrap_or_default();
                let number =
                    |key| info.get(key).and_then(Value::as_i64).and_then(|number| i32::try_from(number).ok());
                self.rank = number("rank").filter(|&rank| rank >= 0);
                self.world_size = number("world_size").filter(|&size| size > 0);
            }
            b"baseTimeNanoseconds" => self.base_ns = value.integer().unwrap_or_default(),
            b"host_name" | b"hostname" | b"hostName" => self.host = decode(value.scalar()).into_owned(),
            _ => {}
        }
    }
}

fn json(value: Raw<'_>) -> Option<Value> {
    let Raw::Nested(bytes) = value else { return None };
    serde_json::from_slice(bytes).ok()
}

fn gpus(list: &Value) -> Vec<GpuInfo> {
    let gpu = |value: &Value| {
        let number = |key| value.get(key).and_then(Value::as_u64);
        Some(GpuInfo {
            device: i32::try_from(number("id")?).ok()?,
            name: value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            uuid: String::new(),
            multiprocessors: number("numSms").and_then(|count| u32::try_from(count).ok()).unwrap_or_default(),
            memory_bytes: number("totalGlobalMem").unwrap_or_default(),
        })
    };
    list.as_array().map(|list| list.iter().filter_map(gpu).collect()).unwrap_or_default()
}
