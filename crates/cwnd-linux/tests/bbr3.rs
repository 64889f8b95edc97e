//! `kernel/bbr3.h`, compiled for the host, compared with the controller `bbr3` of crate `cwnd`:
//! both process the same events of simulated connections, with times in whole microseconds and
//! without the state of lost packets, as in the kernel. Times and intervals have random
//! microseconds added, as those of a real clock: the arrivals at a simulated link are periodic, and
//! delivered packets would often equal rate times time exactly. After each event the window and the
//! pacing rate are within the bound of the header. After a close decision that the two take
//! differently the rest of the connection is not compared.

mod program;

use cwnd::controllers::Bbr3;
use cwnd::controllers::bbr3::{Aging, State};
use cwnd::delivery::RateSample;
use cwnd::{Controller, Dur, Event, Limit, Lost, Packets, Rate, Settings, Time};
use cwnd_sim::scenario::Scenario;
use cwnd_sim::{Options, Simulation};
use program::pow2;
use std::collections::BTreeMap;

const SEEDS: u64 = 12;
/// Numbers in a row of `native.c`.
const ROW: usize = 32;

type Row = [u64; ROW];
type Results = [u64; 4];

/// Passes rows to the C program, and returns the results.
fn run(name: &str, rows: Vec<Row>) -> Vec<Results> {
    let mut results = Vec::new();
    program::run("native.c", name, rows.into_iter(), |result| results.push(result));
    results
}

/// Returns a row of number `law` with these words.
fn row(law: u64, words: &[u64]) -> Row {
    let mut row = [0; ROW];
    row[0] = law;
    row[1..=words.len()].copy_from_slice(words);
    row
}

fn micros(nanos: u64) -> u64 {
    nanos / 1000
}

fn whole_micros(time: Time) -> Time {
    Time::ZERO + Dur::from_micros(micros(time.as_nanos()))
}

fn without_state(lost: &Lost) -> Lost {
    let mut lost = *lost;
    lost.delivery = None;
    lost
}

/// Returns the event as the kernel would report it, with up to `noise` added to times; `None` if
/// the kernel does not report such events.
fn kernel_event(event: &Event, noise: Dur) -> Option<Event> {
    Some(match event {
        Event::Acked(acked) => {
            let mut acked = *acked;
            acked.sent_at = whole_micros(acked.sent_at);
            acked.rtt = acked.rtt.map(|rtt| Dur::from_micros(micros(rtt.as_nanos())) + noise);
            acked.delivery = acked.delivery.map(|sample| {
                let interval = Dur::from_micros(micros(sample.interval().as_nanos())) + noise;
                let reliable = sample.reliable && !interval.is_zero();
                let elapsed = if reliable { interval } else { Dur::ZERO };
                let mut rounded = RateSample::new();
                (rounded.ack_elapsed, rounded.reliable) = (elapsed, reliable);
                (rounded.delivered, rounded.prior_delivered) =
                    (sample.delivered, sample.prior_delivered);
                (rounded.lost, rounded.in_flight) = (sample.lost, sample.in_flight);
                rounded.application_limited = sample.application_limited;
                rounded
            });
            Event::Acked(acked)
        }
        Event::Lost(lost) => Event::Lost(without_state(lost)),
        Event::Timeout(lost) => Event::Timeout(without_state(lost)),
        Event::Handshake { .. }
        | Event::Reduced { .. }
        | Event::Marked(_)
        | Event::Report(_)
        | Event::PersistentCongestion => return None,
        other => *other,
    })
}

