//! Partial files and their sidecars.

use crate::folder::{
    Folder, Identity, Refusal, file_type, identity, lstat, mtime, open_file, refusal, remove,
    rename, timestamps,
};
use crate::frame::Stamp;
use crate::hash::{BLOCK, HOLE, Tree, Value, blocks};
use crate::names::{part_name, sidecar_name};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;

const PART: OFlags =
    OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const MAGIC: &[u8; 8] = b"cwndsums";
const SIDECAR_VERSION: u8 = 2;
/// Bytes of a sidecar's header. The value of block `i` is 32 `i` bytes after it.
const HEADER_BYTES: u64 = 64;
pub(crate) const BUSY: &str = "it is being received from another sender";

/// Size and modification time of a file, which identify its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// `None` for a stream.
    pub size: Option<u64>,
    pub mtime: Stamp,
}

/// A partial file, locked against other receivers.
#[derive(Debug)]
pub(crate) struct Part {
    parent: Arc<OwnedFd>,
    name: Vec<u8>,
    fd: OwnedFd,
    sidecar: Option<OwnedFd>,
    content: Content,
    /// The hash of the sender's identity; zeros without one.
    owner: Value,
    /// Its mode since creation: `complete` need not set it again.
    mode: Option<Mode>,
    /// It existed before this receiver.
    existed: bool,
    /// It is kept when the value is dropped.
    kept: bool,
}

