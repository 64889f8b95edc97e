//! Controllers with pacing, timers or delivery-rate samples over TCP and UDT: paced window laws and
//! whole controllers.

use crate::common::{ms, packets, pair, run, run_with, tcp, udt, with_custom};
use cwnd::delivery::RateSample;
use cwnd::laws::Reno;
use cwnd::parts::{RoundCounter, WindowedMax};
use cwnd::{
    AnyController, Controller, Dur, Event, Needs, Output, Packets, Rate, Settings, Time, WindowLaw,
};
use cwnd_sim::network::{Network, Tcp, Traffic};
use cwnd_sim::record::{Limited, Records};
use cwnd_sim::{Options, Simulation};
use std::sync::{Arc, Mutex};

/// The bottleneck in packets per second: 8 Mb/s of packets of 1000 bytes.
const BOTTLENECK: f64 = 1000.0;
const RTT: f64 = 0.041;

fn over_tcp(controller: &str) -> Traffic {
    Traffic::Tcp(tcp(controller))
}

fn over_udt(controller: &str) -> Traffic {
    Traffic::Udt(udt(controller))
}

fn link(traffic: Traffic, queue: u32, seconds: u64) -> Network {
    let mut network = pair(8e6, ms(20), packets(queue), vec![traffic], ms(1000 * seconds));
    network.warmup = ms(500 * seconds);
    network
}

/// Observations of a [`Probe`].
#[derive(Debug, Default)]
struct Seen {
    samples: Vec<(Time, RateSample)>,
    ticks: Vec<Time>,
    rounds: u64,
}

/// Paces at 1.1 times the largest delivery rate of ten rounds, with a window of 2 rate × min RTT
/// and a timer of 100 ms.
#[derive(Clone, Debug)]
struct Probe {
    seen: Arc<Mutex<Seen>>,
    rate: WindowedMax<f64>,
    rounds: RoundCounter,
    min_rtt: Dur,
    wake: Time,
}

impl Controller for Probe {
    fn on(&mut self, now: Time, event: &Event) {
        let mut seen = self.seen.lock().unwrap();
        match event {
            Event::Acked(acked) => {
                self.min_rtt = acked.rtt.map_or(self.min_rtt, |rtt| rtt.min(self.min_rtt));
                if let Some(sample) = acked.delivery {
                    self.rounds.acked(&sample);
                    seen.rounds = self.rounds.count();
                    seen.samples.push((now, sample));
                    if let Some(rate) = sample.rate() {
                        self.rate.add(self.rounds.count(), rate.as_per_sec());
                    }
                }
            }
            Event::Tick => {
                assert!(now >= self.wake, "woken at {now:?} before {:?}", self.wake);
                // Both ends of a UDT connection have a controller; that of the receiving end is
                // unused.
                if self.rounds.count() > 0 {
                    seen.ticks.push(now);
                }
                self.wake = now + ms(100);
            }
            _ => {}
        }
    }

    fn output(&self) -> Output {
        let rate = self.rate.get();
        let window = rate.map_or(10.0, |rate| (2.0 * rate * self.min_rtt.as_secs()).max(4.0));
        let mut output = Output::window(Packets::new(window));
        output.pace = rate.map(|rate| Rate::per_sec(1.1 * rate));
        output.wake = Some(self.wake);
        output
    }

    fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        needs.delivery_rate = true;
        needs
    }
}

/// A window law that asks for delivery-rate samples.
#[derive(Clone, Debug)]
struct Sampled {
    reno: Reno,
    seen: Arc<Mutex<Seen>>,
}

impl WindowLaw for Sampled {
    fn grow(&mut self, w: f64, acked: f64, cx: &cwnd::Context) -> f64 {
        self.reno.grow(w, acked, cx)
    }
    fn cut(&mut self, w: f64, why: cwnd::Signal, cx: &cwnd::Context) -> f64 {
        self.reno.cut(w, why, cx)
    }
    fn observe(&mut self, acked: &cwnd::Acked, cx: &cwnd::Context) {
        let samples = &mut self.seen.lock().unwrap().samples;
        samples.extend(acked.delivery.map(|sample| (cx.now, sample)));
    }
    fn uses_delivery_rate(&self) -> bool {
        true
    }
}

