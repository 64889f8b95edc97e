//! The paced machine: slow start, control intervals, congestion periods and clamps.

use crate::common::at;
use cwnd::laws::AnyRateLaw;
use cwnd::model::{Alone, Path, Pattern};
use cwnd::{
    Acked, Clock, Context, Controller, Cut, Dur, Event, Law, Lost, Marked, Paced, Packets, Rate,
};
use cwnd::{RateLaw, Report, Settings, Signal, Time};

fn rate(packets: f64) -> Rate {
    Rate::per_sec(packets)
}

/// A call of the law.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Tick(f64),
    /// The rate, whether the loss was fresh, and the signal.
    Cut(f64, bool, Signal),
    /// The end of slow start at this window.
    Start(f64),
    /// A report of these packets.
    Observe(u32),
    /// Losses of these packets at this rate.
    Losses(u32, f64),
    Rescale(f64),
}

use Call::{Losses, Observe, Rescale, Start, Tick};

/// Starts at 1000 packets/s, adds 100 each 10 ms and gives up a quarter at a fresh signal.
#[derive(Clone, Debug)]
struct Trace {
    calls: Vec<Call>,
    clock: Clock,
    interval: Dur,
    window: Option<f64>,
    starts_itself: bool,
    /// The answers to a tick and to a signal, in place of those above.
    answer: Option<f64>,
}

impl RateLaw for Trace {
    fn clock(&self) -> Clock {
        self.clock
    }
    fn interval(&self) -> Dur {
        self.interval
    }
    fn tick(&mut self, rate: Rate, _: &Context) -> Rate {
        self.calls.push(Tick(rate.as_per_sec()));
        Rate::per_sec(self.answer.unwrap_or(rate.as_per_sec() + 100.0))
    }
    fn cut(&mut self, rate: Rate, fresh: bool, why: Signal, _: &Context) -> Rate {
        self.calls.push(Call::Cut(rate.as_per_sec(), fresh, why));
        let kept = if fresh { 0.75 } else { 1.0 };
        Rate::per_sec(self.answer.unwrap_or(kept * rate.as_per_sec()))
    }
    fn start(&mut self, w: f64, _: &Context) -> Rate {
        self.calls.push(Start(w));
        Rate::per_sec(1000.0)
    }
    fn observe(&mut self, report: &Report, _: &Context) {
        self.calls.push(Observe(report.packets));
    }
    fn losses(&mut self, lost: &Lost, rate: Rate, _: &Context) {
        self.calls.push(Losses(lost.packets, rate.as_per_sec()));
    }
    fn window(&self, _: &Context) -> Option<f64> {
        self.window
    }
    fn starts_itself(&self) -> bool {
        self.starts_itself
    }
    fn uses_capacity(&self) -> bool {
        true
    }
    fn rescale(&mut self, factor: f64) {
        self.calls.push(Rescale(factor));
    }
}

/// A machine and its events, at times in milliseconds.
struct Bench {
    machine: Paced<Trace>,
    seen: usize,
}

impl Trace {
    fn new() -> Self {
        Trace {
            calls: Vec::new(),
            clock: Clock::Timer,
            interval: Dur::from_millis(10),
            window: None,
            starts_itself: false,
            answer: None,
        }
    }
}

impl Bench {
    fn new(change: impl FnOnce(&mut Trace, &mut Settings)) -> Self {
        let mut settings = Settings::default();
        let mut law = Trace::new();
        change(&mut law, &mut settings);
        Bench { machine: Paced::new(law, &settings), seen: 0 }
    }

    /// After a slow start that a loss ended at 0, and the reduction from 1000 to 750 packets/s.
    fn paced(change: impl FnOnce(&mut Trace, &mut Settings)) -> Self {
        let mut bench = Bench::new(change);
        bench.lose(0, 0).calls();
        bench.machine.take_cut();
        bench
    }

    fn on(&mut self, millis: u64, event: Event) -> &mut Self {
        self.machine.on(at(millis), &event);
        self
    }

    fn report(&mut self, millis: u64, packets: u32) -> &mut Self {
        self.on(millis, Event::Report(Report::new(packets, 100, Dur::from_millis(50))))
    }

