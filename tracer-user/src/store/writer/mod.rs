//! Writing a bundle while the recording runs.
//!
//! Rows collect in one buffer per table. A buffer that is full, or whose oldest row waited long enough, goes as a whole to a
//! thread that writes it as a part. The caller, who drains the kernel's rings, so never waits for the disk, unless the disk
//! stays behind for [`SealPolicy::queued`] rounds: then it waits, the rings fill and count what they drop. Memory is bounded
//! by `(queued + 2) × rows` rows per table. With [`SealPolicy::keep_ns`] the disk is bounded, too: old parts go.

mod buffer;
mod compact;
mod rotation;
mod sealer;

use std::any::TypeId;
use std::collections::HashMap;
use std::path::Path;

use super::error::StoreError;
use super::folder::{Folder, Owner};
use super::meta::Meta;
use super::schema::{TableVisitor, visit_tables};
use super::table::Table;
use crate::event::MonoNs;
use buffer::{AnyBuffer, Batch, Buffer};
use sealer::Sealer;

/// When rows are written.
#[derive(Clone, Copy, Debug)]
pub struct SealPolicy {
    /// A table's rows are written when there are so many.
    pub rows: usize,
    /// Or when the oldest waited so long, in ns.
    pub age_ns: i64,
    /// Rounds of writing that may wait for the disk before the caller does.
    pub queued: usize,
    /// Parts whose rows had all ended so long ago are removed; `None`: none ever is.
    pub keep_ns: Option<i64>,
}

impl Default for SealPolicy {
    /// 64 Ki rows: one row group. 4 s: what a reader beside the recording lags behind, and what a `kill -9` costs.
    fn default() -> Self {
        Self { rows: 64 * 1024, age_ns: 4_000_000_000, queued: 4, keep_ns: None }
    }
}

/// A bundle that is being recorded.
///
/// Dropped without [`Self::finish`], it still writes the rows that it has; `meta.json` then says `running`, as after a
/// `kill -9`.
pub struct BundleWriter {
    policy: SealPolicy,
    buffers: HashMap<TypeId, Box<dyn AnyBuffer>>,
    meta: Meta,
    sealer: Sealer,
    /// When parts were last looked through for some to remove.
    turned: MonoNs,
}

/// Parts are looked through for some to remove so often.
const TURN_NS: i64 = 1_000_000_000;

impl BundleWriter {
    /// Makes the folder `dir` with every table in it, empty; folder and files are readable by `owner` alone (`None`: by the
    /// caller). Where the recorder runs through `sudo`, `owner` is the user who called it.
    ///
    /// # Errors
    /// `dir` exists, cannot be made, or its disk is full. Nothing is left behind then.
    pub fn create(dir: &Path, meta: Meta, owner: Option<Owner>) -> Result<Self, StoreError> {
        Self::create_with(dir, meta, owner, SealPolicy::default())
    }

