//! The thread that writes parts.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::SealPolicy;
use super::buffer::{Batch, Rows};
use super::compact::compact;
use super::rotation::{Rotation, SealedPart};
use crate::event::{Interval, MonoNs, Text};
use crate::store::Bundle;
use crate::store::error::StoreError;
use crate::store::folder::Folder;
use crate::store::meta::Meta;
use crate::store::part::{part_name, seal, write_file, write_meta};
use crate::store::schema::Loss;
use crate::store::views::views_sql;

/// Set aside on the disk, and given back when it is full: enough for `meta.json` and one part of `losses`.
const RESERVE_BYTES: u64 = 256 * 1024;
const RESERVE: &str = ".reserve";
const VIEWS: &str = "views.sql";

enum Job {
    /// Parts of several tables, written together: their syncs then share one commit of the file system's journal.
    Round(Vec<Box<dyn Batch>>, Box<Meta>),
    /// Time has come to this moment, which no row that was handed over lies behind: what is too old goes.
    Turn(MonoNs, Box<Meta>),
    /// Rows that hold for now, in place of those of the last such job.
    Snapshot(Box<dyn Batch>),
    Wait(Sender<()>),
    Finish(Box<Meta>, Sender<Meta>),
}

/// The caller's end.
pub struct Sealer {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<StoreError>>>,
}

impl Sealer {
    /// Fills the new folder with empty tables and starts the thread.
    pub fn start(
        folder: Folder,
        meta: &Meta,
        tables: Vec<Box<dyn Batch>>,
        policy: &SealPolicy,
    ) -> Result<Self, StoreError> {
        let failure = Arc::new(Mutex::new(None));
        let path = folder.path().to_owned();
        let mut state = State {
            folder,
            tables: HashMap::new(),
            sealed: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            lost: BTreeMap::new(),
            failure: failure.clone(),
            rotation: policy.keep_ns.map(Rotation::new),
        };
        state.prepare(meta, tables)?;
        let (jobs, inbox) = sync_channel(policy.queued.max(1));
        let thread = std::thread::Builder::new()
            .name("gtrace-store".into())
            .spawn(move || state.run(&inbox))
            .map_err(|error| StoreError::io("start the writing thread of", &path, error))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), failure })
    }

    /// Hands over a round; waits if the disk is too far behind.
    pub fn send(&self, batches: Vec<Box<dyn Batch>>, meta: &Meta) {
        self.send_job(Job::Round(batches, Box::new(meta.clone())));
    }

    /// Removes what has become too old by `now`; every row handed over before ended by then.
    pub fn turn(&self, now: MonoNs, meta: &Meta) {
        self.send_job(Job::Turn(now, Box::new(meta.clone())));
    }

    /// Hands over rows that replace those of the last snapshot of their table.
    pub fn snapshot(&self, batch: Box<dyn Batch>) {
        self.send_job(Job::Snapshot(batch));
    }

    /// Waits until everything handed over is written, or has failed.
    pub fn wait(&self) {
        let (done, answer) = channel();
        self.send_job(Job::Wait(done));
        // No answer: the thread is gone, which `failure` tells.
        let _ = answer.recv();
    }

    /// Why a part could not be written.
    pub fn failure(&self) -> Option<StoreError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes the end of the bundle.
    pub fn finish(&self, meta: &Meta) -> Result<Meta, StoreError> {
        let (done, answer) = channel();
        self.send_job(Job::Finish(Box::new(meta.clone()), done));
        let meta = answer.recv().ok();
        match (self.failure(), meta) {
            (None, Some(meta)) => Ok(meta),
            (Some(failure), _) => Err(failure),
            (None, None) => Err(thread_gone()),
        }
    }

    fn send_job(&self, job: Job) {
        if self.jobs.as_ref().is_none_or(|jobs| jobs.send(job).is_err()) {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(thread_gone);
        }
    }
}

impl Drop for Sealer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn thread_gone() -> StoreError {
    StoreError::Encode {
        table: "any",
        reason: "the writing thread has ended; this is a defect of gtrace".into(),
    }
}

struct State {
    folder: Folder,
    /// Each table's folder and the number of its next part.
    tables: HashMap<&'static str, (Folder, u32)>,
    sealed: BTreeMap<&'static str, u64>,
    /// Rows in the snapshots.
    snapshots: BTreeMap<&'static str, u64>,
    lost: BTreeMap<&'static str, (u64, Interval)>,
    failure: Arc<Mutex<Option<StoreError>>>,
    rotation: Option<Rotation>,
}

