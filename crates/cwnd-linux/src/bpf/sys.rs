//! The bpf(2) system call and the memory of a ring buffer: all that needs unsafe code.
//!
//! Every attribute is written into zeroed bytes at the offsets of the kernel's `union bpf_attr`, which
//! are part of its interface and never change.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const MAP_CREATE: i32 = 0;
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const PROG_LOAD: i32 = 5;
const OBJ_PIN: i32 = 6;
const OBJ_GET: i32 = 7;
const BTF_LOAD: i32 = 18;
const LINK_CREATE: i32 = 28;

const PROG_TYPE_STRUCT_OPS: u32 = 27;
const ATTACH_STRUCT_OPS: u32 = 44;

/// `BPF_MAP_TYPE_ARRAY`.
pub const ARRAY: u32 = 2;
/// `BPF_MAP_TYPE_STRUCT_OPS`.
pub const STRUCT_OPS: u32 = 26;
/// `BPF_MAP_TYPE_RINGBUF`.
pub const RINGBUF: u32 = 27;
/// `BPF_F_RDONLY_PROG`.
pub const READ_ONLY: u32 = 1 << 7;
/// `BPF_F_LINK`: a `struct_ops` that is registered while a link holds it (Linux 6.4).
pub const LINKED: u32 = 1 << 13;

/// A `union bpf_attr`, larger than any.
struct Attr([u64; 20]);

impl Attr {
    fn new() -> Self {
        Attr([0; 20])
    }

    /// A 32-bit member at a byte offset.
    fn word(mut self, offset: usize, value: u32) -> Self {
        // Little-endian, as the programs are.
        self.0[offset / 8] |= u64::from(value) << (offset % 8 * 8);
        self
    }

    fn fd(self, offset: usize, fd: BorrowedFd<'_>) -> Self {
        self.word(offset, fd.as_raw_fd() as u32)
    }

    /// A 64-bit member at a byte offset.
    fn long(mut self, offset: usize, value: u64) -> Self {
        self.0[offset / 8] = value;
        self
    }

    fn pointer<T: ?Sized>(self, offset: usize, to: &T) -> Self {
        let address = std::ptr::from_ref(to).cast::<u8>() as u64;
        self.long(offset, address)
    }

    /// A name of at most 15 bytes.
    fn name(mut self, offset: usize, name: &str) -> Self {
        for (at, byte) in name.bytes().take(15).enumerate() {
            let at = offset + at;
            let mut bytes = self.0[at / 8].to_ne_bytes();
            bytes[at % 8] = byte;
            self.0[at / 8] = u64::from_ne_bytes(bytes);
        }
        self
    }

    /// # Safety
    /// Every pointer in the attribute must lead to memory that is long enough for `command`, and
    /// writable where it writes.
    unsafe fn call(&self, command: i32) -> io::Result<i32> {
        let size = size_of_val(&self.0);
        // SAFETY: the attribute is `size` bytes long; the caller answers for what it points to.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_ptr(), size) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
    }

    /// # Safety
    /// As [`call`](Self::call), and `command` must return a descriptor.
    unsafe fn open(&self, command: i32) -> io::Result<OwnedFd> {
        // SAFETY: the caller's promise, and a descriptor that nobody else has.
        unsafe { Ok(OwnedFd::from_raw_fd(self.call(command)?)) }
    }
}

/// What a map is made of.
pub struct MapSpec<'a> {
    /// `BPF_MAP_TYPE_*`.
    pub kind: u32,
    /// Bytes of a key.
    pub key: u32,
    /// Bytes of a value.
    pub value: u32,
    /// How many there are.
    pub entries: u32,
    /// `BPF_F_*`.
    pub flags: u32,
    /// At most 15 bytes.
    pub name: &'a str,
    /// The type of the value in the kernel's BTF, for a `struct_ops`.
    pub value_type: u32,
}

