//! What this kernel allows, and what is missing, in words.

use super::Form;
use super::instance::{Control, default_controller, mounted};
use super::loader::{kernel_types, register};
use cwnd::Spec;
use std::fs;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub name: String,
    /// Whether it is as it must be.
    pub fine: bool,
    /// What was found, or what is missing and what to do.
    pub detail: String,
}

/// Specs that stand for the laws, one each.
const LAWS: [&str; 7] =
    ["aimd", "binomial", "simd", "aira", "aiad(rate=ack)", "aiad(rate=receiver)", "daimd"];
/// CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF; and CAP_SYS_ADMIN, which has the last two.
const CAPABILITIES: [(u32, &str); 3] =
    [(12, "CAP_NET_ADMIN"), (38, "CAP_PERFMON"), (39, "CAP_BPF")];
const SYS_ADMIN: u32 = 21;

fn finding(name: &str, outcome: Result<String, String>) -> Finding {
    let fine = outcome.is_ok();
    let (Ok(detail) | Err(detail)) = outcome;
    Finding { name: name.into(), fine, detail }
}

fn rights() -> Result<String, String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    let has = |bit: u32| held >> bit & 1 != 0;
    let lacks = |&&(bit, _): &&(u32, &str)| !(has(bit) || has(SYS_ADMIN) && bit >= 38);
    let missing: Vec<_> = CAPABILITIES.iter().filter(lacks).map(|(_, name)| *name).collect();
    if missing.is_empty() {
        Ok("this user may load controllers".into())
    } else {
        Err(format!("this user lacks {}: run it as root", missing.join(", ")))
    }
}

fn types() -> Result<String, String> {
    kernel_types().map_err(|error| error.to_string())?;
    Ok("the kernel describes its types, and offers what the laws call".into())
}

fn compiler() -> Result<String, String> {
    let path = "/proc/sys/net/core/bpf_jit_enable";
    match fs::read_to_string(path).as_deref().map(str::trim) {
        Ok("0") => Err(format!("it is off: echo 1 > {path}")),
        Ok(_) => Ok("on".into()),
        // Only root of the first network namespace sees it.
        Err(_) => Ok("not told here".into()),
    }
}

fn pins() -> Result<String, String> {
    if mounted() {
        Ok("mounted on /sys/fs/bpf".into())
    } else {
        Ok("not mounted on /sys/fs/bpf: load mounts it".into())
    }
}

fn timestamps() -> Result<String, String> {
    match fs::read_to_string("/proc/sys/net/ipv4/tcp_timestamps").as_deref().map(str::trim) {
        Ok("0") => Err("off: aiad(rate=receiver) has no clock; net.ipv4.tcp_timestamps=1".into()),
        Ok(_) => Ok("on".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Loads a law under a name of its own and unloads it at once.
fn trial(spec: &str) -> Result<String, String> {
    let spec = Spec::parse(spec).map_err(|error| error.to_string())?;
    let form = Form::of(&spec).map_err(|error| error.to_string())?;
    let name = format!("cwnd_try{}", std::process::id() % 1_000_000);
    let control = Control::default().to_bytes();
    let registered = register(&form, &name, &control);
    registered.map(|_| "loads".into()).map_err(|error| error.to_string())
}

/// Looks at all that the laws need, and tries each where this user may.
pub fn check() -> Vec<Finding> {
    let (rights, types) = (rights(), types());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut found = vec![
        finding("kernel", Ok(format!("Linux {}", release.trim()))),
        finding("rights", rights.clone()),
        finding("types", types.clone()),
        finding("compiler", compiler()),
        finding("file system", pins()),
        finding("timestamps", timestamps()),
        finding("default", default_controller().map_err(|error| error.to_string())),
    ];
    if rights.is_ok() && types.is_ok() {
        found.extend(LAWS.map(|spec| finding(spec, trial(spec))));
    }
    found
}
