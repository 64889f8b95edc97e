//! A file that is being received, and its sidecar.

use crate::folder::{
    Folder, Identity, Refusal, file_type, identity, look, mtime, open_file, refusal, remove,
    rename, timestamps,
};
use crate::frame::Stamp;
use crate::hash::{BLOCK, Tree, Value, block_len, block_value, blocks};
use crate::names::{part_name, sidecar_name};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

const PART: OFlags =
    OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const MAGIC: &[u8; 8] = b"cwndsums";
const SIDECAR_VERSION: u8 = 1;
/// Bytes of a sidecar's header; the value of block `i` follows 32 `i` bytes behind it.
const HEAD: u64 = 64;
/// The value of a block that was not verified.
const MISSING: Value = [0; 32];

pub(crate) const BUSY: &str = "it is being received from another sender";

/// Size and time of the file that is received: what tells its contents apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// `None` for a stream.
    pub size: Option<u64>,
    pub mtime: Stamp,
}

/// Identifies the run of the operating system: after another start, written data may be lost.
fn boot() -> Option<[u8; 16]> {
    static BOOT: OnceLock<Option<[u8; 16]>> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        Some(u128::from_str_radix(&digits, 16).ok()?.to_be_bytes())
    })
}

/// A file under its temporary name, locked against other receivers.
#[derive(Debug)]
pub(crate) struct Part {
    parent: Arc<OwnedFd>,
    name: Vec<u8>,
    fd: OwnedFd,
    sidecar: Option<OwnedFd>,
    content: Content,
    /// Its mode from the beginning: `complete` need not change it.
    mode: Option<Mode>,
    /// It was there before this receiver.
    existed: bool,
    /// It stays when this receiver lets go of it.
    kept: bool,
}

impl Part {
    /// Opens the part of the file `name`; with `create` it is made if it is missing, otherwise there is
    /// none.
    ///
    /// # Errors
    /// When another receiver holds it, or something else has its name.
    pub(crate) fn open(
        parent: Arc<OwnedFd>,
        name: &[u8],
        content: Content,
        create: Option<Mode>,
    ) -> Result<Option<Self>, Refusal> {
        let part = part_name(name);
        let small = content.size.is_some_and(|size| size <= BLOCK);
        if let Some(mode) = create {
            // Nobody sees more of a large file than of a complete one while it arrives. Its owner can write
            // a part that is left: another attempt opens it.
            let owner = Mode::RUSR | Mode::WUSR;
            let mode = if small { mode | owner } else { owner };
            let flags = PART | OFlags::CREATE | OFlags::EXCL;
            match rustix::fs::openat(&parent, &part[..], flags, mode) {
                Ok(fd) => {
                    let mut made = Part::new(parent, name, fd, content, false);
                    made.lock()?;
                    made.kept = false;
                    made.mode = small.then_some(mode);
                    return Ok(Some(made));
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        let fd = match rustix::fs::openat(&parent, &part[..], PART, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Err(in_the_way()),
            Err(errno) => return Err(errno.into()),
        };
        let status = rustix::fs::fstat(&fd)?;
        if file_type(&status) != FileType::RegularFile || status.st_nlink != 1 {
            return Err(in_the_way());
        }
        let part = Part::new(parent, name, fd, content, true);
        part.lock()?;
        Ok(Some(part))
    }

    fn new(
        parent: Arc<OwnedFd>,
        name: &[u8],
        fd: OwnedFd,
        content: Content,
        existed: bool,
    ) -> Self {
        let (name, sidecar, mode, kept) = (name.into(), None, None, true);
        Part { parent, name, fd, sidecar, content, mode, existed, kept }
    }

    fn lock(&self) -> Result<(), Refusal> {
        match rustix::fs::flock(&self.fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(refusal(BUSY)),
            Err(errno) => return Err(errno.into()),
        }
        // Between opening and locking another receiver may have completed it, or removed it.
        if self.is_named()? {
            Ok(())
        } else {
            Err(refusal("it was received from another sender just now"))
        }
    }

    fn is_named(&self) -> Result<bool, Refusal> {
        let named = look(&self.parent, &part_name(&self.name))?;
        let own = rustix::fs::fstat(&self.fd)?;
        Ok(named.is_some_and(|named| identity(&named) == identity(&own)))
    }

    /// Finds how many of the first blocks are verified, if the sidecar is of the same content. Reads the
    /// part only if the system was started since.
    ///
    /// # Errors
    /// A sentence why nothing of it can be used.
    pub(crate) fn resume(&mut self) -> Result<u64, String> {
        let Some(size) = self.content.size else {
            return Err("a stream is sent from its start".into());
        };
        let sidecar = match open_file(&self.parent, &sidecar_name(&self.name)) {
            Ok((fd, _)) => fd,
            Err(_) => return Err("what is known of its first part is missing".into()),
        };
        let mut head = [0; HEAD as usize];
        let known = read_at(&sidecar, &mut head, 0).unwrap_or(0) == HEAD as usize;
        let own = self.head();
        if !known || head[..9] != own[..9] {
            return Err("what is known of its first part is unreadable".into());
        }
        // Size and time follow the version and the start of the system.
        if head[25..45] != own[25..45] {
            return Err("its size or time has changed since its first part was sent".into());
        }
        let trusted = boot().is_some_and(|boot| head[9..25] == boot);
        let length = rustix::fs::fstat(&self.fd).map_or(0, |status| status.st_size as u64);
        let mut verified = 0;
        let mut data = Vec::new();
        let mut values = [0; 32 * 1024];
        'blocks: while verified < blocks(size) {
            let have = read_at(&sidecar, &mut values, HEAD + 32 * verified).unwrap_or(0);
            if have < 32 {
                break;
            }
            for value in values[..have].chunks_exact(32) {
                let bytes = block_len(size, verified);
                if bytes == 0 || value == MISSING || verified * BLOCK + bytes > length {
                    break 'blocks;
                }
                if !trusted {
                    data.resize(bytes as usize, 0);
                    let read = read_at(&self.fd, &mut data, verified * BLOCK).unwrap_or(0);
                    if read < data.len() || block_value(verified, &data) != *value {
                        break 'blocks;
                    }
                }
                verified += 1;
            }
        }
        Ok(verified)
    }

    /// Keeps the first `verified` blocks: the rest of part and sidecar is cut off.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn keep(&mut self, verified: u64) -> Result<(), Refusal> {
        let size = self.content.size.unwrap_or(u64::MAX);
        rustix::fs::ftruncate(&self.fd, (verified * BLOCK).min(size))?;
        self.kept = verified > 0;
        self.start_sidecar(verified)
    }

    /// Begins a sidecar that holds the values of the first `verified` blocks. The part stays as it is.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn start_sidecar(&mut self, verified: u64) -> Result<(), Refusal> {
        let name = sidecar_name(&self.name);
        if verified == 0 {
            remove(&self.parent, &name);
        }
        if self.content.size.is_some_and(|size| size > BLOCK) {
            let flags = PART | OFlags::CREATE;
            let mode = Mode::RUSR | Mode::WUSR;
            let fd = rustix::fs::openat(&self.parent, &name[..], flags, mode)?;
            let status = rustix::fs::fstat(&fd)?;
            if file_type(&status) != FileType::RegularFile || status.st_nlink != 1 {
                return Err(in_the_way());
            }
            rustix::fs::ftruncate(&fd, HEAD + 32 * verified)?;
            write_at(&fd, &self.head(), 0)?;
            self.sidecar = Some(fd);
        }
        Ok(())
    }

