//! Parts: how a file gets its final name only when it is whole.

use std::fs::File;
use std::io::{self, Write as _};

use parquet::errors::ParquetError;

use super::encode::encode;
use super::error::StoreError;
use super::folder::Folder;
use super::meta::Meta;
use super::table::Table;

/// The name of part `number`.
pub fn part_name(number: u32) -> String {
    format!("part-{number:05}.parquet")
}

/// Under which name a file is written. It matches neither `*.parquet` nor, in a shell, `*`.
pub fn temporary_name(name: &str) -> String {
    format!(".{name}.tmp")
}

/// Writes rows under the temporary name of `name`; nothing is left of it on an error.
pub fn write_temporary<T: Table>(folder: &Folder, name: &str, rows: &[T]) -> Result<File, StoreError> {
    let temporary = temporary_name(name);
    let path = folder.path().join(name);
    // Of a recorder or an analysis that was killed.
    folder.remove_file(&temporary).map_err(|error| StoreError::io("remove", &path, error))?;
    let file = folder.create_file(&temporary).map_err(|error| StoreError::io("create", &path, error))?;
    encode(rows, file).map_err(|error| {
        // Best effort: the error at hand says more than one of the removal, and a temporary file is never read.
        let _ = folder.remove_file(&temporary);
        match into_io(error) {
            Ok(error) => StoreError::io("write", &path, error),
            Err(error) => StoreError::Encode { table: T::NAME, reason: error.to_string() },
        }
    })
}

/// Makes the contents of a temporary file durable and gives it its final name. The folder is still to be synced.
pub fn seal(folder: &Folder, name: &str, file: &File) -> Result<(), StoreError> {
    let path = folder.path().join(name);
    let temporary = temporary_name(name);
    let sealed = file.sync_all().map_err(|error| StoreError::io("sync", &path, error)).and_then(|()| {
        folder.rename(&temporary, name).map_err(|error| StoreError::io("rename", &path, error))
    });
    if sealed.is_err() {
        let _ = folder.remove_file(&temporary);
    }
    sealed
}

/// The operating system's error inside one of the Parquet writer, which wraps it more than once.
fn into_io(error: ParquetError) -> Result<io::Error, ParquetError> {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => Ok(*error),
            Err(inner) => match inner.downcast::<ParquetError>() {
                Ok(inner) => into_io(*inner),
                Err(inner) => Err(ParquetError::External(inner)),
            },
        },
        other => Err(other),
    }
}

/// Writes a small file in one step.
pub fn write_file(folder: &Folder, name: &str, contents: &[u8]) -> Result<(), StoreError> {
    let path = folder.path().join(name);
    let temporary = temporary_name(name);
    let written = folder.remove_file(&temporary).and_then(|()| {
        let mut file = folder.create_file(&temporary)?;
        file.write_all(contents)?;
        file.sync_all()?;
        folder.rename(&temporary, name)?;
        folder.sync()
    });
    written.map_err(|error| {
        let _ = folder.remove_file(&temporary);
        StoreError::io("write", &path, error)
    })
}

/// Writes `meta.json` in one step.
pub fn write_meta(folder: &Folder, meta: &Meta) -> Result<(), StoreError> {
    let text = serde_json::to_vec_pretty(meta).map_err(|error| StoreError::Meta {
        path: folder.path().join("meta.json"),
        reason: error.to_string(),
    })?;
    write_file(folder, "meta.json", &text)
}
