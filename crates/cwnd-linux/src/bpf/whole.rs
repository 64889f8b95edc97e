//! Events of whole controllers: `struct whole_event` of `kernel/trace.h`, which follows the `struct
//! event`, and their conversion to the events of crate `cwnd`. They contain every input of the
//! controller.

use super::event::{Event, Kind, difference, micros, packets, per_second};
use cwnd::delivery::RateSample;
use cwnd::{
    Acked, AnyController, Controller, Dur, Event as ControllerEvent, Limit, Lost, MakeController,
    Output, Packets, Rate, Settings, Spec, Time,
};

/// The members of `struct whole_event` after `struct event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The pacing rate after the event, Q24 packets per second.
    pub pace: u64,
    /// The seed of the controller's random numbers, for [`Kind::Begin`].
    pub seed: u64,
    /// When an idle sender restarted, in microseconds of the kernel's clock; 0 if it was not idle.
    pub sent_at: u64,
    /// Packets delivered before the packet of the rate sample was sent.
    pub prior_delivered: u64,
    /// Packets delivered since.
    pub sample_delivered: u64,
    /// The interval of the sample in microseconds; 0 if it is not reliable.
    pub interval: u64,
    /// Packets declared lost since.
    pub sample_lost: u32,
    /// Packets in flight when the packet was sent.
    pub tx_in_flight: u32,
    /// Whether there is a sample.
    pub has_sample: bool,
    /// Whether the packet was sent in an application-limited phase.
    pub application_limited: bool,
    /// Whether the application had no data to send at the acknowledgement.
    pub idles: bool,
    /// Decisions so far that rounding may have changed.
    pub close: u32,
    /// The state of the controller.
    pub state: u32,
}

const HAS_SAMPLE: u32 = 1;
const APPLICATION_LIMITED: u32 = 2;
const IDLES: u32 = 4;

impl Whole {
    const SIZE: usize = 72;

    /// Parses the bytes after a `struct event`; `None` if they are none of a whole controller.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Whole> {
        let bytes: &[u8; Self::SIZE] = bytes.try_into().ok()?;
        let u64_at = |n: usize| u64::from_ne_bytes(std::array::from_fn(|k| bytes[8 * n + k]));
        let u32_at = |n: usize| u32::from_ne_bytes(std::array::from_fn(|k| bytes[48 + 4 * n + k]));
        Some(Whole {
            pace: u64_at(0),
            seed: u64_at(1),
            sent_at: u64_at(2),
            prior_delivered: u64_at(3),
            sample_delivered: u64_at(4),
            interval: u64_at(5),
            sample_lost: u32_at(0),
            tx_in_flight: u32_at(1),
            has_sample: u32_at(2) & HAS_SAMPLE != 0,
            application_limited: u32_at(2) & APPLICATION_LIMITED != 0,
            idles: u32_at(2) & IDLES != 0,
            close: u32_at(3),
            state: u32_at(4),
        })
    }
}

/// Returns the event of crate `cwnd`; `None` for the start and the end of a connection.
pub(super) fn controller_event(event: &Event, whole: &Whole) -> Option<ControllerEvent> {
    Some(match event.kind {
        Kind::Acked => {
            let mut acked = Acked::new(event.packets, Time::ZERO + Dur::from_micros(whole.sent_at));
            acked.in_flight = event.in_flight;
            acked.sent = u64::from(event.sent);
            acked.rtt = (event.rtt > 0).then(|| micros(event.rtt));
            acked.limit = match (event.limited, whole.idles) {
                (true, _) => Limit::Window,
                (false, true) => Limit::Application,
                (false, false) => Limit::Pacing,
            };
            acked.delivery = whole.has_sample.then(|| {
                let mut sample = RateSample::new();
                sample.prior_delivered = whole.prior_delivered;
                sample.delivered = whole.sample_delivered;
                sample.ack_elapsed = Dur::from_micros(whole.interval);
                sample.reliable = whole.interval > 0;
                sample.lost = u64::from(whole.sample_lost);
                sample.in_flight = whole.tx_in_flight;
                sample.application_limited = whole.application_limited;
                sample
            });
            ControllerEvent::Acked(acked)
        }
        Kind::Lost | Kind::Timeout => {
            let at = Time::from_nanos(event.time);
            let lost = Lost::new(event.lost, at, u64::from(event.sent));
            if event.kind == Kind::Lost {
                ControllerEvent::Lost(lost)
            } else {
                ControllerEvent::Timeout(lost)
            }
        }
        Kind::Recovered => ControllerEvent::Recovered,
        Kind::Undo => ControllerEvent::Undo,
        Kind::Tick => ControllerEvent::Tick,
        Kind::Mtu => ControllerEvent::Mtu { packet: event.packet_bytes },
        _ => return None,
    })
}

/// Returns the window and the pacing rate after an event.
pub(super) fn output(event: &Event, whole: &Whole) -> Output {
    let mut output = Output::window(Packets::new(packets(event.after)));
    output.pace = Some(Rate::per_sec(per_second(whole.pace)));
    output
}

/// Replay of a connection through the controller of crate `cwnd`, from its first event on.
#[derive(Clone, Debug)]
pub(super) struct WholeReplay {
    spec: Spec,
    controller: Option<AnyController>,
    /// Whether a close decision was taken otherwise: the states differ since.
    parted: bool,
}

impl WholeReplay {
    pub(super) fn new(spec: &Spec) -> WholeReplay {
        WholeReplay { spec: *spec, controller: None, parted: false }
    }

    /// Processes an event. Returns, if the controller has processed it, the controller's window, and
    /// the relative difference of the window or of the pacing rate, whichever is larger: `None`
    /// after a close decision that was taken otherwise. Differences up to `bound` are rounding
    /// errors.
    pub(super) fn step(&mut self, event: &Event, bound: f64) -> Option<(f64, Option<f64>)> {
        let whole = event.whole.as_ref()?;
        if event.kind == Kind::Begin {
            let mut settings = Settings::default();
            settings.packet = event.packet_bytes;
            settings.initial_window = Packets::new(f64::from(event.packets));
            settings.seed = whole.seed;
            self.controller = Some(self.spec.controller(&settings));
            return None;
        }
        let controller = self.controller.as_mut()?;
        controller.on(Time::from_nanos(event.time), &controller_event(event, whole)?);
        let (expected, found) = (controller.output(), output(event, whole));
        let rate = |output: &Output| output.pace.map_or(0.0, Rate::as_per_sec);
        let error = difference(found.window.get(), expected.window.get())
            .max(difference(rate(&found), rate(&expected)));
        self.parted |= error > bound && whole.close > 0;
        Some((expected.window.get(), (!self.parted).then_some(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_events_of_the_kernel_layout() {
        let mut bytes = [0; 192];
        bytes[120..128].copy_from_slice(&(3_u64 << 24).to_ne_bytes());
        bytes[160..168].copy_from_slice(&20_000_u64.to_ne_bytes());
        bytes[168..172].copy_from_slice(&2_u32.to_ne_bytes());
        bytes[176..180].copy_from_slice(&1_u32.to_ne_bytes());
        bytes[184..188].copy_from_slice(&6_u32.to_ne_bytes());
        let whole = Event::from_bytes(&bytes).unwrap().whole.unwrap();
        assert_eq!((whole.pace, whole.interval, whole.state), (3 << 24, 20_000, 6));
        assert_eq!((whole.sample_lost, whole.tx_in_flight), (2, 0));
        assert!(whole.has_sample && !whole.application_limited);
        assert_eq!(Event::from_bytes(&bytes[..120]).unwrap().whole, None);
    }
}