    fn lose(&mut self, millis: u64, sent_at: u64) -> &mut Self {
        self.on(millis, Event::Lost(Lost::new(2, at(sent_at), 100)))
    }

    fn mark(&mut self, millis: u64, sent_at: u64) -> &mut Self {
        self.on(millis, Event::Marked(Marked::new(3, at(sent_at), 100)))
    }

    fn tick(&mut self, millis: u64) -> &mut Self {
        self.on(millis, Event::Tick)
    }

    /// The calls since the last call of this function.
    fn calls(&mut self) -> Vec<Call> {
        let calls = &self.machine.law().calls;
        let new = calls[self.seen..].to_vec();
        self.seen = calls.len();
        new
    }

    fn rate(&self) -> Option<f64> {
        self.machine.output().pace.map(Rate::as_per_sec)
    }

    fn window(&self) -> f64 {
        self.machine.output().window.get()
    }
}

#[test]
fn slow_start_opens_the_window_unpaced() {
    let mut bench = Bench::new(|_, _| {});
    // The initial window is ten packets; the flow window has room for a packet pair.
    assert_eq!((bench.window(), bench.rate()), (16.0, None));
    bench.report(50, 16).report(60, 4);
    assert_eq!((bench.window(), bench.rate()), (36.0, None));
    assert_eq!(bench.machine.output().wake, None);
    assert_eq!(bench.tick(100).calls(), [Observe(16), Observe(4)]);
}

#[test]
fn a_loss_ends_slow_start() {
    let mut bench = Bench::new(|_, _| {});
    bench.report(50, 4).lose(60, 55);
    let loss = Call::Cut(1000.0, true, Signal::Loss);
    assert_eq!(bench.calls(), [Observe(4), Start(20.0), Losses(2, 1000.0), loss]);
    assert_eq!(bench.rate(), Some(750.0));
    let cut = Cut::rate(Signal::Loss, rate(1000.0), rate(750.0));
    assert_eq!(bench.machine.take_cut(), Some(cut));
    assert_eq!(bench.machine.take_cut(), None);
    assert_eq!(bench.machine.output().wake, Some(at(70)));
}

/// RFC 3168 section 6.1.2 treats a mark as a loss.
#[test]
fn a_mark_ends_slow_start() {
    let mut bench = Bench::new(|_, _| {});
    bench.mark(60, 55);
    let mark = Call::Cut(1000.0, true, Signal::Mark);
    assert_eq!(bench.calls(), [Start(16.0), Losses(3, 1000.0), mark]);
    assert_eq!(bench.rate(), Some(750.0));
}

#[test]
fn the_largest_window_ends_slow_start_without_a_reduction() {
    let mut bench = Bench::new(|_, settings| settings.max_window = Packets::new(20.0));
    bench.report(50, 3);
    assert_eq!((bench.window(), bench.rate()), (19.0, None));
    bench.report(60, 3);
    assert_eq!((bench.window(), bench.rate()), (20.0, Some(1000.0)));
    assert_eq!(bench.machine.take_cut(), None);
}

#[test]
fn timeouts_and_persistent_congestion_end_slow_start() {
    for (event, why) in [
        (Event::Timeout(Lost::new(0, Time::ZERO, 100)), Signal::Timeout),
        (Event::PersistentCongestion, Signal::PersistentCongestion),
    ] {
        let mut bench = Bench::new(|_, _| {});
        bench.on(50, event);
        assert_eq!(bench.calls(), [Start(16.0), Call::Cut(1000.0, true, why)]);
        // They are fresh whenever they come.
        bench.on(51, event);
        assert_eq!(bench.calls(), [Call::Cut(750.0, true, why)]);
        assert_eq!(bench.machine.take_cut().map(|cut| cut.why), Some(why));
    }
}

#[test]
fn a_law_that_starts_itself_is_paced_from_the_first_packet() {
    let mut bench = Bench::new(|law, _| law.starts_itself = true);
    assert_eq!(bench.rate(), Some(1000.0));
    // It runs after every interval, with losses and without acknowledgements.
    bench.tick(10);
    assert_eq!(bench.calls(), [Start(16.0), Tick(1000.0)]);
    bench.lose(12, 5).calls();
    bench.tick(20);
    assert_eq!(bench.calls(), [Tick(825.0)]);
}

