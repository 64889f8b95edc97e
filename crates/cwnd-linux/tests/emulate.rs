//! Real packets over emulated links. The tests are skipped, with a message, where namespaces or TUN
//! devices are not available.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, IoSliceMut};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cwnd::{Dur, Time};
use cwnd_linux::emulate::{Emulation, Options, Report, Testbed};
use cwnd_sim::live::{Arrival, Ecn, Fate, LiveLink, Outcome};
use cwnd_sim::network::Network;
use cwnd_sim::scenario::Scenario;
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use tempfile::NamedTempFile;

/// Bytes of the IPv4 and UDP headers.
const HEADERS: usize = 28;
const PORT: u16 = 9009;

/// Runs one test at a time, because each needs the processors. Returns `None` if links cannot be
/// emulated here.
fn emulation_lock() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    let lock = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    match Testbed::new(&network("1mbit", "0ms", "10", 0.0), &Options::default()) {
        Ok(testbed) => {
            testbed.stop().unwrap();
            Some(lock)
        }
        Err(error) => {
            eprintln!("skipped: links cannot be emulated here: {error}");
            None
        }
    }
}

fn network(rate: &str, delay: &str, queue: &str, loss: f64) -> Network {
    let (rate, delay) = (format!("rate = \"{rate}\""), format!("delay = \"{delay}\""));
    network_with(&[&rate, &delay, &format!("queue = {queue}"), &format!("loss = {loss}")])
}

/// A network of one link with these keys.
fn network_with(keys: &[&str]) -> Network {
    let keys = keys.join("\n");
    let text = format!(
        r#"
        duration = "1h"
        sample = "10ms"
        [dumbbell]
        {keys}
        [[cbr]]
        rate = "1mbit"
        packet = 1500
        "#
    );
    Scenario::from_toml(&text, "test.toml").unwrap().network(1).unwrap()
}

/// A line of the packet log.
struct Line {
    at: Time,
    size: u16,
    ecn: bool,
    fate: Fate,
}

fn lines(path: &Path, link: &str) -> Vec<Line> {
    let nanos = |text: &str| {
        let (whole, part) = text.split_once('.').unwrap();
        let whole = 1_000_000_000 * whole.parse::<u64>().unwrap();
        Time::from_nanos(whole + part.parse::<u64>().unwrap())
    };
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let of_link = rows.filter(|row| row[1] == link);
    let mut lines: Vec<_> = of_link
        .map(|row| Line {
            at: nanos(row[0]),
            size: row[2].parse().unwrap(),
            ecn: row[3] == "1",
            fate: match row[5] {
                "dropped" => Fate::Dropped,
                "lost" => Fate::Lost,
                word => Fate::Passes { arrives: nanos(row[6]), marked: word == "marked" },
            },
        })
        .collect();
    // The log is in the order of the decisions.
    lines.sort_by_key(|line| line.at);
    lines
}

/// A received packet.
struct Arrived {
    /// Number in the order of sending.
    number: usize,
    /// Time in seconds.
    at: f64,
    marked: bool,
}

/// Result of a flood.
struct Flood {
    lines: Vec<Line>,
    report: Report,
    arrived: Vec<Arrived>,
}

/// Receives packets until none arrives for a time after the last one was sent.
fn receive(sink: &UdpSocket, all_sent: &AtomicBool) -> Vec<Arrived> {
    let state = UdpSocketState::new(UdpSockRef::from(sink)).unwrap();
    sink.set_nonblocking(false).unwrap();
    sink.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let start = Instant::now();
    let mut arrived = Vec::new();
    let mut buffer = [0; 65536];
    loop {
        let mut metas = [RecvMeta::default()];
        let mut buffers = [IoSliceMut::new(&mut buffer)];
        let sent = all_sent.load(Ordering::Acquire);
        match state.recv(UdpSockRef::from(sink), &mut buffers, &mut metas) {
            Ok(_) => {}
            Err(_) if sent => return arrived,
            Err(_) => continue,
        }
        let (at, marked) = (start.elapsed().as_secs_f64(), metas[0].ecn == Some(EcnCodepoint::Ce));
        for packet in buffer[..metas[0].len].chunks(metas[0].stride) {
            let number = u32::from_be_bytes(packet[..4].try_into().unwrap()) as usize;
            arrived.push(Arrived { number, at, marked });
        }
    }
}

