//! Loads the BPF objects of this package with libbpf, and registers their `struct_ops` maps.

use super::control::NAME_MAX;
use super::{Error, Implementation};
use libbpf_rs::btf::types::{Func, Struct};
use libbpf_rs::{
    Btf, ErrorKind, Link, Map, MapCore, MapHandle, MapMut, ObjectBuilder, OpenMapMut, OpenObject,
    PrintLevel, set_print,
};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;

/// BPF objects by law.
const OBJECTS: [(&str, &[u8]); 4] = [
    ("cubic", include_bytes!("objects/cubic.o")),
    ("bbr3", include_bytes!("objects/bbr3.o")),
    ("window_law", include_bytes!("objects/window_law.o")),
    ("rate_law", include_bytes!("objects/rate_law.o")),
];

/// Maps of an object: parameters, `struct control`, ring buffer, `tcp_congestion_ops`.
const PARAMS: &str = ".rodata.params";
const CONTROL: &str = ".data.control";
const EVENTS: &str = "events";
const CONTROLLER: &str = "controller";

/// `TCP_CONG_NEEDS_ECN`, in the lowest byte of the flags.
const NEEDS_ECN: u8 = 2;

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// A controller that stays registered while `link` is open or pinned.
pub(super) struct Registered {
    /// The link of the `struct_ops` map.
    pub link: Link,
    /// The control map.
    pub control: MapHandle,
    /// The ring buffer.
    pub events: MapHandle,
}

thread_local! {
    /// libbpf's log in this thread since the last error.
    static LOG: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Captures libbpf's log; it is included in errors.
pub(super) fn capture_log() {
    LOG.take();
    set_print(Some((PrintLevel::Warn, |_, text| LOG.with_borrow_mut(|log| log.push_str(&text)))));
}

/// Returns the last line of the verifier's log.
fn verifier_error(log: &str) -> Option<&str> {
    let (log, _) = log.split_once("-- BEGIN PROG LOAD LOG --")?.1.split_once("-- END")?;
    let last = log.lines().rfind(|line| !line.starts_with("processed") && !line.trim().is_empty());
    last.map(str::trim)
}

/// Converts a load error. libbpf's first line is nearest to the cause.
fn load_error(law: &'static str, error: libbpf_rs::Error) -> Error {
    let log = LOG.take();
    if let Some(verifier_error) = verifier_error(&log) {
        return Error::Object {
            law,
            problem: format!("rejected by the verifier ({verifier_error})"),
        };
    }
    let first = log.lines().next().map(|line| line.trim_start_matches("libbpf: "));
    let detail = match first {
        Some(detail) if error.kind() != ErrorKind::PermissionDenied => format!(" ({detail})"),
        _ => String::new(),
    };
    Error::bpf(format!("cannot load {law}{detail}"))(error)
}

fn open_map<'a>(object: &'a mut OpenObject, name: &str) -> Option<OpenMapMut<'a>> {
    object.maps_mut().find(|map| map.name() == OsStr::new(name))
}

