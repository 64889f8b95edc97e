//! Transfers with malicious or incompatible peers.

mod support;

use cwnd_transfer::event::{Event, Outcome};
use cwnd_transfer::frame::{Decision, Frame, Kind, LARGE_WINDOW, Offer, Stamp, WINDOW, What};
use cwnd_transfer::hash::BLOCK;
use cwnd_transfer::send::{Control, SendOptions, send};
use cwnd_transfer::shared::ReceiveOptions;
use cwnd_transfer::stream::Stream;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{
    END, FILE, PATIENCE, Script, Server, list, open, pair, scripted, setup, size, wait_until,
};
use tempfile::TempDir;

const SECOND: Duration = Duration::from_secs(1);

fn offer<'a>(what: What, path: &'a [u8], target: &'a [u8]) -> Frame<'a> {
    Frame::Offer(Offer { what, mode: 0o7777, path, target, ..FILE })
}

/// Offers and sends a file; returns the answers.
fn send_file(server: &Server, path: &[u8]) -> Vec<(Option<Decision>, String)> {
    let script = Script::new(server);
    script.offer(path, 3, 1);
    script.data();
    script.write_all(&Frame::Done);
    script.all_answers()
}

#[test]
fn a_sender_that_violates_the_protocol_is_stopped() {
    let (_dir, server) = setup(open());
    let file = offer(What::File, b"a", b"");
    let hole = Frame::Hole { number: 0, first: 0, count: 1 };
    let cases: Vec<Vec<Frame<'_>>> = vec![
        vec![Frame::Room { survey: false }],
        vec![Frame::Answer { number: 0, decision: Decision::Present, first: 0, reason: b"" }],
        vec![Frame::Want { number: 0, first: 0, count: 1 }],
        vec![Frame::Counted],
        vec![Frame::Plan(Default::default())],
        vec![Frame::Claim { number: 0, first: 0, values: &[0; 32] }],
        vec![END],
        vec![Frame::Abort { number: 0, reason: b"" }],
        vec![hole.clone()],
        vec![file.clone(), Frame::Done],
        vec![file.clone(), Frame::Claim { number: 0, first: 0, values: &[0; 32] }],
        vec![file.clone(), Frame::End { number: 0, size: 4, root: None }],
        vec![file.clone(), END, END],
        vec![file.clone(), Frame::Hole { number: 0, first: 0, count: 2 }],
        vec![file.clone(), Frame::Hole { number: 0, first: u64::MAX, count: 2 }],
        vec![file.clone(), hole.clone(), hole],
    ];
    for case in cases {
        let script = Script::new(&server);
        case.iter().for_each(|frame| script.write_all(frame));
        let answers = script.all_answers();
        let stopped = answers.iter().any(|(_, reason)| reason.contains("protocol violation"));
        assert!(stopped, "{case:?}: {answers:?}");
    }
    for raw in [
        &[99, 0, 0, 0, 0][..],
        &[Kind::Block as u8, 0xff, 0, 0, 0],
        &[Kind::Offer as u8, 0, 0, 0, 1, 7],
    ] {
        let script = Script::new(&server);
        script.end.write_all(raw);
        assert!(script.all_answers().iter().any(|(decision, _)| decision.is_none()));
    }
    // Blocks outside the file.
    for (index, data) in [(1, &b"abc"[..]), (0, b"abcd"), (0, b"ab"), (u64::MAX, b"abc")] {
        let script = Script::new(&server);
        script.write_all(&file);
        script.block_of(0, index, [0; 32], data);
        assert!(script.all_answers().iter().any(|(decision, _)| decision.is_none()), "{index}");
    }
    assert!(list(&server.out).is_empty());
}

#[test]
fn offers_are_bounded() {
    let (_dir, server) = setup(open());
    for (size, limit) in [(3, WINDOW), (2 * BLOCK, LARGE_WINDOW)] {
        let script = Script::new(&server);
        (0..=limit).for_each(|n| script.offer(n.to_string().as_bytes(), size, 1));
        let answers = script.all_answers();
        assert!(answers.iter().any(|(decision, _)| decision.is_none()), "{}", answers.len());
    }
    // Data of many files at once: each would keep a file open.
    let script = Script::new(&server);
    (0..20).for_each(|n| script.offer(n.to_string().as_bytes(), 3, 1));
    (0..20).for_each(|n| script.block(n, 0, b"abc"));
    assert!(script.all_answers().iter().any(|(_, reason)| reason.contains("too many files")));
}

