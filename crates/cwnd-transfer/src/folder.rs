//! The folder of a receiver. Nothing outside of it is written.
//!
//! Names are opened relative to their directory, and symbolic links are not followed, so that
//! neither a sender's paths nor existing links lead outside. Existing entries that a transfer did
//! not create keep their contents, modes and times.

use crate::frame::Stamp;
use crate::names::part_name;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawMode, RenameFlags, Stat, StatVfs, Timespec, Timestamps,
};
use rustix::io::Errno;
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
pub(crate) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// Maximum number of new folders that are tracked until they get their mode.
const MAX_UNSEALED: usize = 100_000;

/// The reason why a file, folder or link is refused. Others may be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A reason.
    #[error("{0}")]
    Because(String),
    /// A system call failed.
    #[error("{}", describe(*.0))]
    System(Errno),
}

impl Refusal {
    /// Whether other files would fail with the same error.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        use Errno as E;
        let fatal = [E::NOSPC, E::DQUOT, E::ROFS, E::IO, E::MFILE, E::NFILE];
        matches!(self, Refusal::System(errno) if fatal.contains(errno))
    }
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOTDIR | Errno::LOOP => refusal("a file or link has the name of a folder"),
            errno => Refusal::System(errno),
        }
    }
}

/// Returns the text of a system error, without its number.
#[must_use]
pub fn describe(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Returns a refusal with a reason.
pub(crate) fn refusal(reason: impl Into<String>) -> Refusal {
    Refusal::Because(reason.into())
}

/// Device and inode of a file.
pub type Identity = (u64, u64);

/// Returns the identity of a file.
#[must_use]
#[expect(clippy::unnecessary_cast, reason = "the types differ between platforms")]
pub fn identity(status: &Stat) -> Identity {
    (status.st_dev as u64, status.st_ino as u64)
}

/// Returns the modification time of a file.
#[must_use]
#[expect(clippy::unnecessary_cast, reason = "the types differ between platforms")]
pub fn mtime(status: &Stat) -> Stamp {
    Stamp { secs: status.st_mtime as i64, nanos: status.st_mtime_nsec as u32 }
}

/// Returns the type of a file.
#[must_use]
pub fn file_type(status: &Stat) -> FileType {
    FileType::from_raw_mode(status.st_mode)
}

pub(crate) fn timestamps(stamp: Stamp) -> Timestamps {
    let time = Timespec { tv_sec: stamp.secs, tv_nsec: stamp.nanos.into() };
    Timestamps { last_access: time, last_modification: time }
}

/// The folder of a receiver, shared by its connections.
#[derive(Debug)]
pub struct Folder {
    root: OwnedFd,
    /// The process's umask.
    umask: RawMode,
    /// Folders created by transfers that do not have their mode and time yet.
    unsealed: Mutex<HashSet<Identity>>,
}

impl Folder {
    /// Opens an existing directory.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Folder { root, umask: umask(), unsealed: Mutex::default() })
    }

    /// Returns the free and total bytes of the file system, for users other than root.
    ///
    /// # Errors
    /// A system call failed.
    pub fn space(&self) -> Result<(u64, u64), Errno> {
        let StatVfs { f_bavail, f_blocks, f_frsize, .. } = rustix::fs::fstatvfs(&self.root)?;
        Ok((f_bavail.saturating_mul(f_frsize), f_blocks.saturating_mul(f_frsize)))
    }

    /// Returns the permission bits of a new file.
    pub(crate) fn permissions(&self, mode: u16) -> Mode {
        Mode::from_raw_mode(RawMode::from(mode) & 0o777 & !self.umask)
    }

    fn unsealed(&self) -> std::sync::MutexGuard<'_, HashSet<Identity>> {
        self.unsealed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the directory that holds the last of `names`.
    ///
    /// # Errors
    /// It is missing or not a directory.
    pub fn parent(&self, names: &[&[u8]]) -> Result<OwnedFd, Refusal> {
        let mut fd = rustix::io::fcntl_dupfd_cloexec(&self.root, 0)?;
        for name in &names[..names.len().saturating_sub(1)] {
            fd = rustix::fs::openat(&fd, *name, DIRECTORY, Mode::empty())?;
        }
        Ok(fd)
    }
}

