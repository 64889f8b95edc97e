//! Controllers that stay loaded after the process ends: their links and maps are pinned in the BPF
//! file system, in one directory for each controller.

use super::control::{Control, NAME_MAX, SPEC_MAX};
use super::loader::{Registered, check_btf, register};
use super::{Error, Implementation};
use crate::emulate::Namespace;
use cwnd::Spec;
use cwnd::registry::Build;
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapType};
use nix::mount::MsFlags;
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::iter;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const BPFFS: &str = "/sys/fs/bpf";
const DEFAULT_CONTROLLER: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// A loaded controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The name of the controller in the kernel.
    pub name: String,
    /// The specification.
    pub spec: String,
    /// The text of a law in a file.
    pub law: Option<String>,
    /// Whether it is the default of this network namespace.
    pub default: bool,
}

fn pins() -> PathBuf {
    find_bpf_fs().unwrap_or_else(|| BPFFS.into()).join("cwnd")
}

pub(super) fn directory(name: &str) -> PathBuf {
    pins().join(name)
}

/// Returns the name of a controller that is loaded without a name: `cwnd_` and its name, of a law in
/// a file that of the file.
pub fn default_name(spec: &Spec) -> String {
    let stem = Path::new(spec.name()).file_stem().unwrap_or_default().to_string_lossy();
    let allowed = stem.chars().map(|c| if is_allowed(c) { c } else { '_' });
    format!("cwnd_{}", allowed.take(NAME_MAX - 1 - "cwnd_".len()).collect::<String>())
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn check_name(name: &str) -> Result<(), Error> {
    let valid_length = !name.is_empty() && name.len() < NAME_MAX;
    if valid_length && name.chars().all(is_allowed) {
        return Ok(());
    }
    let allowed = "1 to 15 letters, digits and _ are allowed";
    Err(Error::Name(format!("{name:?} is not a controller name: {allowed}")))
}

/// Replaces a permission error with the required capabilities.
pub(super) fn explain_permission(error: Error) -> Error {
    match error {
        Error::Kernel { operation, source } if source.kind() == io::ErrorKind::PermissionDenied => {
            Error::Missing(format!(
                "{operation}: root is required (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)"
            ))
        }
        other => other,
    }
}

/// Returns the directory in `/proc` of process 1; if this user may not inspect it, of the oldest
/// ancestor of this process that the user may inspect.
fn oldest_process() -> PathBuf {
    let directory = |pid: &str| Path::new("/proc").join(pid);
    let parent = |pid: &String| {
        let status = fs::read_to_string(directory(pid).join("status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim();
        (parent != "0").then(|| parent.to_owned())
    };
    let ancestors: Vec<_> = iter::successors(Some("self".to_owned()), parent).collect();
    let oldest_first = iter::once("1").chain(ancestors.iter().rev().map(String::as_str));
    let mut readable = oldest_first.map(directory).filter(|it| mount_namespace(it).is_some());
    readable.next().unwrap_or_else(|| directory("self"))
}

fn mount_namespace(process: &Path) -> Option<PathBuf> {
    fs::read_link(process.join("ns/mnt")).ok()
}

/// Returns the path of the BPF file system: that of this mount namespace, or else that of the
/// oldest process. `ip netns exec` runs a command in a mount namespace that has a new `/sys` and
/// ends with the command.
pub(super) fn find_bpf_fs() -> Option<PathBuf> {
    let is_bpf_fs =
        |path: &PathBuf| statfs(path).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC);
    let outside = || oldest_process().join("root").join(&BPFFS[1..]);
    Some(BPFFS.into()).filter(is_bpf_fs).or_else(|| Some(outside()).filter(is_bpf_fs))
}

/// Checks that a file system that is mounted here lasts: it ends with its mount namespace.
pub(super) fn check_mount_lasts() -> Result<(), Error> {
    if mount_namespace(&oldest_process()) == mount_namespace(Path::new("/proc/self")) {
        return Ok(());
    }
    Err(Error::Missing(format!(
        "no BPF file system is mounted on {BPFFS}, and one mounted in this mount namespace (as `ip netns exec` creates) \
         would end with it and unload the controller: run `mount -t bpf bpf {BPFFS}` outside"
    )))
}

fn mount_bpf_fs() -> Result<(), Error> {
    if find_bpf_fs().is_some() {
        return Ok(());
    }
    check_mount_lasts()?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    nix::mount::mount(Some("bpf"), BPFFS, Some("bpf"), flags, None::<&str>)
        .map_err(io::Error::from)
        .map_err(Error::kernel(format!("cannot mount the BPF file system on {BPFFS}")))
        .map_err(explain_permission)
}

/// Returns the default controller of this network namespace.
pub fn default_controller() -> Result<String, Error> {
    let text = fs::read_to_string(DEFAULT_CONTROLLER).map_err(Error::kernel(DEFAULT_CONTROLLER))?;
    Ok(text.trim().to_owned())
}

fn set_default(name: &str) -> Result<(), Error> {
    fs::write(DEFAULT_CONTROLLER, name)
        .map_err(Error::kernel(format!("cannot make {name} the default controller")))
}

/// Replaces the default controller `name` of this network namespace, if it is that, by `previous`.
/// Without a previous default, or if the kernel no longer has it, Reno is the default: every kernel
/// has it.
fn restore_default(name: &str, previous: &str) -> Result<(), Error> {
    if default_controller()? != name {
        return Ok(());
    }
    let has_previous = !previous.is_empty() && previous != name;
    if has_previous && set_default(previous).is_ok() { Ok(()) } else { set_default("reno") }
}

/// Returns the network namespaces of the processes in `/proc`, and those with a name.
fn network_namespaces() -> Vec<Namespace> {
    let entries = |path: &str| fs::read_dir(path).into_iter().flatten().flatten();
    let of_processes = entries("/proc").map(|entry| entry.path().join("ns/net"));
    let named = entries("/run/netns").map(|entry| entry.path());
    let inode = |path: PathBuf| fs::metadata(&path).ok().map(|found| (found.ino(), path));
    let distinct: BTreeMap<_, _> = of_processes.chain(named).filter_map(inode).collect();
    distinct.into_values().filter_map(|path| Namespace::open(&path).ok()).collect()
}

/// Loads the controller `spec` under `name`, and pins it.
///
/// With `default`, makes it the default of this network namespace until it is unloaded.
///
/// # Errors
/// There is no kernel implementation, the name is invalid or used, the kernel lacks a feature, or
/// the user a capability.
pub fn load(spec: &Spec, name: Option<&str>, default: bool) -> Result<Instance, Error> {
    let name = name.map_or_else(|| default_name(spec), str::to_owned);
    check_name(&name)?;
    let implementation = Implementation::of(spec)?;
    let text = spec.to_string();
    if text.len() >= SPEC_MAX {
        return Err(Error::NoImplementation(format!(
            "{text}: a loaded specification has less than {SPEC_MAX} characters"
        )));
    }
    let law = match spec.algorithm().build {
        Build::File(law) => Some(law.text().to_owned()),
        _ => None,
    };
    if let Some(other) = list()?.iter().find(|other| other.name == name) {
        let edited =
            if other.spec == text && other.law != law { " before it was edited" } else { "" };
        return Err(Error::Name(format!(
            "{name} is already loaded, as {}{edited}: choose another --name, or unload it",
            other.spec
        )));
    }
    check_btf()?;
    mount_bpf_fs()?;
    let previous = if default { default_controller()? } else { String::new() };
    let control = Control { spec: text.clone(), previous, ..Control::default() };
    let registered =
        register(&implementation, &name, &control.to_bytes()).map_err(explain_permission)?;
    pin(&name, registered, law.as_deref()).inspect_err(|_| remove_pins(&name))?;
    if default {
        set_default(&name).inspect_err(|_| remove_pins(&name))?;
    }
    Ok(Instance { name, spec: text, law, default })
}

/// Pins a controller, and the text of a law in a file. The link is pinned last: a directory with a
/// link is complete.
fn pin(name: &str, registered: Registered, law: Option<&str>) -> Result<(), Error> {
    // Remove the pins of an interrupted load.
    remove_pins(name);
    let directory = directory(name);
    fs::create_dir_all(&directory).map_err(Error::kernel(directory.display().to_string()))?;
    let Registered { mut link, mut control, mut events } = registered;
    let pin_law = |text| text_map(text)?.pin(directory.join("law"));
    let pinned = control
        .pin(directory.join("control"))
        .and_then(|()| events.pin(directory.join("events")))
        .and_then(|()| law.map_or(Ok(()), pin_law))
        .and_then(|()| link.pin(directory.join("link")));
    pinned.map_err(Error::bpf(directory.display().to_string()))
}

/// An array of one element, the text.
fn text_map(text: &str) -> libbpf_rs::Result<MapHandle> {
    let options =
        bpf_map_create_opts { sz: size_of::<bpf_map_create_opts>() as u64, ..Default::default() };
    let size = text.len() as u32;
    let map = MapHandle::create(MapType::Array, Some("law"), 4, size, 1, &options)?;
    map.update(&[0; 4], text.as_bytes(), MapFlags::ANY)?;
    Ok(map)
}

/// Reads the text of a law in a file.
fn read_law(name: &str) -> Result<Option<String>, Error> {
    if !directory(name).join("law").exists() {
        return Ok(None);
    }
    let map = pinned_map(name, "law")?;
    let text = map.lookup(&[0; 4], MapFlags::ANY).map_err(Error::bpf(name))?;
    Ok(text.and_then(|text| String::from_utf8(text).ok()))
}

fn remove_pins(name: &str) {
    // Errors are ignored: a pin may be missing. The link goes first.
    for file in ["link", "control", "events", "law"] {
        let _ = fs::remove_file(directory(name).join(file));
    }
    let _ = fs::remove_dir(directory(name));
    let _ = fs::remove_dir(pins());
}

/// Opens a pinned map of a loaded controller.
pub(super) fn pinned_map(name: &str, map: &str) -> Result<MapHandle, Error> {
    MapHandle::from_pinned_path(directory(name).join(map))
        .map_err(Error::bpf(name))
        .map_err(explain_permission)
}

/// Returns the loaded controllers, sorted by name.
///
/// # Errors
/// A control map cannot be read.
pub fn list() -> Result<Vec<Instance>, Error> {
    let entries = match fs::read_dir(pins()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(explain_permission(Error::Kernel { operation: BPFFS.into(), source }));
        }
    };
    let current = default_controller()?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::kernel(BPFFS))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if directory(&name).join("link").exists() {
            let spec = Control::read(&pinned_map(&name, "control")?)?.spec;
            let (law, default) = (read_law(&name)?, name == current);
            found.push(Instance { name, spec, law, default });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Finds a controller by its name in the kernel, by its specification, or by the name of the
/// specification alone, of a law in a file also without the folder and without `.law`.
///
/// # Errors
/// There is no such controller, or there are several; the error names them.
pub fn find(name_or_spec: &str) -> Result<Instance, Error> {
    let all = list()?;
    let spec = Spec::parse(name_or_spec).ok();
    let text = spec.as_ref().map(Spec::to_string);
    // The name of a specification alone stands for any parameters. A law in a file may be unknown
    // to this process.
    let law = spec.map_or(name_or_spec, |spec| spec.name());
    let law = Some(law).filter(|_| !name_or_spec.contains('('));
    let named = |it: &&Instance| it.name == name_or_spec;
    let equal = |it: &&Instance| Some(&it.spec) == text.as_ref();
    let of_law = |it: &&Instance| it.spec.split('(').next() == law;
    let file = |name: &str| {
        let file = name.rsplit('/').next().unwrap_or(name);
        file.strip_suffix(".law").unwrap_or(file).to_owned()
    };
    let of_file = |it: &&Instance| {
        let path = it.spec.split('(').next().filter(|path| path.ends_with(".law"));
        law.is_some() && path.map(file) == law.map(file)
    };
    let filters: [&dyn Fn(&&Instance) -> bool; 4] = [&named, &equal, &of_law, &of_file];
    let found = filters.into_iter().map(|filter| all.iter().filter(filter).collect::<Vec<_>>());
    let found = found.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    let names =
        |found: &[&Instance]| found.iter().map(|it| &*it.name).collect::<Vec<_>>().join(", ");
    match found[..] {
        [instance] => Ok(instance.clone()),
        [] if all.is_empty() => Err(Error::NotLoaded(format!(
            "`{name_or_spec}` is not loaded. No cwnd controllers are loaded."
        ))),
        [] => Err(Error::NotLoaded(format!(
            "`{name_or_spec}` is not loaded. Loaded controllers: {}.",
            names(&all.iter().collect::<Vec<_>>())
        ))),
        _ => Err(Error::NotLoaded(format!(
            "`{name_or_spec}` is loaded several times: name one of {}",
            names(&found)
        ))),
    }
}

/// Unloads a controller. Open connections keep using it. In each network namespace whose default it
/// is, the default that it replaced is restored; namespaces are found by their processes and names.
///
/// # Errors
/// It is not loaded, or the default of this network namespace cannot be restored.
pub fn unload(name_or_spec: &str) -> Result<Instance, Error> {
    let instance = find(name_or_spec)?;
    let previous = Control::read(&pinned_map(&instance.name, "control")?)?.previous;
    let restore = || restore_default(&instance.name, &previous);
    restore()?;
    for namespace in network_namespaces() {
        // A user who may not enter a namespace has not set its default.
        if let Ok(restored) = namespace.run(restore) {
            restored?;
        }
    }
    // Controllers whose previous default is this one get its previous default.
    for other in list()?.iter().filter(|other| other.name != instance.name) {
        let map = pinned_map(&other.name, "control")?;
        let control = Control::read(&map)?;
        if control.previous == instance.name {
            Control { previous: previous.clone(), ..control }.write(&map)?;
        }
    }
    let path = directory(&instance.name).join("link");
    let link = Link::open(&path);
    fs::remove_file(&path)
        .map_err(Error::kernel(path.display().to_string()))
        .map_err(explain_permission)?;
    remove_pins(&instance.name);
    // Without it the name would be free only some time after the file is removed. A kernel before
    // 6.11 cannot detach.
    let _detached = link.and_then(|link| link.detach());
    Ok(instance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_in_the_kernel() {
        assert!(check_name("simd_1_16").is_ok());
        for wrong in ["", "a.b", "a-b", "../x", "sixteen_letters_"] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_law_in_a_file_has_the_name_of_its_file() {
        let text = "law l \"l\"\non grow:\n    return w\non cut:\n    return w\n";
        for (file, name) in
            [("mine.law", "cwnd_mine"), ("laws/my-very-long.law", "cwnd_my_very_lo")]
        {
            cwnd::registry::declare(file, text).unwrap();
            assert_eq!(default_name(&Spec::parse(file).unwrap()), name);
            assert!(check_name(name).is_ok());
        }
    }
}
