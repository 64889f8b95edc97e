//! Interruptions, takeovers, retries, damaged blocks and limits.

mod support;

use cwnd_transfer::event::{Event, FileOutcome, Outcome};
use cwnd_transfer::frame::{Decision, Frame};
use cwnd_transfer::hash::BLOCK;
use cwnd_transfer::send::{Control, SendOptions, send};
use cwnd_transfer::shared::{ReceiveOptions, Reserve, Timeouts};
use cwnd_transfer::stream::Stream;
use proptest::prelude::*;
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use support::{
    PATIENCE, STREAM, Script, Server, StreamEnd, errors, list, noise, notes, open, scripted, size,
    wait_until, write_files,
};
use tempfile::TempDir;

const MIB: usize = 1 << 20;

fn setup(options: ReceiveOptions, size: usize) -> (TempDir, Server, PathBuf) {
    let (dir, server) = support::setup(options);
    let source = dir.path().join("large");
    fs::write(&source, noise(size, 1)).unwrap();
    (dir, server, source)
}

/// Options with short timeouts of silent senders.
fn briefly_idle() -> ReceiveOptions {
    let [greeting, idle] = [1, 2].map(Duration::from_secs);
    ReceiveOptions { timeouts: Timeouts { greeting, idle, ..Timeouts::default() }, ..open() }
}

fn without_retry() -> SendOptions {
    SendOptions { retry: 0, ..SendOptions::default() }
}

/// Makes a connection fail after `after` bytes.
fn cut(end: Arc<StreamEnd>, after: usize) -> Arc<StreamEnd> {
    let mut left = after;
    end.with_channel_error(move |data| {
        left = left.checked_sub(data.len()).ok_or(io::ErrorKind::ConnectionReset)?;
        Ok(())
    })
}

fn interrupt(server: &Server, source: &Path, after: usize) {
    let before = server.ends(0).len();
    let (end, _) = server.send_over(&[source], without_retry(), |_| cut(server.connect(), after));
    assert_eq!(end.outcome, Outcome::Failed);
    server.ends(before + 1);
}

/// Writes into a partial file, or into a source, whose time stays.
fn edit(path: &Path, data: &[u8], offset: u64) {
    let file = fs::File::options().write(true).open(path).unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(data, offset).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn an_interrupted_file_continues_after_its_part_is_compared() {
    let (_dir, server, source) = setup(open(), 10 * MIB);
    interrupt(&server, &source, 6 * MIB + 1000);
    assert_eq!(list(&server.out), ["large.cwnd-part", "large.cwnd-sums"]);
    edit(&server.out.join("large.cwnd-part"), b"mark", 5);
    let (end, events) = server.send_with(&[&source], SendOptions::default());
    // Four blocks were missing, and one is damaged.
    assert_eq!((end.outcome, end.moved_bytes), (Outcome::Complete, 5 * MIB as u64));
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::File { outcome: FileOutcome::Resumed, .. }))
    );
    assert!(fs::read(server.out.join("large")).unwrap() == noise(10 * MIB, 1));
    assert_eq!(list(&server.out), ["large"]);
}

#[test]
fn an_edit_of_the_source_costs_its_blocks_even_if_its_time_stays() {
    for time_stays in [true, false] {
        let (_dir, server, source) = setup(open(), 10 * MIB);
        interrupt(&server, &source, 6 * MIB + 1000);
        if time_stays {
            edit(&source, b"it", 2 * BLOCK - 1);
        } else {
            let file = fs::File::options().write(true).open(&source).unwrap();
            file.write_all_at(b"it", 2 * BLOCK - 1).unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
        }
        let end = server.send(&source);
        assert_eq!((end.outcome, end.moved_bytes), (Outcome::Complete, 6 * MIB as u64));
        assert!(fs::read(server.out.join("large")).unwrap() == fs::read(&source).unwrap());
    }
}

/// The first sender leaves half of her file under the name, size and time of another's.
#[test]
fn a_part_belongs_to_the_sender_who_is_identified_by_a_key() {
    let (_dir, server, source) = setup(open(), 4 * MIB);
    let mtime = in_whole_seconds(&source);
    let mallory = Script::over(server.connect_as("mallory"));
    mallory.offer(b"large", 4 * MIB as u64, mtime);
    for index in 0..2 {
        mallory.block(0, index, &noise(MIB, 5));
    }
    wait_until(|| size(&server.out.join("large.cwnd-part")) >= 2 * BLOCK);
    drop(mallory);
    server.ends(1);
    let (end, _) =
        server.send_over(&[&source], SendOptions::default(), |_| server.connect_as("alice"));
    assert_eq!((end.outcome, end.moved_bytes), (Outcome::Complete, 4 * MIB as u64));
    assert!(fs::read(server.out.join("large")).unwrap() == noise(4 * MIB, 1));
}