impl Part {
    /// Opens the partial file of `name` for a sender. With `create` it is created if it is missing;
    /// otherwise the result is `None`.
    /// Fails if another receiver has locked it, or another entry has its name.
    pub(crate) fn open(
        parent: Arc<OwnedFd>,
        name: &[u8],
        content: Content,
        create: Option<Mode>,
        sender: Option<&str>,
    ) -> Result<Option<Self>, Refusal> {
        let part_name = part_name(name);
        let owner = sender.map_or([0; 32], |key| *blake3::hash(key.as_bytes()).as_bytes());
        let small = content.size.is_some_and(|size| size <= BLOCK);
        let mut created = None;
        if let Some(mode) = create {
            // Other users cannot read a large file before it is complete. The owner can write a
            // partial file, so that another attempt can open it.
            let own = Mode::RUSR | Mode::WUSR;
            let mode = if small { mode | own } else { own };
            let flags = PART | OFlags::CREATE | OFlags::EXCL;
            match rustix::fs::openat(&parent, &part_name[..], flags, mode) {
                Ok(fd) => created = Some((fd, small.then_some(mode))),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        let existed = created.is_none();
        let (fd, mode) = match created {
            Some(created) => created,
            None => match rustix::fs::openat(&parent, &part_name[..], PART, Mode::empty()) {
                Ok(fd) => (check_regular(fd)?, None),
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Err(name_in_use()),
                Err(errno) => return Err(errno.into()),
            },
        };
        let (name, sidecar, kept) = (name.into(), None, true);
        let mut part = Part { parent, name, fd, sidecar, content, owner, mode, existed, kept };
        part.lock()?;
        part.kept = existed;
        Ok(Some(part))
    }

    fn lock(&self) -> Result<(), Refusal> {
        match rustix::fs::flock(&self.fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(refusal(BUSY)),
            Err(errno) => return Err(errno.into()),
        }
        // Another receiver may have completed or removed the file between opening and locking.
        if self.is_named()? {
            Ok(())
        } else {
            Err(refusal("it was received from another sender meanwhile"))
        }
    }

    fn is_named(&self) -> Result<bool, Refusal> {
        let named = lstat(&self.parent, &part_name(&self.name))?;
        let own = rustix::fs::fstat(&self.fd)?;
        Ok(named.is_some_and(|named| identity(&named) == identity(&own)))
    }

    /// Returns the number of blocks at the beginning that the partial file holds with their values:
    /// none if its sidecar is of another sender. It ends at the first hole, which would have to be
    /// read and hashed.
    pub(crate) fn blocks(&self) -> u64 {
        let size = self.content.size.unwrap_or(0);
        let Ok((sidecar, _)) = open_file(&self.parent, &sidecar_name(&self.name)) else { return 0 };
        let mut header = [0; HEADER_BYTES as usize];
        if read_at(&sidecar, &mut header, 0) != Ok(header.len()) || header != self.header() {
            return 0;
        }
        let length = rustix::fs::fstat(&self.fd).map_or(0, |status| status.st_size as u64);
        let most = if length < size { length / BLOCK } else { blocks(size) };
        let (mut count, mut values) = (0, vec![0; 32 * 1024]);
        while count < most {
            let read = read_at(&sidecar, &mut values, HEADER_BYTES + 32 * count).unwrap_or(0);
            let (values, _) = values[..read].as_chunks::<32>();
            let known = values.iter().take_while(|value| **value != HOLE).count();
            count += known as u64;
            if known < values.len() || values.is_empty() {
                break;
            }
        }
        count.min(most)
    }

    /// Keeps the first `count` blocks, without their values, and truncates the rest.
    pub(crate) fn keep(&mut self, count: u64) -> Result<(), Refusal> {
        let size = self.content.size.unwrap_or(u64::MAX);
        rustix::fs::ftruncate(&self.fd, (count * BLOCK).min(size))?;
        self.kept = count > 0;
        let name = sidecar_name(&self.name);
        if count == 0 {
            remove(&self.parent, &name);
        }
        if size > BLOCK && self.content.size.is_some() {
            let flags = PART | OFlags::CREATE;
            let mode = Mode::RUSR | Mode::WUSR;
            let fd = rustix::fs::openat(&self.parent, &name[..], flags, mode)?;
            let fd = check_regular(fd)?;
            rustix::fs::ftruncate(&fd, HEADER_BYTES)?;
            write_at(&fd, &self.header(), 0)?;
            self.sidecar = Some(fd);
        }
        Ok(())
    }

    fn header(&self) -> [u8; HEADER_BYTES as usize] {
        let mut header = [0; HEADER_BYTES as usize];
        header[..8].copy_from_slice(MAGIC);
        header[8] = SIDECAR_VERSION;
        header[9..41].copy_from_slice(&self.owner);
        header
    }

    /// Whether this receiver created it.
    pub(crate) fn is_new(&self) -> bool {
        !self.existed
    }

    /// Whether it is kept when the value is dropped.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept
    }

    /// Returns the file, for reading.
    pub(crate) fn file(&self) -> &OwnedFd {
        &self.fd
    }

    /// Writes data at `offset`.
    pub(crate) fn write(&mut self, data: &[u8], offset: u64) -> Result<(), Refusal> {
        // Streams and files of a single block cannot be resumed.
        self.kept |= self.content.size.is_some_and(|size| size > BLOCK);
        Ok(write_at(&self.fd, data, offset)?)
    }

    /// Records the value of a verified block, after its data were written.
    pub(crate) fn verified(&mut self, index: u64, value: &Value) -> Result<(), Refusal> {
        match &self.sidecar {
            Some(fd) => Ok(write_at(fd, value, HEADER_BYTES + 32 * index)?),
            None => Ok(()),
        }
    }

    /// Returns the hash of the received file; `None` for a stream and for a single block.
    pub(crate) fn root(&self) -> Option<Value> {
        let count = blocks(self.content.size?);
        let sidecar = self.sidecar.as_ref()?;
        let mut tree = Tree::default();
        let mut values = vec![0; 32 * 1024];
        while tree.blocks() < count {
            let read = read_at(sidecar, &mut values, HEADER_BYTES + 32 * tree.blocks()).ok()?;
            let left = usize::try_from(count - tree.blocks()).unwrap_or(usize::MAX);
            let (values, _) = values[..read].as_chunks::<32>();
            values.iter().take(left).for_each(|value| tree.push(*value));
            if values.is_empty() {
                // Holes at the end have no values.
                tree.push_holes(count - tree.blocks());
            }
        }
        tree.root()
    }

    /// Sets the size, mode and time of the file, and renames it to its final name.
    /// Fails if a file of this name exists and may not be replaced.
    pub(crate) fn complete(
        &mut self,
        folder: &Folder,
        size: u64,
        mode: u16,
        overwrite: bool,
    ) -> Result<Identity, Refusal> {
        let status: Stat = rustix::fs::fstat(&self.fd)?;
        if status.st_size as u64 != size {
            rustix::fs::ftruncate(&self.fd, size)?;
        }
        let mode = folder.permissions(mode);
        if self.mode != Some(mode) {
            rustix::fs::fchmod(&self.fd, mode)?;
        }
        // A stream has no time of its own: it keeps that of its arrival.
        if self.content.size.is_some() {
            rustix::fs::futimens(&self.fd, &timestamps(self.content.mtime))?;
        }
        rename(&self.parent, &part_name(&self.name), &self.name, overwrite)?;
        if self.content.size.is_none_or(|size| size > BLOCK) {
            remove(&self.parent, &sidecar_name(&self.name));
        }
        self.kept = true;
        Ok(identity(&status))
    }

    /// Removes the partial file and its sidecar.
    pub(crate) fn discard(&self) {
        if self.is_named().unwrap_or(false) {
            remove(&self.parent, &part_name(&self.name));
            remove(&self.parent, &sidecar_name(&self.name));
        }
    }
}

impl Drop for Part {
    /// Keeps a partial file that can be resumed, and removes others.
    fn drop(&mut self) {
        if !self.kept {
            self.discard();
        }
    }
}

/// Checks that a partial file or a sidecar is a regular file without other names.
fn check_regular(fd: OwnedFd) -> Result<OwnedFd, Refusal> {
    let status = rustix::fs::fstat(&fd)?;
    let regular = file_type(&status) == FileType::RegularFile && status.st_nlink == 1;
    if regular { Ok(fd) } else { Err(name_in_use()) }
}

fn name_in_use() -> Refusal {
    refusal("another entry has the name of its partial file")
}

/// Reads until `data` is full, or the file ends.
pub(crate) fn read_at(fd: &OwnedFd, data: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut count = 0;
    while count < data.len() {
        match rustix::io::pread(fd, &mut data[count..], offset + count as u64) {
            Ok(0) => break,
            Ok(read) => count += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(count)
}

fn write_at(fd: &OwnedFd, data: &[u8], offset: u64) -> Result<(), Errno> {
    let mut count = 0;
    while count < data.len() {
        match rustix::io::pwrite(fd, &data[count..], offset + count as u64) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => count += written,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Whether a file has this size and time.
pub(crate) fn is_content(status: &Stat, content: &Content) -> bool {
    content.size == Some(status.st_size as u64) && mtime(status) == content.mtime
}
