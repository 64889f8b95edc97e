//! Controllers that stay loaded after the process ends: their links and maps are pinned in the BPF file
//! system, in one directory for each controller.

use super::control::{Control, NAME_MAX, SPEC_MAX};
use super::loader::{Registered, check_btf, register};
use super::{Error, Implementation};
use cwnd::Spec;
use libbpf_rs::MapHandle;
use nix::mount::MsFlags;
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use std::fs;
use std::io;
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
    /// Whether it is the default of this network namespace.
    pub default: bool,
}

fn directory(name: &str) -> PathBuf {
    Path::new(BPFFS).join("cwnd").join(name)
}

/// Returns the name of a controller that is loaded without a name.
pub fn default_name(spec: &Spec) -> String {
    format!("cwnd_{}", spec.name())
}

fn check_name(name: &str) -> Result<(), Error> {
    let valid_length = !name.is_empty() && name.len() < NAME_MAX;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
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

/// Whether a BPF file system is mounted on `/sys/fs/bpf`.
pub fn bpf_fs_mounted() -> bool {
    statfs(BPFFS).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC)
}

fn mount_bpf_fs() -> Result<(), Error> {
    if bpf_fs_mounted() {
        return Ok(());
    }
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

/// Loads the controller `spec` under `name`, and pins it.
///
/// With `default`, makes it the default of this network namespace until it is unloaded.
///
/// # Errors
/// There is no kernel implementation, the name is invalid or used, the kernel lacks a feature, or the user a
/// capability.
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
    if let Some(other) = list()?.iter().find(|other| other.name == name) {
        let taken = format!("{name} is already loaded, as {}: choose another --name", other.spec);
        return Err(Error::Name(taken));
    }
    check_btf()?;
    let previous = if default { default_controller()? } else { String::new() };
    let control = Control { spec: text.clone(), previous, ..Control::default() };
    let registered =
        register(&implementation, &name, &control.to_bytes()).map_err(explain_permission)?;
    mount_bpf_fs()?;
    pin(&name, registered).inspect_err(|_| remove_pins(&name))?;
    if default {
        set_default(&name).inspect_err(|_| remove_pins(&name))?;
    }
    Ok(Instance { name, spec: text, default })
}

/// Pins a controller. The link is pinned last: a directory with a link is complete.
fn pin(name: &str, registered: Registered) -> Result<(), Error> {
    // Remove the pins of an interrupted load.
    remove_pins(name);
    let directory = directory(name);
    fs::create_dir_all(&directory).map_err(Error::kernel(directory.display().to_string()))?;
    let Registered { mut link, mut control, mut events } = registered;
    let pinned = control
        .pin(directory.join("control"))
        .and_then(|()| events.pin(directory.join("events")))
        .and_then(|()| link.pin(directory.join("link")));
    pinned.map_err(|error| Error::bpf(directory.display().to_string())(&error))
}

fn remove_pins(name: &str) {
    // Errors are ignored: a pin may be missing. The link goes first.
    for file in ["link", "control", "events"] {
        let _ = fs::remove_file(directory(name).join(file));
    }
    let _ = fs::remove_dir(directory(name));
    let _ = fs::remove_dir(Path::new(BPFFS).join("cwnd"));
}

/// Opens a pinned map of a loaded controller.
pub(super) fn pinned_map(name: &str, map: &str) -> Result<MapHandle, Error> {
    MapHandle::from_pinned_path(directory(name).join(map))
        .map_err(|error| explain_permission(Error::bpf(name)(&error)))
}

/// Returns the loaded controllers, sorted by name.
///
/// # Errors
/// A control map cannot be read.
pub fn list() -> Result<Vec<Instance>, Error> {
    let entries = match fs::read_dir(Path::new(BPFFS).join("cwnd")) {
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
            let default = name == current;
            found.push(Instance { name, spec, default });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Finds a controller by name or specification.
///
/// # Errors
/// There is no such controller; the error names the loaded ones.
pub fn find(name_or_spec: &str) -> Result<Instance, Error> {
    let all = list()?;
    let spec = Spec::parse(name_or_spec).map(|spec| spec.to_string()).unwrap_or_default();
    let found =
        all.iter().find(|it| it.name == name_or_spec).or(all.iter().find(|it| it.spec == spec));
    found.cloned().ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|it| it.name.as_str()).collect();
        let loaded = match names.as_slice() {
            [] => "No cwnd controllers are loaded.".to_owned(),
            names => format!("Loaded controllers: {}.", names.join(", ")),
        };
        Error::NotLoaded(format!("`{name_or_spec}` is not loaded. {loaded}"))
    })
}

/// Unloads a controller. Open connections keep using it. If it is the default, the previous default is
/// restored.
///
/// # Errors
/// It is not loaded, or the default cannot be restored.
pub fn unload(name_or_spec: &str) -> Result<Instance, Error> {
    let instance = find(name_or_spec)?;
    let previous = Control::read(&pinned_map(&instance.name, "control")?)?.previous;
    if instance.default && !previous.is_empty() {
        set_default(&previous)?;
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
    fs::remove_file(&path)
        .map_err(Error::kernel(path.display().to_string()))
        .map_err(explain_permission)?;
    remove_pins(&instance.name);
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
}
