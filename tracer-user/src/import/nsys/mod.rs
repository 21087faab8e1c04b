//! Exports of Nsight Systems: SQLite databases of several versions.
//!
//! ```text
//! database (tables and columns of this version) ─> names (what numbers mean) ─> gpu, host ─> rows
//! ```

mod database;
mod gpu;
mod host;
mod names;

use std::path::Path;

use super::tables::{Tables, number_of_device};
use crate::event::{Pid, Tid};
use crate::store::meta::GpuInfo;
use database::Database;
use names::Meanings;

/// Source of records that cannot be valid.
const INVALID: &str = "import.invalid";

/// What reading an export came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The GPUs.
    pub gpus: Vec<GpuInfo>,
    /// Nanoseconds to add to times for UTC, 0 if unknown.
    pub base_ns: i64,
    /// Host, where it is said.
    pub host: String,
    /// Why something is missing, if it is.
    pub cut: Option<String>,
}

/// The process in a serialised id.
fn process_of(id: i64) -> Pid {
    Pid(((id >> 24) & 0xff_ffff) as i32)
}

/// Process and thread in a serialised id.
fn thread_of(id: i64) -> (Pid, Tid) {
    (process_of(id), Tid((id & 0xff_ffff) as i32))
}

/// Reads the database in the file `path` into `tables`.
///
/// # Errors
/// It is no export of Nsight Systems, or damaged in its first pages. A table that is damaged further on is counted among
/// the losses.
pub fn read(path: &Path, tables: &mut Tables) -> Result<Outcome, String> {
    let database = Database::open(path).map_err(|error| format!("the database cannot be read: {error}"))?;
    if !database.has("StringIds") {
        return Err(
            "it is an SQLite database, but no export of Nsight Systems: it has no table StringIds".into()
        );
    }
    let mut outcome = Outcome::default();
    let mut damage: Vec<String> = Vec::new();
    let mut check = |table: &str, result: rusqlite::Result<()>| {
        if let Err(error) = result {
            damage.push(format!("{table}: {error}"));
        }
    };
    let meanings = Meanings::read(&database, &mut check);
    check("names", host::names(&database, &meanings, tables));
    check("calls", gpu::calls(&database, &meanings, tables));
    check("kernels", gpu::kernels(&database, &meanings, tables));
    check("copies", gpu::copies(&database, &meanings, tables));
    check("memsets", gpu::memsets(&database, tables));
    check("graphs", gpu::graphs(&database, tables));
    check("synchronisations", gpu::syncs(&database, &meanings, tables));
    check("overhead", host::overheads(&database, &meanings, tables));
    check("operating system", host::os_calls(&database, &meanings, tables));
    check("scheduling", host::scheduling(&database, tables));
    check("ranges", host::ranges(&database, &meanings, tables));
    check("description", describe(&database, &mut outcome));
    if !damage.is_empty() {
        for what in &damage {
            tables.lose_everything(what);
        }
        outcome.cut = Some(format!("the database is damaged ({})", damage.join("; ")));
    }
    Ok(outcome)
}

fn describe(database: &Database, outcome: &mut Outcome) -> rusqlite::Result<()> {
    let columns = ["id", "name", "smCount", "totalMemory", "uuid"];
    database.each("TARGET_INFO_GPU", &columns, "", |row| {
        let Some(device) = row.integer(0).and_then(number_of_device) else { return };
        outcome.gpus.push(GpuInfo {
            device,
            name: row.text(1).unwrap_or_default(),
            uuid: row.text(4).unwrap_or_default().replace('-', ""),
            multiprocessors: row.integer(2).and_then(|count| u32::try_from(count).ok()).unwrap_or_default(),
            memory_bytes: row.integer(3).and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or_default(),
        });
    })?;
    database.each("TARGET_INFO_SESSION_START_TIME", &["utcEpochNs"], "LIMIT 1", |row| {
        outcome.base_ns = row.integer(0).unwrap_or_default();
    })?;
    database.each("META_DATA_EXPORT", &["name", "value"], "WHERE name = 'EXPORT_HOST'", |row| {
        outcome.host = row.text(1).unwrap_or_default();
    })
}
