//! One of everything that a project outside the crate `cwnd` can write: laws, a slow start, a whole
//! controller, rules of a stack, a maker of controllers, a driver.

#![no_std]
#![deny(missing_docs)]

extern crate alloc;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use cwnd::delivery::{DeliveryEstimator, Sent};
use cwnd::parts::{Pacer, RoundCounter, WindowedMax};
use cwnd::{
    Acked, AnyController, Clock, Context, Controller, Conventions, Decided, Dur, Event, Growth,
    Lost, MakeController, Needs, Output, Packets, Rate, RateLaw, Report, Settings, Signal,
    SlowStart, SlowStartLaw, Time, WindowLaw,
};

/// A window law: AIMD(1, 1/4).
#[derive(Clone, Debug)]
pub struct Additive;

impl WindowLaw for Additive {
    fn grow(&mut self, w: f64, acked: f64, _cx: &Context) -> f64 {
        w + acked / w
    }

    fn cut(&mut self, w: f64, why: Signal, _cx: &Context) -> f64 {
        if why.restarts() { w / 2.0 } else { 0.75 * w }
    }
}

/// A rate law: AIMD of the rate.
#[derive(Clone, Debug)]
pub struct AdditiveRate;

impl RateLaw for AdditiveRate {
    fn clock(&self) -> Clock {
        Clock::Timer
    }

    fn interval(&self) -> Dur {
        Dur::from_millis(10)
    }

    fn tick(&mut self, rate: Rate, _cx: &Context) -> Rate {
        Rate::per_sec(rate.as_per_sec() + 1.0)
    }

    fn cut(&mut self, rate: Rate, fresh: bool, _why: Signal, _cx: &Context) -> Rate {
        if fresh { Rate::per_sec(0.875 * rate.as_per_sec()) } else { rate }
    }

    fn start(&mut self, w: f64, cx: &Context) -> Rate {
        Rate::over(w, cx.rtt.map_or(Dur::from_millis(100), |rtt| rtt.smoothed))
    }
}

/// A slow start that ends at a window.
#[derive(Clone, Debug)]
pub struct Bounded {
    /// The window at which it ends.
    pub at: f64,
}

impl SlowStartLaw for Bounded {
    fn grow(&mut self, w: f64, credit: f64, _acked: &Acked, _cx: &Context) -> Growth {
        let window = (w + credit).min(self.at);
        Growth { window, done: window >= self.at }
    }
}

/// A whole controller: its window is twice the product of the maximum delivery rate of ten rounds
/// and the round-trip time.
#[derive(Clone, Debug)]
pub struct Matching {
    rate: WindowedMax<f64>,
    rounds: RoundCounter,
    window: f64,
}

impl Matching {
    /// The controller at the start of a connection.
    pub fn new(settings: &Settings) -> Self {
        let window = settings.initial_window.get();
        Matching { rate: WindowedMax::new(10), rounds: RoundCounter::default(), window }
    }
}

impl Controller for Matching {
    fn on(&mut self, _now: Time, event: &Event) {
        if let Event::Acked(Acked { delivery: Some(sample), rtt: Some(rtt), .. }) = event {
            self.rounds.acked(sample);
            if let Some(rate) = sample.rate() {
                let most = self.rate.add(self.rounds.count(), rate.as_per_sec());
                self.window = 2.0 * Rate::per_sec(most).packets(*rtt);
            }
        }
    }

    fn output(&self) -> Output {
        Output::window(Packets::new(self.window))
    }

    fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        needs.delivery_rate = true;
        needs
    }
}

/// The rules of a stack that never reduces its window below ten packets.
pub static AT_LEAST_TEN: Conventions = {
    let mut conventions = Conventions::QUIC;
    conventions.reduce = |decision| {
        let window = decision.cut.max(10.0).min(decision.window);
        Decided { threshold: window.max(2.0), window }
    };
    conventions
};

/// The controllers of this project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mine {
    /// [`Additive`].
    Additive,
    /// [`AdditiveRate`].
    AdditiveRate,
    /// [`Matching`].
    Matching,
}

impl fmt::Display for Mine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl MakeController for Mine {
    fn controller(&self, settings: &Settings) -> AnyController {
        match self {
            Mine::Additive => {
                let law: Box<dyn WindowLaw> = Box::new(Additive);
                AnyController::window(law, settings)
            }
            Mine::AdditiveRate => {
                let law: Box<dyn RateLaw> = Box::new(AdditiveRate);
                AnyController::rate(law, settings)
            }
            Mine::Matching => AnyController::whole(Matching::new(settings)),
        }
    }
}

