//! From an object of the package to a controller that the kernel offers: maps, programs, registration.
//!
//! libbpf does the same and much more; it needs a C build with autotools, or libelf at run time, and
//! this needs neither. What it knows of an object is what `kernel/` uses: programs in sections
//! `struct_ops/MEMBER`, `.params` (the law's parameters), `.data` (`struct control`), `.ring` (a ring
//! buffer), members of the kernel's structs by CO-RE, and the kernel's own functions by name.

use super::btf::{Btf, smallest};
use super::object::{Object, Relocation};
use super::relocate::{Misfit, relocate};
use super::sys::{self, MapSpec, Program};
use super::{Error, Form};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Bytes of a ring buffer: some ten thousand events.
pub const RING: usize = 1 << 20;

/// The objects of the package, by law.
const OBJECTS: [(&str, &[u8]); 6] = [
    ("aimd", include_bytes!("objects/aimd.o")),
    ("binomial", include_bytes!("objects/binomial.o")),
    ("simd", include_bytes!("objects/simd.o")),
    ("aira", include_bytes!("objects/aira.o")),
    ("aiad", include_bytes!("objects/aiad.o")),
    ("daimd", include_bytes!("objects/daimd.o")),
];

/// `TCP_CONG_NON_RESTRICTED`: every user, and every network namespace, may choose it.
const FOR_EVERYONE: u32 = 1;

const OPS: &str = "tcp_congestion_ops";
const OPS_VALUE: &str = "bpf_struct_ops_tcp_congestion_ops";

/// A controller that the kernel offers while `link` is open or pinned.
pub struct Registered {
    /// Its registration.
    pub link: OwnedFd,
    /// Its `struct control`.
    pub control: OwnedFd,
    /// Its ring buffer.
    pub events: OwnedFd,
}

/// The maps of an object, by section.
struct Maps {
    params: OwnedFd,
    control: OwnedFd,
    events: OwnedFd,
}

/// Registers a law under a name.
///
/// `kernel` is the kernel's BTF, `control` what `struct control` holds at first.
///
/// # Errors
/// What the kernel refuses, with the verifier's last words.
pub fn register(
    form: &Form,
    name: &str,
    control: &[u8],
    kernel: &[u8],
) -> Result<Registered, Error> {
    let law = form.law;
    let damaged = |problem| Error::Object { law, problem: String::from(problem) };
    let misfit = |misfit| match misfit {
        Misfit::Damaged(problem) => damaged(problem),
        Misfit::Member(problem) => Error::Object { law, problem },
    };
    let file =
        OBJECTS.iter().find(|(name, _)| *name == law).ok_or_else(|| damaged("is missing"))?.1;
    let object = Object::parse(file).map_err(damaged)?;
    let kernel = Btf::parse(kernel).map_err(|problem| {
        Error::Missing(format!("/sys/kernel/btf/vmlinux is not understood: {problem}"))
    })?;
    let types = object.section(".BTF").map_err(damaged)?;
    let own = Btf::parse(types.0).map_err(damaged)?;
    let extension = object.section(".BTF.ext").map_err(damaged)?;
    let license = object.section("license").and_then(|text| text.text(0)).map_err(damaged)?;
    let ops = kernel.structure(OPS).zip(kernel.structure(OPS_VALUE));
    let (ops, value_type) =
        ops.ok_or_else(|| Error::Missing(format!("this kernel has no struct_ops of {OPS}")))?;

    let maps = Maps::new(form, &object, control)?;
    let value_size = kernel.size(value_type).map_err(damaged)?;
    let data = kernel.find(value_type, "data").map_err(damaged)?;
    let data = data.ok_or_else(|| damaged("the kernel's struct_ops has no data"))?.bit as usize / 8;
    let mut value = vec![0; value_size as usize];
    let mut put = |member: &str, bytes: &[u8]| -> Result<(), Error> {
        let found = kernel.find(ops, member).map_err(damaged)?;
        let missing =
            || Error::Object { law, problem: format!("this kernel has no {OPS}.{member}") };
        let at = data + found.ok_or_else(missing)?.bit as usize / 8;
        let place = value.get_mut(at..at + bytes.len());
        place.ok_or_else(|| damaged("a member outside its struct"))?.copy_from_slice(bytes);
        Ok(())
    };
    put("name", name.as_bytes())?;
    put("flags", &FOR_EVERYONE.to_ne_bytes())?;

    // The kernel takes its own reference to each program.
    let mut programs = Vec::new();
    for (number, section) in object.sections.iter().enumerate() {
        let Some(member) = section.name.strip_prefix("struct_ops/") else { continue };
        let words = section.data.0.chunks_exact(8);
        let mut code: Vec<u64> =
            words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())).collect();
        relocate(&mut code, section.name, &own, extension, &kernel).map_err(misfit)?;
        for relocation in object.relocations(number).map_err(damaged)? {
            maps.resolve(&mut code, &relocation, &object, &kernel).map_err(misfit)?;
        }
        let members = kernel.members(ops).map_err(damaged)?;
        let place = members.iter().position(|it| it.name == member).unwrap_or(0) as u32;
        let program = Program { code: &code, name: member, license, ops, member: place };
        let loaded = load(law, &program)?;
        put(member, &(loaded.as_raw_fd() as u64).to_ne_bytes())?;
        programs.push(loaded);
    }

    let types = sys::types_load(&smallest()).map_err(Error::kernel("BTF is refused"))?;
    let spec = MapSpec {
        kind: sys::STRUCT_OPS,
        key: 4,
        value: value_size,
        entries: 1,
        flags: sys::LINKED,
        // A map's name knows no hyphen.
        name: law,
        value_type,
    };
    let map = sys::map_create(&spec, Some(types.as_fd()))
        .map_err(Error::kernel("a controller by link (Linux 6.4) is refused"))?;
    sys::map_write(map.as_fd(), &value).map_err(Error::kernel(format!("{law} is refused")))?;
    let link = sys::link_create(map.as_fd()).map_err(|source| match source.raw_os_error() {
        Some(libc::EEXIST) => Error::Name(format!(
            "the kernel has a controller called {name} already: choose another"
        )),
        _ => Error::Kernel { doing: format!("{name} is not registered"), source },
    })?;
    Ok(Registered { link, control: maps.control, events: maps.events })
}

