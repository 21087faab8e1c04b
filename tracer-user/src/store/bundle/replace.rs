//! Giving a table other rows in one step.

use std::fs::File;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::error::StoreError;
use crate::store::folder::Folder;
use crate::store::part::{part_name, seal, write_temporary};
use crate::store::table::Table;

/// Rows written per part.
const PART_ROWS: usize = 64 * 1024;

/// New rows of a table, written beside it into a folder that takes its place on [`Self::commit`]. Dropped without that, it
/// leaves nothing behind.
pub struct Replacement<'bundle, T: Table> {
    bundle: &'bundle Folder,
    folder: Folder,
    name: String,
    rows: Vec<T>,
    parts: Mutex<Vec<(String, File)>>,
    done: bool,
    table: PhantomData<T>,
}

impl<'bundle, T: Table> Replacement<'bundle, T> {
    pub(super) fn new(bundle: &'bundle Folder) -> Result<Self, StoreError> {
        let name = format!(".{}.new", T::NAME);
        let path = bundle.path().join(&name);
        // Of an analysis that was killed.
        clear(bundle, &name).map_err(|error| StoreError::io("remove", &path, error))?;
        let folder = bundle
            .create_folder(&name)
            .and_then(|folder| folder.give().map(|()| folder))
            .map_err(|error| StoreError::io("create", &path, error))?;
        Ok(Self {
            bundle,
            folder,
            name,
            rows: Vec::new(),
            parts: Mutex::default(),
            done: false,
            table: PhantomData,
        })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn push(&mut self, row: T) -> Result<(), StoreError> {
        self.rows.push(row);
        if self.rows.len() >= PART_ROWS {
            let part = std::mem::take(&mut self.rows);
            self.write(part)?;
        }
        Ok(())
    }

    /// Adds rows, in any order.
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn append(&mut self, rows: Vec<T>) -> Result<(), StoreError> {
        rows.into_iter().try_for_each(|row| self.push(row))
    }

    /// Puts the new rows in the place of the old ones.
    ///
    /// # Errors
    /// They cannot be written; the old ones stay.
    pub fn commit(mut self) -> Result<(), StoreError> {
        let rest = std::mem::take(&mut self.rows);
        // A table without rows still has a part, so that it can be opened.
        if !rest.is_empty() || self.count() == 0 {
            self.write(rest)?;
        }
        for (name, file) in &*self.parts() {
            seal(&self.folder, name, file)?;
        }
        let path = self.bundle.path().join(T::NAME);
        let error = |error| StoreError::io("replace", &path, error);
        self.folder.sync().map_err(error)?;
        match self.bundle.open_folder(T::NAME) {
            Ok(_) => self.bundle.exchange(&self.name, T::NAME).map_err(error)?,
            Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => {
                self.bundle.rename(&self.name, T::NAME).map_err(error)?;
            }
            Err(other) => return Err(error(other)),
        }
        // From here on the name is the old rows'.
        self.done = true;
        self.bundle.sync().map_err(error)?;
        clear(self.bundle, &self.name).map_err(|error| StoreError::io("remove the old rows of", &path, error))
    }

    fn parts(&self) -> MutexGuard<'_, Vec<(String, File)>> {
        // Whoever panicked with the lock had done nothing but add a part.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self) -> u32 {
        self.parts().len() as u32
    }

    fn write(&self, rows: Vec<T>) -> Result<(), StoreError> {
        self.write_part(self.count(), rows)
    }

    /// Writes rows, in any order, as part `number`: for several threads at once, which give each part another number, and
    /// use nothing else of this.
    ///
    /// # Errors
    /// The part cannot be written.
    pub fn write_part(&self, number: u32, mut rows: Vec<T>) -> Result<(), StoreError> {
        if !rows.is_sorted_by_key(Table::sort_key) {
            rows.sort_by_key(Table::sort_key);
        }
        let name = part_name(number);
        let file = write_temporary(&self.folder, &name, &rows)?;
        self.parts().push((name, file));
        Ok(())
    }
}

impl<T: Table> Drop for Replacement<'_, T> {
    fn drop(&mut self) {
        if !self.done {
            // Best effort: the next replacement of the table clears it too.
            let _ = clear(self.bundle, &self.name);
        }
    }
}

/// Removes a table's folder with the files in it; one that is not there is well.
fn clear(bundle: &Folder, name: &str) -> std::io::Result<()> {
    match bundle.open_folder(name) {
        Ok(folder) => {
            for file in folder.names()? {
                folder.remove_file(&file)?;
            }
            bundle.remove_folder(name)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
