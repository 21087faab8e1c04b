//! Folders by path, for systems where bundles are read and analysed but not recorded.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::Owner;

/// A folder. Names given to it are single components.
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes a new folder. There are no owners here.
    ///
    /// # Errors
    /// Something of that name exists, or the operating system refuses.
    pub fn create(path: &Path, _owner: Option<Owner>) -> io::Result<Self> {
        fs::create_dir(path)?;
        Self::open(path)
    }

    /// Opens a folder.
    ///
    /// # Errors
    /// It is not there or is no folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !fs::metadata(path)?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is no folder"));
        }
        Ok(Self { path: path.into() })
    }

    /// Makes a new folder in this one.
    ///
    /// # Errors
    /// Something of that name exists, or the operating system refuses.
    pub fn create_folder(&self, name: &str) -> io::Result<Self> {
        Self::create(&self.path.join(name), None)
    }

    /// Opens a folder in this one.
    ///
    /// # Errors
    /// It is not there or is no folder.
    pub fn open_folder(&self, name: &str) -> io::Result<Self> {
        Self::open(&self.path.join(name))
    }

    /// The same folder once more.
    ///
    /// # Errors
    /// None.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { path: self.path.clone() })
    }

    /// Does nothing here.
    ///
    /// # Errors
    /// None.
    pub fn give(&self) -> io::Result<()> {
        Ok(())
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a new file.
    ///
    /// # Errors
    /// Something of that name exists, or the operating system refuses.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(self.path.join(name))
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// It is not there, or is no plain file.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        let path = self.path.join(name);
        if !fs::symlink_metadata(&path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
        }
        File::open(path)
    }

    /// Gives a file another name in the same folder, replacing what has that name.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    /// Swaps two names, with a moment without `current`.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn exchange(&self, new: &str, current: &str) -> io::Result<()> {
        let aside = format!("{current}.old");
        self.rename(current, &aside)?;
        self.rename(new, current)?;
        self.rename(&aside, new)
    }

    /// Removes a file; one that is not there is well.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn remove_file(&self, name: &str) -> io::Result<()> {
        missing_is_well(fs::remove_file(self.path.join(name)))
    }

    /// Removes an empty folder; one that is not there is well.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn remove_folder(&self, name: &str) -> io::Result<()> {
        missing_is_well(fs::remove_dir(self.path.join(name)))
    }

    /// The names in it, sorted.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Names are as durable as the system makes them.
    ///
    /// # Errors
    /// None.
    pub fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// Takes `bytes` of disk for a file.
    ///
    /// # Errors
    /// There is no space, or the operating system refuses.
    pub fn reserve(file: &File, bytes: u64) -> io::Result<()> {
        io::copy(&mut io::Read::take(io::repeat(0), bytes), &mut &*file)?;
        Ok(())
    }
}

fn missing_is_well(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