/// Loads a program; where the verifier refuses it, the error holds its last words.
fn load(law: &'static str, program: &Program<'_>) -> Result<OwnedFd, Error> {
    let first = match sys::program_load(program, None) {
        Ok(loaded) => return Ok(loaded),
        Err(error) => error,
    };
    let mut log = vec![0; 1 << 20];
    let again = sys::program_load(program, Some(&mut log));
    let source = again.err().unwrap_or(first);
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let last = text.lines().rev().find(|line| !line.starts_with("processed") && !line.is_empty());
    let words = last.map(|line| format!(" ({})", line.trim())).unwrap_or_default();
    Err(Error::Kernel { doing: format!("{law}: {} is refused{words}", program.name), source })
}

impl Maps {
    fn new(form: &Form, object: &Object<'_>, control: &[u8]) -> Result<Maps, Error> {
        let law = form.law;
        let damaged = |problem| Error::Object { law, problem: String::from(problem) };
        let size = |section| object.section(section).map(|data| data.0.len()).map_err(damaged);
        let params: Vec<u8> = form.params.iter().flat_map(|word| word.to_ne_bytes()).collect();
        if params.len() != size(".params")? || control.len() != size(".data")? {
            return Err(damaged("it expects other parameters"));
        }
        let refused = |what: &str| Error::kernel(format!("{what} of {law} is refused"));
        let array = |name, value: &[u8], flags| {
            let (kind, value_size) = (sys::ARRAY, value.len() as u32);
            let spec =
                MapSpec { kind, key: 4, value: value_size, entries: 1, flags, name, value_type: 0 };
            let map = sys::map_create(&spec, None).map_err(refused("a map"))?;
            sys::map_write(map.as_fd(), value).map_err(refused("a map's content"))?;
            Ok(map)
        };
        let ring = MapSpec {
            kind: sys::RINGBUF,
            key: 0,
            value: 0,
            entries: RING as u32,
            flags: 0,
            name: "events",
            value_type: 0,
        };
        Ok(Maps {
            params: array("params", &params, sys::READ_ONLY)?,
            control: array("control", control, 0)?,
            events: sys::map_create(&ring, None).map_err(refused("the ring buffer"))?,
        })
    }

    /// Has an instruction refer to what it means: a map, or a function of the kernel.
    fn resolve(
        &self,
        code: &mut [u64],
        relocation: &Relocation<'_>,
        object: &Object<'_>,
        kernel: &Btf<'_>,
    ) -> Result<(), Misfit> {
        /// What stands in an instruction's source register.
        const MAP: u64 = 1;
        const MAP_VALUE: u64 = 2;
        const KERNEL_FUNCTION: u64 = 2;
        let at = relocation.offset / 8;
        let source = |register: u64, low: u32| register << 12 | u64::from(low) << 32;
        let pair = code.get_mut(at..).ok_or("a relocation of no instruction")?;
        let Some(section) = relocation.section else {
            let name = relocation.symbol;
            let missing = || Misfit::Member(format!("this kernel has no function {name}"));
            let function = kernel.function(name).ok_or_else(missing)?;
            pair[0] = pair[0] & 0x0fff | source(KERNEL_FUNCTION, function);
            return Ok(());
        };
        let section = object.sections.get(section).ok_or("a symbol of no section")?.name;
        let (map, register) = match section {
            ".params" => (&self.params, MAP_VALUE),
            ".data" => (&self.control, MAP_VALUE),
            ".ring" => (&self.events, MAP),
            _ => return Err("a symbol of an unknown section".into()),
        };
        let [first, second, ..] = pair else { return Err("half an instruction".into()) };
        // The offset into the value: the symbol's, and what clang added to it.
        let inner = (*first >> 32) as u32 + relocation.value as u32;
        *first = *first & 0x0fff | source(register, map.as_raw_fd() as u32);
        *second = if register == MAP_VALUE { u64::from(inner) << 32 } else { 0 };
        Ok(())
    }
}

/// The kernel's BTF.
///
/// # Errors
/// Where it has none.
pub fn kernel_types() -> Result<Vec<u8>, Error> {
    std::fs::read("/sys/kernel/btf/vmlinux").map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Missing(
            "this kernel does not describe its types (/sys/kernel/btf/vmlinux is missing): it needs \
             CONFIG_DEBUG_INFO_BTF"
                .into(),
        ),
        _ => Error::Kernel { doing: "/sys/kernel/btf/vmlinux".into(), source: error },
    })
}
