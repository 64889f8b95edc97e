//! Sources of a transfer: files and folders found on disk, and standard input.

use crate::folder::{DIRECTORY, Identity, READ, describe, file_type, identity, mtime};
use crate::frame::{Stamp, What};
use crate::names::{check_length, check_reserved, check_target, printable, split_path};
use crate::select::Select;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The name of standard input at the receiver.
pub const STREAM_NAME: &[u8] = b"stdin";

/// The reason why a file that has changed is withdrawn.
pub(crate) const CHANGED: &str = "it changed while it was sent";
/// Maximum number of tracked files with hard links, as at the receiver.
const MAX_ORIGINALS: usize = 1 << 16;

/// An entry to be sent.
#[derive(Debug)]
pub struct Entry {
    /// The parent folder; `None` for a source.
    pub parent: Option<usize>,
    /// Its name in the parent folder; the path of a source.
    name: Box<[u8]>,
    /// Its type.
    pub what: What,
    /// Its permission bits.
    pub mode: u16,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes that it occupies.
    pub space: u64,
    /// Its modification time.
    pub mtime: Stamp,
    /// A symbolic link's target.
    pub target: Box<[u8]>,
    /// The entry of the file that this one is a hard link to.
    pub original: Option<usize>,
    /// Whether hard links to it follow.
    pub linked: bool,
}

/// All entries to be sent; folders precede their contents.
#[derive(Debug, Default)]
pub struct Source {
    /// The entries.
    pub entries: Vec<Entry>,
    /// The names of sources at the receiver, by the index of their entry.
    tops: HashMap<usize, Box<[u8]>>,
    /// Paths that cannot be sent, and the reasons.
    pub errors: Vec<(Vec<u8>, String)>,
    originals: HashMap<Identity, usize>,
}

/// Returns the name of a source at the receiver. `.` and `..` have the names of their folders.
///
/// # Errors
/// It is the root folder, which has no name.
pub fn top_name(path: &Path) -> Result<Vec<u8>, String> {
    let named = match path.components().next_back() {
        Some(Component::Normal(name)) if !path.as_os_str().as_bytes().ends_with(b"/..") => {
            Some(name.to_owned())
        }
        _ => {
            std::fs::canonicalize(path).ok().and_then(|full| full.file_name().map(OsStr::to_owned))
        }
    };
    let named = named.ok_or("the root folder has no name for the receiver");
    Ok(named?.as_bytes().to_vec())
}

