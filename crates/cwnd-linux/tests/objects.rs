//! The programs of the package are those of `kernel/`: building them again makes the same bytes. It
//! needs clang 14 and llvm-objcopy 14, as other versions make other bytes, and says so.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

#[test]
fn objects_are_what_the_sources_make() {
    let path = env::var_os("PATH").unwrap_or_default();
    let there = |name: &&str| env::split_paths(&path).any(|folder| folder.join(name).exists());
    if let Some(name) = ["clang-14", "llvm-objcopy-14", "bash"].iter().find(|name| !there(name)) {
        eprintln!("skipped: {name} is not here to build the programs again");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fresh = Path::new(env!("CARGO_TARGET_TMPDIR")).join("objects");
    let build = Command::new(root.join("../../kernel/build")).arg(&fresh).status();
    assert!(build.unwrap().success());
    let committed = root.join("src/bpf/objects");
    let mut names: Vec<_> = fs::read_dir(&committed).unwrap().map(|it| it.unwrap()).collect();
    names.sort_by_key(fs::DirEntry::file_name);
    assert_eq!(names.len(), fs::read_dir(&fresh).unwrap().count());
    for entry in names {
        let again = fs::read(fresh.join(entry.file_name())).unwrap();
        let name = entry.file_name();
        assert!(
            fs::read(entry.path()).unwrap() == again,
            "{name:?} is not what kernel/build makes"
        );
    }
}