fn observe(traffic: fn(&str) -> Traffic, law: bool, queue: u32) -> (Records, Seen) {
    observe_in(&link(traffic("custom:Probe"), queue, 10), law)
}

fn observe_in(network: &Network, law: bool) -> (Records, Seen) {
    let shared: Arc<Mutex<Seen>> = Arc::default();
    let seen = shared.clone();
    let probe = move |settings: &Settings| {
        let seen = seen.clone();
        if law {
            let law: Box<dyn WindowLaw> = Box::new(Sampled { reno: Reno::new(), seen });
            return AnyController::window(law, settings);
        }
        AnyController::whole(Probe {
            seen,
            rate: WindowedMax::new(10),
            rounds: RoundCounter::default(),
            min_rtt: Dur::from_millis(1000),
            wake: Time::ZERO + ms(100),
        })
    };
    let records = with_custom(probe, |options| run_with(network, 1, options));
    let seen = std::mem::take(&mut *shared.lock().unwrap());
    (records, seen)
}

fn steady(seen: &Seen) -> impl Iterator<Item = &RateSample> {
    seen.samples.iter().filter(|(at, _)| at.as_secs() > 5.0).map(|(_, sample)| sample)
}

/// Samples equal the bottleneck's rate, and a controller that paces at the sampled rate uses the
/// link without loss.
#[test]
fn a_whole_controller_measures_the_bottleneck_and_paces_by_it() {
    for traffic in [over_tcp, over_udt] {
        let (records, seen) = observe(traffic, false, 60);
        let used = records.links[0].utilization;
        assert!(used > 0.97, "{used}");
        assert_eq!(records.links[0].drops, 0);
        let rates: Vec<f64> =
            steady(&seen).filter_map(RateSample::rate).map(Rate::as_per_sec).collect();
        assert!(rates.len() > 200, "{}", rates.len());
        let largest = rates.iter().copied().fold(0.0, f64::max);
        assert!((largest / BOTTLENECK - 1.0).abs() < 0.02, "{largest}");
        assert!(steady(&seen).all(|sample| !sample.application_limited && sample.lost == 0));
        // Ten seconds have at most one round per minimum round-trip time.
        let most = (10.0 / RTT) as u64;
        assert!((most / 3..=most + 1).contains(&seen.rounds), "{} rounds", seen.rounds);
    }
}

/// The controller's timer works over TCP and UDT.
#[test]
fn a_whole_controller_is_woken_when_it_asks() {
    for traffic in [over_tcp, over_udt] {
        let (_, seen) = observe(traffic, false, 60);
        let ticks = &seen.ticks;
        assert!((90..=100).contains(&ticks.len()), "{} ticks", ticks.len());
        let gaps = ticks.windows(2).map(|pair| pair[1].since(pair[0]));
        assert!(gaps.clone().all(|gap| gap >= ms(100) && gap < ms(115)), "{:?}", gaps.max());
    }
}

/// A law's samples count delivered and lost packets, including during recovery.
#[test]
fn samples_of_a_law_agree_with_the_records() {
    for traffic in [over_tcp, over_udt] {
        let (records, seen) = observe(traffic, true, 20);
        assert!(records.links[0].drops > 0);
        let (_, last) = seen.samples.last().unwrap();
        let delivered = last.prior_delivered + last.delivered;
        let arrived = records.links[0].departures + 200;
        assert!(delivered > 8_000 && delivered <= arrived + 6_000, "{delivered} of {arrived}");
        assert!(seen.samples.iter().any(|(_, sample)| sample.lost > 0));
        let rates = seen.samples.iter().filter_map(|(_, sample)| sample.rate());
        let largest = rates.map(Rate::as_per_sec).fold(0.0, f64::max);
        // A burst is delivered at the bottleneck's rate.
        assert!(largest < 1.1 * BOTTLENECK, "{largest}");
    }
}

/// The packet of a sample was in flight when it was sent, also after a timeout.
#[test]
fn samples_count_their_own_packet_as_in_flight() {
    for traffic in [over_tcp, over_udt] {
        let mut network = link(traffic("custom:Probe"), 20, 20);
        network.links[0].loss = 0.3;
        network.warmup = Dur::ZERO;
        let (records, seen) = observe_in(&network, true);
        assert!(records.flows[0].timeouts > 0);
        assert!(seen.samples.len() > 20, "{} samples", seen.samples.len());
        assert!(seen.samples.iter().all(|(_, sample)| sample.in_flight > 0));
    }
}

