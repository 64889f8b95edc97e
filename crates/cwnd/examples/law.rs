//! A window law of your own, in its machine.
//!
//! The law is the constant-rate increase of S. Floyd, *Connections with Multiple Congested Gateways
//! in Packet-Switched Networks Part 1*, Computer Communication Review 21(5), 1991: the window grows
//! by `c R^2` packets in each round-trip time `R`, so that the rate of each connection grows by `c`
//! packets/s each second whatever its round-trip time.
//!
//! ```text
//! cargo run --example law
//! ```

use cwnd::{
    Acked, Context, Controller, Dur, Event, Lost, Reduction, Settings, Signal, Time, WindowLaw,
    Windowed,
};

/// Each ACK: w <- w + c R^2 / w. At a loss: w <- w / 2.
#[derive(Clone, Debug)]
struct ConstantRate {
    /// Growth of the rate in packets/s each second.
    c: f64,
}

impl WindowLaw for ConstantRate {
    fn grow(&mut self, w: f64, acked: f64, cx: &Context) -> f64 {
        // Before the first round-trip time sample the window does not grow.
        let rtt = cx.rtt.map_or(0.0, |rtt| rtt.smoothed.as_secs());
        w + self.c * rtt * rtt * acked / w
    }

    fn cut(&mut self, w: f64, _why: Signal, _cx: &Context) -> f64 {
        w / 2.0
    }
}

const RTT: Dur = Dur::from_millis(100);
/// Packets that the path holds: a larger window loses a packet.
const PATH: u32 = 60;
const ROUNDS: u32 = 400;

fn main() {
    let mut controller = Windowed::new(ConstantRate { c: 50.0 }, &Settings::default());
    // Packets sent since the connection began.
    let mut sent = 0;
    // The time is that of the last event; a round begins at `began`.
    let (mut began, mut recovery_ends) = (Time::ZERO, None);
    for round in 0..ROUNDS {
        // The packets of a round leave at its start. Each acknowledgement, one round-trip time
        // later, covers two.
        let window = controller.window().get() as u32;
        sent += u64::from(window);
        let now = began + RTT;
        for first in (0..window).step_by(2) {
            let mut acked = Acked::new((window - first).min(2), began);
            acked.in_flight = window - first - acked.packets;
            acked.sent = sent;
            acked.rtt = Some(RTT);
            controller.on(now, &Event::Acked(acked));
        }
        // The packets sent when the loss was detected are acknowledged: recovery is over.
        if recovery_ends == Some(round) {
            controller.on(now, &Event::Recovered);
        }
        if window > PATH && !controller.in_recovery() {
            controller.on(now, &Event::Lost(Lost::new(1, began, sent)));
            recovery_ends = Some(round + 1);
        }
        let cut = controller.take_cut().map(|cut| (cut.why, cut.reduction));
        if let Some((why, Reduction::Window { before, after })) = cut {
            let (before, after) = (before.get(), after.get());
            println!("{:5.1} s  {}: {before:.1} -> {after:.1}", now.as_secs(), why.name());
        } else if round % 20 == 0 {
            println!("{:5.1} s  {:.1} packets", now.as_secs(), controller.window().get());
        }
        began = now;
    }
}
