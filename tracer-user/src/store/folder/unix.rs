//! Folders by file descriptor.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags};
use rustix::fs::{Gid, Uid};

use super::Owner;

/// An open folder. Names given to it are single components.
pub struct Folder {
    handle: OwnedFd,
    path: PathBuf,
    owner: Option<Owner>,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Folder {
    /// Makes a new folder, readable by its owner alone. It stays the caller's own until [`Self::give`].
    ///
    /// # Errors
    /// Something of that name exists, a dangling link included, or the operating system refuses.
    pub fn create(path: &Path, owner: Option<Owner>) -> io::Result<Self> {
        fs::mkdir(path, Mode::RWXU)?;
        Self::opened_new(fs::open(path, FOLDER | OFlags::NOFOLLOW, Mode::empty())?, path.into(), owner)
    }

    /// Opens a folder; files made in it go to the folder's owner.
    ///
    /// # Errors
    /// It is not there, is no folder or may not be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::opened(fs::open(path, FOLDER, Mode::empty())?, path.into())
    }

    /// Makes a new folder in this one.
    ///
    /// # Errors
    /// Something of that name exists, or the operating system refuses.
    pub fn create_folder(&self, name: &str) -> io::Result<Self> {
        fs::mkdirat(&self.handle, name, Mode::RWXU)?;
        let handle = fs::openat(&self.handle, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        Self::opened_new(handle, self.path.join(name), self.owner)
    }

    /// Opens a folder in this one.
    ///
    /// # Errors
    /// It is not there, is no folder (a link counts as none) or may not be read.
    pub fn open_folder(&self, name: &str) -> io::Result<Self> {
        let handle = fs::openat(&self.handle, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        Self::opened(handle, self.path.join(name))
    }

    /// The same folder once more.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { handle: self.handle.try_clone()?, path: self.path.clone(), owner: self.owner })
    }

    fn opened(handle: OwnedFd, path: PathBuf) -> io::Result<Self> {
        let stat = fs::fstat(&handle)?;
        // Only root can give files away; anybody else's files are their own anyway.
        let owner = rustix::process::geteuid().is_root().then_some((stat.st_uid, stat.st_gid));
        Ok(Self { handle, path, owner })
    }

    fn opened_new(handle: OwnedFd, path: PathBuf, owner: Option<Owner>) -> io::Result<Self> {
        // What was opened is what was made: nobody put a folder of somebody else's in its place.
        if fs::fstat(&handle)?.st_uid != rustix::process::geteuid().as_raw() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "somebody else replaced the new folder",
            ));
        }
        Ok(Self { handle, path, owner })
    }

    /// Gives the folder itself to its owner.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn give(&self) -> io::Result<()> {
        if let Some((user, group)) = self.owner {
            fs::fchown(&self.handle, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
        }
        Ok(())
    }

    /// Its path, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a new file, readable and writable by its owner alone.
    ///
    /// # Errors
    /// Something of that name exists, or the operating system refuses.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = fs::openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR)?;
        if let Some((user, group)) = self.owner {
            fs::fchown(&handle, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
        }
        Ok(File::from(handle))
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// It is not there, may not be read, or is no plain file (a link or a pipe, say).
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        // Opening a named pipe waits for a writer unless told not to; on a plain file the flag means nothing.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let handle = fs::openat(&self.handle, name, flags, Mode::empty()).map_err(|error| match error {
            // What O_NOFOLLOW answers where a link stands.
            rustix::io::Errno::LOOP => {
                io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link, and none is followed")
            }
            other => other.into(),
        })?;
        if FileType::from_raw_mode(fs::fstat(&handle)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
        }
        Ok(File::from(handle))
    }

    /// Gives a file another name in the same folder, replacing what has that name, in one step.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(fs::renameat(&self.handle, from, &self.handle, to)?)
    }

    /// Swaps two names: in one step where the file system can, else in two with a moment without `current`.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn exchange(&self, new: &str, current: &str) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            use rustix::io::Errno;
            let flags = fs::RenameFlags::EXCHANGE;
            match fs::renameat_with(&self.handle, new, &self.handle, current, flags) {
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
                done => return Ok(done?),
            }
        }
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
        match fs::unlinkat(&self.handle, name, AtFlags::empty()) {
            Err(rustix::io::Errno::NOENT) => Ok(()),
            done => Ok(done?),
        }
    }

    /// Removes an empty folder; one that is not there is well.
    ///
    /// # Errors
    /// It is not empty, or the operating system refuses.
    pub fn remove_folder(&self, name: &str) -> io::Result<()> {
        match fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR) {
            Err(rustix::io::Errno::NOENT) => Ok(()),
            done => Ok(done?),
        }
    }

    /// The names in it, sorted. A name that is not UTF-8 is none of ours and left out.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            if let Ok(name) = entry?.file_name().to_str()
                && name != "."
                && name != ".."
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Makes the names in it durable.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn sync(&self) -> io::Result<()> {
        Ok(fs::fsync(&self.handle)?)
    }

    /// Takes `bytes` of disk for a file, so that later writes into it cannot fail for want of space.
    ///
    /// # Errors
    /// There is no space, or the operating system refuses.
    pub fn reserve(file: &File, bytes: u64) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        match fs::fallocate(file, fs::FallocateFlags::empty(), 0, bytes) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
            done => return Ok(done?),
        }
        io::copy(&mut io::Read::take(io::repeat(0), bytes), &mut &*file)?;
        Ok(())
    }
}
