//! Recorded runs against the rules of the RFCs: controllers of the registry keep them, and known
//! faults put back into them are found.

use crate::common::{run_with, scenario, with_custom};
use cwnd::conform::{Expected, Finding, Law, Outcome, RULES, Violation, conform};
use cwnd::laws::{Aimd, Cubic, Reno};
use cwnd::record::Record;
use cwnd::{
    AnyController, Controller, Conventions, Cut, Event, Limit, Needs, Output, Settings, Time,
};
use cwnd_sim::network::Network;
use cwnd_sim::record::FlowRecord;
use cwnd_sim::rng::Rng;
use cwnd_sim::{Options, qlog};
use std::collections::BTreeSet;

/// Runs a network whose flow 0 has the controller that `make` makes, and returns its record.
fn run_flow(
    network: &Network,
    seed: u64,
    make: impl Fn(&Settings) -> AnyController + Send + Sync + 'static,
) -> FlowRecord {
    with_custom(make, |options| {
        let options = Options { record_events: true, record_packets: true, ..*options };
        run_with(network, seed, &options).flows.swap_remove(0)
    })
}

/// A random network of one flow with the controller `test:law`, and one beside it.
fn random(seed: u64) -> Network {
    let mut rng = Rng::new(seed, "conform", 0);
    let rate = rng.range(2.0, 40.0);
    let delay = rng.range(2.0, 60.0);
    let queue = rng.range(5.0, 150.0).round();
    let loss = if rng.chance(0.5) { rng.range(0.0, 0.06) } else { 0.0 };
    let source = match rng.below(4) {
        0 => r#"source = { kind = "on_off", on = "400ms", off = "1s" }"#.to_string(),
        1 => format!(r#"source = {{ kind = "limited", rate = "{:.1}mbit" }}"#, rate / 3.0),
        _ => String::new(),
    };
    let text = format!(
        r#"
        duration = "30s"
        [tcp]
        conventions = "rfc"
        delayed_acks = {}
        [dumbbell]
        rate = "{rate:.1}mbit"
        delay = "{delay:.1}ms"
        queue = "{queue}p"
        loss = {loss:.4}
        [[flow]]
        controller = "test:law"
        {source}
        [[flow]]
        controller = "reno"
        start = "10s"
        stop = "20s"
        "#,
        rng.chance(0.5)
    );
    scenario(&text, seed)
}

fn controller(law: Law, settings: &Settings, quic: bool) -> AnyController {
    let mut settings = *settings;
    if quic {
        settings.conventions = &Conventions::QUIC;
    }
    match law {
        Law::Cubic => AnyController::window(Cubic::default(), &settings),
        _ => AnyController::window(Reno::new(), &settings),
    }
}

fn violations(findings: &[Finding]) -> Vec<(&'static str, &Violation)> {
    let violated = findings.iter().filter_map(|finding| match &finding.outcome {
        Outcome::Violated(violation) => Some((finding.rule.name, violation)),
        _ => None,
    });
    violated.collect()
}

#[test]
fn reno_and_cubic_keep_the_rules() {
    let mut exercised = BTreeSet::new();
    for seed in 0..16 {
        let network = random(seed);
        for (law, quic) in
            [(Law::Reno, false), (Law::Reno, true), (Law::Cubic, false), (Law::Cubic, true)]
        {
            let flow = run_flow(&network, seed, move |settings| controller(law, settings, quic));
            let expected = if quic { Expected::quic(law) } else { Expected::tcp(law) };
            let findings = conform(&flow.events.unwrap(), &expected);
            assert_eq!(violations(&findings), [], "seed {seed}, {expected:?}");
            let held = |finding: &&Finding| matches!(finding.outcome, Outcome::Held(_));
            exercised.extend(findings.iter().filter(held).map(|finding| finding.rule.name));
        }
    }
    // The timer of TCP establishes no persistent congestion.
    assert_eq!(exercised.len(), RULES.len() - 1, "{exercised:?}");
    assert!(!exercised.contains("persistent-congestion"));
}

/// A controller with a fault: its events are changed before it gets them.
#[derive(Clone, Debug)]
struct Faulty {
    inner: AnyController,
    memory: Memory,
    change: fn(&mut AnyController, &mut Memory, Time, Event) -> Event,
}

#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// quiche's `congestion_recovery_start_time`.
    recovery_start: Option<Time>,
    /// When the packets acknowledged last were sent, and whether none was left in flight.
    sent_at: Time,
    empty: bool,
    window: f64,
    reduced: bool,
}

