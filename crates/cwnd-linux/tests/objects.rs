//! The committed BPF objects are built from `kernel/`: a rebuild gives the same bytes. It needs
//! clang 14 and llvm-objcopy 14, because other versions produce different bytes; otherwise the test
//! is skipped with a message.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

#[test]
fn objects_are_built_from_the_sources() {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_installed =
        |name: &&str| env::split_paths(&path).any(|folder| folder.join(name).exists());
    if let Some(name) =
        ["clang-14", "llvm-objcopy-14", "bash"].iter().find(|name| !is_installed(name))
    {
        eprintln!("skipped: {name} is required to rebuild the objects");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rebuilt = Path::new(env!("CARGO_TARGET_TMPDIR")).join("objects");
    let _ = fs::remove_dir_all(&rebuilt); // An earlier tree may have had other programs.
    let build = Command::new(root.join("../../kernel/build")).arg(&rebuilt).status();
    assert!(build.unwrap().success());
    let committed = root.join("src/bpf/objects");
    let mut names: Vec<_> = fs::read_dir(&committed).unwrap().map(|it| it.unwrap()).collect();
    names.sort_by_key(fs::DirEntry::file_name);
    assert_eq!(names.len(), fs::read_dir(&rebuilt).unwrap().count());
    for entry in names {
        let bytes = fs::read(rebuilt.join(entry.file_name())).unwrap();
        let name = entry.file_name();
        assert!(
            fs::read(entry.path()).unwrap() == bytes,
            "{name:?} differs from the output of kernel/build"
        );
    }
}
