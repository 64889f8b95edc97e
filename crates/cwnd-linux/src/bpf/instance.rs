//! Controllers that outlive the command that loaded them: pinned in the BPF file system, each in a
//! folder of its name.

use super::loader::{Registered, kernel_types, register};
use super::{Error, Form};
use cwnd::Spec;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::mount::MsFlags;
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const BPFFS: &str = "/sys/fs/bpf";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// `TCP_CA_NAME_MAX` with its zero.
const NAME_MAX: usize = 16;
const SPEC_MAX: usize = 128;

/// `struct control` of `kernel/trace.h`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Control {
    /// Until when somebody listens, in nanoseconds of CLOCK_MONOTONIC.
    pub until: u64,
    /// Events for which the ring had no room.
    pub missed: u64,
    /// The specification.
    pub spec: String,
    /// The default controller before this one; empty if this one was not made the default.
    pub previous: String,
}

impl Control {
    const SIZE: usize = 16 + SPEC_MAX + NAME_MAX;

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = [self.until.to_ne_bytes(), self.missed.to_ne_bytes()].concat();
        for (text, room) in [(&self.spec, SPEC_MAX), (&self.previous, NAME_MAX)] {
            bytes.extend(text.bytes().chain(std::iter::repeat(0)).take(room));
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let text = |at: usize, room: usize| {
            let text = bytes[at..at + room].split(|&byte| byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        };
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        Control {
            until: word(0),
            missed: word(8),
            spec: text(16, SPEC_MAX),
            previous: text(16 + SPEC_MAX, NAME_MAX),
        }
    }

    /// Reads it from its map.
    pub(super) fn read(map: &MapHandle) -> Result<Self, Error> {
        let mut bytes = [0; Self::SIZE];
        map.lookup_into(&[0; 4], &mut bytes, MapFlags::ANY)
            .map_err(|error| Error::bpf("a controller's notes")(&error))?;
        Ok(Self::from_bytes(&bytes))
    }

    /// Writes it into its map.
    pub(super) fn write(&self, map: &MapHandle) -> Result<(), Error> {
        map.update(&[0; 4], &self.to_bytes(), MapFlags::ANY)
            .map_err(|error| Error::bpf("a controller's notes")(&error))
    }
}

/// A controller that is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its name for the kernel.
    pub name: String,
    /// Its specification.
    pub spec: String,
    /// Whether it is the default of this network namespace.
    pub default: bool,
}

fn folder(name: &str) -> PathBuf {
    Path::new(BPFFS).join("cwnd").join(name)
}

/// The name under which a specification is loaded without being given one.
pub fn default_name(spec: &Spec) -> String {
    format!("cwnd_{}", spec.name())
}

fn check_name(name: &str) -> Result<(), Error> {
    let fits = !name.is_empty() && name.len() < NAME_MAX;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if fits && name.chars().all(plain) {
        return Ok(());
    }
    let allowed = "1 to 15 letters, digits and _ are allowed";
    Err(Error::Name(format!("{name:?} is no name for a controller: {allowed}")))
}

/// Says in words why the kernel did not let this user do it.
pub(super) fn explain(error: Error) -> Error {
    match error {
        Error::Kernel { doing, source } if source.kind() == io::ErrorKind::PermissionDenied => {
            Error::Missing(format!(
                "{doing}: this needs root (CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)"
            ))
        }
        other => other,
    }
}

/// Whether the BPF file system is where it belongs.
pub fn mounted() -> bool {
    statfs(BPFFS).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC)
}

