//! The folder that a receiver writes in, and nowhere else.
//!
//! Every name is opened relative to the directory that holds it, and no symbolic link is followed:
//! neither a sender's paths nor what lies in the folder can lead out of it. What is there is not
//! changed: neither its contents nor its mode nor its times.

use crate::frame::Stamp;
use crate::names::{part_name, printable};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, StatVfs, Timespec, Timestamps,
};
use rustix::io::Errno;
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// Folders that are remembered until they get their mode, at most.
const UNSEALED: usize = 100_000;

/// Why a file, folder or link is not taken; others may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A sentence.
    Because(String),
    /// The system refuses.
    System(Errno),
}

impl Refusal {
    /// Whether the next file would meet the same error.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        use Errno as E;
        let fatal = [E::NOSPC, E::DQUOT, E::ROFS, E::IO, E::MFILE, E::NFILE];
        matches!(self, Refusal::System(errno) if fatal.contains(errno))
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Because(reason) => f.write_str(reason),
            Refusal::System(errno) => f.write_str(&describe(*errno)),
        }
    }
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOTDIR | Errno::LOOP => {
                refusal("a file or a link stands where a folder is needed")
            }
            errno => Refusal::System(errno),
        }
    }
}

/// Returns the system's sentence about an error, without its number.
#[must_use]
pub fn describe(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Refuses with a sentence.
pub(crate) fn refusal(reason: impl Into<String>) -> Refusal {
    Refusal::Because(reason.into())
}

/// Device and inode: what tells files apart.
pub type Identity = (u64, u64);

/// Returns the identity of a file.
#[must_use]
#[expect(clippy::unnecessary_cast, reason = "the types differ between platforms")]
pub fn identity(status: &Stat) -> Identity {
    (status.st_dev as u64, status.st_ino as u64)
}

/// Returns when a file was changed.
#[must_use]
#[expect(clippy::unnecessary_cast, reason = "the types differ between platforms")]
pub fn mtime(status: &Stat) -> Stamp {
    Stamp { secs: status.st_mtime as i64, nanos: status.st_mtime_nsec as u32 }
}

/// Returns what a file is.
#[must_use]
pub fn file_type(status: &Stat) -> FileType {
    FileType::from_raw_mode(status.st_mode)
}

pub(crate) fn timestamps(stamp: Stamp) -> Timestamps {
    let time = Timespec { tv_sec: stamp.secs, tv_nsec: stamp.nanos.into() };
    Timestamps { last_access: time, last_modification: time }
}

/// A folder to receive into: shared by the connections of a receiver.
#[derive(Debug)]
pub struct Folder {
    root: OwnedFd,
    /// Bits that new files and folders do not get.
    umask: u32,
    /// Folders that transfers have made and that have neither their mode nor their time yet.
    unsealed: Mutex<HashSet<Identity>>,
}

impl Folder {
    /// Opens an existing directory.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Folder { root, umask: umask(), unsealed: Mutex::default() })
    }

    /// Returns the free and total space of the file system, as others than root see it.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn space(&self) -> Result<(u64, u64), Errno> {
        let StatVfs { f_bavail, f_blocks, f_frsize, .. } = rustix::fs::fstatvfs(&self.root)?;
        Ok((f_bavail.saturating_mul(f_frsize), f_blocks.saturating_mul(f_frsize)))
    }

    /// Returns the permission bits that a new file gets.
    pub(crate) fn permissions(&self, mode: u16) -> Mode {
        Mode::from_raw_mode(u32::from(mode) & 0o777 & !self.umask)
    }

    fn unsealed(&self) -> std::sync::MutexGuard<'_, HashSet<Identity>> {
        self.unsealed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the directory that holds the last of `names`.
    ///
    /// # Errors
    /// When something else stands in its place, or it is missing.
    pub fn parent(&self, names: &[&[u8]]) -> Result<OwnedFd, Refusal> {
        let mut fd = rustix::io::fcntl_dupfd_cloexec(&self.root, 0)?;
        for name in &names[..names.len().saturating_sub(1)] {
            fd = rustix::fs::openat(&fd, *name, DIRECTORY, Mode::empty())?;
        }
        Ok(fd)
    }
}

