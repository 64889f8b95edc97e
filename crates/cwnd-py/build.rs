//! Hashes the sources of the crates that the module links, and the versions of their dependencies,
//! into `CWND_SOURCES`.

use siphasher::sip128::{Hasher128, SipHasher24};
use std::collections::{BTreeSet, HashMap};
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A package of `Cargo.lock`.
#[derive(Default)]
struct Package<'a> {
    name: &'a str,
    version: &'a str,
    /// Whether the package comes from a registry, and not from this workspace.
    foreign: bool,
    /// Names of its dependencies, with a version where the name is ambiguous.
    dependencies: Vec<&'a str>,
}

fn main() -> io::Result<()> {
    let home = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let lock = home.join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(lock)?;
    let mut hasher = SipHasher24::new();
    for package in linked(&text) {
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
/// order.
fn linked(lock: &str) -> BTreeSet<(&str, &str, bool)> {
    let packages: Vec<_> = lock.split("[[package]]").skip(1).map(parse).collect();
    let mut by_name = HashMap::new();
    for package in &packages {
        by_name.insert(package.name.to_owned(), package);
        by_name.insert(format!("{} {}", package.name, package.version), package);
    }
    let mut found = BTreeSet::new();
    let mut left = vec![env!("CARGO_PKG_NAME")];
    while let Some(name) = left.pop() {
        let package = by_name[name];
        if found.insert((package.name, package.version, package.foreign)) {
            left.extend(&package.dependencies);
        }
    }
    found
}

/// Parses the lines of a package.
fn parse(lines: &str) -> Package<'_> {
    let mut package = Package::default();
    for line in lines.lines() {
        match line.split_once(" = ") {
            Some(("name", value)) => package.name = value.trim_matches('"'),
            Some(("version", value)) => package.version = value.trim_matches('"'),
            Some(("source", _)) => package.foreign = true,
            None if line.starts_with(" \"") => {
                package.dependencies.push(line.trim_matches([' ', '"', ',']));
            }
            _ => {}
        }
    }
    package
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