#[test]
fn a_file_of_another_hash_is_not_completed() {
    let (_dir, server, _) = setup(open(), 0);
    for root in [None, Some([1; 32])] {
        let script = Script::new(&server);
        script.offer(b"large", 2 * MIB as u64, 0);
        for index in 0..2 {
            script.block(0, index, &noise(MIB, 5));
        }
        script.write_all(&Frame::End { number: 0, size: 2 * MIB as u64, root });
        let answers = script.answers(2);
        let refused = (Some(Decision::Refused), "its hash differs from the sender's".into());
        assert_eq!(answers.last(), Some(&refused), "{answers:?}");
        assert!(list(&server.out).is_empty());
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// New content of the source, of a size in 64 KiB.
    Write {
        size: usize,
        seed: u64,
    },
    /// A byte of the source, at a fraction of its size.
    Edit {
        at: f64,
        time_stays: bool,
    },
    /// A byte of the partial file, as by its owner.
    Tamper {
        at: f64,
    },
    /// A transfer that breaks after a number of 64 KiB.
    Break {
        after: usize,
        sender: &'static str,
    },
    Send {
        checksum: bool,
        sender: &'static str,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let sender = || proptest::sample::select(&["alice", "bob"][..]);
    let step = prop_oneof![
        (0usize..72, 1u64..4).prop_map(|(size, seed)| Step::Write { size, seed }),
        (0.0..1.0, any::<bool>()).prop_map(|(at, time_stays)| Step::Edit { at, time_stays }),
        (0.0..1.0).prop_map(|at| Step::Tamper { at }),
        (1usize..72, sender()).prop_map(|(after, sender)| Step::Break { after, sender }),
        (1usize..72, sender()).prop_map(|(after, sender)| Step::Break { after, sender }),
        (any::<bool>(), sender()).prop_map(|(checksum, sender)| Step::Send { checksum, sender }),
    ];
    proptest::collection::vec(step, 3..12)
}

fn flip(path: &Path, at: f64) {
    let Ok(mut data) = fs::read(path) else { return };
    let at = (at * data.len() as f64) as usize;
    if let Some(byte) = data.get_mut(at) {
        *byte ^= 1;
        fs::write(path, data).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A file has the sender's content after each completed transfer, and it changes at no other
    /// time.
    #[test]
    fn a_completed_file_has_the_content_of_its_sender(steps in steps()) {
        let options = ReceiveOptions { overwrite: true, ..open() };
        let (_dir, server, source) = setup(options, 40 << 16);
        let target = server.out.join("large");
        let (mut ends, mut completed) = (0, None::<Vec<u8>>);
        for step in steps {
            let time = |path: &Path| path.metadata().unwrap().modified().unwrap();
            match step {
                Step::Write { size, seed } => fs::write(&source, noise(size << 16, seed)).unwrap(),
                Step::Edit { at, time_stays } => {
                    let before = time(&source);
                    flip(&source, at);
                    if time_stays {
                        fs::File::open(&source).unwrap().set_modified(before).unwrap();
                    }
                }
                Step::Tamper { at } => flip(&server.out.join("large.cwnd-part"), at),
                Step::Break { after, sender } => {
                    let (end, _) = server.send_over(&[&source], without_retry(), |_| {
                        cut(server.connect_as(sender), after << 16)
                    });
                    if end.outcome == Outcome::Complete {
                        completed = Some(fs::read(&target).unwrap());
                    }
                    ends += 1;
                    server.ends(ends);
                }
                Step::Send { checksum, sender } => {
                    let present = target.exists()
                        && time(&target) == time(&source)
                        && target.metadata().unwrap().len() == source.metadata().unwrap().len();
                    let options = SendOptions { checksum, ..SendOptions::default() };
                    let (end, events) =
                        server.send_over(&[&source], options, |_| server.connect_as(sender));
                    prop_assert_eq!(end.outcome, Outcome::Complete, "{:?}", events);
                    // By documentation a file of equal size and time is present.
                    if checksum || !present {
                        completed = Some(fs::read(&source).unwrap());
                    }
                    ends += 1;
                    server.ends(ends);
                }
            }
            prop_assert!(fs::read(&target).ok() == completed);
        }
    }
}

#[test]
fn with_checksum_only_damaged_blocks_of_a_part_are_sent() {
    let (_dir, server, source) = setup(open(), 10 * MIB);
    interrupt(&server, &source, 6 * MIB + 1000);
    let part = fs::File::options().write(true).open(server.out.join("large.cwnd-part")).unwrap();
    part.write_all_at(b"mark", 2 * BLOCK).unwrap();
    let checksum = SendOptions { checksum: true, ..SendOptions::default() };
    let (end, _) = server.send_with(&[&source], checksum);
    assert_eq!((end.outcome, end.moved_bytes), (Outcome::Complete, 5 * MIB as u64));
    assert!(fs::read(server.out.join("large")).unwrap() == noise(10 * MIB, 1));
    assert_eq!(list(&server.out), ["large"]);
}

#[test]
fn another_content_replaces_a_part() {
    let (_dir, server, source) = setup(open(), 10 * MIB);
    interrupt(&server, &source, 6 * MIB + 1000);
    fs::write(&source, noise(9 * MIB, 2)).unwrap();
    let end = server.send(&source);
    assert_eq!((end.outcome, end.moved_bytes), (Outcome::Complete, 9 * MIB as u64));
    assert!(fs::read(server.out.join("large")).unwrap() == noise(9 * MIB, 2));
    assert_eq!(list(&server.out), ["large"]);
}

#[test]
fn a_broken_connection_is_retried() {
    let (_dir, server, source) = setup(open(), 10 * MIB);
    let (end, events) = server.send_over(&[&source], SendOptions::default(), |attempt| {
        let end = server.connect();
        if attempt < 3 { cut(end, 3 * MIB + 1000) } else { end }
    });
    assert_eq!(end.outcome, Outcome::Complete, "{end:?}");
    // A block was lost twice.
    assert_eq!(end.moved_bytes, 12 * MIB as u64);
    let delays: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Retry { attempt, of, delay_s, .. } => Some((*attempt, *of, *delay_s)),
            _ => None,
        })
        .collect();
    assert_eq!(delays, [(1, 5, 0.5), (2, 5, 1.0)]);
    assert!(fs::read(server.out.join("large")).unwrap() == noise(10 * MIB, 1));
}

#[test]
fn the_first_connection_is_retried_unless_it_was_refused() {
    let (_dir, server, source) = setup(open(), 10);
    for (kind, retried) in [
        (std::io::ErrorKind::TimedOut, true),
        (std::io::ErrorKind::NetworkUnreachable, true),
        (std::io::ErrorKind::ConnectionRefused, false),
        (std::io::ErrorKind::PermissionDenied, false),
    ] {
        let mut attempts = 0;
        let mut connect = || {
            attempts += 1;
            match attempts {
                1 => Err(std::io::Error::new(kind, "no answer")),
                _ => Ok(server.connect() as Arc<dyn Stream>),
            }
        };
        let sources = [source.clone()];
        let control = Control::default();
        let end = send(&sources, SendOptions::default(), &mut connect, &|_| (), &control).unwrap();
        assert_eq!(end.reason.is_none(), retried, "{kind:?}: {:?}", end.reason);
        assert_eq!(attempts, 1 + u32::from(retried));
    }
}

#[test]
fn an_interrupted_folder_continues_and_its_folders_get_their_mode() {
    let (dir, server, _) = setup(open(), 1);
    let source = dir.path().join("d");
    fs::create_dir(&source).unwrap();
    (0..8).for_each(|n| fs::write(source.join(n.to_string()), noise(MIB, n)).unwrap());
    fs::File::open(&source).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let received = server.out.join("d");
    let (end, _) = server.send_over(&[&source], SendOptions::default(), |attempt| {
        if attempt == 1 {
            let (received, mut left) = (received.clone(), 5 * MIB);
            return server.connect().with_channel_error(move |data| {
                left = left.saturating_sub(data.len());
                // The receiver cannot answer after the failure: it completes four files before.
                while left == 0 && list(&received).iter().filter(|name| name.len() == 1).count() < 4
                {
                    std::thread::sleep(Duration::from_millis(1));
                }
                if left > 0 { Ok(()) } else { Err(io::ErrorKind::ConnectionReset.into()) }
            });
        }
        // The receiver has kept what arrived.
        server.ends(1);
        server.connect()
    });
    assert_eq!((end.outcome, end.files, end.bytes), (Outcome::Complete, 8, 8 * MIB as u64));
    assert!(end.moved_bytes <= 10 * MIB as u64);
    assert_eq!(server.out.join("d").metadata().unwrap().mtime(), 0);
    assert_eq!(list(&server.out.join("d")).len(), 8);
}

#[test]
fn a_bit_error_costs_one_block() {
    let (_dir, server, source) = setup(open(), 5 * MIB + 7);
    let (end, events) = server.send_over(&[&source], SendOptions::default(), |_| {
        let mut seen = 0;
        server.connect().with_channel_error(move |data| {
            seen += data.len();
            // In the middle of the third block.
            if seen > 2 * MIB + MIB / 2 && seen - data.len() <= 2 * MIB + MIB / 2 {
                data[100] ^= 4;
            }
            Ok(())
        })
    });
    assert_eq!(end.outcome, Outcome::Complete, "{events:?}");
    assert_eq!(end.moved_bytes, 6 * MIB as u64 + 7);
    assert!(fs::read(server.out.join("large")).unwrap() == noise(5 * MIB + 7, 1));
    assert!(notes(&server.events.lock().unwrap()).iter().any(|note| note.contains("damaged")));
}

#[test]
fn a_file_whose_blocks_always_arrive_damaged_fails_and_leaves_nothing() {
    let (_dir, server, source) = setup(open(), 3 * MIB);
    let (end, events) = server.send_over(&[&source], SendOptions::default(), |_| {
        server.connect().with_channel_error(move |data| {
            if data.len() > 60_000 {
                data[50_000] ^= 4;
            }
            Ok(())
        })
    });
    assert_eq!((end.outcome, end.not_sent), (Outcome::Incomplete, 1));
    assert!(errors(&events)[0].1.contains("damaged"));
    assert!(list(&server.out).is_empty(), "{:?}", list(&server.out));
}

#[test]
fn a_source_that_changes_during_the_transfer_is_completed_if_it_only_grows() {
    for change in ["grow", "shrink", "rewrite"] {
        let (_dir, server, source) = setup(open(), 6 * MIB);
        let path = source.clone();
        let (end, events) = server.send_over(&[&source], SendOptions::default(), |_| {
            let (path, mut seen) = (path.clone(), 0);
            server.connect().with_channel_error(move |data| {
                seen += data.len();
                if seen > 3 * MIB && seen - data.len() <= 3 * MIB {
                    match change {
                        "rewrite" => fs::write(&path, noise(6 * MIB, 2)).unwrap(),
                        "grow" => fs::write(&path, noise(7 * MIB, 1)).unwrap(),
                        _ => fs::write(&path, noise(2 * MIB, 1)).unwrap(),
                    }
                }
                Ok(())
            })
        });
        if change == "grow" {
            assert_eq!(end.outcome, Outcome::Complete);
            assert!(fs::read(server.out.join("large")).unwrap() == noise(6 * MIB, 1));
            continue;
        }
        assert_eq!(end.not_sent, 1, "{change}");
        assert!(errors(&events)[0].1.contains("while it was sent"));
        // What arrived is useful to the next attempt.
        server.ends(1);
        assert_eq!(list(&server.out), ["large.cwnd-part", "large.cwnd-sums"]);
        assert_eq!(server.send(&source).outcome, Outcome::Complete);
        assert!(fs::read(server.out.join("large")).unwrap() == fs::read(&source).unwrap());
    }
}

/// Truncates the time of `source` to whole seconds, as in the scripts, and returns it.
fn in_whole_seconds(source: &Path) -> i64 {
    let mtime = source.metadata().unwrap().mtime();
    let file = fs::File::open(source).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(mtime as u64)).unwrap();
    mtime
}

