//! Checks of the kernel's features and of the user's capabilities.

use super::Implementation;
use super::control::Control;
use super::loader::{check_btf, register};
use super::pinned::{check_mount_lasts, default_controller, find_bpf_fs};
use cwnd::Spec;
use cwnd_law::Law;
use std::fs;

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was checked.
    pub name: String,
    /// Whether the requirement is met.
    pub fine: bool,
    /// What was found, or what is missing and how to fix it.
    pub detail: String,
}

/// The programs in C.
const TRIAL_SPECS: [&str; 2] = ["cubic", "bbr3"];
/// A window law and a rate law that are texts.
const TRIAL_LAWS: [&str; 2] = [
    "law window \"\"\non grow:\n return w\non cut:\n return w / 2\n",
    "rate law rate \"\"\non clock:\n return reports\non interval:\n return 10 ms\n\
     on tick:\n return rate\non cut:\n return rate / 2\non start:\n return w / 1 s\n",
];
/// The required capabilities; CAP_SYS_ADMIN implies the last two.
const CAPABILITIES: [(u32, &str); 3] =
    [(12, "CAP_NET_ADMIN"), (38, "CAP_PERFMON"), (39, "CAP_BPF")];
const SYS_ADMIN: u32 = 21;

fn finding(name: &str, outcome: Result<String, String>) -> Finding {
    let fine = outcome.is_ok();
    let (Ok(detail) | Err(detail)) = outcome;
    Finding { name: name.into(), fine, detail }
}

fn capabilities() -> Result<String, String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    let has = |bit: u32| effective >> bit & 1 != 0;
    let is_missing = |&&(bit, _): &&(u32, &str)| !(has(bit) || has(SYS_ADMIN) && bit >= 38);
    let missing: Vec<_> = CAPABILITIES.iter().filter(is_missing).map(|(_, name)| *name).collect();
    if missing.is_empty() {
        Ok("this user may load controllers".into())
    } else {
        Err(format!("this user lacks {}: run as root", missing.join(", ")))
    }
}

fn kernel_btf() -> Result<String, String> {
    check_btf().map_err(|error| error.to_string())?;
    Ok("the kernel has BTF, struct_ops links and the functions that the laws call".into())
}

fn jit_compiler() -> Result<String, String> {
    let path = "/proc/sys/net/core/bpf_jit_enable";
    match fs::read_to_string(path).as_deref().map(str::trim) {
        Ok("0") => Err(format!("off: echo 1 > {path}")),
        Ok(_) => Ok("on".into()),
        // Only root of the initial network namespace can read the file.
        Err(_) => Ok("unknown: only root of the initial network namespace can read it".into()),
    }
}

fn bpf_fs() -> Result<String, String> {
    if let Some(path) = find_bpf_fs() {
        return Ok(format!("mounted on {}", path.display()));
    }
    check_mount_lasts().map_err(|error| error.to_string())?;
    Ok("not mounted on /sys/fs/bpf; `load` mounts it".into())
}

fn timestamps() -> Result<String, String> {
    match fs::read_to_string("/proc/sys/net/ipv4/tcp_timestamps").as_deref().map(str::trim) {
        Ok("0") => Err("off: aiad(rate=receiver) needs net.ipv4.tcp_timestamps=1".into()),
        Ok(_) => Ok("on".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Loads a law under a temporary name and unloads it.
fn load_and_unload(spec: &str) -> Result<String, String> {
    let spec = Spec::parse(spec).map_err(|error| error.to_string())?;
    register_briefly(&Implementation::of(&spec).map_err(|error| error.to_string())?)
}

fn load_and_unload_law(text: &str) -> Result<String, String> {
    let law = Law::parse(text).map_err(|error| error.to_string())?;
    register_briefly(&Implementation::of_law(&law, &[])?)
}

fn register_briefly(implementation: &Implementation) -> Result<String, String> {
    let name = format!("cwnd_try{}", std::process::id() % 1_000_000);
    let control = Control::default().to_bytes();
    let registered = register(implementation, &name, &control);
    registered.map(|_| "loads".into()).map_err(|error| error.to_string())
}

/// Checks all requirements, and loads each law briefly if this user may.
pub fn check() -> Vec<Finding> {
    let (capabilities, btf) = (capabilities(), kernel_btf());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut findings = vec![
        finding("kernel", Ok(format!("Linux {}", release.trim()))),
        finding("capabilities", capabilities.clone()),
        finding("BTF", btf.clone()),
        finding("BPF JIT compiler", jit_compiler()),
        finding("BPF file system", bpf_fs()),
        finding("TCP timestamps", timestamps()),
        finding("default controller", default_controller().map_err(|error| error.to_string())),
    ];
    if capabilities.is_ok() && btf.is_ok() {
        findings.extend(TRIAL_SPECS.map(|spec| finding(spec, load_and_unload(spec))));
        let names = ["window laws", "rate laws"];
        let laws = names.iter().zip(TRIAL_LAWS);
        findings.extend(laws.map(|(name, text)| finding(name, load_and_unload_law(text))));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::implementation::implemented;
    use super::*;

    #[test]
    fn every_program_is_tried() {
        let program = |spec: &str| Implementation::of(&Spec::parse(spec).unwrap()).unwrap().law;
        let of_text = |text: &str| Implementation::of_law(&Law::parse(text).unwrap(), &[]).unwrap();
        let mut tried = TRIAL_SPECS.map(program).to_vec();
        tried.extend(TRIAL_LAWS.map(|text| of_text(text).law));
        assert!(tried.ends_with(&["window_law", "rate_law"]));
        for spec in implemented() {
            assert!(tried.contains(&program(&spec)), "{spec}");
        }
    }
}