/// Returns the process's umask. The system call to read it changes it; Linux's /proc does not.
fn umask() -> RawMode {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let own = line.and_then(|value| RawMode::from_str_radix(value.trim(), 8).ok());
    own.unwrap_or_else(|| {
        let own = rustix::process::umask(Mode::RWXG | Mode::RWXO);
        rustix::process::umask(own);
        own.as_raw_mode()
    })
}

/// One connection's view of the folder. It caches the directory that was used last.
#[derive(Debug)]
pub struct FolderView {
    /// The folder.
    pub folder: Arc<Folder>,
    last: Option<(Vec<u8>, Arc<OwnedFd>)>,
}

impl FolderView {
    /// Creates a view.
    #[must_use]
    pub fn new(folder: Arc<Folder>) -> Self {
        FolderView { folder, last: None }
    }

    /// Opens the directory that holds the last name of `path`, whose names are `names`.
    ///
    /// # Errors
    /// As [`Folder::parent`].
    pub fn parent(&mut self, names: &[&[u8]]) -> Result<Arc<OwnedFd>, Refusal> {
        let path = names[..names.len().saturating_sub(1)].join(&b'/');
        if let Some((last, fd)) = &self.last
            && *last == path
        {
            return Ok(Arc::clone(fd));
        }
        let fd = Arc::new(self.folder.parent(names)?);
        self.last = Some((path, Arc::clone(&fd)));
        Ok(fd)
    }

    /// Returns the status of an entry, without following links; `None` if it does not exist.
    ///
    /// # Errors
    /// A system call failed.
    pub fn status(&mut self, names: &[&[u8]]) -> Result<Option<Stat>, Refusal> {
        match self.parent(names) {
            Ok(parent) => lstat(&parent, last(names)),
            Err(Refusal::System(Errno::NOENT)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Creates a folder that its owner can use, unless it exists. Returns whether it is new.
    ///
    /// # Errors
    /// Another entry has its name, or a system call failed.
    pub fn create_folder(&mut self, names: &[&[u8]], mode: u16) -> Result<bool, Refusal> {
        let parent = self.parent(names)?;
        let wanted = Mode::from_raw_mode(RawMode::from(mode) & 0o1777 | 0o700);
        match rustix::fs::mkdirat(&parent, last(names), wanted) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                let status = lstat(&parent, last(names))?;
                return match status.map(|status| file_type(&status)) {
                    Some(FileType::Directory) => Ok(false),
                    _ => Err(Errno::NOTDIR.into()),
                };
            }
            Err(errno) => return Err(errno.into()),
        }
        let created = rustix::fs::openat(&parent, last(names), DIRECTORY, Mode::empty())?;
        let status = rustix::fs::fstat(&created)?;
        if status.st_mode & 0o700 != 0o700 {
            rustix::fs::fchmod(&created, Mode::from_raw_mode(status.st_mode & 0o7777 | 0o700))?;
        }
        let mut unsealed = self.folder.unsealed();
        if unsealed.len() < MAX_UNSEALED {
            unsealed.insert(identity(&status));
        }
        Ok(true)
    }

    /// Sets the mode and time of a folder that a transfer created. Other folders are not changed.
    ///
    /// # Errors
    /// Another entry has its name, or a system call failed.
    pub fn seal(&mut self, names: &[&[u8]], mode: u16, time: Stamp) -> Result<(), Refusal> {
        let parent = self.parent(names)?;
        let fd = rustix::fs::openat(&parent, last(names), DIRECTORY, Mode::empty())?;
        let status = rustix::fs::fstat(&fd)?;
        if !self.folder.unsealed().remove(&identity(&status)) {
            return Ok(());
        }
        // The set-group-ID bit is inherited from the parent.
        let sticky = RawMode::from(mode) & 0o1000;
        let kept = status.st_mode & 0o6000;
        let mode = self.folder.permissions(mode) | Mode::from_raw_mode(sticky | kept);
        rustix::fs::fchmod(&fd, mode)?;
        Ok(rustix::fs::futimens(&fd, &timestamps(time))?)
    }

    /// Creates a symbolic link, unless it exists. Returns whether it is new.
    ///
    /// # Errors
    /// Another entry has its name and may not be replaced, or a system call failed.
    pub fn symlink(
        &mut self,
        names: &[&[u8]],
        target: &[u8],
        time: Stamp,
        overwrite: bool,
    ) -> Result<bool, Refusal> {
        let parent = self.parent(names)?;
        if let Some(status) = lstat(&parent, last(names))? {
            if file_type(&status) != FileType::Symlink {
                return Err(refusal("another entry has the name of this symbolic link"));
            }
            let existing = rustix::fs::readlinkat(&parent, last(names), Vec::new())?;
            if existing.as_bytes() == target {
                return Ok(false);
            }
            if !overwrite {
                return Err(refusal("a different symbolic link exists"));
            }
        }
        let temporary = part_name(last(names));
        rustix::fs::symlinkat(target, &parent, &temporary[..])?;
        let _ = rustix::fs::utimensat(
            &parent,
            &temporary[..],
            &timestamps(time),
            AtFlags::SYMLINK_NOFOLLOW,
        );
        rename(&parent, &temporary, last(names), overwrite)
            .inspect_err(|_| remove(&parent, &temporary))?;
        Ok(true)
    }

    /// Creates a hard link to `target`, which must be the file `original`, unless it exists.
    /// Returns whether it is new.
    ///
    /// # Errors
    /// The target is another file by now, another entry has the name, or a system call failed.
    pub fn link(
        &mut self,
        names: &[&[u8]],
        target: &[&[u8]],
        original: Identity,
        overwrite: bool,
    ) -> Result<bool, Refusal> {
        let parent = self.parent(names)?;
        if let Some(status) = lstat(&parent, last(names))? {
            if identity(&status) == original {
                return Ok(false);
            }
            if file_type(&status) != FileType::RegularFile {
                return Err(refusal("another entry has the name of this file"));
            }
            if !overwrite {
                return Err(refusal("a different file exists"));
            }
        }
        let source = self.folder.parent(target)?;
        let temporary = part_name(last(names));
        rustix::fs::linkat(&source, last(target), &parent, &temporary[..], AtFlags::empty())?;
        // Checked after linking, when nobody can exchange the file.
        let result = match lstat(&parent, &temporary)? {
            Some(status) if identity(&status) == original => {
                rename(&parent, &temporary, last(names), overwrite)
            }
            _ => Err(refusal("the target of the hard link was replaced")),
        };
        result.inspect_err(|_| remove(&parent, &temporary)).map(|()| true)
    }
}

/// Returns the last of `names`.
pub(crate) fn last<'a>(names: &[&'a [u8]]) -> &'a [u8] {
    names.last().copied().unwrap_or_default()
}