#[test]
fn the_rate_grows_after_an_interval_with_acknowledgements_and_without_losses() {
    let mut bench = Bench::paced(|_, _| {});
    // The interval that began with the loss.
    bench.report(5, 1).tick(10);
    assert_eq!(bench.rate(), Some(750.0));
    bench.report(15, 1).tick(19);
    assert_eq!(bench.rate(), Some(750.0), "before the end of the interval");
    assert_eq!(bench.machine.output().wake, Some(at(20)));
    bench.tick(20);
    assert_eq!((bench.rate(), bench.machine.output().wake), (Some(850.0), Some(at(30))));
    // Without acknowledgements, and with a report of none.
    bench.tick(30).report(35, 0).tick(40);
    assert_eq!(bench.rate(), Some(850.0));
    // A late timer begins the next interval late.
    bench.report(42, 1).tick(57);
    assert_eq!((bench.rate(), bench.machine.output().wake), (Some(950.0), Some(at(67))));
}

#[test]
fn reports_may_be_the_clock() {
    let mut bench = Bench::paced(|law, _| law.clock = Clock::Reports);
    assert_eq!(bench.machine.output().wake, None);
    // The first report ends the interval of the loss. A timer ends none.
    bench.report(10, 1).report(19, 1).tick(25);
    assert_eq!(bench.rate(), Some(750.0));
    bench.report(26, 1);
    assert_eq!(bench.rate(), Some(850.0));
    assert_eq!(bench.calls(), [Observe(1), Observe(1), Observe(1), Tick(750.0)]);
}

/// A loss report is fresh if its newest packet was sent at or after the last decrease.
#[test]
fn a_congestion_period_begins_with_packets_sent_after_the_decrease() {
    let mut bench = Bench::paced(|_, _| {});
    bench.lose(100, 90);
    assert_eq!(bench.rate(), Some(562.5));
    bench.lose(110, 99);
    assert_eq!(
        (bench.rate(), bench.calls().last()),
        (Some(562.5), Some(&Call::Cut(562.5, false, Signal::Loss)),)
    );
    // A mark that is not fresh is reported as a loss, and the law does not answer it.
    bench.mark(120, 99);
    assert_eq!(bench.calls(), [Losses(3, 562.5)]);
    bench.mark(130, 100);
    assert_eq!(bench.calls(), [Losses(3, 562.5), Call::Cut(562.5, true, Signal::Mark)]);
    // Of two packets, the one sent at the time of the decrease is of the next period.
    bench.lose(140, 129).lose(150, 130);
    let fresh = |call: &Call| matches!(call, Call::Cut(_, true, _));
    assert_eq!(bench.calls().iter().filter(|call| fresh(call)).count(), 1);
}

#[test]
fn the_rate_does_not_grow_in_an_interval_with_a_signal() {
    let signals: [fn(&mut Bench) -> &mut Bench; 3] =
        [|bench| bench.lose(12, 5), |bench| bench.lose(12, 0), |bench| bench.mark(12, 5)];
    for signal in signals {
        let mut bench = Bench::paced(|_, _| {});
        signal(bench.tick(10)).report(15, 1).calls();
        assert_eq!(bench.tick(20).calls(), []);
        assert!(matches!(bench.report(25, 1).tick(30).calls()[..], [Observe(1), Tick(_)]));
    }
}

/// A loss report without a decrease begins no congestion period.
#[test]
fn only_a_decrease_begins_a_congestion_period() {
    let mut bench = Bench::paced(|law, _| law.answer = Some(1000.0));
    bench.lose(100, 90).lose(110, 99);
    let fresh = bench.calls().into_iter().filter(|call| matches!(call, Call::Cut(_, true, _)));
    assert_eq!(fresh.count(), 2);
    assert_eq!(bench.machine.take_cut(), None);
}

