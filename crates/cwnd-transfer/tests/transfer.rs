//! Transfers between conforming peers.

mod support;

use cwnd_transfer::event::Outcome;
use cwnd_transfer::frame::Frame;
use cwnd_transfer::send::SendOptions;
use cwnd_transfer::shared::ReceiveOptions;
use cwnd_transfer::stream::Stream;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use support::{
    PATIENCE, STREAM, Server, errors, list, noise, notes, open, scripted, tree, write_files,
};
use tempfile::TempDir;

const MIB: usize = 1 << 20;

/// A receiver, and the path of a source called `name`.
fn setup(name: &str, options: ReceiveOptions) -> (TempDir, Server, PathBuf) {
    let (dir, server) = support::setup(options);
    let source = dir.path().join(name);
    (dir, server, source)
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn set_time(path: &Path, secs: i64) {
    let time = if secs >= 0 {
        SystemTime::UNIX_EPOCH + Duration::new(secs as u64, 123_456_789)
    } else {
        SystemTime::UNIX_EPOCH - Duration::from_secs(secs.unsigned_abs())
    };
    let file = fs::File::open(path).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn files_arrive_with_mode_and_time() {
    let (dir, server) = support::setup(open());
    for size in [0, 1, 65535, MIB, MIB + 1, 5 * MIB + 12345] {
        let source = dir.path().join(format!("a file\n{size}"));
        fs::write(&source, noise(size, 1)).unwrap();
        chmod(&source, 0o751);
        set_time(&source, 1_234_567_890);
        let end = server.send(&source);
        assert_eq!(end.outcome, Outcome::Complete, "{end:?}");
        assert_eq!((end.files, end.bytes, end.moved_bytes), (1, size as u64, size as u64));
        let received = server.out.join(source.file_name().unwrap());
        assert_eq!(fs::read(&received).unwrap(), noise(size, 1));
        assert_eq!(mode(&received), 0o751);
        assert_eq!(received.metadata().unwrap().mtime_nsec(), 123_456_789);
    }
    assert_eq!(list(&server.out).len(), 6);
}

#[test]
fn folders_arrive_completely() {
    let (_dir, server, source) = setup("folder", open());
    fs::create_dir_all(source.join("empty")).unwrap();
    fs::create_dir_all(source.join("größe")).unwrap();
    for number in 0..50 {
        fs::write(source.join("größe").join(format!("{number} x")), noise(number * 1000, 3))
            .unwrap();
    }
    symlink("größe/3 x", source.join("link")).unwrap();
    symlink("../größe", source.join("empty/up")).unwrap();
    chmod(&source.join("größe"), 0o555);
    chmod(&source, 0o700);
    let end = server.send(&source);
    assert_eq!((end.outcome, end.files), (Outcome::Complete, 50));
    assert_eq!(tree(&server.out.join("folder")), tree(&source));
    let again = server.send(&source);
    assert_eq!((again.outcome, again.files, again.moved_bytes), (Outcome::Complete, 50, 0));
    for root in [&source, &server.out.join("folder")] {
        chmod(&root.join("größe"), 0o755);
    }
}

#[test]
fn more_files_than_the_window_of_offers() {
    let (_dir, server, source) = setup("many", open());
    fs::create_dir(&source).unwrap();
    (0..3000).for_each(|n| fs::write(source.join(n.to_string()), n.to_string()).unwrap());
    (0..20).for_each(|n| fs::write(source.join(format!("big{n}")), noise(MIB + n, 7)).unwrap());
    assert_eq!(server.send(&source).files, 3020);
    assert_eq!(tree(&server.out.join("many")), tree(&source));
}

#[test]
fn existing_files_are_kept() {
    let (dir, server, source) = setup("d", open());
    fs::create_dir(&source).unwrap();
    let received = server.out.join("d");
    fs::create_dir(&received).unwrap();
    chmod(&received, 0o700);
    chmod(&source, 0o777);
    for (name, old, new) in [("a", "old", "longer"), ("b", "old", "new"), ("c", "same", "same")] {
        fs::write(source.join(name), new).unwrap();
        fs::write(received.join(name), old).unwrap();
        chmod(&received.join(name), 0o600);
        set_time(&received.join(name), 1_000_000_000);
    }
    let before = tree(&received);
    let (end, events) = server.send_with(&[&source], SendOptions::default());
    assert_eq!((end.outcome, end.not_sent, end.files), (Outcome::Incomplete, 2, 1));
    let different = |name: &str| (format!("d/{name}"), "a different file exists".to_owned());
    assert_eq!(errors(&events), [different("a"), different("b")]);
    assert_eq!((tree(&received), mode(&received)), (before, 0o700));
    drop(server);

    let server = Server::new(&dir.path().join("in"), ReceiveOptions { overwrite: true, ..open() });
    assert_eq!(server.send(&source).outcome, Outcome::Complete);
    assert_eq!(fs::read(received.join("a")).unwrap(), b"longer");
    assert_eq!(fs::read(received.join("b")).unwrap(), b"new");
    assert_eq!((mode(&received.join("c")), mode(&received)), (0o600, 0o700));
    assert_eq!(list(&received), ["a", "b", "c"]);
}

/// A receiver, and a folder at the source and at the receiver, with `count` files of equal sizes
/// and different times.
fn equal_sizes(
    options: ReceiveOptions,
    count: usize,
    received: &str,
) -> (TempDir, Server, PathBuf) {
    let (dir, server, source) = setup("d", options);
    for (folder, text) in [(&source, "new"), (&server.out.join("d"), received)] {
        fs::create_dir(folder).unwrap();
        (0..count).for_each(|n| fs::write(folder.join(n.to_string()), text).unwrap());
        (0..count).for_each(|n| set_time(&folder.join(n.to_string()), text.len() as i64));
    }
    (0..count).for_each(|n| set_time(&source.join(n.to_string()), 1_000_000_000));
    (dir, server, source)
}

#[test]
fn many_small_files_that_differ_are_replaced() {
    let options = ReceiveOptions { overwrite: true, ..open() };
    let (_dir, server, source) = equal_sizes(options, 100, "old");
    let end = server.send(&source);
    assert_eq!((end.reason, end.files, end.moved_bytes), (None, 100, 300));
    assert_eq!(tree(&server.out.join("d"))[1..], tree(&source)[1..]);
}

#[test]
fn compared_small_files_are_closed() {
    let (_dir, server, source) = equal_sizes(open(), 900, "new");
    let most = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (end, _) = server.send_over(&[&source], SendOptions::default(), |_| {
        let (connection, most) = (server.connect(), std::sync::Arc::clone(&most));
        let received = server.out.join("d");
        connection.with_channel_error(move |_| {
            let open = fs::read_dir("/proc/self/fd")?.flatten();
            let open = open.filter_map(|fd| fs::read_link(fd.path()).ok());
            let count = open.filter(|path| path.starts_with(&received)).count();
            most.fetch_max(count, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        })
    });
    assert_eq!((end.reason, end.files, end.moved_bytes), (None, 900, 0));
    assert!(most.load(std::sync::atomic::Ordering::Relaxed) < 20, "{most:?} open files");
}

#[test]
fn a_longer_file_is_replaced_by_its_hash() {
    for (what, new, old) in [
        ("an empty file", Vec::new(), b"not empty".to_vec()),
        ("a small file with the same beginning", noise(3, 1), noise(10, 1)),
        ("a large file with the same beginning", noise(MIB + 5, 1), noise(MIB + 12, 1)),
    ] {
        let (_dir, server, source) = setup("f", ReceiveOptions { overwrite: true, ..open() });
        fs::write(&source, &new).unwrap();
        fs::write(server.out.join("f"), old).unwrap();
        let options = SendOptions { checksum: true, ..SendOptions::default() };
        let (end, _) = server.send_with(&[&source], options);
        assert_eq!((end.outcome, end.files), (Outcome::Complete, 1), "{what}: {end:?}");
        assert!(fs::read(server.out.join("f")).unwrap() == new, "{what}");
    }
}

#[test]
fn a_sticky_folder_stays_sticky_and_nothing_is_setuid() {
    let (_dir, server, source) = setup("d", open());
    write_files(&source, &[("program", "x")]);
    chmod(&source.join("program"), 0o6755);
    chmod(&source, 0o3777);
    assert_eq!(server.send(&source).outcome, Outcome::Complete);
    assert_eq!(mode(&server.out.join("d/program")), 0o755);
    assert_eq!(mode(&server.out.join("d")), 0o1755);
}

#[test]
fn one_entry_that_cannot_be_sent_does_not_drop_its_folder() {
    let (_dir, server, source) = setup("d", open());
    write_files(&source, &["a", "b.cwnd-part", "c.cwnd-sums", "z"].map(|name| (name, name)));
    fs::create_dir(source.join("below")).unwrap();
    symlink("/etc/passwd", source.join("absolute")).unwrap();
    symlink("../../x", source.join("below/out")).unwrap();
    std::os::unix::net::UnixListener::bind(source.join("socket")).unwrap();
    let (end, events) = server.send_with(&[&source], SendOptions::default());
    assert_eq!((end.outcome, end.files, end.not_sent), (Outcome::Incomplete, 2, 5));
    let names: Vec<_> = errors(&events).into_iter().map(|(path, _)| path).collect();
    assert_eq!(names, ["d/absolute", "d/b.cwnd-part", "d/below/out", "d/c.cwnd-sums", "d/socket"]);
    assert_eq!(list(&server.out.join("d")), ["a", "below", "z"]);
}

#[test]
fn a_path_that_is_too_long_does_not_end_the_transfer() {
    use rustix::fs::{Mode, OFlags, mkdirat, open as open_at, openat};
    let (_dir, server, source) = setup("d", open());
    write_files(&source, &[("a", "a")]);
    let name = "x".repeat(250);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut folder = open_at(&source, flags, Mode::empty()).unwrap();
    for _ in 0..40 {
        mkdirat(&folder, &name, Mode::RWXU).unwrap();
        folder = openat(&folder, &name, flags, Mode::empty()).unwrap();
    }
    let (end, events) = server.send_with(&[&source], SendOptions::default());
    assert_eq!((end.reason, end.files, end.not_sent), (None, 1, 1));
    assert!(errors(&events)[0].1.contains("4096 are allowed"), "{:?}", errors(&events)[0].1);
}

#[test]
fn times_beyond_2262_arrive() {
    let (_dir, server, source) = setup("future", open());
    fs::write(&source, "x").unwrap();
    set_time(&source, 13_569_465_600);
    assert_eq!(server.send(&source).outcome, Outcome::Complete);
    assert_eq!(server.out.join("future").metadata().unwrap().mtime(), 13_569_465_600);
    assert_eq!(server.send(&source).moved_bytes, 0);
}

/// A stream has no modification time of its own.
#[test]
fn a_stream_gets_the_time_of_its_arrival() {
    let before = SystemTime::now() - Duration::from_secs(1);
    let (_dir, server, script) = scripted(open());
    script.write_all(&Frame::Offer(STREAM));
    script.data();
    script.write_all(&Frame::Done);
    server.ends(1);
    let received = server.out.join("stdin").metadata().unwrap().modified().unwrap();
    assert!(before < received, "{received:?}");
}

#[test]
fn equal_contents_are_found_by_their_hash() {
    let (_dir, server, source) = setup("f", open());
    fs::write(&source, noise(3 * MIB, 5)).unwrap();
    fs::write(server.out.join("f"), noise(3 * MIB, 5)).unwrap();
    set_time(&source, 1_500_000_000);
    let end = server.send(&source);
    assert_eq!((end.outcome, end.files, end.moved_bytes), (Outcome::Complete, 1, 0));
    assert_ne!(server.out.join("f").metadata().unwrap().mtime(), 1_500_000_000);
    // A difference with equal size and time is found only by hashes.
    let mut data = noise(3 * MIB, 5);
    data[2 * MIB] ^= 1;
    fs::write(&source, data).unwrap();
    set_time(&source, 1_600_000_000);
    set_time(&server.out.join("f"), 1_600_000_000);
    assert_eq!(server.send(&source).outcome, Outcome::Complete);
    let checksum = SendOptions { checksum: true, ..SendOptions::default() };
    assert_eq!(server.send_with(&[&source], checksum).0.not_sent, 1);
}

#[test]
fn only_blocks_that_differ_are_sent_with_checksum() {
    let (_dir, server, source) = setup("f", ReceiveOptions { overwrite: true, ..open() });
    let mut data = noise(8 * MIB + 5, 5);
    fs::write(server.out.join("f"), &data[..6 * MIB]).unwrap();
    data[3 * MIB] ^= 1;
    fs::write(&source, &data).unwrap();
    let checksum = SendOptions { checksum: true, ..SendOptions::default() };
    let (end, _) = server.send_with(&[&source], checksum);
    assert_eq!((end.outcome, end.moved_bytes), (Outcome::Complete, 3 * MIB as u64 + 5));
    assert_eq!(fs::read(server.out.join("f")).unwrap(), data);
    assert_eq!(list(&server.out), ["f"]);
}

#[test]
fn hard_links_are_preserved() {
    let (_dir, server, source) = setup("d", open());
    fs::create_dir_all(source.join("below")).unwrap();
    fs::write(source.join("a"), noise(100, 1)).unwrap();
    fs::hard_link(source.join("a"), source.join("b")).unwrap();
    fs::hard_link(source.join("a"), source.join("below/c")).unwrap();
    let end = server.send(&source);
    assert_eq!((end.outcome, end.files, end.moved_bytes), (Outcome::Complete, 3, 100));
    let inode = |name: &str| server.out.join("d").join(name).metadata().unwrap().ino();
    assert_eq!((inode("a"), inode("a")), (inode("b"), inode("below/c")));
    assert_eq!(server.send(&source).outcome, Outcome::Complete);
    // An existing file that differs is not a target, and is not replaced.
    fs::remove_file(server.out.join("d/b")).unwrap();
    fs::write(server.out.join("d/b"), "mine").unwrap();
    assert_eq!(server.send(&source).not_sent, 1);
    assert_eq!(fs::read(server.out.join("d/b")).unwrap(), b"mine");
}

#[test]
fn links_to_refused_files_become_files() {
    let (_dir, server, source) = setup("d", open());
    write_files(&source, &[("a", "new")]);
    fs::hard_link(source.join("a"), source.join("b")).unwrap();
    fs::hard_link(source.join("a"), source.join("c")).unwrap();
    write_files(&server.out, &[("d/a", "another")]);
    let end = server.send(&source);
    assert_eq!((end.files, end.not_sent), (2, 1));
    let received = server.out.join("d");
    assert_eq!(fs::read(received.join("a")).unwrap(), b"another");
    assert_eq!(
        received.join("b").metadata().unwrap().ino(),
        received.join("c").metadata().unwrap().ino()
    );
}

#[test]
fn holes_are_preserved() {
    let (_dir, server, source) = setup("sparse", open());
    let file = fs::File::create(&source).unwrap();
    file.set_len(200 << 20).unwrap();
    for (offset, size) in
        [(0, 5000), (10 << 20, 4096), ((50 << 20) + 8192, 3 * MIB), (150 << 20, 1)]
    {
        std::os::unix::fs::FileExt::write_all_at(&file, &noise(size, 9), offset).unwrap();
    }
    let end = server.send(&source);
    assert_eq!(end.outcome, Outcome::Complete, "{end:?}");
    assert!(end.moved_bytes < 4 << 20, "{}", end.moved_bytes);
    let received = server.out.join("sparse");
    assert!(fs::read(&received).unwrap() == fs::read(&source).unwrap());
    let (source_blocks, received) =
        (source.metadata().unwrap().blocks(), received.metadata().unwrap().blocks());
    assert!(received <= source_blocks + 16, "{received} and {source_blocks}");
}

#[test]
fn a_dry_run_changes_nothing() {
    let (_dir, server, source) = setup("d", open());
    write_files(&source, &[("below/a", noise(2 * MIB, 1)), ("b", b"x".to_vec())]);
    write_files(&server.out, &[("d/b", "other")]);
    let dry = SendOptions { dry_run: true, ..SendOptions::default() };
    let (end, events) = server.send_with(&[&source], dry);
    assert_eq!((end.outcome, end.files, end.moved_bytes), (Outcome::Incomplete, 1, 0));
    assert_eq!(errors(&events), [("d/b".into(), "a different file exists".into())]);
    assert_eq!(list(&server.out.join("d")), ["b"]);
}

#[test]
fn several_sources_and_patterns() {
    let (dir, server, one) = setup("one", open());
    let two = dir.path().join("two.o");
    let names = ["a.c", "a.o", "some/b.c", "none/b.o", "some/old.c"];
    write_files(&one, &names.map(|name| (name, name)));
    fs::write(&two, "two").unwrap();
    let select = cwnd_transfer::select::Select::new(&["*.c".into()], &["old*".into()]).unwrap();
    let options = SendOptions { select, ..SendOptions::default() };
    let (end, _) = server.send_with(&[&one, &two], options);
    assert_eq!((end.outcome, end.files), (Outcome::Complete, 3));
    assert_eq!(list(&server.out.join("one")), ["a.c", "some"]);
    assert_eq!(list(&server.out.join("one/some")), ["b.c"]);
    assert_eq!(list(&server.out), ["one", "two.o"]);
}

#[test]
fn a_link_given_as_source_is_followed() {
    let (dir, server, source) = setup("link", open());
    fs::write(dir.path().join("target"), "x").unwrap();
    symlink("target", &source).unwrap();
    assert_eq!(server.send(&source).outcome, Outcome::Complete);
    assert!(!server.out.join("link").is_symlink());
}

#[test]
fn names_used_by_other_entries() {
    let (_dir, server, source) = setup("d", ReceiveOptions { overwrite: true, ..open() });
    write_files(&source, &[("a", "x"), ("b/c", "x")]);
    write_files(&server.out, &[("d/b", "mine")]);
    fs::create_dir(server.out.join("d/a")).unwrap();
    let (end, events) = server.send_with(&[&source], SendOptions::default());
    assert_eq!(end.not_sent, 3);
    let reason = "a file or link has the name of a folder";
    assert_eq!(errors(&events)[0], ("d/a".into(), "a folder has its name".into()));
    assert_eq!(
        errors(&events)[1..],
        [("d/b".into(), reason.into()), ("d/b/c".into(), reason.into())]
    );
    assert_eq!(fs::read(server.out.join("d/b")).unwrap(), b"mine");
}

#[test]
fn once_ends_after_one_transfer() {
    let (_dir, server, source) = setup("f", ReceiveOptions { once: true, ..open() });
    fs::write(&source, "x").unwrap();
    // Connections that send one byte, nothing, or another protocol do not end the receiver.
    server.connect().write_all(b"x");
    server.connect().abort();
    server.connect().write_all(b"GET / HTTP/1.1\r\n");
    let stranger = server.connect();
    stranger.write_all(b"cwndxfr\x01");
    let mut heard = [0; 8];
    assert!(stranger.read_exact(&mut heard, Instant::now() + PATIENCE));
    assert_eq!(&heard, b"cwndxfr\x03");
    assert!(notes(&server.events.lock().unwrap()).is_empty());
    assert_eq!(server.send(&source).outcome, Outcome::Complete);
    server.finish().unwrap();
}
