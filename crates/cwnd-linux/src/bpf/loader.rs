//! From an object of the package to a controller that the kernel offers, by libbpf.

use super::{Error, Form};
use libbpf_rs::btf::types::{Func, Struct};
use libbpf_rs::{
    Btf, ErrorKind, Link, Map, MapCore, MapHandle, MapMut, ObjectBuilder, OpenMapMut, OpenObject,
    PrintLevel, set_print,
};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;

/// The objects of the package, by law.
const OBJECTS: [(&str, &[u8]); 6] = [
    ("aimd", include_bytes!("objects/aimd.o")),
    ("binomial", include_bytes!("objects/binomial.o")),
    ("simd", include_bytes!("objects/simd.o")),
    ("aira", include_bytes!("objects/aira.o")),
    ("aiad", include_bytes!("objects/aiad.o")),
    ("daimd", include_bytes!("objects/daimd.o")),
];

/// The maps of an object: the law's parameters, `struct control`, the ring buffer, and the
/// `tcp_congestion_ops`.
const PARAMS: &str = ".rodata.params";
const CONTROL: &str = ".data.control";
const EVENTS: &str = "events";
const CONTROLLER: &str = "controller";

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// A controller that the kernel offers while `link` is open or pinned.
pub(super) struct Registered {
    /// Its registration.
    pub link: Link,
    /// Its `struct control`.
    pub control: MapHandle,
    /// Its ring buffer.
    pub events: MapHandle,
}

thread_local! {
    /// What libbpf has said in this thread since somebody last asked.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps what libbpf says from the terminal: errors tell of it.
pub(super) fn listen() {
    SAID.take();
    set_print(Some((PrintLevel::Warn, |_, text| {
        SAID.with_borrow_mut(|said| said.push_str(&text))
    })));
}

/// The verifier's last words.
fn verdict(said: &str) -> Option<&str> {
    let (log, _) = said.split_once("-- BEGIN PROG LOAD LOG --")?.1.split_once("-- END")?;
    let last = log.lines().rfind(|line| !line.starts_with("processed") && !line.trim().is_empty());
    last.map(str::trim)
}

/// Why an object was refused. Of what libbpf says the first line is nearest to the cause.
fn refused(law: &'static str, error: &libbpf_rs::Error) -> Error {
    let said = SAID.take();
    if let Some(verdict) = verdict(&said) {
        return Error::Object { law, problem: format!("the kernel refuses it ({verdict})") };
    }
    let first = said.lines().next().map(|line| line.trim_start_matches("libbpf: "));
    let words = match first {
        Some(words) if error.kind() != ErrorKind::PermissionDenied => format!(" ({words})"),
        _ => String::new(),
    };
    Error::bpf(format!("{law} is refused{words}"))(error)
}

fn open_map<'a>(object: &'a mut OpenObject, name: &str) -> Option<OpenMapMut<'a>> {
    object.maps_mut().find(|map| map.name() == OsStr::new(name))
}