/// Returns the status of an entry, without following links.
pub(crate) fn lstat(parent: &OwnedFd, name: &[u8]) -> Result<Option<Stat>, Refusal> {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(status) => Ok(Some(status)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens a regular file for reading.
pub(crate) fn open_file(parent: &OwnedFd, name: &[u8]) -> Result<(OwnedFd, Stat), Refusal> {
    let fd = rustix::fs::openat(parent, name, READ, Mode::empty())?;
    let status = rustix::fs::fstat(&fd)?;
    match file_type(&status) {
        FileType::RegularFile => Ok((fd, status)),
        _ => Err(refusal("it is not a regular file")),
    }
}

/// Removes a file, if it exists.
pub(crate) fn remove(parent: &OwnedFd, name: &[u8]) {
    let _ = rustix::fs::unlinkat(parent, name, AtFlags::empty());
}

/// Renames a file; without `overwrite`, an existing file is not replaced.
pub(crate) fn rename(
    parent: &OwnedFd,
    from: &[u8],
    to: &[u8],
    overwrite: bool,
) -> Result<(), Refusal> {
    if overwrite {
        return Ok(rustix::fs::renameat(parent, from, parent, to)?);
    }
    let result = match rustix::fs::renameat_with(parent, from, parent, to, RenameFlags::NOREPLACE) {
        // On file systems without RENAME_NOREPLACE: a hard link does not replace a file either.
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::linkat(parent, from, parent, to, AtFlags::empty())
                .inspect(|()| remove(parent, from))
        }
        other => other,
    };
    result.map_err(|errno| match errno {
        Errno::EXIST => refusal("a file of this name was created meanwhile"),
        errno => errno.into(),
    })
}