    fn head(&self) -> [u8; HEAD as usize] {
        let mut head = [0; HEAD as usize];
        head[..8].copy_from_slice(MAGIC);
        head[8] = SIDECAR_VERSION;
        head[9..25].copy_from_slice(&boot().unwrap_or_default());
        head[25..33].copy_from_slice(&self.content.size.unwrap_or_default().to_be_bytes());
        head[33..41].copy_from_slice(&self.content.mtime.secs.to_be_bytes());
        head[41..45].copy_from_slice(&self.content.mtime.nanos.to_be_bytes());
        head
    }

    /// Whether this receiver has made it.
    pub(crate) fn is_new(&self) -> bool {
        !self.existed
    }

    /// Whether it stays when this receiver lets go of it.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept
    }

    /// The file to read what is there.
    pub(crate) fn file(&self) -> &OwnedFd {
        &self.fd
    }

    /// Writes bytes of the file.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn write(&mut self, data: &[u8], offset: u64) -> Result<(), Refusal> {
        // Nothing of a stream or of a single block can be resumed.
        self.kept |= self.content.size.is_some_and(|size| size > BLOCK);
        Ok(write_at(&self.fd, data, offset)?)
    }

    /// Notes that a block is verified: after its bytes were written.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn verified(&mut self, index: u64, value: &Value) -> Result<(), Refusal> {
        match &self.sidecar {
            Some(fd) => Ok(write_at(fd, value, HEAD + 32 * index)?),
            None => Ok(()),
        }
    }

    /// Combines the values of all blocks; `None` if some are unknown.
    pub(crate) fn root(&self) -> Option<Value> {
        let count = blocks(self.content.size?);
        let sidecar = self.sidecar.as_ref()?;
        let mut tree = Tree::default();
        let mut values = vec![0; 32 * 1024];
        let mut index = 0;
        while index < count {
            let have = read_at(sidecar, &mut values, HEAD + 32 * index).ok()?;
            let wanted = usize::try_from(count - index).unwrap_or(usize::MAX);
            for value in values[..have].as_chunks::<32>().0.iter().take(wanted) {
                if *value == MISSING {
                    return None;
                }
                tree.push(*value);
                index += 1;
            }
            if have < 32 {
                return None;
            }
        }
        tree.root()
    }

    /// Gives the file its size, mode, time and final name.
    ///
    /// # Errors
    /// When a file of that name is there and not to be replaced, or the system refuses.
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
        rustix::fs::futimens(&self.fd, &timestamps(self.content.mtime))?;
        rename(&self.parent, &part_name(&self.name), &self.name, overwrite)?;
        if self.content.size.is_none_or(|size| size > BLOCK) {
            remove(&self.parent, &sidecar_name(&self.name));
        }
        self.kept = true;
        Ok(identity(&status))
    }

    /// Removes the part and its sidecar.
    pub(crate) fn discard(&self) {
        if self.is_named().unwrap_or(false) {
            remove(&self.parent, &part_name(&self.name));
            remove(&self.parent, &sidecar_name(&self.name));
        }
    }
}

impl Drop for Part {
    /// A part that another attempt can resume stays, others are removed.
    fn drop(&mut self) {
        if !self.kept {
            self.discard();
        }
    }
}

fn in_the_way() -> Refusal {
    refusal("something else has the name of its part")
}

/// Reads as many bytes as there are, at most `data`'s.
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

/// Whether a file has this content, by size and time.
pub(crate) fn is_content(status: &Stat, content: &Content) -> bool {
    content.size == Some(status.st_size as u64) && mtime(status) == content.mtime
}