/// Offers other content as `large`, whose partial file another sender has locked.
fn assert_other_content_is_refused(server: &Server, mtime: i64) {
    let other = Script::new(server);
    other.offer(b"large", 5 * MIB as u64, mtime);
    let answers = other.answers(1);
    assert_eq!(
        answers[0],
        (Some(Decision::Refused), "it is being received from another sender".into())
    );
}

#[test]
fn an_idle_sender_is_superseded_after_three_seconds() {
    let (_dir, server, source) = setup(open(), 4 * MIB);
    let mtime = in_whole_seconds(&source);
    let silent = Script::new(&server);
    silent.offer(b"large", 4 * MIB as u64, mtime);
    silent.block(0, 0, &noise(4 * MIB, 1)[..MIB]);
    silent.block(0, 1, &noise(4 * MIB, 1)[MIB..2 * MIB]);
    wait_until(|| size(&server.out.join("large.cwnd-part")) == 2 * MIB as u64);
    let start = Instant::now();
    let (end, events) = server.send_with(&[&source], SendOptions::default());
    let took = start.elapsed();
    assert_eq!((end.outcome, end.moved_bytes), (Outcome::Complete, 2 * MIB as u64), "{events:?}");
    assert!(took > Duration::from_secs(2), "{took:?}");
    assert!(notes(&events).iter().any(|note| note.starts_with("waiting")));
    assert!(fs::read(server.out.join("large")).unwrap() == noise(4 * MIB, 1));
    // Later frames of the superseded sender are refused.
    silent.block(0, 2, &noise(MIB, 3));
    let answers = silent.answers(2);
    assert!(answers.iter().any(|(_, reason)| reason.contains("taken over")), "{answers:?}");
    assert!(fs::read(server.out.join("large")).unwrap() == noise(4 * MIB, 1));
}