/// Returns the number of datagrams that the calling thread's namespace dropped at full sockets.
fn socket_drops() -> usize {
    let table = fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let row = table.lines().rfind(|line| line.starts_with("Udp:")).unwrap();
    row.split(' ').nth(5).unwrap().parse().unwrap()
}

/// Sends packets of 1500 bytes from the sources to the sinks, one every `gap`. Each packet that
/// passes according to the log arrives once, in order, and marked as logged.
fn flood(network: &Network, packets: usize, gap: Duration, ecn: bool) -> Flood {
    let log = NamedTempFile::new().unwrap();
    let record = Some(log.reopen().unwrap());
    let testbed = Testbed::new(network, &Options { seed: 7, record, mtu: None }).unwrap();
    let (from, to) = (testbed.source_address(0), testbed.sink_address(0));
    let bind = move |address| move || UdpSocket::bind((address, PORT)).unwrap();
    let sink = testbed.sinks().run(bind(to)).unwrap();
    let source = testbed.sources().run(bind(from)).unwrap();
    let all_sent = Arc::new(AtomicBool::new(false));
    let receiver = thread::spawn({
        let all_sent = Arc::clone(&all_sent);
        move || receive(&sink, &all_sent)
    });
    let state = UdpSocketState::new(UdpSockRef::from(&source)).unwrap();
    let mut contents = [0; 1500 - HEADERS];
    let start = Instant::now();
    for number in 0..packets {
        let due = start + gap * number as u32;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        contents[..4].copy_from_slice(&(number as u32).to_be_bytes());
        let transmit = Transmit {
            destination: (to, PORT).into(),
            ecn: ecn.then_some(EcnCodepoint::Ect0),
            contents: &contents,
            segment_size: None,
            src_ip: None,
        };
        state.try_send(UdpSockRef::from(&source), &transmit).unwrap();
    }
    all_sent.store(true, Ordering::Release);
    let arrived = receiver.join().unwrap();
    let dropped_at_socket = testbed.sinks().run(socket_drops).unwrap();
    let report = testbed.stop().unwrap();
    report.packet_log.as_ref().unwrap();
    let lines = lines(log.path(), "left-right");
    assert_eq!(lines.len(), packets);
    let impairments = network.links[0].impairments.as_ref();
    if impairments.is_none_or(|impairments| impairments.reorder.is_none()) {
        assert!(arrived.is_sorted_by_key(|packet| packet.number));
    }
    for packet in &arrived {
        let Fate::Passes { marked, .. } = lines[packet.number].fate else {
            panic!("packet {} was not passed but arrived", packet.number);
        };
        assert_eq!(packet.marked, marked);
    }
    let passed = lines.iter().filter(|line| matches!(line.fate, Fate::Passes { .. })).count();
    assert_eq!(arrived.len() + dropped_at_socket, passed);
    Flood { lines, report, arrived }
}

/// Runs `test` for each case, two at a time: a flood takes a small part of two processors.
fn in_pairs<T: Sync>(cases: &[T], test: impl Fn(&T) + Sync) {
    for pair in cases.chunks(2) {
        thread::scope(|scope| {
            for case in pair {
                scope.spawn(|| test(case));
            }
        });
    }
}

/// Passes the packets of a log to the simulator's link at the logged times, and compares their
/// fates. Returns the number of drops.
fn replay_in_simulator(network: &Network, lines: &[Line]) -> usize {
    for (line, fate) in lines.iter().zip(simulated_fates(network, lines)) {
        assert_eq!(Some(line.fate), fate);
    }
    lines.iter().filter(|line| line.fate == Fate::Dropped).count()
}