/// A folder with links to a place outside of it.
fn inside_and_outside() -> (TempDir, Server) {
    let (dir, server) = setup(ReceiveOptions { overwrite: true, ..open() });
    let outside = dir.path().join("out");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "mine").unwrap();
    symlink(&outside, server.out.join("link")).unwrap();
    symlink(outside.join("secret"), server.out.join("file-link")).unwrap();
    for part in ["hard.cwnd-part", "large.cwnd-sums"] {
        fs::hard_link(outside.join("secret"), server.out.join(part)).unwrap();
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, server.out.join("pipe"), 0o600.into()).unwrap();
    (dir, server)
}

fn untouched(dir: &TempDir) {
    let outside = dir.path().join("out");
    assert_eq!(list(&outside), ["secret"]);
    assert_eq!(fs::read(outside.join("secret")).unwrap(), b"mine");
}

#[test]
fn nothing_is_written_outside() {
    let (dir, server) = inside_and_outside();
    let before = dir.path().join("out").metadata().unwrap().mode();
    for path in
        ["../out/secret", "/abs/x", "link/secret", "link/new", "file-link", "hard", "pipe", "a\0b"]
    {
        let answers = send_file(&server, path.as_bytes());
        let refused = answers.iter().any(|(decision, _)| *decision == Some(Decision::Refused));
        assert!(refused, "{path}: {answers:?}");
    }
    let script = Script::new(&server);
    for what in [What::Folder, What::Seal, What::Symlink, What::Link] {
        for path in ["link", "link/x", "..", "file-link/x"] {
            let number_and_path = [&0u64.to_be_bytes()[..], b"hard"].concat();
            let target = if what == What::Link { &number_and_path[..] } else { b"x" };
            script.write_all(&offer(what, path.as_bytes(), target));
        }
    }
    let decisions: Vec<_> = script.answers(16).into_iter().map(|(decision, _)| decision).collect();
    assert_eq!(decisions, [Some(Decision::Refused); 16]);
    // A sidecar that is another kind of entry.
    let script = Script::new(&server);
    script.offer(b"large", 2 * BLOCK, 1);
    script.block(0, 0, &vec![1; BLOCK as usize]);
    script.write_all(&Frame::Done);
    script.all_answers();
    untouched(&dir);
    assert_eq!(dir.path().join("out").metadata().unwrap().mode(), before);
    assert!(
        send_file(&server, b"fine")
            .iter()
            .any(|(decision, _)| *decision == Some(Decision::Present))
    );
}

#[test]
fn dotfiles_at_the_top_need_an_option() {
    for allow_dotfiles in [false, true] {
        let (dir, server) = setup(ReceiveOptions { allow_dotfiles, ..open() });
        let top = dir.path().join("out");
        fs::create_dir_all(top.join(".ssh")).unwrap();
        fs::create_dir_all(top.join("d/.git")).unwrap();
        for name in [".profile", ".ssh/rc", "d/.git/config"] {
            fs::write(top.join(name), "x").unwrap();
            server.send(&top.join(name.split('/').next().unwrap()));
            assert_eq!(server.out.join(name).exists(), allow_dotfiles || name.starts_with('d'));
        }
    }
    let (_dir, server) = setup(open());
    fs::create_dir(server.out.join(".config")).unwrap();
    let script = Script::new(&server);
    script.offer(b"a", 3, 1);
    script.data();
    let target = [&0u64.to_be_bytes()[..], b"a"].concat();
    let offers = [
        (What::File, &b".config/a"[..], &b""[..]),
        (What::Stream, b".b", b""),
        (What::Folder, b".c", b""),
        (What::Folder, b"...", b""),
        (What::Seal, b".config", b""),
        (What::Symlink, b".config/d", b"e"),
        (What::Link, b".f", &target),
    ];
    for (what, path, target) in offers {
        script.write_all(&offer(what, path, target));
    }
    script.write_all(&Frame::Done);
    let answers = script.all_answers();
    let refused = answers.iter().filter(|(_, reason)| reason.contains("--allow-dotfiles")).count();
    assert_eq!(refused, offers.len(), "{answers:?}");
    assert_eq!(list(&server.out), [".config", "a"]);
    assert!(list(&server.out.join(".config")).is_empty());
}