#[test]
fn other_content_does_not_take_over_from_an_idle_sender() {
    let (_dir, server, source) = setup(open(), 4 * MIB);
    let mtime = source.metadata().unwrap().mtime();
    let silent = Script::new(&server);
    silent.offer(b"large", 4 * MIB as u64, mtime);
    silent.block(0, 0, &noise(4 * MIB, 1)[..MIB]);
    wait_until(|| size(&server.out.join("large.cwnd-part")) == MIB as u64);
    std::thread::sleep(Duration::from_millis(3_500));
    assert_other_content_is_refused(&server, mtime);
    let part = fs::read(server.out.join("large.cwnd-part")).unwrap();
    assert!(part == noise(4 * MIB, 1)[..MIB]);
}

/// Runs `test` while these senders send pings.
fn while_pinging(senders: &[Script], test: impl FnOnce()) {
    let (running, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let interval = Duration::from_millis(200);
            while ended.recv_timeout(interval) == Err(mpsc::RecvTimeoutError::Timeout) {
                senders.iter().for_each(|sender| sender.write_all(&Frame::Ping));
            }
        });
        // Dropped when the test ends or panics.
        let _running = running;
        test();
    });
}

#[test]
fn an_active_sender_keeps_its_file() {
    // Longer than the idle time after which the file could be taken over.
    let timeouts = Timeouts { wait: Duration::from_secs(4), ..Timeouts::default() };
    let (_dir, server, source) = setup(ReceiveOptions { timeouts, ..open() }, 4 * MIB);
    let mtime = in_whole_seconds(&source);
    let active = Script::new(&server);
    active.offer(b"large", 4 * MIB as u64, mtime);
    active.block(0, 0, &noise(4 * MIB, 1)[..MIB]);
    while_pinging(&[active], || {
        wait_until(|| size(&server.out.join("large.cwnd-part")) == MIB as u64);
        // Other content of this name is refused at once, the same content after the timeout.
        assert_other_content_is_refused(&server, mtime);
        let start = Instant::now();
        let (end, events) = server.send_with(&[&source], SendOptions::default());
        assert_eq!(end.not_sent, 1);
        assert_eq!(errors(&events)[0].1, "it is being received from another sender");
        assert!(start.elapsed() > timeouts.wait);
    });
}