#[test]
fn a_law_may_answer_anything() {
    for (answer, after_cut, after_tick) in [
        (f64::NAN, 1000.0, 1000.0),
        (f64::INFINITY, 1000.0, 1000.0),
        (-5.0, 1.0, 1.0),
        (0.0, 1.0, 1.0),
        (1e12, 1000.0, 1e12),
    ] {
        let mut bench = Bench::paced(|law, _| law.answer = Some(answer));
        assert_eq!(bench.rate(), Some(after_cut), "{answer}");
        bench.tick(10).report(15, 1).tick(20);
        assert_eq!(bench.rate(), Some(after_tick), "{answer}");
    }
}

#[test]
fn the_flow_window_is_the_laws_within_bounds() {
    for (wanted, window) in [(Some(30.0), 30.0), (Some(3.0), 16.0), (Some(1e9), 40.0), (None, 40.0)]
    {
        let mut bench = Bench::paced(|law, settings| {
            law.window = wanted;
            settings.max_window = Packets::new(40.0);
        });
        bench.report(50, 1);
        assert_eq!(bench.window(), window, "{wanted:?}");
    }
}

#[test]
fn the_driver_reduces_the_flow_window() {
    let mut bench = Bench::new(|_, _| {});
    bench.report(50, 20);
    for (reduced, window) in [(100.0, 36.0), (30.0, 30.0), (f64::NAN, 30.0), (2.0, 16.0)] {
        bench.on(60, Event::Reduced { window: Packets::new(reduced), idle: false });
        assert_eq!(bench.window(), window);
    }
    assert_eq!((bench.rate(), bench.machine.take_cut()), (None, None));
}

/// The rate, the flow window and the largest window stay the same numbers of bytes.
#[test]
fn a_change_of_the_packet_size_keeps_the_bytes() {
    let mut bench = Bench::paced(|_, settings| {
        settings.packet = 1200;
        settings.max_window = Packets::new(40.0);
    });
    bench.report(50, 1).calls();
    bench.on(60, Event::Mtu { packet: 400 });
    assert_eq!((bench.window(), bench.rate()), (120.0, Some(2250.0)));
    assert_eq!(bench.calls(), [Rescale(3.0)]);
    bench.report(70, 1);
    assert_eq!(bench.window(), 120.0);
    bench.on(80, Event::Mtu { packet: 1200 });
    assert_eq!((bench.window(), bench.rate()), (40.0, Some(750.0)));
    bench.on(90, Event::Mtu { packet: 0 });
    assert_eq!(bench.rate(), Some(900_000.0));
}

#[test]
fn it_needs_reports_and_ignores_acknowledgements() {
    let mut bench = Bench::paced(|_, _| {});
    let needs = bench.machine.needs();
    assert!(needs.reports && needs.capacity && !needs.delivery_rate);
    let before = bench.machine.output();
    bench.on(50, Event::Acked(Acked::new(5, at(0)))).on(50, Event::Recovered).on(50, Event::Undo);
    assert_eq!(bench.machine.output(), before);
    let mut gauges = Vec::new();
    bench.machine.gauges(&mut |name, value| gauges.push((name, value)));
    assert_eq!(gauges, [("rate", 750.0)]);
}

/// A driver and the model run such a law every 10 µs.
#[test]
fn a_law_without_an_interval_does_not_stop_the_clock() {
    let law = Trace { interval: Dur::ZERO, ..Trace::new() };
    let mut machine = Paced::new(law.clone(), &Settings::default());
    machine.on(at(5), &Event::Lost(Lost::new(1, at(0), 9)));
    machine.on(at(7), &Event::Tick);
    let next = machine.output().next_tick(Some(at(7)));
    assert_eq!(next, Some(at(7) + Dur::from_micros(10)));

    let path = Path { rtt: Dur::from_millis(1), capacity: rate(1000.0), packet: 1500 };
    let mut alone = Alone::new(Law::Rate(AnyRateLaw::Custom(Box::new(law))), 40.0, path);
    alone.round(Pattern::Each);
    // 100 steps of 100 packets/s.
    assert!((alone.window() - 50.0).abs() < 1e-9, "{}", alone.window());
}