#[test]
fn symbolic_links_stay_inside_their_folder() {
    let (dir, server) = inside_and_outside();
    let script = Script::new(&server);
    script.write_all(&offer(What::Folder, b"d", b""));
    for target in
        [&b"/etc/passwd"[..], b"../x", b"../out/secret", b"a/../../x", b"a/..", b"", b"a\0b"]
    {
        script.write_all(&offer(What::Symlink, b"d/bad", target));
    }
    script.write_all(&offer(What::Symlink, b"top", b"d"));
    script.write_all(&offer(What::Symlink, b"d/good", b"fine"));
    let decisions: Vec<_> = script.answers(10).into_iter().map(|(decision, _)| decision).collect();
    let refused = Some(Decision::Refused);
    let mut expected = vec![refused; 10];
    (expected[0], expected[9]) = (Some(Decision::Present), Some(Decision::Present));
    assert_eq!(decisions, expected);
    assert_eq!(list(&server.out.join("d")), ["good"]);
    untouched(&dir);
}

#[test]
fn hard_links_lead_only_to_files_of_this_transfer() {
    let (dir, server) = inside_and_outside();
    fs::write(server.out.join("private"), "mine").unwrap();
    let script = Script::new(&server);
    let to = |number: u64, path: &str| [&number.to_be_bytes()[..], path.as_bytes()].concat();
    script.offer(b"sent", 3, 1);
    script.data();
    // Links to a file that was not announced as linked, of another file, and of no offer.
    for (number, path) in [(0, "sent"), (0, "private"), (9, "private"), (0, "link/secret")] {
        script.write_all(&offer(What::Link, b"new", &to(number, path)));
    }
    script.write_all(&offer(What::Link, b"new", b"short"));
    let answers = script.answers(7);
    assert!(
        answers[2..].iter().all(|(decision, _)| *decision == Some(Decision::Refused)),
        "{answers:?}"
    );
    assert!(!server.out.join("new").exists());
    untouched(&dir);
}

#[test]
fn a_link_created_during_the_transfer_is_not_followed() {
    let (dir, server) = inside_and_outside();
    fs::create_dir(server.out.join("d")).unwrap();
    let script = Script::new(&server);
    script.offer(b"d/secret", 3, 1);
    assert_eq!(script.answers(1)[0].0, Some(Decision::Send));
    fs::remove_dir(server.out.join("d")).unwrap();
    symlink(dir.path().join("out"), server.out.join("d")).unwrap();
    script.data();
    assert_eq!(script.answers(1)[0].0, Some(Decision::Refused));
    untouched(&dir);
}

#[test]
fn duplicate_names_and_partial_files_of_other_content() {
    let (_dir, server) = setup(open());
    fs::write(server.out.join("a.cwnd-part"), "longer than the file").unwrap();
    let script = Script::new(&server);
    script.offer(b"a", 3, 1);
    script.offer(b"a", 3, 2);
    script.block(0, 0, b"abc");
    script.block(1, 0, b"xyz");
    script.write_all(&END);
    script.write_all(&Frame::End { number: 1, size: 3, root: None });
    script.write_all(&Frame::Done);
    let decisions: Vec<_> =
        script.all_answers().into_iter().map(|(decision, _)| decision).collect();
    assert_eq!(
        decisions.iter().filter(|decision| **decision == Some(Decision::Refused)).count(),
        1
    );
    assert_eq!(fs::read(server.out.join("a")).unwrap(), b"abc");
    assert_eq!(list(&server.out), ["a"]);
}