#[test]
fn files_locked_by_another_process_are_refused() {
    let (_dir, server, source) = setup(open(), 2 * MIB);
    let part = fs::File::create(server.out.join("large.cwnd-part")).unwrap();
    part.lock().unwrap();
    let (end, events) = server.send_with(&[&source], SendOptions::default());
    assert_eq!(
        (end.not_sent, errors(&events)[0].1.as_str()),
        (1, "it is being received from another sender")
    );
    drop(part);
    assert_eq!(server.send(&source).outcome, Outcome::Complete);
}

#[test]
fn bytes_and_entries_are_limited() {
    let (dir, server, source) =
        setup(ReceiveOptions { max_bytes: Some(3 * BLOCK), ..open() }, 2 * MIB);
    assert_eq!(server.send(&source).outcome, Outcome::Complete);
    let second = dir.path().join("second");
    fs::write(&second, noise(2 * MIB, 2)).unwrap();
    let (end, events) = server.send_with(&[&second], SendOptions::default());
    assert_eq!((end.not_sent, end.moved_bytes), (1, 0));
    assert!(errors(&events)[0].1.contains("accepts at most 3145728 bytes"));
    assert_eq!(list(&server.out), ["large"]);
    // A stream has no known size: it ends at the limit, and is removed.
    let stream = Script::new(&server);
    stream.write_all(&Frame::Offer(STREAM));
    (0..3).for_each(|index| stream.block(0, index, &noise(MIB, 1)));
    let answers = stream.answers(2);
    assert!(
        answers.iter().any(|(decision, _)| *decision == Some(Decision::Refused)),
        "{answers:?}"
    );
    assert_eq!(list(&server.out), ["large"]);

    let server =
        Server::new(&dir.path().join("few"), ReceiveOptions { max_files: Some(3), ..open() });
    let many = dir.path().join("many");
    (0..9).for_each(|n| fs::create_dir_all(many.join(n.to_string())).unwrap());
    let (end, _) = server.send_with(&[&many], SendOptions::default());
    assert_eq!(end.not_sent, 7);
    assert_eq!(list(&server.out.join("many")).len(), 2);
}