impl Controller for Faulty {
    fn on(&mut self, now: Time, event: &Event) {
        let before = self.inner.output().window.get();
        self.memory.window = before;
        let event = (self.change)(&mut self.inner, &mut self.memory, now, *event);
        self.inner.on(now, &event);
        self.memory.reduced = self.inner.output().window.get() < before;
        if self.memory.reduced {
            self.memory.recovery_start = Some(now);
        }
    }

    fn output(&self) -> Output {
        self.inner.output()
    }

    fn needs(&self) -> Needs {
        self.inner.needs()
    }

    fn take_cut(&mut self) -> Option<Cut> {
        self.inner.take_cut()
    }
}

/// quiche's CUBIC until 2026: a packet sent with nothing in flight moves the beginning of recovery
/// by the time since the packet before, as if every empty link were an idle period.
fn moves_recovery(_: &mut AnyController, memory: &mut Memory, _: Time, mut event: Event) -> Event {
    if let Event::Acked(acked) = &mut event {
        if memory.empty
            && let Some(start) = &mut memory.recovery_start
        {
            *start += acked.sent_at.since(memory.sent_at);
        }
        (memory.sent_at, memory.empty) = (acked.sent_at, acked.in_flight == 0);
        if memory.recovery_start.is_some_and(|start| acked.sent_at <= start) {
            acked.credit = 0;
        }
    }
    event
}

/// A window that reached its minimum stays there.
fn stays_at_the_minimum(
    _: &mut AnyController,
    memory: &mut Memory,
    _: Time,
    mut event: Event,
) -> Event {
    if let Event::Acked(acked) = &mut event
        && memory.window <= 2.0
    {
        acked.credit = 0;
    }
    event
}

/// Every loss is taken for one of a new window of data.
fn answers_every_loss(
    inner: &mut AnyController,
    _: &mut Memory,
    now: Time,
    mut event: Event,
) -> Event {
    if let Event::Lost(lost) = &mut event {
        inner.on(now, &Event::Recovered);
        lost.sent_at = now;
    }
    event
}

/// Acknowledged packets count twice.
fn counts_twice(_: &mut AnyController, _: &mut Memory, _: Time, mut event: Event) -> Event {
    if let Event::Acked(acked) = &mut event {
        acked.credit *= 2;
    }
    event
}

/// Marks of ECN are losses, and losses no signal.
fn ignores_losses(_: &mut AnyController, _: &mut Memory, _: Time, event: Event) -> Event {
    if matches!(event, Event::Lost(_)) { Event::Tick } else { event }
}

static GROWS_UNUSED: Conventions = {
    let mut conventions = Conventions::QUIC;
    conventions.grows_unused = true;
    conventions
};

fn faulty(
    inner: AnyController,
    change: fn(&mut AnyController, &mut Memory, Time, Event) -> Event,
) -> AnyController {
    AnyController::whole(Faulty { inner, memory: Memory::default(), change })
}

/// A flow of 20 Mb/s that loses packets in its first two seconds.
const EARLY_LOSS: &str = r#"
    duration = "20s"
    tcp = { conventions = "rfc", delayed_acks = false }
    [dumbbell]
    rate = "20mbit"
    delay = "10ms"
    queue = "60p"
    loss = 0.3
    changes = [{ at = "2s", loss = 0 }]
    [[flow]]
    controller = "test:law"
"#;

/// Checks that `conform` finds the fault of a controller: in the record of the run, and in its qlog.
fn find(
    (text, seed): (&str, u64),
    expected: Expected,
    rule: &str,
    cause: &str,
    make: impl Fn(&Settings) -> AnyController + Send + Sync + 'static,
) {
    let network = scenario(text, seed);
    let flow = run_flow(&network, seed, make);
    let mut file = Vec::new();
    qlog::write(&mut file, &network, 0, &flow, None).unwrap();
    let read = qlog::read(std::str::from_utf8(&file).unwrap()).unwrap();
    for record in [flow.events.unwrap(), read.record] {
        let findings = conform(&record, &expected);
        let found = violations(&findings);
        let (_, violation) = found
            .iter()
            .find(|(name, _)| *name == rule)
            .unwrap_or_else(|| panic!("{rule}: {found:?}"));
        assert!(violation.cause.contains(cause), "{violation:?}");
    }
}

/// The settings with QUIC's conventions.
fn quic(settings: &Settings) -> Settings {
    let mut settings = *settings;
    settings.conventions = &Conventions::QUIC;
    settings
}

#[test]
fn a_window_that_stays_at_its_minimum_is_found() {
    let expected = Expected::quic(Law::Cubic);
    // An acknowledgement of both packets of the least window leaves the link empty.
    let text = EARLY_LOSS.replace("delayed_acks = false", "delayed_acks = true");
    find((&text, 6), expected, "progress", "each empty link is taken for an idle period", |s| {
        faulty(AnyController::window(Cubic::default(), &quic(s)), moves_recovery)
    });
    find((EARLY_LOSS, 1), Expected::quic(Law::Reno), "progress", "at 2.0 packets since 2.0", |s| {
        faulty(AnyController::window(Reno::new(), &quic(s)), stays_at_the_minimum)
    });
}