/// Registers a law under a name.
///
/// `control` is what `struct control` holds at first.
///
/// # Errors
/// What the kernel refuses, with the verifier's last words.
pub(super) fn register(form: &Form, name: &str, control: &[u8]) -> Result<Registered, Error> {
    let law = form.law;
    let damaged = |problem: &str| Error::Object { law, problem: problem.into() };
    let refused = |error| refused(law, &error);
    let bytes =
        OBJECTS.iter().find(|(name, _)| *name == law).ok_or_else(|| damaged("is missing"))?.1;
    listen();
    let mut builder = ObjectBuilder::default();
    let mut object =
        builder.name(law).and_then(|named| named.open_memory(bytes)).map_err(refused)?;
    let params: Vec<u8> = form.params.iter().flat_map(|word| word.to_ne_bytes()).collect();
    for (map, value) in [(PARAMS, &params[..]), (CONTROL, control)] {
        let mut map = open_map(&mut object, map).ok_or_else(|| damaged("a map is missing"))?;
        map.set_initial_value(value).map_err(|_| damaged("it expects other parameters"))?;
    }
    // The name is the first member.
    let mut ops = open_map(&mut object, CONTROLLER);
    let place = ops.as_mut().and_then(|ops| ops.initial_value_mut()?.get_mut(..name.len()));
    place.ok_or_else(|| damaged("it has no controller"))?.copy_from_slice(name.as_bytes());

    let mut object = object.load().map_err(refused)?;
    let missing = || damaged("a map is missing");
    let is = |map: &Map<'_>, name| map.name() == OsStr::new(name);
    let handle = |name| {
        let map = object.maps().find(|map| is(map, name)).ok_or_else(missing)?;
        MapHandle::try_from(&map).map_err(refused)
    };
    let (control, events) = (handle(CONTROL)?, handle(EVENTS)?);
    let mut ops = object.maps_mut().find(|map: &MapMut<'_>| is(map, CONTROLLER));
    let ops = ops.as_mut().ok_or_else(missing)?;
    let link = ops.attach_struct_ops().map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Error::Name(format!(
            "the kernel has a controller called {name} already: choose another"
        )),
        _ => Error::bpf(format!("{name} is not registered"))(&error),
    })?;
    Ok(Registered { link, control, events })
}

/// Whether the kernel describes its types, and has what the laws need.
///
/// # Errors
/// What is missing.
pub(super) fn kernel_types() -> Result<(), Error> {
    if !fs::exists(VMLINUX).map_err(Error::kernel(VMLINUX))? {
        return Err(Error::Missing(format!(
            "this kernel does not describe its types ({VMLINUX} is missing): it needs \
             CONFIG_DEBUG_INFO_BTF"
        )));
    }
    listen();
    let kernel = Btf::from_path(VMLINUX).map_err(|error| Error::bpf(VMLINUX)(&error))?;
    for (name, problem) in [
        (
            "bpf_struct_ops_tcp_congestion_ops",
            "this kernel has no controllers in eBPF: it needs CONFIG_BPF_JIT, and 5.6",
        ),
        ("bpf_struct_ops_link", "a controller cannot be kept loaded by a link: it needs Linux 6.4"),
    ] {
        if kernel.type_by_name::<Struct<'_>>(name).is_none() {
            return Err(Error::Missing(problem.into()));
        }
    }
    let functions = ["tcp_slow_start", "tcp_reno_undo_cwnd"];
    match functions.iter().find(|name| kernel.type_by_name::<Func<'_>>(name).is_none()) {
        Some(name) => Err(Error::Missing(format!("the kernel's function {name} is not there"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifiers_last_words_are_told() {
        let said = "libbpf: prog 'init': BPF program load failed: Permission denied\n\
                    libbpf: prog 'init': -- BEGIN PROG LOAD LOG --\n\
                    0: (79) r6 = *(u64 *)(r1 +0)\nR1 type=scalar expected=fp\n\
                    processed 1 insns (limit 1000000)\n-- END PROG LOAD LOG --\n\
                    libbpf: failed to load object 'simd'\n";
        assert_eq!(verdict(said), Some("R1 type=scalar expected=fp"));
        assert_eq!(verdict("libbpf: failed to load object 'simd'\n"), None);
    }

    #[test]
    fn every_object_has_its_maps_and_takes_its_parameters() {
        for spec in super::super::NAMES {
            let form = Form::of(&cwnd::Spec::parse(spec).unwrap()).unwrap();
            let bytes = OBJECTS.iter().find(|(law, _)| *law == form.law).unwrap().1;
            let mut object = ObjectBuilder::default().open_memory(bytes).unwrap();
            let size = open_map(&mut object, PARAMS).unwrap().value_size();
            assert_eq!(size as usize, 8 * form.params.len(), "{spec}");
            for map in [CONTROL, EVENTS, CONTROLLER] {
                assert!(open_map(&mut object, map).is_some(), "{spec}: {map}");
            }
        }
    }
}