#[test]
fn limits_hold_for_all_listeners_together() {
    let limits = ReceiveOptions { max_bytes: Some(3 * BLOCK), max_files: Some(2), ..open() };
    let (dir, server, source) = setup(limits, 2 * MIB);
    let connect = |_| server.connect_to_second();
    assert_eq!(server.send(&source).outcome, Outcome::Complete);
    let (large, small) = (dir.path().join("larger"), dir.path().join("small"));
    fs::write(&large, noise(2 * MIB, 2)).unwrap();
    fs::write(&small, "x").unwrap();
    for (path, sent) in [(&large, 0), (&small, 1)] {
        let (end, events) = server.send_over(&[path], without_retry(), connect);
        assert_eq!(end.files, sent, "{events:?}");
    }
    fs::write(dir.path().join("third"), "x").unwrap();
    let (end, _) = server.send_over(&[&dir.path().join("third")], without_retry(), connect);
    assert_eq!(end.files, 0);
    // The places of an address, and the numbers of the transfers.
    let pairs = (0..2).flat_map(|_| [server.connect(), server.connect_to_second()]);
    let held: Vec<_> = pairs.map(Script::over).collect();
    held.iter().for_each(Script::heard_plan);
    let (end, _) = server.send_over(&[&small], without_retry(), connect);
    assert!(end.reason.unwrap().contains("maximum number of senders"));
    // A receiver may report its end after the next sender has begun.
    let mut numbers: Vec<_> = server.ends(4).iter().map(|end| end.transfer).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4]);
}

#[test]
fn retransmitted_blocks_are_counted_once() {
    let limits = ReceiveOptions { max_files: Some(1), max_bytes: Some(8 * BLOCK), ..open() };
    let (_dir, server, source) = setup(limits, 8 * MIB);
    interrupt(&server, &source, 3 * MIB);
    server.ends(1);
    assert_eq!(list(&server.out).len(), 2);
    let (end, events) = server.send_with(&[&source], without_retry());
    assert_eq!(end.outcome, Outcome::Complete, "{:?}", errors(&events));

    let (dir, server) = support::setup(ReceiveOptions { max_files: Some(4), ..open() });
    let folder = dir.path().join("d");
    write_files(&folder, &["a", "b"].map(|name| (name, noise(MIB - 1, 1))));
    std::os::unix::fs::symlink("a", folder.join("link")).unwrap();
    interrupt(&server, &folder, MIB + MIB / 2);
    server.ends(1);
    for _ in 0..2 {
        let (end, events) = server.send_with(&[&folder], without_retry());
        assert_eq!(end.outcome, Outcome::Complete, "{:?}", errors(&events));
    }
    fs::write(folder.join("more"), "x").unwrap();
    assert_eq!(server.send_with(&[&folder], without_retry()).0.not_sent, 1);
}