#[test]
fn invalid_times_and_modes() {
    let (_dir, server, script) = scripted(open());
    let mtime = Stamp { secs: i64::MIN, nanos: 999_999_999 };
    script.write_all(&Frame::Offer(Offer { mode: 0xFFFF, mtime, ..FILE }));
    script.data();
    script.answers(2);
    assert_eq!(server.out.join("a").metadata().unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn a_sender_cannot_read_existing_files() {
    let (_dir, server) = setup(open());
    fs::write(server.out.join("secret"), "abc").unwrap();
    let script = Script::new(&server);
    script.offer(b"secret", 3, 1);
    script.write_all(&Frame::Claim { number: 0, first: 0, values: &[0; 32] });
    script.write_all(&Frame::Done);
    let heard = script.end.read_all(PATIENCE);
    let value = cwnd_transfer::hash::block_value(0, b"abc");
    assert!(!heard.windows(32).any(|window| window == value));
    assert_eq!(fs::read(server.out.join("secret")).unwrap(), b"abc");
}

#[test]
fn events_about_single_files_are_bounded() {
    let (_dir, server, script) = scripted(open());
    let end = Arc::clone(&script.end);
    let listener = std::thread::spawn(move || end.read_all(PATIENCE));
    (0..5000).for_each(|_| script.offer(b"..", 3, 1));
    script.write_all(&Frame::Done);
    listener.join().unwrap();
    assert_eq!(server.ends(1)[0].not_sent, 5000);
    let lines =
        server.events.lock().unwrap().iter().filter(|e| matches!(e, Event::Error { .. })).count();
    assert_eq!(lines, 1000);
}

/// A partial file that its owner cannot write would block all other attempts.
#[test]
fn the_part_of_a_small_file_can_be_written_by_its_owner() {
    let (_dir, server, script) = scripted(open());
    script.write_all(&Frame::Offer(Offer { mode: 0o044, path: b"f", ..FILE }));
    script.block(0, 0, b"abc");
    wait_until(|| size(&server.out.join("f.cwnd-part")) == 3);
    let mode = |name: &str| fs::metadata(server.out.join(name)).unwrap().mode() & 0o777;
    assert_eq!(mode("f.cwnd-part"), 0o644);
    script.write_all(&END);
    script.answers(2);
    assert_eq!(mode("f"), 0o044);
}

#[test]
fn done_without_a_plan_is_a_violation() {
    let (dir, server) = setup(ReceiveOptions { once: true, ..open() });
    let stranger = server.connect();
    let mut encoded = b"cwndxfr\x03".to_vec();
    Frame::Done.encode(&mut encoded);
    stranger.write_all(&encoded);
    let reason = server.ends(1)[0].reason.clone();
    assert!(reason.is_some_and(|reason| reason.contains("protocol violation")));
    fs::write(dir.path().join("f"), "abc").unwrap();
    assert_eq!(server.send(&dir.path().join("f")).outcome, Outcome::Complete);
    server.finish().unwrap();
}

/// Wrong guesses of a one-time code invalidate it while its transfer runs.
#[test]
fn a_failed_listener_does_not_end_running_transfers() {
    let (_dir, server, script) = scripted(ReceiveOptions { once: true, ..open() });
    script.offer(b"f", 3, 1);
    assert_eq!(script.answers(1), [(Some(Decision::Send), String::new())]);
    server.fail_accept();
    std::thread::sleep(SECOND / 5);
    script.data();
    script.write_all(&Frame::Done);
    assert_eq!(server.ends(1)[0].outcome, Outcome::Complete);
    assert_eq!(fs::read(server.out.join("f")).unwrap(), b"abc");
    server.finish().unwrap();

    let (_dir, server) = setup(open());
    server.fail_accept();
    assert_eq!(server.finish().unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
}

/// Sends a file to a receiver that sends `encoded`; returns the reason of the failure, and the
/// events.
fn send_to(encoded: &[u8]) -> (Option<String>, Vec<Event>) {
    send_in_steps(&[encoded])
}

/// As `send_to`, with pauses between the steps.
fn send_in_steps(steps: &[&[u8]]) -> (Option<String>, Vec<Event>) {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("f"), "abc").unwrap();
    let (ours, theirs) = pair();
    theirs.write_all(steps[0]);
    let later: Vec<_> = steps[1..].iter().map(|step| step.to_vec()).collect();
    let receiver = std::thread::spawn(move || {
        for step in later {
            theirs.read_all(Duration::from_millis(300));
            theirs.write_all(&step);
        }
        theirs.read_all(Duration::from_millis(500));
        theirs.close(std::time::Instant::now()).unwrap();
    });
    let events = Mutex::new(Vec::new());
    let observe = |event| events.lock().unwrap().push(event);
    let mut ours = Some(ours);
    let mut connect = || match ours.take() {
        Some(end) => Ok(end as Arc<dyn Stream>),
        None => Err(std::io::ErrorKind::ConnectionRefused.into()),
    };
    let options = SendOptions { retry: 0, ..SendOptions::default() };
    let end = send(&[dir.path().join("f")], options, &mut connect, &observe, &Control::default());
    receiver.join().unwrap();
    (end.unwrap().reason, events.into_inner().unwrap())
}

fn encoded(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut out = b"cwndxfr\x03".to_vec();
    Frame::Room { survey: false }.encode(&mut out);
    frames.iter().for_each(|frame| frame.encode(&mut out));
    out
}

#[test]
fn peers_of_other_protocols_are_reported_in_one_line() {
    let reason = send_to(b"cwndxfr\x01").0.unwrap();
    assert_eq!(
        reason,
        "the peer uses version 1 of the transfer protocol, this side version 3: update the peer"
    );
    assert!(send_to(b"HTTP/1.1 400").0.unwrap().contains("neither cwnd send nor cwnd recv"));
    let (_dir, server) = setup(open());
    server.connect().write_all(b"cwndxfr\x01");
    assert_eq!(server.ends(1)[0].reason.as_ref(), Some(&reason));
    assert_eq!(server.ends(1)[0].outcome, Outcome::Failed);
}

#[test]
fn a_receiver_that_violates_the_protocol_is_reported() {
    let answer = |number, decision, first| Frame::Answer { number, decision, first, reason: b"" };
    let cases = [
        vec![answer(7, Decision::Send, 0)],
        vec![answer(0, Decision::Send, 2)],
        vec![Frame::Want { number: 0, first: 0, count: 1 }],
        vec![Frame::Want { number: 3, first: 0, count: 1 }],
        vec![answer(0, Decision::Send, 0), Frame::Want { number: 0, first: u64::MAX, count: 9 }],
        vec![answer(0, Decision::Claim, 0), answer(0, Decision::Claim, 0)],
        vec![Frame::Done],
        vec![offer(What::File, b"a", b"")],
        vec![Frame::Counted],
    ];
    for case in cases {
        let reason = send_to(&encoded(&case)).0.unwrap();
        assert!(
            reason.contains("protocol violation") || reason.contains("closed the connection"),
            "{case:?}: {reason}"
        );
    }
}

#[test]
fn repeated_requests_are_a_violation() {
    let answer = |decision| Frame::Answer { number: 0, decision, first: 0, reason: b"" };
    let want = Frame::Want { number: 0, first: 0, count: 1 };
    for (first, later) in [
        (vec![answer(Decision::Send); 2], vec![]),
        (vec![answer(Decision::Wait); 2], vec![]),
        (vec![answer(Decision::Send)], vec![want.clone(); 20]),
        (vec![answer(Decision::Claim)], vec![want; 20]),
    ] {
        let mut more = encoded(&later);
        more.drain(..encoded(&[]).len());
        let reason = send_in_steps(&[&encoded(&first), &more]).0.unwrap();
        assert!(reason.contains("protocol violation"), "{first:?}: {reason}");
    }
}

#[test]
fn gaps_between_blocks_are_bounded() {
    let (_dir, _server, script) = scripted(open());
    script.offer(b"sparse", 1 << 40, 1);
    (0..5000).for_each(|n| script.write_all(&Frame::Hole { number: 0, first: 2 * n, count: 1 }));
    let answers = script.all_answers();
    assert!(answers.iter().any(|(_, reason)| reason.contains("out of order")), "{answers:?}");
}

#[test]
fn a_hard_link_counts_as_large_as_its_file() {
    let (_dir, server, script) = scripted(open());
    let file = Offer { linked: true, ..FILE };
    script.write_all(&Frame::Offer(file));
    script.data();
    script.answers(2);
    let target = [&[0; 8][..], b"a"].concat();
    for path in [b"b", b"c"] {
        let (what, size) = (What::Link, u64::MAX);
        script.write_all(&Frame::Offer(Offer { what, size, path, target: &target, ..file }));
    }
    script.write_all(&Frame::Done);
    let answers = script.all_answers();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert_eq!(server.ends(1)[0].bytes, 9);
}

#[test]
fn reasons_contain_no_control_characters() {
    let refused = Frame::Answer {
        number: 0,
        decision: Decision::Refused,
        first: 0,
        reason: b"\x1b[2J\nhello",
    };
    let (_, events) = send_to(&encoded(&[refused, Frame::Done]));
    assert_eq!(support::errors(&events), [("f".into(), "\\u{1b}[2J\\nhello".into())]);
    let stop = Frame::Stop { again: false, reason: b"\x07" };
    let reason = send_to(&encoded(&[stop])).0.unwrap();
    assert_eq!(reason, "the receiver stopped the transfer: \\u{7}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn noise_ends_a_receiver_with_one_line(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
        let (_dir, server) = setup(open());
        let script = Script::new(&server);
        script.end.write_all(&noise);
        script.end.close(std::time::Instant::now()).unwrap();
        let reason = server.ends(1)[0].reason.clone().unwrap();
        prop_assert!(!reason.contains('\n'));
    }

    #[test]
    fn noise_ends_a_sender_with_one_line(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut said = encoded(&[]);
        said.extend(&noise);
        let reason = send_to(&said).0.unwrap();
        prop_assert!(!reason.contains('\n'));
    }
}
