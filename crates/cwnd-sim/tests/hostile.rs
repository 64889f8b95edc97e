//! Controllers whose answers break the rules of the interface: every run ends, and its times never
//! decrease.

use crate::common::{ms, packets, pair, tcp, udt, with_custom};
use cwnd::{AnyController, Controller, Dur, Event, Needs, Output, Packets, Rate, Settings, Time};
use cwnd_sim::Simulation;
use cwnd_sim::network::{Conventions, Network, Recovery, Tcp, Traffic, Udt};
use cwnd_sim::record::Records;

/// When a [`Hostile`] controller asks for a Tick.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wish {
    Never,
    /// At the epoch, always.
    Past,
    /// At the time of the last event.
    Now,
    /// A nanosecond after the last event.
    Next,
}

/// Answers each event with the same window and pacing rate.
#[derive(Clone, Copy, Debug)]
struct Hostile {
    window: f64,
    pace: Option<f64>,
    wish: Wish,
    reports: bool,
    now: Time,
    ticked: Option<Time>,
}

impl Controller for Hostile {
    fn on(&mut self, now: Time, event: &Event) {
        assert!(now >= self.now, "{now:?} after {:?}", self.now);
        self.now = now;
        if let Event::Tick = event {
            assert!(self.ticked.is_none_or(|last| now > last), "two Ticks at {now:?}");
            self.ticked = Some(now);
        }
    }

    fn output(&self) -> Output {
        let mut output = Output::window(Packets::new(self.window));
        output.pace = self.pace.map(Rate::per_sec);
        output.wake = match self.wish {
            Wish::Never => None,
            Wish::Past => Some(Time::ZERO),
            Wish::Now => Some(self.now),
            Wish::Next => Some(self.now + Dur::from_nanos(1)),
        };
        output
    }

    fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        needs.delivery_rate = !self.reports;
        needs.reports = self.reports;
        needs
    }
}

const WINDOWS: [f64; 8] = [10.0, 1.0, 0.5, 0.0, -3.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
const PACES: [Option<f64>; 7] =
    [None, Some(1000.0), Some(0.0), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY), Some(1e-300)];
const WISHES: [Wish; 4] = [Wish::Never, Wish::Past, Wish::Now, Wish::Next];

/// Every combination of a window, a pacing rate and a wish for Ticks.
fn controllers(reports: bool) -> impl Iterator<Item = Hostile> {
    WINDOWS.into_iter().flat_map(move |window| {
        PACES.into_iter().flat_map(move |pace| {
            WISHES.into_iter().map(move |wish| Hostile {
                window,
                pace,
                wish,
                reports,
                now: Time::ZERO,
                ticked: None,
            })
        })
    })
}

/// A link of 8 Mb/s with 20 ms each way. The receiver's window is 50 packets, the queue holds 20,
/// and two packets in a hundred are lost.
fn link(traffic: Traffic) -> Network {
    let mut network = pair(8e6, ms(20), packets(20), vec![traffic], ms(200));
    network.links[0].loss = 0.02;
    network
}

fn over_tcp(change: impl Fn(&mut Tcp)) -> Network {
    let mut tcp = Tcp { window: 50, ..tcp("custom:Hostile") };
    change(&mut tcp);
    link(Traffic::Tcp(tcp))
}

fn over_udt(bytes: Option<u64>) -> Network {
    link(Traffic::Udt(Udt { bytes, window: 50, ..udt("custom:Hostile") }))
}

/// Runs to the end, in at most 100 000 events: 200 ms have 20 000 intervals of 10 µs.
fn run(network: &Network, controller: Hostile) -> Records {
    let make = move |_: &Settings| AnyController::whole(controller);
    let mut simulation = with_custom(make, |options| Simulation::new(network, 1, options).unwrap());
    assert!(simulation.run_for(100_000), "{controller:?} at {}", simulation.progress());
    simulation.finish()
}

fn check(network: &Network, reports: bool) {
    for controller in controllers(reports) {
        let records = run(network, controller);
        let delivered = records.flows[0].packets_delivered;
        let open = controller.window >= 1.0;
        let fast = controller.pace.is_none_or(|pace| pace >= 1000.0);
        if !open && !reports {
            assert_eq!(delivered, 0, "{controller:?}");
        }
        if open && fast {
            assert!(delivered > 0, "{controller:?}");
        }
    }
}

#[test]
fn over_tcp_by_the_rfcs() {
    check(&over_tcp(|_| {}), false);
    check(&over_tcp(|tcp| tcp.recovery = Recovery::NewReno), false);
}

#[test]
fn over_tcp_with_the_conventions_of_ns2() {
    check(&over_tcp(|tcp| tcp.conventions = Conventions::Ns2), false);
    check(
        &over_tcp(|tcp| (tcp.conventions, tcp.recovery) = (Conventions::Ns2, Recovery::Reno)),
        false,
    );
}

/// A host delays each burst by up to 1 ms: no paced packet waits for its departure time in the
/// meantime.
#[test]
fn over_tcp_with_a_host_that_delays_bursts() {
    check(&over_tcp(|tcp| tcp.overhead = Some(ms(1))), false);
}

/// The transfer ends, and the Ticks with it.
#[test]
fn in_transfers_that_end() {
    let network = over_tcp(|tcp| tcp.bytes = Some(3 * 960));
    check(&network, false);
    let wished = |it: &Hostile| (it.window, it.pace, it.wish) == (10.0, None, Wish::Now);
    let controller = controllers(false).find(wished).unwrap();
    let busy = run(&over_tcp(|_| {}), controller).events;
    let ended = run(&network, controller).events;
    assert!(ended < busy / 3, "{ended} events of {busy}");
}

#[test]
fn over_udt_with_acknowledgements_and_with_reports() {
    for reports in [false, true] {
        check(&over_udt(None), reports);
        check(&over_udt(Some(3 * 956)), reports);
    }
}

#[test]
fn over_the_paced_sender() {
    check(&over_tcp(|_| {}), true);
}