    /// The same with another policy.
    ///
    /// # Errors
    /// The same.
    pub fn create_with(
        dir: &Path,
        meta: Meta,
        owner: Option<Owner>,
        policy: SealPolicy,
    ) -> Result<Self, StoreError> {
        let folder = Folder::create(dir, owner).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => StoreError::Exists(dir.into()),
            _ => StoreError::io("create", dir, error),
        })?;
        let mut tables = EmptyTables(Vec::new());
        visit_tables(&mut tables);
        let sealer = Sealer::start(folder, &meta, tables.0, &policy).inspect_err(|_| {
            // Made a moment ago and still the caller's own, so nobody else's files are in it.
            let _ = std::fs::remove_dir_all(dir);
        })?;
        Ok(Self { policy, buffers: HashMap::new(), meta, sealer, turned: MonoNs::default() })
    }

    /// Adds a row.
    pub fn push<T: Table>(&mut self, row: T) {
        let buffer = self.buffer::<T>();
        buffer.rows.push(row);
        if buffer.rows.len() >= self.policy.rows {
            self.seal_table::<T>();
        }
    }

    /// Adds rows.
    pub fn append<T: Table>(&mut self, rows: Vec<T>) {
        let most = self.policy.rows.max(1);
        let mut rows = rows.into_iter();
        loop {
            let buffer = self.buffer::<T>();
            let room = most.saturating_sub(buffer.rows.len());
            buffer.rows.extend(rows.by_ref().take(room));
            if buffer.rows.len() < most {
                return;
            }
            self.seal_table::<T>();
        }
    }

    /// Replaces the rows of the last snapshot of this table: rows that hold for now and are not final, such as the threads
    /// that live at the moment. So a bundle whose recorder was killed has them, too. Whoever ends the recording gives the
    /// final rows to [`Self::append`] and an empty snapshot.
    pub fn snapshot<T: Table>(&mut self, rows: Vec<T>) {
        self.sealer.snapshot(Box::new(buffer::Rows(rows)));
    }

    /// What `meta.json` will say from the next sealing on. Rows and the writer's own losses are counted by the writer.
    pub fn meta_mut(&mut self) -> &mut Meta {
        &mut self.meta
    }

    /// Rows that wait to be written.
    #[must_use]
    pub fn buffered_rows(&self) -> usize {
        self.buffers.values().map(|buffer| buffer.len()).sum()
    }

    /// Sends what is due to the disk. The recorder's loop calls it at least once a second.
    ///
    /// # Errors
    /// An earlier part could not be written. The bundle takes nothing any more (rows given to it are counted as lost); the
    /// caller ends the recording with [`Self::finish`].
    pub fn seal_due(&mut self, now: MonoNs) -> Result<(), StoreError> {
        let age = self.policy.age_ns;
        let due: Vec<_> = self.buffers.values_mut().filter_map(|buffer| buffer.take_due(now, age)).collect();
        if !due.is_empty() {
            self.sealer.send(due, &self.meta);
        }
        if self.policy.keep_ns.is_some() && (now - self.turned).0 >= TURN_NS {
            self.turned = now;
            self.sealer.turn(now, &self.meta);
        }
        self.sealer.failure().map_or(Ok(()), Err)
    }

    /// Writes everything given so far and waits until it is on the disk.
    ///
    /// # Errors
    /// As for [`Self::seal_due`].
    pub fn seal_all(&mut self) -> Result<(), StoreError> {
        self.send_all();
        self.sealer.wait();
        self.sealer.failure().map_or(Ok(()), Err)
    }

    /// Writes the rest and the final `meta.json`, and returns that, with rows and losses counted. Tables in many small
    /// parts are put together.
    ///
    /// # Errors
    /// Something could not be written, now or before. The bundle is readable all the same: what was sealed stays, and
    /// `meta.json` and `losses` tell (from space that was set aside for it) how many rows of which table are missing.
    pub fn finish(mut self, meta: Meta) -> Result<Meta, StoreError> {
        self.meta = meta;
        self.send_all();
        self.sealer.finish(&self.meta)
    }

    fn buffer<T: Table>(&mut self) -> &mut Buffer<T> {
        let buffer =
            self.buffers.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(Buffer::<T>::default()));
        #[allow(clippy::expect_used, reason = "the key is the type's own id")]
        buffer.as_any().downcast_mut().expect("a buffer is stored under its own type")
    }

    fn seal_table<T: Table>(&mut self) {
        if let Some(batch) = self.buffer::<T>().take() {
            self.sealer.send(vec![batch], &self.meta);
        }
    }

    fn send_all(&mut self) {
        let rest: Vec<_> = self.buffers.values_mut().filter_map(|buffer| buffer.take()).collect();
        if !rest.is_empty() {
            self.sealer.send(rest, &self.meta);
        }
    }
}

impl Drop for BundleWriter {
    fn drop(&mut self) {
        self.send_all();
    }
}

struct EmptyTables(Vec<Box<dyn Batch>>);

impl TableVisitor for EmptyTables {
    fn visit<T: Table>(&mut self) {
        self.0.push(Box::new(buffer::Rows::<T>(Vec::new())));
    }
}
