//! Hashes the sources of the crates that the module links, and the versions of their dependencies,
//! into `CWND_SOURCES`.

use siphasher::sip128::{Hasher128, SipHasher24};
use std::collections::{BTreeSet, HashMap};
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::{fs, io};
use toml::{Table, Value};

fn main() -> io::Result<()> {
    let home = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let lock = home.join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let lock = fs::read_to_string(lock)?.parse().map_err(io::Error::other)?;
    let mut hasher = SipHasher24::new();
    for package in linked(&lock) {
        let (name, version, foreign) = package;
        hasher.write(format!("{name} {version}\n").as_bytes());
        if !foreign {
            let sources = home.join("..").join(name).join("src");
            println!("cargo::rerun-if-changed={}", sources.display());
            hash_folder(&sources, &mut hasher)?;
        }
    }
    println!("cargo::rustc-env=CWND_SOURCES={:032x}", hasher.finish128().as_u128());
    Ok(())
}

/// Returns name, version and origin of the packages that this crate depends on, itself included, in
/// order. A package that comes from a registry, and not from this workspace, is foreign.
fn linked(lock: &Table) -> BTreeSet<(&str, &str, bool)> {
    let mut by_name = HashMap::new();
    for package in lock["package"].as_array().into_iter().flatten() {
        let [name, version] =
            ["name", "version"].map(|key| package[key].as_str().unwrap_or_default());
        by_name.insert(name.to_owned(), (name, version, package));
        by_name.insert(format!("{name} {version}"), (name, version, package));
    }
    let mut found = BTreeSet::new();
    let mut left = vec![env!("CARGO_PKG_NAME")];
    while let Some(name) = left.pop() {
        let (name, version, package) = by_name[name];
        if found.insert((name, version, package.get("source").is_some())) {
            let dependencies = package.get("dependencies").and_then(Value::as_array);
            left.extend(dependencies.into_iter().flatten().filter_map(Value::as_str));
        }
    }
    found
}

/// Hashes the names and contents of all files of a folder, in the order of their names.
fn hash_folder(folder: &Path, hasher: &mut SipHasher24) -> io::Result<()> {
    let mut paths = fs::read_dir(folder)?
        .map(|entry| entry.map(|found| found.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            hash_folder(&path, hasher)?;
        } else {
            let contents = fs::read(&path)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            hasher.write(format!("{name} {}\n", contents.len()).as_bytes());
            hasher.write(&contents);
        }
    }
    Ok(())
}