/// Makes a map. `types` is the BTF that a `struct_ops` has to come with, whatever is in it.
pub fn map_create(map: &MapSpec<'_>, types: Option<BorrowedFd<'_>>) -> io::Result<OwnedFd> {
    let attr = types.map_or_else(Attr::new, |types| Attr::new().fd(48, types));
    let attr = attr
        .word(0, map.kind)
        .word(4, map.key)
        .word(8, map.value)
        .word(12, map.entries)
        .word(16, map.flags)
        .name(28, map.name)
        .word(60, map.value_type);
    // SAFETY: it holds no pointer.
    unsafe { attr.open(MAP_CREATE) }
}

/// Loads BTF.
pub fn types_load(btf: &[u8]) -> io::Result<OwnedFd> {
    let attr = Attr::new().pointer(0, btf).word(16, btf.len() as u32);
    // SAFETY: the bytes are as many as said.
    unsafe { attr.open(BTF_LOAD) }
}

/// Writes the only value of a map whose key is a 32-bit 0 and whose value is as long as `value`.
pub fn map_write(map: BorrowedFd<'_>, value: &[u8]) -> io::Result<()> {
    let attr = Attr::new().fd(0, map).pointer(8, &0_u32).pointer(16, value);
    // SAFETY: the key is 4 bytes long, and the caller's value as long as the map's.
    unsafe { attr.call(MAP_UPDATE).map(drop) }
}

/// Reads the only value of such a map.
pub fn map_read(map: BorrowedFd<'_>, value: &mut [u8]) -> io::Result<()> {
    let attr = Attr::new().fd(0, map).pointer(8, &0_u32).long(16, value.as_mut_ptr() as u64);
    // SAFETY: as for writing, and the value is writable.
    unsafe { attr.call(MAP_LOOKUP).map(drop) }
}

/// A program for one member of a `struct_ops`.
pub struct Program<'a> {
    /// Its instructions, eight bytes each.
    pub code: &'a [u64],
    /// At most 15 bytes.
    pub name: &'a str,
    /// The license, without its zero.
    pub license: &'a str,
    /// The `struct_ops` in the kernel's BTF.
    pub ops: u32,
    /// The position of the member.
    pub member: u32,
}

/// Loads a program. What the verifier has to say goes into `log`.
pub fn program_load(program: &Program<'_>, log: Option<&mut [u8]>) -> io::Result<OwnedFd> {
    let license = CString::new(program.license)?;
    let mut attr = Attr::new()
        .word(0, PROG_TYPE_STRUCT_OPS)
        .word(4, program.code.len() as u32)
        .pointer(8, program.code)
        .long(16, license.as_ptr() as u64)
        .name(48, program.name)
        .word(68, program.member)
        .word(108, program.ops);
    if let Some(log) = log {
        attr = attr.word(24, 1).word(28, log.len() as u32).long(32, log.as_mut_ptr() as u64);
    }
    // SAFETY: the instructions are as many as said, the license ends with a zero, the log is writable
    // and as long as said.
    unsafe { attr.open(PROG_LOAD) }
}

/// Registers a `struct_ops` for as long as the link is there.
pub fn link_create(ops: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let attr = Attr::new().fd(0, ops).word(8, ATTACH_STRUCT_OPS);
    // SAFETY: it holds no pointer.
    unsafe { attr.open(LINK_CREATE) }
}

/// Gives what a descriptor stands for a name in a BPF file system, which keeps it.
pub fn pin(fd: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let attr = Attr::new().long(0, path.as_ptr() as u64).fd(8, fd);
    // SAFETY: the path ends with a zero.
    unsafe { attr.call(OBJ_PIN).map(drop) }
}

/// What stands under a name in a BPF file system.
pub fn pinned(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let attr = Attr::new().long(0, path.as_ptr() as u64);
    // SAFETY: the path ends with a zero.
    unsafe { attr.open(OBJ_GET) }
}