impl Source {
    /// Finds all entries below `paths`; `-` is standard input. Symbolic links are followed only in
    /// `paths` themselves.
    ///
    /// # Errors
    /// A path cannot be sent, or two sources have the same name.
    pub fn find(paths: &[PathBuf], select: &Select) -> Result<Self, String> {
        let mut source = Source::default();
        for path in paths {
            source.add(path, select)?;
        }
        let mut names: Vec<_> = source.tops.values().collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two sources have the name {}", printable(twice[0])));
        }
        if select.is_partial() {
            source.prune();
        }
        Ok(source)
    }

    fn add(&mut self, path: &Path, select: &Select) -> Result<(), String> {
        let printable_path = printable(path.as_os_str().as_bytes());
        if path.as_os_str() == "-" {
            self.tops.insert(self.entries.len(), STREAM_NAME.into());
            self.entries.push(Entry {
                parent: None,
                name: b"-".as_slice().into(),
                what: What::Stream,
                mode: 0o644,
                size: 0,
                space: 0,
                mtime: Stamp::default(),
                target: Box::default(),
                original: None,
                linked: false,
            });
            return Ok(());
        }
        let status = rustix::fs::stat(path)
            .map_err(|errno| format!("{printable_path}: {}", describe(errno)))?;
        let name = top_name(path).map_err(|reason| format!("{printable_path}: {reason}"))?;
        split_path(&name).map_err(|reason| format!("{printable_path}: {reason}"))?;
        let what = match file_type(&status) {
            FileType::RegularFile => What::File,
            FileType::Directory => What::Folder,
            _ => return Err(format!("{printable_path} is neither a file nor a folder")),
        };
        let index = self.entries.len();
        self.tops.insert(index, name.into());
        self.push(None, path.as_os_str().as_bytes(), what, &status);
        if what == What::Folder {
            let flags = DIRECTORY.difference(OFlags::NOFOLLOW);
            let opened = rustix::fs::open(path, flags, Mode::empty());
            match opened {
                Ok(folder) => self.walk(index, folder, select, &mut Vec::new()),
                Err(errno) => return Err(format!("{printable_path}: {}", describe(errno))),
            }
        }
        Ok(())
    }

    fn push(&mut self, parent: Option<usize>, name: &[u8], what: What, status: &Stat) -> usize {
        let index = self.entries.len();
        let size = if what == What::File { status.st_size as u64 } else { 0 };
        let space = size.min((status.st_blocks as u64).saturating_mul(512));
        let mut original = None;
        if what == What::File && status.st_nlink > 1 {
            original = self.originals.get(&identity(status)).copied();
            match original {
                Some(original) => self.entries[original].linked = true,
                None if self.originals.len() < MAX_ORIGINALS => {
                    self.originals.insert(identity(status), index);
                }
                None => {}
            }
        }
        self.entries.push(Entry {
            parent,
            name: name.into(),
            what,
            mode: (status.st_mode & 0o7777) as u16,
            size,
            space,
            mtime: mtime(status),
            target: Box::default(),
            original,
            linked: false,
        });
        index
    }

    /// Adds the contents of a folder; `below` is its path below its source.
    fn walk(&mut self, parent: usize, folder: OwnedFd, select: &Select, below: &mut Vec<u8>) {
        let mut names: Vec<Vec<u8>> = Vec::new();
        let result = Dir::read_from(&folder).and_then(|dir| {
            for entry in dir {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if name != b"." && name != b".." {
                    names.push(name.into());
                }
            }
            Ok(())
        });
        if let Err(errno) = result {
            self.errors.push((self.path(parent), describe(errno)));
        }
        names.sort_unstable();
        for name in names {
            let length = below.len();
            if length > 0 {
                below.push(b'/');
            }
            below.extend(&name);
            if !select.excludes(below) {
                self.add_entry(parent, &folder, &name, select, below);
            }
            below.truncate(length);
        }
    }

    fn add_entry(
        &mut self,
        parent: usize,
        folder: &OwnedFd,
        name: &[u8],
        select: &Select,
        below: &mut Vec<u8>,
    ) {
        let status = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        let kind = status.as_ref().map(file_type);
        if !matches!(kind, Ok(FileType::Directory)) && !select.includes(below) {
            return;
        }
        let result = status.map_err(describe).and_then(|status| {
            check_reserved(name)?;
            check_length(below)?;
            match file_type(&status) {
                FileType::RegularFile => {
                    self.push(Some(parent), name, What::File, &status);
                }
                FileType::Directory => {
                    let opened = rustix::fs::openat(folder, name, DIRECTORY, Mode::empty());
                    let index = self.push(Some(parent), name, What::Folder, &status);
                    self.walk(index, opened.map_err(describe)?, select, below);
                }
                FileType::Symlink => {
                    let target =
                        rustix::fs::readlinkat(folder, name, Vec::new()).map_err(describe)?;
                    let path = [&self.path(parent)[..], b"/", name].concat();
                    let names: Vec<_> = path.split(|&byte| byte == b'/').collect();
                    check_target(&names, target.as_bytes())?;
                    let index = self.push(Some(parent), name, What::Symlink, &status);
                    self.entries[index].target = target.as_bytes().into();
                }
                FileType::Socket => return Err("a socket".into()),
                FileType::Fifo => return Err("a pipe".into()),
                _ => return Err("a device".into()),
            }
            Ok(())
        });
        if let Err(reason) = result {
            let path = [&self.path(parent)[..], b"/", name].concat();
            self.errors.push((path, reason));
        }
    }

    /// Removes folders without entries, except sources.
    fn prune(&mut self) {
        let mut used = vec![false; self.entries.len()];
        for (index, entry) in self.entries.iter().enumerate().rev() {
            used[index] |= entry.what != What::Folder || entry.parent.is_none();
            if let (true, Some(parent)) = (used[index], entry.parent) {
                used[parent] = true;
            }
        }
        let mut new_indices = vec![0; used.len()];
        let mut remaining = 0;
        for (index, used) in used.iter().enumerate() {
            new_indices[index] = remaining;
            remaining += usize::from(*used);
        }
        let mut index = 0;
        self.entries.retain(|_| {
            index += 1;
            used[index - 1]
        });
        for entry in &mut self.entries {
            entry.parent = entry.parent.map(|parent| new_indices[parent]);
            entry.original = entry.original.map(|original| new_indices[original]);
        }
        let tops = std::mem::take(&mut self.tops);
        self.tops = tops.into_iter().map(|(index, name)| (new_indices[index], name)).collect();
    }

    /// Returns the path of an entry at the receiver.
    #[must_use]
    pub fn path(&self, index: usize) -> Vec<u8> {
        let entry = &self.entries[index];
        match entry.parent {
            None => self.tops[&index].to_vec(),
            Some(parent) => {
                let mut path = self.path(parent);
                path.push(b'/');
                path.extend(&entry.name);
                path
            }
        }
    }

    /// Returns the number of files, their total size, and the bytes that they occupy.
    #[must_use]
    pub fn total(&self) -> (u64, u64, u64) {
        self.entries.iter().filter(|entry| matches!(entry.what, What::File | What::Stream)).fold(
            (0, 0, 0),
            |(files, bytes, space), entry| {
                let shared = entry.original.is_some();
                let needed = if shared { 0 } else { entry.space };
                (files + 1, bytes + entry.size, space + needed)
            },
        )
    }
}

