//! Known faults of stacks and adapters, put back into controllers: each fails a scenario that the
//! controller without the fault meets.

use cwnd::laws::Cubic;
use cwnd::{
    AnyController, Controller, Dur, Event, MakeController, Needs, Output, Settings, Spec, Time,
};
use cwnd_quic::Controllers;
use cwnd_quic_sim::Error;
use std::fmt;
use std::sync::Arc;

/// Makes a controller in which `change` alters the events.
struct Double {
    make: fn(&Settings) -> AnyController,
    change: fn(&mut Memory, &mut Event),
}

/// What a double remembers.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// Packets delivered in all, and when the present round ends.
    delivered: u64,
    round_end: u64,
    /// Rounds whose samples do not count.
    stale: u32,
}

impl fmt::Debug for Double {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a double")
    }
}

impl fmt::Display for Double {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("double")
    }
}

impl MakeController for Double {
    fn controller(&self, settings: &Settings) -> AnyController {
        let (inner, change) = ((self.make)(settings), self.change);
        AnyController::whole(Faulty { inner, memory: Memory::default(), change })
    }
}

#[derive(Clone, Debug)]
struct Faulty {
    inner: AnyController,
    memory: Memory,
    change: fn(&mut Memory, &mut Event),
}

impl Controller for Faulty {
    fn on(&mut self, now: Time, event: &Event) {
        let mut event = *event;
        (self.change)(&mut self.memory, &mut event);
        self.inner.on(now, &event);
    }

    fn output(&self) -> Output {
        self.inner.output()
    }

    fn needs(&self) -> Needs {
        self.inner.needs()
    }
}

/// noq's BBRv3 before 1.2 (noq 785): the packets in flight at a loss are computed from an unsigned
/// difference, which is below zero at each loss rate above the threshold.
fn underflows(_: &mut Memory, event: &mut Event) {
    let Event::Lost(lost) = event else { return };
    let Some(sample) = &mut lost.delivery else { return };
    if sample.lost as f64 > 0.02 * f64::from(sample.in_flight) {
        // The difference wraps: any loss rate above the threshold, of a volume near the maximum.
        sample.in_flight = u32::MAX;
        sample.lost = u64::from(u32::MAX) / 32;
    }
}

/// cwnd's adapters until 2026: after a change of the packet size the samples of the delivery rate do
/// not count for two rounds, in which the controller still looks for growth of the rate.
fn forgets_rates(memory: &mut Memory, event: &mut Event) {
    match event {
        Event::Mtu { .. } => memory.stale = 3,
        Event::Acked(acked) => {
            let Some(sample) = &mut acked.delivery else { return };
            memory.delivered = sample.prior_delivered + sample.delivered;
            if sample.prior_delivered >= memory.round_end {
                memory.round_end = memory.delivered;
                memory.stale = memory.stale.saturating_sub(1);
            }
            if memory.stale > 0 {
                sample.ack_elapsed = Dur::from_millis(60_000);
            }
        }
        _ => {}
    }
}

fn keeps(_: &mut Memory, _: &mut Event) {}

fn bbr3(settings: &Settings) -> AnyController {
    Spec::parse("bbr3").unwrap().controller(settings)
}

fn cubic(settings: &Settings) -> AnyController {
    AnyController::window(Cubic::default(), settings)
}

/// quinn's CUBIC until 2026 (quinn 2640): the factor is applied to the window that fast convergence
/// has reduced already.
fn cubic_twice(settings: &Settings) -> AnyController {
    AnyController::window(Cubic::new(0.4, 0.7 * 0.85, true), settings)
}

/// Runs a scenario with a controller in a stack.
macro_rules! expect {
    ($stack:ident, $proto:ident, $file:literal, $double:expr) => {{
        let double = Arc::new($double);
        let config = |_: $proto::Side| {
            let mut config = $proto::TransportConfig::default();
            let factory = cwnd_quic::$stack::factory(Controllers::from(double.clone()));
            config.stream_receive_window(4_000_000u32.into()).send_window(32_000_000);
            config.congestion_controller_factory(factory.unwrap());
            config
        };
        let file = include_str!(concat!("../scenarios/", $file));
        let scenario = cwnd_quic_sim::$stack::Scenario::from_toml(file).unwrap();
        scenario.transport(config).seeds(0..2).run().unwrap().expect()
    }};
}

fn message(outcome: Result<(), Error>) -> String {
    outcome.unwrap_err().to_string()
}

#[test]
fn an_underflow_of_noq_is_found() {
    expect!(noq, noq_proto, "short-queue.toml", Double { make: bbr3, change: keeps }).unwrap();
    let double = Double { make: bbr3, change: underflows };
    let message = message(expect!(noq, noq_proto, "short-queue.toml", double));
    assert!(message.starts_with("retransmission_rate <= 0.0015 fails with 2 of 2"), "{message}");
}

#[test]
fn a_fault_of_path_mtu_discovery_is_found() {
    expect!(noq, noq_proto, "growing-packets.toml", Double { make: bbr3, change: keeps }).unwrap();
    let double = Double { make: bbr3, change: forgets_rates };
    let message = message(expect!(noq, noq_proto, "growing-packets.toml", double));
    assert!(message.starts_with("fct <= 2.5s fails with 2 of 2 seeds"), "{message}");
}

#[test]
fn a_reduction_of_quinn_that_is_too_large_is_found() {
    let double = |make| Double { make, change: keeps };
    expect!(quinn, quinn_proto, "reductions.toml", double(cubic)).unwrap();
    let message = message(expect!(quinn, quinn_proto, "reductions.toml", double(cubic_twice)));
    assert!(message.starts_with("utilization >= 0.97 fails with 2 of 2 seeds"), "{message}");
}