#[test]
fn a_survey_is_not_reported() {
    let (dir, server, source) = setup(open(), 2 * MIB);
    assert_eq!(server.send(&source).outcome, Outcome::Complete);
    drop(server);
    let full = ReceiveOptions { reserve: Reserve::Share(1.0), ..open() };
    let server = Server::new(&dir.path().join("in"), full);
    let other = dir.path().join("other");
    fs::create_dir(server.out.join("other")).unwrap();
    fs::write(&other, "x").unwrap();
    let (end, _) = server.send_with(&[&source, &other], without_retry());
    let found = &server.ends(1)[0];
    assert_eq!((end.files, end.not_sent, end.bytes), (1, 1, 2 * BLOCK));
    assert_eq!((found.files, found.not_sent, found.bytes), (1, 1, 2 * BLOCK));
}

#[test]
fn a_full_disk_is_reported_before_the_transfer_starts() {
    let (dir, server, source) = setup(open(), 2 * MIB);
    assert_eq!(server.send(&source).outcome, Outcome::Complete);
    drop(server);
    let full = ReceiveOptions { reserve: Reserve::Share(1.0), ..open() };
    let server = Server::new(&dir.path().join("in"), full);
    // Existing data need no space.
    assert_eq!(server.send(&source).outcome, Outcome::Complete);
    fs::write(dir.path().join("other"), noise(2 * MIB, 2)).unwrap();
    let (end, events) =
        server.send_with(&[&source, &dir.path().join("other")], SendOptions::default());
    assert_eq!((end.outcome, end.moved_bytes), (Outcome::Failed, 0));
    assert!(end.reason.unwrap().contains("2.1 MB required, 0 B free"), "{events:?}");
    assert!(!events.iter().any(|event| matches!(event, Event::Retry { .. })));
    assert_eq!(list(&server.out), ["large"]);
}

#[test]
fn partial_files_that_cannot_be_resumed_are_removed() {
    let (_dir, server, script) = scripted(open());
    script.offer(b"small", 5, 1);
    script.block(0, 0, b"bytes");
    script.write_all(&Frame::Offer(STREAM));
    script.block(1, 0, &noise(MIB, 1));
    script.offer(b"empty", 2 * BLOCK, 1);
    wait_until(|| list(&server.out) == ["small.cwnd-part", "stdin.cwnd-part"]);
    drop(script);
    server.ends(1);
    assert!(list(&server.out).is_empty(), "{:?}", list(&server.out));
}

#[test]
fn transfers_are_limited_by_address() {
    let (_dir, server, source) = setup(open(), 10);
    let silent: Vec<_> = (0..4).map(|_| server.connect()).collect();
    silent.iter().for_each(|end| assert!(end.read_exact(&mut [0; 8], Instant::now() + PATIENCE)));
    let (end, _) = server.send_over(&[&source], without_retry(), |_| server.connect());
    assert!(end.reason.unwrap().contains("maximum number of senders"));
    // Other addresses are served.
    let other = "192.0.2.7".parse().unwrap();
    let (end, _) = server.send_over(&[&source], without_retry(), |_| server.connect_from(other));
    assert_eq!(end.outcome, Outcome::Complete);
    silent.iter().for_each(|end| end.abort());
    // The next attempt succeeds when a transfer has ended.
    assert_eq!(server.send(&source).outcome, Outcome::Complete);
}

/// One host usually has all addresses of a network of 64 bits; the loopback addresses are of one
/// host too.
#[test]
fn transfers_are_limited_by_network_in_ipv6() {
    let (_dir, server, source) = setup(open(), 10);
    let from = |address: &str| server.connect_from(address.parse().unwrap());
    let send = |address: &str| {
        let (end, _) = server.send_over(&[&source], without_retry(), |_| from(address));
        end.outcome
    };
    for (address, neighbour, other) in [
        ("2001:db8::", "2001:db8::5", "2001:db8:0:1::5"),
        ("::ffff:192.0.2.7", "192.0.2.7", "::ffff:192.0.2.8"),
        ("::1", "127.0.0.1", "192.0.2.9"),
    ] {
        let held: Vec<_> = (0..4).map(|_| Script::over(from(address))).collect();
        held.iter().for_each(|script| script.heard_plan());
        assert_eq!(send(neighbour), Outcome::Failed, "{neighbour}");
        assert_eq!(send(other), Outcome::Complete, "{other}");
    }
}