/// Reads the process's umask, which only the file system of processes tells without changing it.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|value| u32::from_str_radix(value.trim(), 8).ok()).unwrap_or(0o022)
}

/// One connection's view of a folder: it keeps the directory open that was used last.
#[derive(Debug)]
pub struct Place {
    /// The folder.
    pub folder: Arc<Folder>,
    last: Option<(Vec<u8>, Arc<OwnedFd>)>,
}

impl Place {
    /// Makes a view.
    #[must_use]
    pub fn new(folder: Arc<Folder>) -> Self {
        Place { folder, last: None }
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

    /// Looks at a name, not through it; `None` if nothing has it, or its folder is missing.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn status(&mut self, names: &[&[u8]]) -> Result<Option<Stat>, Refusal> {
        match self.parent(names) {
            Ok(parent) => look(&parent, last(names)),
            Err(Refusal::System(Errno::NOENT)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Makes a folder that its owner can use, or takes the one that is there. Returns whether it is new.
    ///
    /// # Errors
    /// When something else has its name, or the system refuses.
    pub fn make(&mut self, names: &[&[u8]], mode: u16) -> Result<bool, Refusal> {
        let parent = self.parent(names)?;
        let wanted = Mode::from_raw_mode(u32::from(mode) & 0o1777 | 0o700);
        match rustix::fs::mkdirat(&parent, last(names), wanted) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                let status = look(&parent, last(names))?;
                return match status.map(|status| file_type(&status)) {
                    Some(FileType::Directory) => Ok(false),
                    _ => Err(Errno::NOTDIR.into()),
                };
            }
            Err(errno) => return Err(errno.into()),
        }
        let made = rustix::fs::openat(&parent, last(names), DIRECTORY, Mode::empty())?;
        let status = rustix::fs::fstat(&made)?;
        if status.st_mode & 0o700 != 0o700 {
            rustix::fs::fchmod(&made, Mode::from_raw_mode(status.st_mode & 0o7777 | 0o700))?;
        }
        let mut unsealed = self.folder.unsealed();
        if unsealed.len() < UNSEALED {
            unsealed.insert(identity(&status));
        }
        Ok(true)
    }

    /// Gives a folder that a transfer has made its mode and time. Others stay as they are.
    ///
    /// # Errors
    /// When something else has its name, or the system refuses.
    pub fn seal(&mut self, names: &[&[u8]], mode: u16, time: Stamp) -> Result<(), Refusal> {
        let parent = self.parent(names)?;
        let fd = rustix::fs::openat(&parent, last(names), DIRECTORY, Mode::empty())?;
        let status = rustix::fs::fstat(&fd)?;
        if !self.folder.unsealed().remove(&identity(&status)) {
            return Ok(());
        }
        // The bits beyond the permissions are the parent's: setgid is inherited.
        let sticky = u32::from(mode) & 0o1000;
        let kept = status.st_mode & 0o6000;
        let mode = self.folder.permissions(mode) | Mode::from_raw_mode(sticky | kept);
        rustix::fs::fchmod(&fd, mode)?;
        Ok(rustix::fs::futimens(&fd, &timestamps(time))?)
    }

    /// Makes a symbolic link, or finds that it is there. Returns whether it is new.
    ///
    /// # Errors
    /// When something else has its name and is not to be replaced, or the system refuses.
    pub fn symlink(
        &mut self,
        names: &[&[u8]],
        target: &[u8],
        time: Stamp,
        overwrite: bool,
    ) -> Result<bool, Refusal> {
        let parent = self.parent(names)?;
        if let Some(status) = look(&parent, last(names))? {
            if file_type(&status) != FileType::Symlink {
                return Err(refusal("something else has the name of this symbolic link"));
            }
            let there = rustix::fs::readlinkat(&parent, last(names), Vec::new())?;
            if there.as_bytes() == target {
                return Ok(false);
            }
            if !overwrite {
                return Err(refusal("a different symbolic link is there"));
            }
        }
        let made = part_name(last(names));
        rustix::fs::symlinkat(target, &parent, &made[..])?;
        let _ =
            rustix::fs::utimensat(&parent, &made[..], &timestamps(time), AtFlags::SYMLINK_NOFOLLOW);
        rename(&parent, &made, last(names), overwrite).inspect_err(|_| remove(&parent, &made))?;
        Ok(true)
    }

    /// Makes a hard link to `target`, which is the file `original`, or finds that it is there. Returns
    /// whether it is new.
    ///
    /// # Errors
    /// When the target is another file by now, something else has the name, or the system refuses.
    pub fn link(
        &mut self,
        names: &[&[u8]],
        target: &[&[u8]],
        original: Identity,
        overwrite: bool,
    ) -> Result<bool, Refusal> {
        let parent = self.parent(names)?;
        if let Some(status) = look(&parent, last(names))? {
            if identity(&status) == original {
                return Ok(false);
            }
            if file_type(&status) != FileType::RegularFile {
                return Err(refusal("something else has the name of this file"));
            }
            if !overwrite {
                return Err(refusal("a different file is there"));
            }
        }
        let source = self.folder.parent(target)?;
        let made = part_name(last(names));
        rustix::fs::linkat(&source, last(target), &parent, &made[..], AtFlags::empty())?;
        // Checked behind the link: nobody can exchange the file in between.
        let result = match look(&parent, &made)? {
            Some(status) if identity(&status) == original => {
                rename(&parent, &made, last(names), overwrite)
            }
            _ => Err(refusal("the file that it is a hard link to was exchanged")),
        };
        result.inspect_err(|_| remove(&parent, &made)).map(|()| true)
    }
}

/// Returns the last of `names`.
pub(crate) fn last<'a>(names: &[&'a [u8]]) -> &'a [u8] {
    names.last().copied().unwrap_or_default()
}

