//! Listening to a controller of the kernel: its events, and the records that they make.

use super::Error;
use super::event::{Event, Kind, packets, per_second};
use super::instance::{Control, Instance, pinned};
use super::loader::listen;
use cwnd::record::Entry;
use cwnd::{Acked, Dur, Event as Told, Limit, Lost, Output, Packets, Rate, Report, Time};
use libbpf_rs::{ErrorKind, MapHandle, RingBuffer, RingBufferBuilder};
use nix::time::{ClockId, clock_gettime};
use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long the kernel goes on sending events when nobody asks for more of them.
const LEASE: u64 = 3_000_000_000;

/// A listener. While it lives, and for three seconds after it was killed, the kernel sends events.
pub struct Trace {
    control: MapHandle,
    ring: RingBuffer<'static>,
    heard: Receiver<Event>,
    missed: u64,
}

impl Trace {
    /// Listens to a controller that is loaded. One at a time hears everything.
    ///
    /// # Errors
    /// Where the kernel does not let this user.
    pub fn new(instance: &Instance) -> Result<Trace, Error> {
        let [control, events] = ["control", "events"].map(|what| pinned(&instance.name, what));
        Trace::of(&instance.name, control?, &events?)
    }

    /// Listens to the controller with these maps.
    pub(super) fn of(name: &str, control: MapHandle, events: &MapHandle) -> Result<Trace, Error> {
        let refused = |error| Error::bpf(format!("the events of {name}"))(&error);
        let (told, heard) = channel();
        listen();
        let mut builder = RingBufferBuilder::new();
        builder
            .add(events, move |bytes| {
                // Whoever hears it lives as long as the ring.
                let _ = Event::read(bytes).map(|event| told.send(event));
                0
            })
            .map_err(refused)?;
        let ring = builder.build().map_err(refused)?;
        let missed = Control::read(&control)?.missed;
        let trace = Trace { control, ring, heard, missed };
        // What an earlier listener left.
        trace.ring.consume().map_err(refused)?;
        trace.heard.try_iter().for_each(drop);
        trace.renew(LEASE)?;
        Ok(trace)
    }

    fn renew(&self, lease: u64) -> Result<Control, Error> {
        let control = Control::read(&self.control)?;
        let control = Control { until: monotonic()? + lease, ..control };
        control.write(&self.control)?;
        Ok(control)
    }

    /// Waits for at most `timeout`, and adds the events that have come.
    ///
    /// # Errors
    /// Where the controller's notes can no longer be written.
    pub fn read(&mut self, timeout: Duration, events: &mut Vec<Event>) -> Result<(), Error> {
        self.renew(LEASE)?;
        match self.ring.poll(timeout.min(Duration::from_secs(1))) {
            // An interrupted wait is a short one.
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                return Err(Error::bpf("the events of a controller")(&error));
            }
            _ => events.extend(self.heard.try_iter()),
        }
        Ok(())
    }

    /// Events that were lost because nobody read them in time.
    ///
    /// # Errors
    /// Where the controller's notes cannot be read.
    pub fn missed(&self) -> Result<u64, Error> {
        Ok(Control::read(&self.control)?.missed - self.missed)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // Without it the events end by themselves a little later.
        let _ = self.renew(0);
    }
}

/// Nanoseconds of CLOCK_MONOTONIC, which is also the clock of the kernel's TCP.
pub(crate) fn monotonic() -> Result<u64, Error> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(io::Error::from);
    Ok(Duration::from(now.map_err(Error::kernel("the clock"))?).as_nanos() as u64)
}

/// One connection's events as the entries of a [`cwnd::record::Record`].
///
/// An acknowledgement is told in two events, as it arrives and as the window grows for it; what the
/// kernel does not tell a controller is filled in: `sent_at` is the round-trip time before, and a
/// loss's the time itself.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    acked: Option<Entry>,
    lost: u32,
    repairing: bool,
    window: f64,
    pace: Option<Rate>,
    last_at: u64,
    paced: bool,
}

impl Recording {
    /// The record of a connection; `paced` for a rate law.
    pub fn new(paced: bool) -> Recording {
        Recording { paced, ..Recording::default() }
    }