impl State {
    /// Makes everything that a bundle has from its first moment, and only then gives the folder away: until then nobody
    /// else can enter it.
    fn prepare(&mut self, meta: &Meta, tables: Vec<Box<dyn Batch>>) -> Result<(), StoreError> {
        let reserve = self.create(RESERVE)?;
        Folder::reserve(&reserve, RESERVE_BYTES).map_err(|error| self.error("write", RESERVE, error))?;
        for table in &tables {
            self.table(table.table())?;
        }
        self.round(tables);
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        write_file(&self.folder, VIEWS, views_sql().as_bytes())?;
        self.write_meta(meta)?;
        for (folder, _) in self.tables.values() {
            folder.give().map_err(|error| StoreError::io("give away", folder.path(), error))?;
        }
        self.folder.give().map_err(|error| StoreError::io("give away", self.folder.path(), error))
    }

    fn run(&mut self, inbox: &Receiver<Job>) {
        while let Ok(job) = inbox.recv() {
            match job {
                Job::Round(batches, meta) => {
                    self.round(batches);
                    if self.failure().is_none()
                        && let Err(error) = self.write_meta(&meta)
                    {
                        self.fail(error);
                    }
                }
                Job::Turn(now, meta) => {
                    if self.failure().is_none()
                        && let Err(error) = self.turn(now, &meta)
                    {
                        self.fail(error);
                    }
                }
                Job::Snapshot(batch) => {
                    if self.failure().is_none()
                        && let Err(error) = self.snapshot(batch)
                    {
                        self.fail(error);
                    }
                }
                // A receiver that is gone needs no answer.
                Job::Wait(done) => drop(done.send(())),
                Job::Finish(meta, done) => {
                    let meta = self.finish(*meta);
                    let _ = done.send(meta);
                }
            }
        }
    }

    /// Writes parts; after a failure it only counts their rows.
    fn round(&mut self, batches: Vec<Box<dyn Batch>>) {
        let mut written = Vec::new();
        for mut batch in batches {
            let (table, rows, span) = (batch.table(), batch.len() as u64, batch.span());
            if self.failure().is_some() {
                self.lose(table, rows, span);
                continue;
            }
            match self.write_part(batch.as_mut()) {
                Ok((name, file)) => written.push((table, rows, span, name, file)),
                Err(error) => {
                    self.fail(error);
                    self.lose(table, rows, span);
                }
            }
        }
        let mut touched = Vec::new();
        for (table, rows, span, name, file) in written {
            let Some((folder, _)) = self.tables.get(table) else { continue };
            match seal(folder, &name, &file) {
                Ok(()) => {
                    *self.sealed.entry(table).or_default() += rows;
                    touched.push(table);
                    // The first part of a table is its snapshot's place.
                    if let Some(rotation) = self.rotation.as_mut().filter(|_| name != part_name(0)) {
                        rotation.sealed(SealedPart { table, name, rows });
                    }
                }
                Err(error) => {
                    self.fail(error);
                    self.lose(table, rows, span);
                }
            }
        }
        for table in touched {
            if let Some((folder, _)) = self.tables.get(table)
                && let Err(error) = folder.sync()
            {
                let error = StoreError::io("sync", folder.path(), error);
                self.fail(error);
            }
        }
    }

    /// Removes parts that are too old. `meta.json` first: it never counts rows that are not there.
    fn turn(&mut self, now: MonoNs, meta: &Meta) -> Result<(), StoreError> {
        let gone = self.rotation.as_mut().map(|rotation| rotation.turn(now)).unwrap_or_default();
        if gone.is_empty() {
            return Ok(());
        }
        for part in &gone {
            let rows = self.sealed.entry(part.table).or_default();
            *rows = rows.saturating_sub(part.rows);
        }
        self.write_meta(meta)?;
        for part in &gone {
            if let Some((folder, _)) = self.tables.get(part.table) {
                folder
                    .remove_file(&part.name)
                    .map_err(|error| StoreError::io("remove", &folder.path().join(&part.name), error))?;
            }
        }
        Ok(())
    }