#[test]
fn an_idle_sender_is_disconnected_when_others_wait() {
    let (_dir, server, source) = setup(briefly_idle(), 10);
    let idle: Vec<_> = (0..4).map(|_| Script::new(&server)).collect();
    idle.iter().for_each(|script| script.offer(b"x", 5, 0));
    let attempt = || server.send_over(&[&source], without_retry(), |_| server.connect()).0.outcome;
    while_pinging(&idle, || {
        std::thread::sleep(Duration::from_millis(2_400));
        // No other sender waits: all are served.
        assert_eq!(server.ends(0).len(), 0);
        assert_eq!(attempt(), Outcome::Failed);
        let reason = server.ends(1)[0].reason.clone().unwrap_or_default();
        assert!(reason.contains("other senders wait"), "{reason}");
        assert_eq!(attempt(), Outcome::Complete);
    });
}

#[test]
fn idle_peers_are_disconnected() {
    let (_dir, server, _) = setup(briefly_idle(), 10);
    let (silent, late) = (server.connect(), Script::new(&server));
    let start = Instant::now();
    late.offer(b"x", 5, 0);
    assert_eq!(silent.read_all(PATIENCE), b"cwndxfr\x03");
    // The defaults are 10 s and 15 s.
    assert!((1..10).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    let answers = late.all_answers();
    assert!((2..15).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    assert!(
        answers.iter().any(|(_, reason)| reason.contains("nothing was received for 2 s")),
        "{answers:?}"
    );
}

/// A file of 6 MiB with data in blocks 0, 1 and 5, which takes 3 MiB on disk.
fn sparse(path: &Path) -> Vec<u8> {
    let mut data = vec![0; 6 * MIB];
    for block in [0, 1, 5] {
        data[block * MIB..(block + 1) * MIB].copy_from_slice(&noise(MIB, block as u64 + 1));
    }
    let file = fs::File::create(path).unwrap();
    file.set_len(data.len() as u64).unwrap();
    for block in [0, 1, 5] {
        file.write_all_at(&data[block * MIB..(block + 1) * MIB], (block * MIB) as u64).unwrap();
    }
    data
}

#[test]
fn a_sparse_file_continues_within_the_limit_of_its_data() {
    let options = ReceiveOptions { max_bytes: Some(4 * BLOCK), ..open() };
    let (_dir, server, source) = setup(options, 0);
    let data = sparse(&source);
    interrupt(&server, &source, MIB + MIB / 2);
    let end = server.send(&source);
    assert_eq!((end.outcome, end.moved_bytes), (Outcome::Complete, 2 * BLOCK));
    assert!(fs::read(server.out.join("large")).unwrap() == data);
}

#[test]
fn a_sparse_file_that_grows_arrives_as_it_was_offered() {
    let (_dir, server, source) = setup(open(), 0);
    let data = sparse(&source);
    let path = source.clone();
    let (end, events) = server.send_over(&[&source], SendOptions::default(), |_| {
        let (path, mut grown) = (path.clone(), false);
        server.connect().with_channel_error(move |data| {
            if data.len() > 10_000 && !std::mem::replace(&mut grown, true) {
                let file = fs::File::options().write(true).open(&path).unwrap();
                file.write_all_at(b"more", 6 * BLOCK).unwrap();
            }
            Ok(())
        })
    });
    assert_eq!(end.outcome, Outcome::Complete, "{events:?}");
    assert!(fs::read(server.out.join("large")).unwrap() == data);
}

#[test]
fn copied_blocks_count_towards_the_limit_and_holes_stay() {
    for (limit, outcome) in [(3, Outcome::Complete), (2, Outcome::Incomplete)] {
        let options = ReceiveOptions { overwrite: true, max_bytes: Some(limit * BLOCK), ..open() };
        let (_dir, server, source) = setup(options, 0);
        let mut data = sparse(&source);
        let target = server.out.join("large");
        fs::copy(&source, &target).unwrap();
        fs::File::open(&target).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        data[5] ^= 1;
        let file = fs::File::options().write(true).open(&source).unwrap();
        file.write_all_at(&data[5..6], 5).unwrap();
        let (end, events) = server.send_with(&[&source], SendOptions::default());
        assert_eq!(end.outcome, outcome, "{limit} MiB: {events:?}");
        if outcome == Outcome::Complete {
            assert!(fs::read(&target).unwrap() == data);
            assert!(target.metadata().unwrap().blocks() * 512 <= 3 * BLOCK + 65_536);
        }
    }
}