/// Looks at a name, not through it.
pub(crate) fn look(parent: &OwnedFd, name: &[u8]) -> Result<Option<Stat>, Refusal> {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(status) => Ok(Some(status)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens a regular file to read.
pub(crate) fn open_file(parent: &OwnedFd, name: &[u8]) -> Result<(OwnedFd, Stat), Refusal> {
    let fd = rustix::fs::openat(parent, name, READ, Mode::empty())?;
    let status = rustix::fs::fstat(&fd)?;
    match file_type(&status) {
        FileType::RegularFile => Ok((fd, status)),
        _ => Err(refusal(format!("{} is not a regular file", printable(name)))),
    }
}

/// Removes a file, if it is there.
pub(crate) fn remove(parent: &OwnedFd, name: &[u8]) {
    let _ = rustix::fs::unlinkat(parent, name, AtFlags::empty());
}

/// Renames a file; without `overwrite` a file that has the new name stays.
pub(crate) fn rename(
    parent: &OwnedFd,
    from: &[u8],
    to: &[u8],
    overwrite: bool,
) -> Result<(), Refusal> {
    if overwrite {
        return Ok(rustix::fs::renameat(parent, from, parent, to)?);
    }
    let kept = match rustix::fs::renameat_with(parent, from, parent, to, RenameFlags::NOREPLACE) {
        // File systems that cannot do so: a hard link does not replace anything either.
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::linkat(parent, from, parent, to, AtFlags::empty())
                .inspect(|()| remove(parent, from))
        }
        other => other,
    };
    kept.map_err(|errno| match errno {
        Errno::EXIST => refusal("a file of that name was made just now"),
        errno => errno.into(),
    })
}