/// Returns the fates in the simulator of packets that arrive as in a log.
fn simulated_fates(network: &Network, lines: &[Line]) -> Vec<Option<Fate>> {
    let mut live = LiveLink::new(&network.links[0], 0, 7).unwrap();
    let mut fates = vec![None; lines.len()];
    let mut decide = |live: &mut LiveLink, now| {
        while let Some(Outcome { id, fate }) = live.poll(now) {
            assert_eq!(fates[id as usize].replace(fate), None);
        }
    };
    for (id, line) in (0..).zip(lines) {
        let ecn = if line.ecn { Ecn::Ect0 } else { Ecn::NotEct };
        live.offer(line.at, id, Arrival { size: line.size, ecn, ..Arrival::default() });
        decide(&mut live, line.at);
    }
    while let Some(next) = live.next_departure() {
        decide(&mut live, next);
    }
    fates
}

/// Compares the log with an independent implementation of DropTail, in units of nanoseconds times
/// bits per second.
fn compare_with_drop_tail(lines: &[Line], rate: u128, delay: Dur, packets: usize) {
    let mut busy = 0u128;
    let mut starts: Vec<u128> = Vec::new();
    for line in lines {
        let now = u128::from(line.at.as_nanos()) * rate;
        starts.retain(|&start| start >= now);
        if starts.len() >= packets && busy >= now {
            assert_eq!(line.fate, Fate::Dropped);
            continue;
        }
        if busy >= now {
            starts.push(busy);
        }
        busy = busy.max(now) + 8_000_000_000 * u128::from(line.size);
        let Fate::Passes { arrives, .. } = line.fate else { panic!("{:?}", line.fate) };
        let expected = (busy / rate) as u64 + delay.as_nanos();
        assert!(arrives.as_nanos().abs_diff(expected) <= 1);
    }
}

#[test]
fn a_flood_gets_the_rate_and_drops_of_the_simulator() {
    let Some(_lock) = emulation_lock() else { return };
    let network = network("20mbit", "10ms", "\"30p\"", 0.0);
    // 24 Mb/s: the queue overflows after 150 packets.
    let Flood { lines, report, arrived } = flood(&network, 2500, Duration::from_micros(500), false);
    let dropped = replay_in_simulator(&network, &lines);
    compare_with_drop_tail(&lines, 20_000_000, Dur::from_millis(10), 30);
    assert!(dropped > 200);
    assert_eq!(report.links[0].drops as usize, dropped);
    let flow = &report.flows[0];
    assert_eq!((flow.packets, flow.lost), (lines.len() as u64, dropped as u64));
    assert_eq!(flow.bytes, 1500 * (lines.len() - dropped) as u64);
    assert_eq!(flow.bytes_series.len(), report.time.len());
    assert!(report.links[0].queue.iter().any(|&waiting| waiting >= 29.0));
    // The receiver may be late, never early; it is not later at the end.
    let scheduled = |number: usize| match lines[number].fate {
        Fate::Passes { arrives, .. } => arrives.as_secs(),
        ref fate => panic!("packet {number}: {fate:?}"),
    };
    let ahead = |packet: &Arrived| packet.at - scheduled(packet.number);
    let minimum = |part: &[Arrived]| part.iter().map(ahead).fold(f64::INFINITY, f64::min);
    let queued = arrived.iter().position(|packet| packet.number > 200).unwrap();
    let parts = &arrived[queued..];
    let (first, last) = (&parts[..400], &parts[parts.len() - 400..]);
    let taken = last[399].at - first[0].at;
    let off = (minimum(last) - minimum(first)) / taken;
    assert!(off.abs() < 0.01, "{off}");
}

#[test]
fn queues_are_limited_in_bytes() {
    let Some(_lock) = emulation_lock() else { return };
    let network = network("20mbit", "1ms", "\"16kb\"", 0.0);
    let flood = flood(&network, 800, Duration::from_micros(400), false);
    assert!(replay_in_simulator(&network, &flood.lines) > 50);
}