/// Loads the law of `implementation` and registers it as `name`.
///
/// `control` is the initial value of the control map.
///
/// # Errors
/// libbpf, the verifier or the kernel rejects the object, or the name is used.
pub(super) fn register(
    implementation: &Implementation,
    name: &str,
    control: &[u8],
) -> Result<Registered, Error> {
    let law = implementation.law;
    let damaged = |problem: &str| Error::Object { law, problem: problem.into() };
    let load_error = |error| load_error(law, error);
    let bytes = OBJECTS.iter().find(|(name, _)| *name == law).ok_or_else(|| damaged("missing"))?.1;
    capture_log();
    let mut builder = ObjectBuilder::default();
    let mut object =
        builder.name(law).and_then(|named| named.open_memory(bytes)).map_err(load_error)?;
    let params: Vec<u8> =
        implementation.params.iter().flat_map(|word| word.to_ne_bytes()).collect();
    for (map, value) in [(PARAMS, &params[..]), (CONTROL, control)] {
        let mut map = open_map(&mut object, map).ok_or_else(|| damaged("a map is missing"))?;
        map.set_initial_value(value).map_err(|_| damaged("different parameters"))?;
    }
    // The name is the first member of `tcp_congestion_ops`, and the flags are the second.
    let mut ops = open_map(&mut object, CONTROLLER);
    let ops = ops.as_mut().and_then(|ops| ops.initial_value_mut());
    let ops = ops.filter(|ops| ops.len() > NAME_MAX);
    let (names, members) =
        ops.ok_or_else(|| damaged("no tcp_congestion_ops"))?.split_at_mut(NAME_MAX);
    names[..name.len()].copy_from_slice(name.as_bytes());
    if implementation.needs_ecn {
        members[0] |= NEEDS_ECN;
    }

    let mut object = object.load().map_err(load_error)?;
    let missing = || damaged("a map is missing");
    let has_name = |map: &Map<'_>, name| map.name() == OsStr::new(name);
    let handle = |name| {
        let map = object.maps().find(|map| has_name(map, name)).ok_or_else(missing)?;
        MapHandle::try_from(&map).map_err(load_error)
    };
    let (control, events) = (handle(CONTROL)?, handle(EVENTS)?);
    let mut ops = object.maps_mut().find(|map: &MapMut<'_>| has_name(map, CONTROLLER));
    let ops = ops.as_mut().ok_or_else(missing)?;
    let link = ops.attach_struct_ops().map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Error::Name(format!(
            "the kernel already has a controller named {name}: choose another name"
        )),
        _ => Error::bpf(format!("cannot register {name}"))(error),
    })?;
    Ok(Registered { link, control, events })
}

/// Checks that the kernel has BTF, `struct_ops` links, and the functions that the laws call.
pub(super) fn check_btf() -> Result<(), Error> {
    if !fs::exists(VMLINUX).map_err(Error::kernel(VMLINUX))? {
        return Err(Error::Missing(format!(
            "this kernel has no BTF type information ({VMLINUX} is missing): \
             CONFIG_DEBUG_INFO_BTF is required"
        )));
    }
    capture_log();
    let kernel = Btf::from_path(VMLINUX).map_err(Error::bpf(VMLINUX))?;
    for (name, problem) in [
        (
            "bpf_struct_ops_tcp_congestion_ops",
            "this kernel has no struct_ops for TCP: Linux 5.6 with CONFIG_BPF_JIT is required",
        ),
        ("bpf_struct_ops_link", "this kernel has no links for struct_ops: Linux 6.4 is required"),
    ] {
        if kernel.type_by_name::<Struct<'_>>(name).is_none() {
            return Err(Error::Missing(problem.into()));
        }
    }
    let functions = ["tcp_slow_start", "tcp_reno_undo_cwnd"];
    match functions.iter().find(|name| kernel.type_by_name::<Func<'_>>(name).is_none()) {
        Some(name) => Err(Error::Missing(format!("this kernel has no function {name}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_the_verifier_log_is_found() {
        let log = "libbpf: prog 'init': BPF program load failed: Permission denied\n\
                    libbpf: prog 'init': -- BEGIN PROG LOAD LOG --\n\
                    0: (79) r6 = *(u64 *)(r1 +0)\nR1 type=scalar expected=fp\n\
                    processed 1 insns (limit 1000000)\n-- END PROG LOAD LOG --\n\
                    libbpf: failed to load object 'simd'\n";
        assert_eq!(verifier_error(log), Some("R1 type=scalar expected=fp"));
        assert_eq!(verifier_error("libbpf: failed to load object 'simd'\n"), None);
    }

    #[test]
    fn every_object_has_the_maps_and_parameters_of_its_law() {
        for spec in super::super::implemented() {
            let implementation = Implementation::of(&cwnd::Spec::parse(&spec).unwrap()).unwrap();
            let bytes = OBJECTS.iter().find(|(law, _)| *law == implementation.law).unwrap().1;
            let mut object = ObjectBuilder::default().open_memory(bytes).unwrap();
            let size = open_map(&mut object, PARAMS).unwrap().value_size();
            assert_eq!(size as usize, 8 * implementation.params.len(), "{spec}");
            for map in [CONTROL, EVENTS, CONTROLLER] {
                assert!(open_map(&mut object, map).is_some(), "{spec}: {map}");
            }
        }
    }
}