/// Opens entries. It caches the folder that was used last.
#[derive(Debug, Default)]
pub(crate) struct Opener {
    last: Option<(usize, Arc<OwnedFd>)>,
}

impl Opener {
    fn folder(&mut self, source: &Source, index: usize) -> Result<Arc<OwnedFd>, Errno> {
        if let Some((last, fd)) = &self.last
            && *last == index
        {
            return Ok(Arc::clone(fd));
        }
        let fd = Arc::new(self.open_as(source, index, DIRECTORY)?);
        self.last = Some((index, Arc::clone(&fd)));
        Ok(fd)
    }

    fn open_as(&mut self, source: &Source, index: usize, flags: OFlags) -> Result<OwnedFd, Errno> {
        let entry = &source.entries[index];
        match entry.parent {
            None => {
                let flags = flags.difference(OFlags::NOFOLLOW);
                rustix::fs::open(&*entry.name, flags, Mode::empty())
            }
            Some(parent) => {
                let above = self.folder(source, parent)?;
                rustix::fs::openat(&above, &*entry.name, flags, Mode::empty())
            }
        }
    }

    /// Opens the file of an entry.
    pub(crate) fn open(&mut self, source: &Source, index: usize) -> Result<OwnedFd, String> {
        if source.entries[index].what == What::Stream {
            return rustix::io::dup(rustix::stdio::stdin()).map_err(describe);
        }
        self.open_as(source, index, READ).map_err(describe)
    }
}

/// Checks that a file has not changed since it was found.
pub(crate) fn check_unchanged(entry: &Entry, fd: &OwnedFd) -> Result<(), String> {
    let status = rustix::fs::fstat(fd).map_err(describe)?;
    let same = file_type(&status) == FileType::RegularFile
        && status.st_size as u64 == entry.size
        && mtime(&status) == entry.mtime;
    if same { Ok(()) } else { Err(CHANGED.into()) }
}
