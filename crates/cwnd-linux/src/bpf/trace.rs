//! Traces of a kernel controller: its events, and their conversion to records.

use super::Error;
use super::control::Control;
use super::event::{Event, Kind};
use super::loader::capture_log;
use super::pinned::{Instance, directory, pinned_map};
use super::whole;
use cwnd::record::Entry;
use cwnd::{Event as RecordEvent, Lost, Marked, Output, Packets, Rate, Signal, Time};
use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks at the ring buffer, which has room for some thousand events.
const POLL: Duration = Duration::from_millis(4);

/// Events stop this long after the last renewal, in nanoseconds.
const LEASE: u64 = 3_000_000_000;

/// A trace. The kernel writes events while it exists, and for three seconds after the process is
/// killed.
pub struct Trace {
    control: MapHandle,
    ring: RingBuffer<'static>,
    received: Receiver<Event>,
    missed: u64,
    /// Of the pins of the controller. A process that is killed loses it.
    lock: Option<Flock<File>>,
}

impl Trace {
    /// Starts a trace of a loaded controller. It receives all events: one trace at a time exists.
    ///
    /// # Errors
    /// There is another trace of the controller, or the user lacks a capability.
    pub fn new(instance: &Instance) -> Result<Trace, Error> {
        let name = &instance.name;
        let [control, events] = ["control", "events"].map(|map| pinned_map(name, map));
        let (control, events) = (control?, events?);
        let pins = File::open(directory(name)).map_err(Error::kernel(name))?;
        let lock =
            Flock::lock(pins, FlockArg::LockExclusiveNonblock).map_err(
                |(_, error)| match error {
                    Errno::EWOULDBLOCK => Error::Traced(format!("{name} has a trace already")),
                    error => Error::kernel(name)(error.into()),
                },
            )?;
        let mut trace = Trace::from_maps(name, control, &events)?;
        trace.lock = Some(lock);
        Ok(trace)
    }

    /// Starts a trace of the controller with these maps.
    pub(super) fn from_maps(
        name: &str,
        control: MapHandle,
        events: &MapHandle,
    ) -> Result<Trace, Error> {
        let ring_error =
            |error| Error::bpf(format!("cannot read the ring buffer of {name}"))(error);
        let (sender, received) = channel();
        capture_log();
        let mut builder = RingBufferBuilder::new();
        builder
            .add(events, move |bytes| {
                // The receiver exists as long as the ring buffer.
                if let Some(event) = Event::from_bytes(bytes) {
                    let _ = sender.send(event);
                }
                0
            })
            .map_err(ring_error)?;
        let ring = builder.build().map_err(ring_error)?;
        let missed = Control::read(&control)?.missed;
        let trace = Trace { control, ring, received, missed, lock: None };
        // Discard the events of an earlier trace.
        trace.ring.consume().map_err(ring_error)?;
        trace.received.try_iter().for_each(drop);
        trace.renew(LEASE)?;
        Ok(trace)
    }

    fn renew(&self, lease: u64) -> Result<Control, Error> {
        let control = Control::read(&self.control)?;
        let control = Control { until: monotonic()? + lease, ..control };
        control.write(&self.control)?;
        Ok(control)
    }

    /// Waits up to `timeout`, and appends the received events.
    ///
    /// # Errors
    /// The control map cannot be written, or the ring buffer cannot be read.
    pub fn read(&mut self, timeout: Duration, events: &mut Vec<Event>) -> Result<(), Error> {
        self.renew(LEASE)?;
        let end = Instant::now() + timeout.min(Duration::from_secs(1));
        let before = events.len();
        loop {
            // The programs do not wake the listener, which would cost them 10 us and more an event.
            let rest = end.saturating_duration_since(Instant::now());
            thread::sleep(rest.min(POLL));
            self.ring.consume().map_err(Error::bpf("cannot read a ring buffer"))?;
            events.extend(self.received.try_iter());
            if events.len() > before || rest.is_zero() {
                return Ok(());
            }
        }
    }

    /// Returns the number of events lost because they were not read in time.
    ///
    /// # Errors
    /// The control map cannot be read.
    pub fn missed(&self) -> Result<u64, Error> {
        Ok(Control::read(&self.control)?.missed - self.missed)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // If this fails, events stop when the lease ends.
        let _ = self.renew(0);
    }
}

/// Returns the nanoseconds of CLOCK_MONOTONIC, the clock of the kernel's TCP.
pub(crate) fn monotonic() -> Result<u64, Error> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(io::Error::from);
    Ok(Duration::from(now.map_err(Error::kernel("cannot read CLOCK_MONOTONIC"))?).as_nanos() as u64)
}