/// Samples are application-limited after the end of the data.
#[test]
fn the_end_of_the_data_is_application_limited() {
    let traffic = Traffic::Tcp(Tcp { bytes: Some(5 * 960), ..tcp("custom:Probe") });
    let (_, seen) = observe_in(&link(traffic, 60, 2), false);
    let limited: Vec<_> = seen.samples.iter().map(|(_, it)| it.application_limited).collect();
    assert_eq!(limited.len(), 5);
    // The packets of the first burst were sent before the data ended.
    assert!(!limited[0]);
    let traffic = Traffic::Tcp(Tcp { initial_window: 2, ..tcp("custom:Probe") });
    let (_, seen) = observe_in(&link(traffic, 60, 2), false);
    assert!(seen.samples.iter().all(|(_, it)| !it.application_limited));
}

/// Returns the gaps between the data packets of a flow at the bottleneck's queue, in milliseconds.
fn departures(network: &Network) -> Vec<u64> {
    let mut simulation = Simulation::new(network, 1, &Options::default()).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    simulation.tap(0, move |seen| sender.send(seen.at).unwrap());
    simulation.run();
    drop(simulation);
    receiver.iter().collect()
}

/// RFC 9002 section 7.7: a paced window is sent within 1/1.25 of a round trip, not in a burst.
#[test]
fn a_paced_window_does_not_leave_in_bursts() {
    for (spec, traffic) in
        [("reno(pacing=1.25)", over_tcp as fn(&str) -> Traffic), ("reno(pacing=1.25)", over_udt)]
    {
        let records = run(&link(traffic(spec), 41, 20), 1);
        let flow = &records.flows[0];
        assert!(records.links[0].utilization > 0.9, "{}", records.links[0].utilization);
        assert!(flow.cuts.len() > 3, "{} reductions", flow.cuts.len());
        // Pacing limits the sender for a part of the time, during which the window grows.
        let Limited { window, pacing, receiver, application } = flow.limited;
        assert!(pacing > 0.2 && window > 1.0, "{:?}", flow.limited);
        assert_eq!((receiver, application), (0.0, 0.0));
    }
    let mean_queue = |spec: &str| run(&link(over_tcp(spec), 41, 20), 1).links[0].mean_queue;
    let (paced, bursts) = (mean_queue("reno(pacing=1.25)"), mean_queue("reno"));
    assert!(paced <= bursts, "{paced} {bursts}");
}

/// On an idle path the departure rate is the pacing rate.
#[test]
fn departures_follow_the_pacing_rate() {
    // A fast link preserves the gaps of the sender.
    let traffic = Traffic::Tcp(Tcp { window: 40, ..tcp("reno(pacing=2)") });
    let mut network = pair(8e9, ms(50), packets(10_000), vec![traffic], ms(3000));
    network.warmup = ms(1000);
    let at = departures(&network);
    let late: Vec<u64> = at.into_iter().filter(|at| *at > 2_000_000_000).collect();
    // 40 packets per 100 ms, paced at twice that rate: 1.25 ms apart.
    let gaps: Vec<u64> = late.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() > 300, "{}", gaps.len());
    let least = gaps.iter().min().unwrap();
    assert!((1_200_000..=1_260_000).contains(least), "{least} ns");
}

/// A controller of the Linux kernel is simulated by the registry's controller of that name.
#[test]
fn controllers_of_the_kernel_are_those_of_the_registry() {
    let records = |controller: &str| run(&link(over_tcp(controller), 40, 8), 1);
    let (named, own) = (records("kernel:cubic"), records("cubic"));
    assert_eq!(named.flows[0].cuts, own.flows[0].cuts);
    assert_eq!(named.flows[0].series.window, own.flows[0].series.window);
    assert_ne!(own.flows[0].cuts, records("reno").flows[0].cuts);
    let network = link(over_tcp("kernel:htcp"), 40, 1);
    let error = Simulation::new(&network, 1, &Options::default()).map(drop).unwrap_err();
    assert!(
        error.to_string().ends_with("kernel:htcp: the simulator has no controller htcp"),
        "{error}"
    );
}