#[test]
fn red_marks_ecn_capable_packets() {
    let Some(_lock) = emulation_lock() else { return };
    let red = "{ kind = \"red\", limit = \"60p\", ecn = true, weight = 0.02 }";
    let network = network("20mbit", "5ms", red, 0.0);
    let Flood { lines, report, arrived } = flood(&network, 1500, Duration::from_micros(500), true);
    replay_in_simulator(&network, &lines);
    let marked = |line: &&Line| matches!(line.fate, Fate::Passes { marked: true, .. });
    let marks = lines.iter().filter(marked).count();
    assert!(marks > 10);
    assert_eq!(report.links[0].marks as usize, marks);
    assert_eq!(report.flows[0].marked as usize, marks);
    assert!(arrived.iter().any(|packet| packet.marked));
    // The same queue drops packets that are not ECN-capable.
    let flood = self::flood(&network, 1500, Duration::from_micros(500), false);
    assert!(replay_in_simulator(&network, &flood.lines) > 10);
    assert_eq!(flood.report.links[0].marks, 0);
}

#[test]
fn queues_that_decide_at_departure_are_the_simulators() {
    let Some(_lock) = emulation_lock() else { return };
    let cases = [
        ("{ kind = \"codel\", target = \"1ms\", interval = \"20ms\" }", false),
        ("{ kind = \"codel\", target = \"1ms\", interval = \"20ms\", ecn = true }", true),
        ("{ kind = \"fq_codel\", limit = \"40p\" }", false),
        ("{ kind = \"pie\", max_burst = \"0s\", qdelay_ref = \"1ms\" }", false),
        ("{ kind = \"dualpi2\", target = \"1ms\" }", true),
    ];
    in_pairs(&cases, |&(queue, ecn)| {
        let network = network("20mbit", "5ms", queue, 0.01);
        // 24 Mb/s.
        let Flood { lines, report, .. } = flood(&network, 1500, Duration::from_micros(500), ecn);
        let dropped = replay_in_simulator(&network, &lines);
        let link = &report.links[0];
        assert_eq!(link.drops as usize, dropped, "{queue}");
        assert!(link.drops + link.marks > 10, "{queue}: {} {}", link.drops, link.marks);
        assert_eq!(link.arrivals as usize, lines.len(), "{queue}");
        assert_eq!(link.departures + link.drops, link.arrivals, "{queue}");
    });
}

#[test]
fn links_that_vary_are_the_simulators() {
    let Some(_lock) = emulation_lock() else { return };
    let [rate, delay, queue] = ["rate = \"20mbit\"", "delay = \"5ms\"", "queue = \"20p\""];
    let plain = network_with(&[rate, delay, queue]);
    let cases = [
        ("changes = [{ at = \"200ms\", rate = \"5mbit\", over = \"300ms\" }]", [rate, delay]),
        ("changes = [{ at = \"200ms\", delay = \"20ms\", loss = 0.1 }]", [rate, delay]),
        ("blackout = [{ at = \"300ms\", for = \"100ms\" }]", [rate, delay]),
        (
            "trace = { rate = [1, 1, 2, 3, 3, 7, 8, 9, 11] }\nback = { rate = \"20mbit\" }",
            ["", delay],
        ),
        ("model = { kind = \"cellular\" }", ["", delay]),
        ("model = { kind = \"leo\", interval = \"100ms\", rate = \"5mbit..20mbit\" }", ["", ""]),
        ("model = { kind = \"wifi\" }", [rate, delay]),
        ("jitter = \"5ms\"", [rate, delay]),
        ("reorder = { probability = 0.1, delay = \"3ms\" }", [rate, delay]),
        ("loss = { kind = \"gilbert_elliott\", p = 0.02, r = 0.2 }", [rate, delay]),
        ("policer = { rate = \"10mbit\", burst = \"15kb\" }", [rate, delay]),
        ("shaper = { rate = \"10mbit\", burst = \"15kb\" }", [rate, delay]),
    ];
    in_pairs(&cases, |&(keys, own)| {
        let network = network_with(&[keys, own[0], own[1], queue]);
        // 24 Mb/s.
        let Flood { lines, report, .. } = flood(&network, 1500, Duration::from_micros(500), false);
        assert_eq!(report.links[0].drops as usize, replay_in_simulator(&network, &lines), "{keys}");
        let unlike = simulated_fates(&plain, &lines);
        let changed = lines.iter().zip(unlike).filter(|(line, fate)| Some(line.fate) != *fate);
        assert!(changed.count() > 10, "{keys}");
    });
}