/// The settings of the driver: a slow start and rules of its own.
pub fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.max_window = Packets::new(1000.0);
    settings.slow_start = SlowStart::Custom(|| Box::new(Bounded { at: 60.0 }));
    settings.conventions = &AT_LEAST_TEN;
    settings
}

/// A driver: each round sends a window, of which the path drops what exceeds `path` packets.
/// Returns the packets delivered in each round.
pub fn drive(controller: &mut impl Controller, path: u32, rounds: u32) -> Vec<u32> {
    const RTT: Dur = Dur::from_millis(50);
    let needs = controller.needs();
    let (mut estimator, mut pacer) = (DeliveryEstimator::default(), Pacer::new(RTT));
    let (mut began, mut sent) = (Time::ZERO, 0);
    let mut delivered = Vec::new();
    for _ in 0..rounds {
        let end = began + RTT;
        let output = controller.output();
        let mut flight: Vec<(Time, Sent)> = Vec::new();
        while Packets::new(flight.len() as f64 + 1.0) <= output.window {
            let at = pacer.departure(began);
            if at >= end {
                break;
            }
            pacer.sent(at, 1, output.pace);
            flight.push((at, estimator.sent(at, flight.len() as u32 + 1)));
            sent += 1;
        }
        let arrived = flight.len().min(path as usize);
        let lost = (flight.len() - arrived) as u32;
        estimator.lost(lost);
        for (number, (at, packet)) in flight[..arrived].iter().enumerate() {
            let now = end + Dur::from_micros(number as u64);
            estimator.acked(now, packet);
            let mut acked = Acked::new(1, *at);
            acked.in_flight = (arrived - number - 1) as u32;
            acked.sent = sent;
            acked.rtt = Some(now.since(*at));
            acked.delivery = estimator.sample(RTT).filter(|_| needs.delivery_rate);
            controller.on(now, &Event::Acked(acked));
        }
        let now = end + Dur::from_micros(arrived as u64);
        if needs.reports {
            let mut report = Report::new(arrived as u32, sent, RTT);
            report.arrival = Some(Rate::over(arrived as f64, RTT));
            controller.on(now, &Event::Report(report));
        }
        if let Some((at, packet)) = flight.last().filter(|_| lost > 0) {
            let mut lost = Lost::new(lost, *at, sent);
            lost.delivery = Some(estimator.loss_sample(packet)).filter(|_| needs.delivery_rate);
            controller.on(now, &Event::Lost(lost));
        }
        if controller.output().wake.is_some_and(|wake| wake <= now) {
            controller.on(now, &Event::Tick);
        }
        delivered.push(arrived as u32);
        began = now;
    }
    delivered
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: u32 = 100;

    #[test]
    fn each_kind_of_controller_uses_the_path() {
        for mine in [Mine::Additive, Mine::AdditiveRate, Mine::Matching] {
            let mut controller = mine.controller(&settings());
            let delivered = drive(&mut controller, PATH, 400);
            let mean = delivered[200..].iter().sum::<u32>() / 200;
            assert!((60..=PATH).contains(&mean), "{mine}: {mean} packets in each round");
        }
    }

    #[test]
    fn the_slow_start_and_the_rules_are_those_of_the_project() {
        let mut controller = Mine::Additive.controller(&settings());
        let delivered = drive(&mut controller, PATH, 10);
        // Doubles from 10 packets up to 60, then grows by one packet in each round.
        assert_eq!(delivered[..6], [10, 20, 40, 60, 61, 62]);
        let now = Time::ZERO + Dur::from_millis(10_000);
        for number in 1..20 {
            let at = now + Dur::from_millis(number);
            controller.on(at, &Event::Lost(Lost::new(1, at, 1000)));
            controller.on(at, &Event::Acked(Acked::new(0, at + Dur::from_micros(1))));
        }
        assert_eq!(controller.output().window, Packets::new(10.0));
    }

    #[test]
    #[cfg(feature = "default")]
    fn the_driver_runs_the_controllers_of_the_registry() {
        for algorithm in cwnd::registry::algorithms() {
            let spec = cwnd::Spec::new(algorithm);
            let delivered = drive(&mut spec.controller(&settings()), PATH, 400);
            let mean = delivered[200..].iter().sum::<u32>() / 200;
            assert!((5..=PATH).contains(&mean), "{spec}: {mean} packets in each round");
        }
    }

    #[test]
    #[cfg(feature = "default")]
    fn the_readme_of_the_package_lists_the_registry() {
        let readme = include_str!("../cwnd/README.md");
        for algorithm in cwnd::registry::algorithms() {
            assert!(readme.contains(&alloc::format!("`{}`", algorithm.name)), "{}", algorithm.name);
        }
    }
}