    /// Takes the next event, and hands over the entries that it completes.
    pub fn push(&mut self, event: &Event, mut entry: impl FnMut(Entry)) {
        // The kernel's clock is read before some events and after others.
        self.last_at = self.last_at.max(event.at);
        let at = Time::from_nanos(self.last_at);
        let joins = matches!(event.kind, Kind::Slow | Kind::Grow | Kind::Enter | Kind::Round);
        if !joins {
            self.flush(&mut entry);
        }
        if matches!(event.kind, Kind::Slow | Kind::Enter | Kind::Grow) && self.repairing {
            self.repairing = false;
            entry(Entry { at, event: Told::Recovered, output: self.output() });
        }
        let sent = u64::from(event.sent);
        let told = match event.kind {
            Kind::Begin => {
                self.window = f64::from(event.cwnd);
                return;
            }
            Kind::Acked => {
                self.window = window(event);
                self.acked = Some(Entry { at, event: acked(event, at), output: self.output() });
                return;
            }
            Kind::Slow | Kind::Grow => {
                self.window = window(event);
                let output = self.output();
                if let Some(Entry { event: Told::Acked(acked), output: out, .. }) = &mut self.acked
                {
                    acked.credit += event.packets;
                    *out = output;
                }
                return;
            }
            Kind::Enter | Kind::Round | Kind::End => return,
            Kind::Cut | Kind::Timeout | Kind::Tick | Kind::Start if self.paced => {
                self.pace = Some(Rate::per_sec(per_second(event.after)));
                self.window = f64::from(event.cwnd);
                match event.kind {
                    Kind::Cut => Told::Lost(Lost::new(1, at, sent)),
                    Kind::Timeout => Told::Timeout { sent },
                    _ => Told::Tick,
                }
            }
            Kind::Cut | Kind::Timeout => {
                let lost = event.lost.wrapping_sub(self.lost).max(1);
                self.lost = event.lost;
                self.window = packets(event.after);
                self.repairing = event.kind == Kind::Cut;
                match event.kind {
                    Kind::Cut => Told::Lost(Lost::new(lost, at, sent)),
                    _ => Told::Timeout { sent },
                }
            }
            Kind::Undo => {
                self.window = packets(event.after);
                self.repairing = false;
                Told::Undo
            }
            Kind::Report => {
                let rate = |q24| Some(Rate::per_sec(per_second(q24)));
                let rtt = Dur::from_nanos(u64::from(event.rtt) * 1000);
                let (arrival, capacity) = (rate(event.arrival), rate(event.capacity));
                let mut report = Report::new(event.packets, sent, rtt);
                (report.arrival, report.capacity) = (arrival, capacity);
                Told::Report(report)
            }
            Kind::Tick | Kind::Start => Told::Tick,
        };
        entry(Entry { at, event: told, output: self.output() });
    }

    /// Hands over an acknowledgement that no growth has followed.
    pub fn flush(&mut self, mut entry: impl FnMut(Entry)) {
        if let Some(acked) = self.acked.take() {
            entry(acked);
        }
    }

    fn output(&self) -> Output {
        let mut output = Output::window(Packets::new(self.window));
        output.pace = self.pace;
        output
    }
}

/// The window with its fraction, or the kernel's where it has moved its own.
fn window(event: &Event) -> f64 {
    if event.after >> 40 == u64::from(event.cwnd) {
        packets(event.after)
    } else {
        f64::from(event.cwnd)
    }
}

fn acked(event: &Event, at: Time) -> Told {
    let rtt = (event.rtt > 0).then(|| Dur::from_nanos(u64::from(event.rtt) * 1000));
    let sent_at = at.as_nanos().saturating_sub(u64::from(event.rtt) * 1000);
    let mut acked = Acked::new(event.packets, Time::from_nanos(sent_at));
    acked.credit = 0;
    acked.in_flight = event.in_flight;
    acked.sent = u64::from(event.sent);
    acked.rtt = rtt;
    acked.received_at =
        (event.stamp != 0).then(|| Time::from_nanos(u64::from(event.stamp) * 1_000_000));
    acked.limit = if event.limited { Limit::Window } else { Limit::Application };
    Told::Acked(acked)
}