/// Mounts a BPF file system.
pub fn mount(at: &Path) -> io::Result<()> {
    let at = CString::new(at.as_os_str().as_bytes())?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: all strings end with a zero, and there is no data.
    let done = unsafe {
        libc::mount(c"bpf".as_ptr(), at.as_ptr(), c"bpf".as_ptr(), flags, std::ptr::null())
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The type of the file system at a path, as its magic number.
pub fn file_system(at: &Path) -> io::Result<i64> {
    let at = CString::new(at.as_os_str().as_bytes())?;
    let mut answer = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path ends with a zero, and the answer has room for what is written.
    let done = unsafe { libc::statfs(at.as_ptr(), answer.as_mut_ptr()) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded and has written all of it.
    #[allow(clippy::unnecessary_cast, reason = "its type is the architecture's")]
    Ok(unsafe { answer.assume_init() }.f_type as i64)
}

/// Nanoseconds of CLOCK_MONOTONIC, which is also the kernel's clock of TCP.
pub fn monotonic() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: there is room for the answer; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The reading end of a ring buffer.
pub struct Ring {
    fd: OwnedFd,
    consumer: *mut libc::c_void,
    producer: *mut libc::c_void,
    page: usize,
    size: usize,
}

// SAFETY: the mapped memory belongs to this value alone, and is not bound to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a ring buffer of `size` bytes.
    pub fn new(fd: OwnedFd, size: usize) -> io::Result<Ring> {
        // SAFETY: a question about the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let map = |length, access, offset| {
            // SAFETY: a new mapping, at a place that the system chooses.
            let at = unsafe {
                let raw = fd.as_raw_fd();
                libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, raw, offset)
            };
            if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(at) }
        };
        let consumer = map(page, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        // The data is there twice in a row, so that no record is torn.
        let producer =
            map(page + 2 * size, libc::PROT_READ, page as libc::off_t).inspect_err(|_| {
                // SAFETY: what was mapped a moment ago, and nobody has seen.
                unsafe { libc::munmap(consumer, page) };
            })?;
        Ok(Ring { fd, consumer, producer, page, size })
    }

    /// Waits until there is something, for at most so many milliseconds.
    pub fn wait(&self, millis: i32) {
        let fd = self.fd.as_fd().as_raw_fd();
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor, as said. An interrupted wait is a short one.
        unsafe { libc::poll(&raw mut poll, 1, millis) };
    }

    /// Hands over the records that have come.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8])) {
        // SAFETY: the positions are aligned 64-bit words at the start of both mappings, and the kernel
        // reads and writes them as atomics.
        let (consumer, producer) =
            unsafe { (&*self.consumer.cast::<AtomicU64>(), &*self.producer.cast::<AtomicU64>()) };
        let mut at = consumer.load(Ordering::Relaxed);
        while at < producer.load(Ordering::Acquire) {
            // SAFETY: below the producer's position stands a whole record: eight bytes, of which the
            // first four are its length and two flags, and as many bytes as that says.
            let (length, data) = unsafe {
                let offset = self.page + (at as usize & (self.size - 1));
                let head = self.producer.cast::<u8>().add(offset);
                let length = (*head.cast::<AtomicU32>()).load(Ordering::Acquire);
                (length, head.add(8))
            };
            if length >> 31 != 0 {
                return; // still being written
            }
            let bytes = (length & 0x3fff_ffff) as usize;
            if length >> 30 == 0 {
                // SAFETY: as above; the kernel leaves it alone until the position has moved past it.
                each(unsafe { std::slice::from_raw_parts(data, bytes) });
            }
            at += (bytes as u64 + 8).next_multiple_of(8);
            consumer.store(at, Ordering::Release);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: both were mapped with these lengths, and nothing refers to them any more.
        unsafe {
            libc::munmap(self.consumer, self.page);
            libc::munmap(self.producer, self.page + 2 * self.size);
        }
    }
}