#[test]
fn losses_depend_on_the_seed_only() {
    let Some(_lock) = emulation_lock() else { return };
    let network = network("100mbit", "1ms", "\"500p\"", 0.05);
    let numbers = || {
        let flood = flood(&network, 1000, Duration::from_micros(200), false);
        replay_in_simulator(&network, &flood.lines);
        let lost = flood.lines.iter().enumerate().filter(|(_, line)| line.fate == Fate::Lost);
        let lost: Vec<_> = lost.map(|(number, _)| number).collect();
        assert_eq!(flood.report.links[0].losses as usize, lost.len());
        lost
    };
    let first = numbers();
    assert!((20..100).contains(&first.len()));
    assert_eq!(first, numbers());
}

#[test]
fn each_flow_has_its_own_delay() {
    let Some(_lock) = emulation_lock() else { return };
    let text = r#"
        duration = "1h"
        [dumbbell]
        rate = "100mbit"
        delay = "5ms"
        queue = "100p"
        [access]
        [[flow]]
        controller = "reno"
        rtt = "30ms"
        [[flow]]
        controller = "reno"
        rtt = "60ms"
        "#;
    let network = Scenario::from_toml(text, "two.toml").unwrap().network(1).unwrap();
    let testbed = Testbed::new(&network, &Options::default()).unwrap();
    for (flow, expected) in [(0, 0.030), (1, 0.060)] {
        let (from, to) = (testbed.source_address(flow), testbed.sink_address(flow));
        let sink = testbed.sinks().run(move || UdpSocket::bind((to, PORT)).unwrap()).unwrap();
        let source = testbed.sources().run(move || UdpSocket::bind((from, PORT)).unwrap()).unwrap();
        source.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let echo = thread::spawn(move || {
            let mut buffer = [0; 100];
            for _ in 0..10 {
                let (size, back) = sink.recv_from(&mut buffer).unwrap();
                sink.send_to(&buffer[..size], back).unwrap();
            }
        });
        let round = || {
            let start = Instant::now();
            source.send_to(b"x", (to, PORT)).unwrap();
            source.recv(&mut [0; 100]).unwrap();
            start.elapsed().as_secs_f64()
        };
        let minimum = (0..10).map(|_| round()).fold(f64::INFINITY, f64::min);
        echo.join().unwrap();
        assert!(minimum > expected && minimum < expected + 0.005, "{minimum}");
    }
    testbed.stop().unwrap();
}

/// Not a test: the process that `killing_the_emulator_leaves_nothing` kills.
#[test]
#[ignore = "a part of killing_the_emulator_leaves_nothing"]
fn emulator_to_kill() {
    let network = network("10mbit", "1ms", "\"10p\"", 0.0);
    let [up, down] = &network.links[..] else { unreachable!() };
    let emulation = Emulation::new(up, down, &Options::default()).unwrap();
    let mut command = Command::new("sh");
    // A child that has also left its parent's session.
    command.args(["-c", "setsid sleep 87654.25 & echo started; exec sleep 87654.75"]);
    let running = emulation.start(command).unwrap();
    println!("peer {}", emulation.peer());
    running.wait().unwrap();
}

fn sleepers() -> usize {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let commands = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    commands.filter(|line| line.starts_with(b"sleep\x0087654.")).count()
}

/// A process that is killed when the value is dropped.
struct Emulator(Child);

impl Drop for Emulator {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn killing_the_emulator_leaves_nothing() {
    let Some(_lock) = emulation_lock() else { return };
    let devices = || fs::read_to_string("/proc/net/dev").unwrap().matches("cwnd").count();
    let before = devices();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "emulator_to_kill", "--ignored", "--nocapture"]);
    let mut emulator = Emulator(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut output = BufReader::new(emulator.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut expected = vec!["peer", "started"];
    while !expected.is_empty() {
        let line = output.next().expect("the emulator ended early");
        expected.retain(|word| !line.contains(word));
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    while sleepers() < 2 {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(devices(), before + 1);
    drop(emulator);
    while sleepers() > 0 || devices() > before {
        assert!(Instant::now() < deadline, "{} processes, {} devices", sleepers(), devices());
        thread::sleep(Duration::from_millis(10));
    }
}