fn mount() -> Result<(), Error> {
    if mounted() {
        return Ok(());
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    nix::mount::mount(Some("bpf"), BPFFS, Some("bpf"), flags, None::<&str>)
        .map_err(io::Error::from)
        .map_err(Error::kernel(format!(
            "no BPF file system is mounted on {BPFFS}, and none could be"
        )))
        .map_err(explain)
}

/// The default controller of this network namespace.
pub fn default_controller() -> Result<String, Error> {
    let text = fs::read_to_string(DEFAULT).map_err(Error::kernel(DEFAULT))?;
    Ok(text.trim().to_owned())
}

fn set_default(name: &str) -> Result<(), Error> {
    fs::write(DEFAULT, name).map_err(Error::kernel(format!("{name} does not become the default")))
}

/// Loads what `spec` names as the controller `name`, and keeps it loaded.
///
/// With `default` it becomes the default of this network namespace until it is unloaded.
///
/// # Errors
/// One line: no form in the kernel, a name that is taken or not allowed, what the system lacks.
pub fn load(spec: &Spec, name: Option<&str>, default: bool) -> Result<Instance, Error> {
    let name = name.map_or_else(|| default_name(spec), str::to_owned);
    check_name(&name)?;
    let form = Form::of(spec)?;
    let text = spec.to_string();
    if text.len() >= SPEC_MAX {
        return Err(Error::NoForm(format!("{text}: longer than {SPEC_MAX} characters")));
    }
    if let Some(other) = list()?.iter().find(|other| other.name == name) {
        let taken = format!("{name} is loaded already, as {}: choose another --name", other.spec);
        return Err(Error::Name(taken));
    }
    kernel_types()?;
    let previous = if default { default_controller()? } else { String::new() };
    let control = Control { spec: text.clone(), previous, ..Control::default() };
    let registered = register(&form, &name, &control.to_bytes()).map_err(explain)?;
    mount()?;
    keep(&name, registered).inspect_err(|_| forget(&name))?;
    if default {
        set_default(&name).inspect_err(|_| forget(&name))?;
    }
    Ok(Instance { name, spec: text, default })
}

/// Pins a controller; the link last, so that what has one is whole.
fn keep(name: &str, registered: Registered) -> Result<(), Error> {
    // What an interrupted load left behind.
    forget(name);
    let folder = folder(name);
    fs::create_dir_all(&folder).map_err(Error::kernel(folder.display().to_string()))?;
    let Registered { mut link, mut control, mut events } = registered;
    let pinned = control
        .pin(folder.join("control"))
        .and_then(|()| events.pin(folder.join("events")))
        .and_then(|()| link.pin(folder.join("link")));
    pinned.map_err(|error| Error::bpf(folder.display().to_string())(&error))
}

fn forget(name: &str) {
    // Whatever is not there need not be removed; the link goes first.
    for what in ["link", "control", "events"] {
        let _ = fs::remove_file(folder(name).join(what));
    }
    let _ = fs::remove_dir(folder(name));
    let _ = fs::remove_dir(Path::new(BPFFS).join("cwnd"));
}

/// A map of a controller that is loaded.
pub(super) fn pinned(name: &str, what: &str) -> Result<MapHandle, Error> {
    MapHandle::from_pinned_path(folder(name).join(what))
        .map_err(|error| explain(Error::bpf(name)(&error)))
}

/// All controllers that are loaded, by name.
///
/// # Errors
/// Where their notes cannot be read.
pub fn list() -> Result<Vec<Instance>, Error> {
    let entries = match fs::read_dir(Path::new(BPFFS).join("cwnd")) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(explain(Error::Kernel { doing: BPFFS.into(), source })),
    };
    let current = default_controller()?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::kernel(BPFFS))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if folder(&name).join("link").exists() {
            let spec = Control::read(&pinned(&name, "control")?)?.spec;
            let default = name == current;
            found.push(Instance { name, spec, default });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The controller that `what` means: its name, or its specification.
///
/// # Errors
/// Where there is none, with those that there are.
pub fn find(what: &str) -> Result<Instance, Error> {
    let all = list()?;
    let spec = Spec::parse(what).map(|spec| spec.to_string()).unwrap_or_default();
    let found = all.iter().find(|it| it.name == what).or(all.iter().find(|it| it.spec == spec));
    found.cloned().ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|it| it.name.as_str()).collect();
        let loaded = if names.is_empty() { "nothing".into() } else { names.join(", ") };
        Error::NotLoaded(format!("{what} is not loaded; loaded are: {loaded}"))
    })
}

/// Unloads a controller. Connections that use it go on with it until they end. Where it is the
/// default, the one before it becomes that again.
///
/// # Errors
/// Where it is not loaded, or the default cannot be restored.
pub fn unload(what: &str) -> Result<Instance, Error> {
    let instance = find(what)?;
    let previous = Control::read(&pinned(&instance.name, "control")?)?.previous;
    if instance.default && !previous.is_empty() {
        set_default(&previous)?;
    }
    // Who would return to this one returns to the one before it.
    for other in list()?.iter().filter(|other| other.name != instance.name) {
        let map = pinned(&other.name, "control")?;
        let control = Control::read(&map)?;
        if control.previous == instance.name {
            Control { previous: previous.clone(), ..control }.write(&map)?;
        }
    }
    let path = folder(&instance.name).join("link");
    fs::remove_file(&path).map_err(Error::kernel(path.display().to_string())).map_err(explain)?;
    forget(&instance.name);
    Ok(instance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_is_what_the_kernel_reads() {
        let control = Control {
            until: 7,
            missed: 9,
            spec: "simd(beta=1/16)".into(),
            previous: "cubic".into(),
        };
        let bytes = control.to_bytes();
        assert_eq!(Control::from_bytes(&bytes.try_into().unwrap()), control);
    }

    #[test]
    fn names_are_the_kernels() {
        assert!(check_name("simd_1_16").is_ok());
        for wrong in ["", "a.b", "a-b", "../x", "sixteen_letters_"] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }
}