#[test]
fn faults_of_reductions_are_found() {
    let text = EARLY_LOSS.replace("0.3", "0.001").replace("loss = 0 ", "loss = 0.001 ");
    let twice = "multiplied by 0.595, not by 0.7: the factor is applied to the window that fast \
                 convergence has reduced already";
    find((&text, 1), Expected::tcp(Law::Cubic), "reduction", twice, |settings| {
        AnyController::window(Cubic::new(0.4, 0.595, true), settings)
    });
    find(
        (&text, 1),
        Expected::tcp(Law::Reno),
        "reduction",
        "the signal is not answered",
        |settings| faulty(AnyController::window(Reno::new(), settings), ignores_losses),
    );
    let burst = EARLY_LOSS.replace("60p", "20p").replace("0.3", "0");
    find(
        (&burst, 1),
        Expected::quic(Law::Reno),
        "one-reduction",
        "was answered already",
        |settings| {
            faulty(AnyController::window(Aimd::new(1.0, 0.5), &quic(settings)), answers_every_loss)
        },
    );
}

#[test]
fn faults_of_growth_are_found() {
    let steady = EARLY_LOSS.replace("0.3", "0");
    let faster = "more than a packet for each window";
    find((&steady, 1), Expected::tcp(Law::Reno), "avoidance", faster, |settings| {
        AnyController::window(Aimd::new(2.0, 0.5), settings)
    });
    let above = "above the cubic function";
    find((&steady, 1), Expected::tcp(Law::Cubic), "avoidance", above, |settings| {
        AnyController::window(Cubic::new(4.0, 0.7, true), settings)
    });
    find(
        (&steady, 1),
        Expected::tcp(Law::Reno),
        "slow-start",
        "counts packets twice",
        |settings| faulty(AnyController::window(Reno::new(), settings), counts_twice),
    );
    let limited = format!("{steady}\nsource = {{ kind = \"limited\", rate = \"2mbit\" }}");
    let unused = "although the window does not limit the sender";
    find((&limited, 1), Expected::quic(Law::Reno), "application-limited", unused, |settings| {
        let mut settings = *settings;
        settings.conventions = &GROWS_UNUSED;
        AnyController::window(Reno::new(), &settings)
    });
}

/// CUBIC as Linux had it until 2015: the time without packets in flight counts for its function.
#[test]
fn growth_by_idle_time_is_found() {
    let text = format!(
        "{}\nsource = {{ kind = \"on_off\", on = \"3s\", off = \"4s\" }}",
        EARLY_LOSS
            .replace("0.3", "0.001")
            .replace("loss = 0 ", "loss = 0.001 ")
            // Otherwise the sender restarts after an idle period.
            .replace("delayed_acks", "min_rto = \"10s\", delayed_acks")
    );
    fn never_idle(_: &mut AnyController, _: &mut Memory, _: Time, mut event: Event) -> Event {
        if let Event::Acked(acked) = &mut event {
            acked.in_flight = acked.in_flight.max(1);
            acked.limit = Limit::Window;
        }
        event
    }
    find(
        (&text, 1),
        Expected::tcp(Law::Cubic),
        "idle",
        "in which the window was not used",
        |settings| faulty(AnyController::window(Cubic::default(), settings), never_idle),
    );
}

/// A timeout and persistent congestion, which the drivers of this crate do not report both.
#[test]
fn windows_after_timeouts_are_checked() {
    let record: Record = "
50000000 acked 2 2 8 10 0 50000000 - 0 0 window | 12 - -
400000000 timeout 8 50000000 14 | 6 - -
900000000 persistent-congestion | 6 - -
"
    .parse()
    .unwrap();
    let found = |expected| {
        let findings = conform(&record, &expected);
        violations(&findings).iter().map(|(name, _)| *name).collect::<Vec<_>>()
    };
    assert_eq!(found(Expected::tcp(Law::Reno)), ["timeout", "persistent-congestion"]);
    assert_eq!(found(Expected::quic(Law::Other)), ["persistent-congestion"]);
    let kept = record.to_string().replace("| 6 -", "| 1 -").parse().unwrap();
    let findings = conform(&kept, &Expected::tcp(Law::Reno));
    assert_eq!(violations(&findings), []);
    let findings = conform(&kept, &Expected::quic(Law::Other));
    assert_eq!(violations(&findings).len(), 1);
}