    /// Writes the table's part 0, which is empty without a snapshot.
    fn snapshot(&mut self, mut batch: Box<dyn Batch>) -> Result<(), StoreError> {
        let (table, rows) = (batch.table(), batch.len() as u64);
        let (folder, _) = self.table(table)?;
        let name = part_name(0);
        let file = batch.write(folder, &name)?;
        seal(folder, &name, &file)?;
        self.snapshots.insert(table, rows);
        Ok(())
    }

    fn write_part(&mut self, batch: &mut dyn Batch) -> Result<(String, File), StoreError> {
        let (folder, next) = self.table(batch.table())?;
        let name = part_name(*next);
        let file = batch.write(folder, &name)?;
        *next += 1;
        Ok((name, file))
    }

    fn table(&mut self, name: &'static str) -> Result<&mut (Folder, u32), StoreError> {
        use std::collections::hash_map::Entry;
        match self.tables.entry(name) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let folder = self
                    .folder
                    .create_folder(name)
                    .map_err(|error| StoreError::io("create", &self.folder.path().join(name), error))?;
                Ok(entry.insert((folder, 0)))
            }
        }
    }

    fn finish(&mut self, mut meta: Meta) -> Meta {
        // Nothing may be lost by giving it back: everything else is written.
        let _ = self.folder.remove_file(RESERVE);
        if self.failure().is_none()
            && let Ok(folder) = self.folder.try_clone()
        {
            compact(&Bundle::in_folder(folder, meta.clone()));
        }
        if let Some(failure) = self.failure() {
            meta.ended = if failure.is_disk_full() { "disk_full" } else { "failed" }.into();
            self.write_losses(&meta);
        }
        self.complete(&mut meta);
        if let Err(error) = self.write_meta(&meta) {
            self.fail(error);
        }
        meta
    }

    /// Tells in `losses` what could not be written.
    fn write_losses(&mut self, meta: &Meta) {
        let rows: Vec<Loss> = self
            .lost
            .iter()
            .map(|(table, (count, span))| Loss {
                source: Text::from("store"),
                reason: Text::from(format!("{table}: {}", meta.ended)),
                pid: None,
                start_ns: span.start,
                // A row's own end may lie after its sorting time, so the interval goes to the end of the recording.
                end_ns: meta.ended_ns.map_or(span.end, |ended| span.end.max(MonoNs(ended))),
                count: *count as i64,
            })
            .collect();
        let count = rows.len() as u64;
        let mut rows = Rows(rows);
        let written = self.write_part(&mut rows).and_then(|(name, file)| match self.tables.get("losses") {
            Some((folder, _)) => seal(folder, &name, &file),
            None => Ok(()),
        });
        // If even this fails, meta.json may still tell it.
        if written.is_ok() {
            *self.sealed.entry("losses").or_default() += count;
        }
    }

    fn complete(&self, meta: &mut Meta) {
        if let Some(from) = self.rotation.as_ref().and_then(Rotation::whole_from)
            && from.0 > meta.started_ns
        {
            meta.began_ns = meta.began_ns.or(Some(meta.started_ns));
            meta.started_ns = from.0;
        }
        meta.rows = self.sealed.iter().map(|(table, rows)| ((*table).to_owned(), *rows)).collect();
        for (table, rows) in &self.snapshots {
            *meta.rows.entry((*table).to_owned()).or_default() += rows;
        }
        for (table, (count, _)) in &self.lost {
            meta.losses.insert(format!("store.{table}"), *count);
        }
    }

    fn write_meta(&self, meta: &Meta) -> Result<(), StoreError> {
        let mut meta = meta.clone();
        self.complete(&mut meta);
        write_meta(&self.folder, &meta)
    }

    fn create(&self, name: &str) -> Result<File, StoreError> {
        self.folder.create_file(name).map_err(|error| self.error("create", name, error))
    }

    fn error(&self, action: &'static str, name: &str, error: std::io::Error) -> StoreError {
        StoreError::io(action, &self.folder.path().join(name), error)
    }

    fn lose(&mut self, table: &'static str, rows: u64, span: Interval) {
        let lost = self.lost.entry(table).or_insert((0, span));
        lost.0 += rows;
        lost.1 = Interval::new(lost.1.start.min(span.start), lost.1.end.max(span.end));
    }

    fn failure(&self) -> Option<StoreError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first failure is the one to tell.
    fn fail(&self, error: StoreError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}