/// Converts the events of one connection to entries of a [`cwnd::record::Record`].
///
/// The kernel reports an acknowledgement as two events, its arrival and the growth of the window.
/// Values that the kernel does not pass to a controller are approximated: `sent_at` is the arrival
/// less the round-trip time, and a lost packet's sending time is the time of the loss. The events
/// of whole controllers have all inputs.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    acked: Option<Entry>,
    lost: u32,
    in_recovery: bool,
    window: f64,
    pace: Option<Rate>,
    last_time: u64,
    paced: bool,
}

impl Recording {
    /// Creates the conversion of one connection; `paced` for a rate law.
    pub fn new(paced: bool) -> Recording {
        Recording { paced, ..Recording::default() }
    }

    /// Processes an event. Passes completed entries to `entry`.
    pub fn push(&mut self, event: &Event, mut entry: impl FnMut(Entry)) {
        // Some events have an older time than the previous one: the kernel reads its clock before
        // some events and after others.
        self.last_time = self.last_time.max(event.time);
        let at = Time::from_nanos(self.last_time);
        if let Some(inputs) = &event.whole {
            if let Some(record_event) = whole::controller_event(event, inputs) {
                entry(Entry { at, event: record_event, output: whole::output(event, inputs) });
            }
            return;
        }
        let merged = matches!(
            event.kind,
            // The kernel reduced its window before the acknowledgement.
            Kind::Slow | Kind::Grow | Kind::Enter | Kind::Round | Kind::Reduced
        );
        if !merged {
            self.flush(&mut entry);
        }
        if matches!(event.kind, Kind::Slow | Kind::Enter | Kind::Grow) && self.in_recovery {
            self.in_recovery = false;
            entry(Entry { at, event: RecordEvent::Recovered, output: self.output() });
        }
        let sent = u64::from(event.sent);
        let record_event = match event.kind {
            Kind::Begin => {
                self.window = f64::from(event.cwnd);
                return;
            }
            Kind::Acked => {
                self.window = event.window();
                let acked = RecordEvent::Acked(event.acked(at));
                self.acked = Some(Entry { at, event: acked, output: self.output() });
                return;
            }
            Kind::Slow | Kind::Grow => {
                self.window = event.window();
                let output = self.output();
                if let Some(Entry {
                    event: RecordEvent::Acked(acked), output: acked_output, ..
                }) = &mut self.acked
                {
                    acked.credit += event.packets;
                    *acked_output = output;
                }
                return;
            }
            Kind::Enter | Kind::Round | Kind::End | Kind::Lost | Kind::Recovered => {
                return;
            }
            Kind::Mtu => {
                self.window = event.window();
                RecordEvent::Mtu { packet: event.packet_bytes }
            }
            Kind::Reduced => {
                self.window = event.window();
                RecordEvent::Reduced { window: Packets::new(self.window), idle: true }
            }
            Kind::Cut | Kind::Delay | Kind::Timeout | Kind::Tick | Kind::Start if self.paced => {
                self.pace = event.new_rate().map(Rate::per_sec);
                self.window = f64::from(event.cwnd);
                match event.kind {
                    Kind::Cut if event.signal() == Signal::Mark => {
                        RecordEvent::Marked(Marked::new(1, at, sent))
                    }
                    Kind::Cut => RecordEvent::Lost(Lost::new(1, at, sent)),
                    Kind::Timeout => RecordEvent::Timeout(Lost::new(1, at, sent)),
                    _ => RecordEvent::Tick,
                }
            }
            Kind::Cut | Kind::Delay | Kind::Timeout => {
                let lost = event.lost.wrapping_sub(self.lost).max(1);
                self.lost = event.lost;
                self.window = event.packets(event.after);
                self.in_recovery = event.kind == Kind::Cut;
                match event.kind {
                    Kind::Cut if event.signal() == Signal::Mark => {
                        RecordEvent::Marked(Marked::new(1, at, sent))
                    }
                    Kind::Cut => RecordEvent::Lost(Lost::new(lost, at, sent)),
                    _ => RecordEvent::Timeout(Lost::new(lost, at, sent)),
                }
            }
            Kind::Undo => {
                self.window = event.packets(event.after);
                self.in_recovery = false;
                RecordEvent::Undo
            }
            Kind::Report => RecordEvent::Report(event.report()),
            Kind::Tick | Kind::Start => RecordEvent::Tick,
        };
        entry(Entry { at, event: record_event, output: self.output() });
    }

    /// Passes on an acknowledgement that is not followed by growth.
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