/// Returns the words of an event at a whole microsecond, as `compute_bbr3` of native.c reads them.
fn words(now: Time, event: &Event) -> Vec<u64> {
    let now = micros(now.as_nanos());
    match event {
        Event::Acked(acked) => {
            let sample = acked.delivery.unwrap_or_default();
            vec![
                1,
                now,
                micros(acked.sent_at.as_nanos()),
                acked.packets.into(),
                acked.in_flight.into(),
                acked.rtt.map_or(0, |rtt| micros(rtt.as_nanos())),
                u64::from(acked.limit == Limit::Window),
                u64::from(acked.delivery.is_some()),
                sample.prior_delivered,
                sample.delivered,
                micros(sample.interval().as_nanos()),
                sample.lost,
                sample.in_flight.into(),
                u64::from(sample.application_limited),
                u64::from(acked.limit == Limit::Application),
            ]
        }
        Event::Lost(lost) => vec![2, now, lost.packets.into()],
        Event::Recovered => vec![3, now],
        Event::Timeout(lost) => vec![4, now, lost.packets.into()],
        Event::Undo => vec![5, now],
        Event::Tick => vec![6, now],
        Event::Mtu { packet } => vec![7, now, (*packet).into()],
        other => panic!("{other:?} is not an event of the kernel"),
    }
}

/// A connection: the controller at its start, and its events.
struct Connection {
    settings: Settings,
    events: Vec<(Time, Event)>,
}

