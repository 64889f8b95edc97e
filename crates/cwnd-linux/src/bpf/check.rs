//! What this kernel allows, and what is missing, in words.

use super::btf::Btf;
use super::instance::{Control, default_controller, mounted};
use super::loader::{kernel_types, register};
use super::{Error, Form};
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

fn types(kernel: &Result<Vec<u8>, Error>) -> Result<String, String> {
    let bytes = kernel.as_ref().map_err(ToString::to_string)?;
    let kernel = Btf::parse(bytes).map_err(str::to_owned)?;
    if kernel.structure("bpf_struct_ops_tcp_congestion_ops").is_none() {
        return Err(
            "this kernel has no controllers in eBPF: it needs CONFIG_BPF_JIT, and 5.6".into()
        );
    }
    if kernel.structure("bpf_struct_ops_link").is_none() {
        return Err("a controller cannot be kept loaded by a link: it needs Linux 6.4".into());
    }
    let functions = ["tcp_slow_start", "tcp_reno_undo_cwnd"];
    match functions.iter().find(|name| kernel.function(name).is_none()) {
        Some(name) => Err(format!("the kernel's function {name} is not there")),
        None => Ok("the kernel describes its types, and offers what the laws call".into()),
    }
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
fn trial(spec: &str, kernel: &[u8]) -> Result<String, String> {
    let spec = Spec::parse(spec).map_err(|error| error.to_string())?;
    let form = Form::of(&spec).map_err(|error| error.to_string())?;
    let name = format!("cwnd_try{}", std::process::id() % 1_000_000);
    let control = Control::default().to_bytes();
    let registered = register(&form, &name, &control, kernel);
    registered.map(|_| "loads".into()).map_err(|error| error.to_string())
}

/// Looks at all that the laws need, and tries each where this user may.
pub fn check() -> Vec<Finding> {
    let kernel = kernel_types();
    let rights = rights();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut found = vec![
        finding("kernel", Ok(format!("Linux {}", release.trim()))),
        finding("rights", rights.clone()),
        finding("types", types(&kernel)),
        finding("compiler", compiler()),
        finding("file system", pins()),
        finding("timestamps", timestamps()),
        finding("default", default_controller().map_err(|error| error.to_string())),
    ];
    if let (Ok(_), Ok(kernel)) = (rights, kernel) {
        found.extend(LAWS.map(|spec| finding(spec, trial(spec, &kernel))));
    }
    found
}