/// Simulates a connection on a dumbbell. With `mtu` the packet size changes now and then.
fn simulate(link: &str, flow: &str, others: &str, seed: u64, mtu: bool) -> Connection {
    let text = format!(
        "duration = \"40s\"\n[dumbbell]\n{link}\n[tcp]\nconventions = \"linux\"\n\
         [[flow]]\ncontroller = \"bbr3\"\n{flow}\n{others}\n"
    );
    let scenario = Scenario::from_toml(&text, "bbr3").unwrap_or_else(|error| panic!("{error}"));
    let options = Options { record_events: true, ..Options::default() };
    let mut simulation = Simulation::new(scenario.network(seed).unwrap(), seed, &options).unwrap();
    let found = simulation.settings(0).unwrap();
    simulation.run();
    let record = simulation.finish().flows[0].events.clone().unwrap();
    let mut settings = Settings::default();
    settings.packet = found.packet;
    settings.initial_window = Packets::new(found.initial_window.get().floor());
    settings.seed = found.seed ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (mut events, mut now) = (Vec::new(), Time::ZERO);
    for (position, entry) in record.entries.iter().enumerate() {
        let random = (position as u64 ^ seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let noise = Dur::from_micros(1 + (random >> 61));
        now = now.max(whole_micros(entry.at) + noise);
        let at = now;
        if mtu && position % 3000 == 2999 {
            events.push((at, Event::Mtu { packet: 600 + 300 * (position as u32 % 7) }));
        }
        events.extend(kernel_event(&entry.event, noise).map(|event| (at, event)));
    }
    Connection { settings, events }
}

/// Both values of the parameter in turn.
fn aging(settings: &Settings) -> Aging {
    if settings.seed.is_multiple_of(2) { Aging::Quiche } else { Aging::Draft }
}

fn gauge(bbr: &Bbr3, name: &str) -> f64 {
    let mut found = f64::NAN;
    bbr.gauges(&mut |gauge, value| {
        if gauge == name {
            found = value;
        }
    });
    found
}

/// The bounds of the header, for a connection so far.
#[derive(Default)]
struct Bounds {
    /// Rounds that reduced bw_shortterm since it was last infinite, and its value.
    reductions: f64,
    bw_shortterm: f64,
    /// Changes of the packet size; each has a relative error of 2^-40.
    changes: f64,
    window: f64,
}

impl Bounds {
    /// Returns the bounds of the pacing rate and the window after an event. A window may be one of
    /// an earlier time.
    fn after(&mut self, bbr: &Bbr3, event: &Event, longest: u64) -> (f64, f64) {
        let bw = gauge(bbr, "bw_shortterm");
        self.changes += f64::from(u8::from(matches!(event, Event::Mtu { .. })));
        self.reductions = match (bw.is_nan(), bw.to_bits() == self.bw_shortterm.to_bits()) {
            (true, _) => 0.0,
            (false, same) => self.reductions + f64::from(u8::from(!same)),
        };
        self.bw_shortterm = bw;
        let output = bbr.output();
        let scale = self.changes * pow2(-40);
        let rate = (self.reductions + 4.0) * pow2(-24) * (1.0 + 3.0 * self.changes);
        let rtt = gauge(bbr, "min_rtt").max(0.0);
        let w = output.window.get();
        let window = rate * (3.0 * rtt + longest as f64 / 1e6)
            + (self.reductions + 16.0) * pow2(-40)
            + (pow2(-40) + 4.0 * scale) * w;
        self.window = self.window.max(window);
        (rate + scale * output.pace.map_or(0.0, Rate::as_per_sec), self.window)
    }
}

#[test]
fn the_program_agrees_with_the_controller() {
    let networks = [
        ("rate = \"20mbit\"\ndelay = \"20ms\"\nqueue = \"1bdp\"", "", ""),
        ("rate = \"5mbit\"\ndelay = \"15ms\"\nqueue = \"6p\"", "", ""),
        ("rate = \"10mbit\"\ndelay = \"10ms\"\nqueue = \"1bdp\"\nloss = 0.01", "", ""),
        ("rate = \"10mbit\"\ndelay = \"30ms\"\nqueue = \"2bdp\"\nloss = 0.05", "", ""),
        (
            "rate = \"10mbit\"\ndelay = \"20ms\"\nqueue = \"1bdp\"",
            "",
            "[[flow]]\ncontroller = \"cubic\"\ncount = 2\nstart = \"0s..9s\"",
        ),
        (
            "rate = \"10mbit\"\ndelay = \"20ms\"\nqueue = \"20p\"",
            "source = { kind = \"on_off\", on = { kind = \"exponential\", mean = \"2s\" }, \
             off = { kind = \"exponential\", mean = \"2s\" } }",
            "",
        ),
        ("delay = \"25ms\"\nqueue = \"40p\"\nmodel = { kind = \"cellular\" }", "", ""),
        (
            "rate = \"10mbit\"\ndelay = \"20ms\"\nqueue = \"1bdp\"\n\
             blackout = [{ at = \"8s\", for = \"1s\" }, { at = \"21s\", for = \"2s\" }]",
            "",
            "",
        ),
        (
            "rate = \"10mbit\"\ndelay = \"20ms\"\nqueue = \"1bdp\"\njitter = \"4ms\"",
            "source = { kind = \"limited\", rate = \"3mbit\" }",
            "",
        ),
    ];
    let mut connections = Vec::new();
    for (link, flow, others) in networks {
        for seed in 1..=SEEDS {
            connections.push(simulate(link, flow, others, seed, seed % 4 == 0));
        }
    }
    let mut rows = Vec::new();
    for Connection { settings, events } in &connections {
        let window = settings.initial_window.get() as u64;
        let aging = aging(settings) as u64;
        rows.push(row(9, &[0, window, settings.packet.into(), settings.seed, aging]));
        rows.extend(events.iter().map(|(at, event)| row(9, &words(*at, event))));
    }
    let mut results = run("bbr3", rows).into_iter();
    let (mut compared, mut parted, mut close) = (0_u64, 0_u64, 0);
    let (mut worst_rate, mut worst_window, mut worst) = (0.0_f64, 0.0_f64, 0.0_f64);
    let mut states: BTreeMap<u8, u64> = BTreeMap::new();
    let mut kinds = [0_u64; 8];
    for Connection { settings, events } in &connections {
        let mut bbr = Bbr3::new(aging(settings), settings);
        results.next();
        let (mut bounds, mut apart, mut last_close) = (Bounds::default(), false, 0);
        for (at, event) in events {
            bbr.on(*at, event);
            let [w, pace, state, longest] = results.next().unwrap();
            last_close = state >> 8;
            if apart {
                parted += 1;
                continue;
            }
            let (rate_bound, window_bound) = bounds.after(&bbr, event, longest);
            let output = bbr.output();
            let (real_w, real_pace) =
                (output.window.get(), output.pace.map_or(0.0, Rate::as_per_sec));
            let rate_error = (pace as f64 / pow2(24) - real_pace).abs();
            let window_error = (w as f64 / pow2(40) - real_w).abs();
            // The real numbers are rounded to 53 bits themselves, in up to 16 operations.
            let rate_ratio = rate_error / (rate_bound + pow2(-48) * real_pace);
            let window_ratio = window_error / (window_bound + pow2(-48) * real_w);
            let same_state = bbr.state() as u64 == state & 0xff;
            if last_close > 0 && (rate_ratio > 1.0 || window_ratio > 1.0 || !same_state) {
                apart = true;
                parted += 1;
                continue;
            }
            assert!(
                rate_ratio <= 1.0 && window_ratio <= 1.0 && same_state,
                "{:?}, state {}: {} and {} packets, {} and {real_pace} packets/s, after {event:?}",
                bbr.state(),
                state & 0xff,
                w as f64 / pow2(40),
                real_w,
                pace as f64 / pow2(24)
            );
            compared += 1;
            *states.entry(bbr.state() as u8).or_default() += 1;
            kinds[words(*at, event)[0] as usize] += 1;
            worst_rate = worst_rate.max(rate_ratio);
            worst_window = worst_window.max(window_ratio);
            worst = worst.max(rate_error / real_pace).max(window_error / real_w);
        }
        close += last_close;
    }
    println!(
        "{} connections: {compared} events compared, {parted} not, {close} close decisions; errors relative to \
         their bounds: rate {worst_rate:.3}, window {worst_window:.3}; largest relative error {worst:.1e}; \
         events by state {states:?}, by kind {kinds:?}",
        connections.len()
    );
    assert!(parted * 8 < compared, "{parted} events not compared, {compared} compared");
    let all = [State::Startup, State::Drain, State::Down, State::Cruise, State::Refill];
    for state in all.into_iter().chain([State::Up, State::ProbeRtt]) {
        assert!(states.get(&(state as u8)).is_some_and(|&count| count > 1000), "{state:?}");
    }
    // Every kind of event: acknowledgement, loss, end of recovery, timeout, Undo, Tick, packet
    // size.
    assert!(kinds[1..].iter().all(|&count| count > 0), "{kinds:?}");
}

/// The losses and the packets in flight of a sample, from the history of the loss counter.
#[test]
fn samples_find_the_state_of_their_packets() {
    let ask = |prior: u64, delivered: u64, lost: u64, now: u64| {
        row(10, &[2, prior, delivered, lost, now])
    };
    let mut rows = vec![row(10, &[0])];
    // 3 packets are lost when 100 are delivered, 2 when 150, 5 by the last acknowledgement.
    rows.extend([row(10, &[1, 100, 3]), row(10, &[1, 150, 5])]);
    rows.extend([ask(90, 60, 5, 0), ask(100, 60, 5, 0), ask(140, 60, 10, 5), ask(150, 60, 10, 5)]);
    // More detections than the history has: the newest ones are joined.
    rows.push(row(10, &[0]));
    rows.extend((1..=200).map(|n| row(10, &[1, 10 * n, n])));
    rows.extend([
        ask(9, 1, 200, 0),
        ask(15, 1, 200, 0),
        ask(1275, 1, 200, 0),
        ask(1999, 1, 200, 0),
    ]);
    rows.push(ask(2000, 1, 200, 0));
    let results = run("bbr3-history", rows);
    let answers: Vec<_> = results.iter().map(|it| (it[0], it[1])).filter(|it| it.1 > 0).collect();
    let expected = [
        // Losses without those of this acknowledgement; packets delivered or lost.
        (5, 65),
        (2, 62),
        (2, 67),
        (0, 65),
        (200, 201),
        (199, 200),
        (73, 74),
        (73, 74),
        (0, 1),
    ];
    assert_eq!(answers, expected);
}
