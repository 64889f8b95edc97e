//! What Python controllers are given: plain, frozen objects with times in seconds, windows in
//! packets and rates in packets per second. Tests of a controller construct them.

#![expect(clippy::too_many_arguments, reason = "they are named in Python")]

use cwnd::{Dur, Limit, Rate, Time};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Classes with fields, each a keyword argument with a default.
macro_rules! classes {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($(#[$about:meta])* $field:ident: $type:ty = $default:expr),* $(,)? }
    )+) => {
        $(
            $(#[$doc])*
            #[derive(Clone)]
            #[pyclass(frozen, get_all, from_py_object, module = "cwnd._native")]
            pub(crate) struct $name { $($(#[$about])* pub(super) $field: $type),* }

            #[pymethods]
            impl $name {
                #[new]
                #[pyo3(signature = (*, $($field = $default),*))]
                fn new($($field: $type),*) -> Self {
                    $name { $($field),* }
                }

                fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                    represent(slf.as_any(), stringify!($name), Self::FIELDS)
                }

                fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
                    Ok(other.is_instance_of::<Self>()
                        && values(slf.as_any(), Self::FIELDS)?.eq(values(other, Self::FIELDS)?)?)
                }

                fn __hash__(slf: &Bound<'_, Self>) -> PyResult<isize> {
                    values(slf.as_any(), Self::FIELDS)?.hash()
                }

                fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<AsCall<'py>> {
                    reduce(slf.as_any(), Self::FIELDS)
                }
            }

            impl $name {
                const FIELDS: &[&str] = &[$(stringify!($field)),*];
            }
        )+
    };
}

/// Classes of which each field has its value in an object of the crate `cwnd`: `field: type =
/// default => value`.
macro_rules! converted_classes {
    ($(
        $(#[$doc:meta])*
        $name:ident from $source:ident: $from:ty {
            $($(#[$about:meta])* $field:ident: $type:ty = $default:expr => $value:expr),* $(,)?
        }
    )+) => {
        classes! { $($(#[$doc])* $name { $($(#[$about])* $field: $type = $default),* })+ }
        $(
            impl From<&$from> for $name {
                fn from($source: &$from) -> Self {
                    $name { $($field: $value),* }
                }
            }
        )+
    };
}

/// Classes without fields.
macro_rules! bare_classes {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        $(
            $(#[$doc])*
            #[pyclass(frozen, module = "cwnd._native")]
            pub(crate) struct $name;

            #[pymethods]
            impl $name {
                #[new]
                fn new() -> Self {
                    $name
                }

                fn __repr__(&self) -> &'static str {
                    concat!(stringify!($name), "()")
                }

                fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
                    other.is_instance_of::<Self>()
                }

                fn __hash__(slf: &Bound<'_, Self>) -> PyResult<isize> {
                    slf.get_type().hash()
                }

                fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<AsCall<'py>> {
                    reduce(slf.as_any(), &[])
                }
            }
        )+
    };
}

converted_classes! {
    /// The state of a connection that a law may use besides the window or the rate.
    Context from cx: cwnd::Context {
        /// The time of the event in seconds.
        now: f64 = 0.0 => cx.now.as_secs(),
        /// The smoothed round-trip time in seconds (RFC 6298); None before the first sample.
        rtt: Option<f64> = None => cx.rtt.map(|rtt| rtt.smoothed.as_secs()),
        /// The smallest round-trip time so far in seconds; None before the first sample.
        min_rtt: Option<f64> = None
            => cx.rtt.filter(|rtt| rtt.min < Dur::MAX).map(|rtt| rtt.min.as_secs()),
        /// The latest sample of the round-trip time in seconds; None before the first sample.
        latest_rtt: Option<f64> = None => cx.rtt.map(|rtt| rtt.latest.as_secs()),
        /// The time of the last reduction, or of the start of the connection, in seconds.
        last_cut: f64 = 0.0 => cx.last_cut.as_secs(),
        /// The maximum packet size in bytes.
        packet: u32 = 1500 => cx.packet,
        /// Whether the sender is in slow start.
        slow_start: bool = false => cx.slow_start,
    }

    /// The rules of the driver's stack, where stacks differ and the law says nothing.
    Conventions from rules: cwnd::Conventions {
        /// The smallest window in packets, and the window after a timeout.
        least_window: f64 = 1.0 => rules.least_window,
        /// Whether a loss or a mark begins a recovery, which the driver does not report (RFC 9002).
        infers_recovery: bool = false => rules.infers_recovery,
        /// Whether a mark during recovery reduces the window again.
        marks_reduce_in_recovery: bool = false => rules.marks_reduce_in_recovery,
        /// Whether the slow-start threshold begins at the largest window.
        threshold_from_max_window: bool = false => rules.threshold_from_max_window,
        /// Whether slow start may end above the threshold.
        overshoots_threshold: bool = false => rules.overshoots_threshold,
        /// Whether the window grows although it does not limit the sender.
        grows_unused: bool = false => rules.grows_unused,
        /// Whether the window grows past the largest window.
        grows_past_max_window: bool = false => rules.grows_past_max_window,
        /// Whether Reno and CUBIC compute in whole packets, as those of Linux do.
        whole_packets: bool = false => rules.whole_packets,
        /// Whether an undo restores the window and the threshold, and not the law's state.
        undo_keeps_law: bool = false => rules.undo_keeps_law,
        /// Whether a restart after an idle period raises the threshold (RFC 2861).
        restart_raises_threshold: bool = false => rules.restart_raises_threshold,
    }

    /// The packets and the time between two reductions.
    Round from round: cwnd::Round {
        /// Packets sent between the two reductions, with retransmissions.
        sent: u64 = 0 => round.sent,
        /// Packets of the round declared lost by the end of its recovery.
        lost: u64 = 0 => round.lost,
        /// Packets of the round reported as marked.
        marked: u64 = 0 => round.marked,
        /// The time between the two reductions in seconds.
        took: f64 = 0.0 => round.took.as_secs(),
    }

    /// A delivery-rate sample (draft-ietf-ccwg-bbr), of the most recently sent packet that an
    /// acknowledgement covers.
    RateSample from sample: cwnd::delivery::RateSample {
        /// Packets delivered between the transmission of the packet and this acknowledgement.
        delivered: u64 = 0 => sample.delivered,
        /// Packets delivered before the packet was sent.
        prior_delivered: u64 = 0 => sample.prior_delivered,
        /// The time in which the packets of the sample were sent, in seconds.
        send_elapsed: f64 = 0.0 => sample.send_elapsed.as_secs(),
        /// The time in which they were acknowledged, in seconds.
        ack_elapsed: f64 = 0.0 => sample.ack_elapsed.as_secs(),
        /// The sampling interval: the longer of the two, in seconds.
        interval: f64 = 0.0 => sample.interval().as_secs(),
        /// The delivery rate in packets per second; None where the sample is not reliable.
        rate: Option<f64> = None => sample.rate().map(Rate::as_per_sec),
        /// Packets declared lost between the transmission of the packet and this acknowledgement.
        lost: u64 = 0 => sample.lost,
        /// Packets in flight just after the transmission of the packet.
        in_flight: u32 = 0 => sample.in_flight,
        /// Whether the packet was sent in an application-limited phase.
        application_limited: bool = false => sample.application_limited,
        /// Whether the interval is at least the smallest round-trip time.
        reliable: bool = false => sample.reliable,
    }

    /// The state of a lost packet when it was sent (draft-ietf-ccwg-bbr).
    LossSample from sample: cwnd::delivery::LossSample {
        /// Packets declared lost since the packet was sent, with it.
        lost: u64 = 0 => sample.lost,
        /// Packets in flight just after the transmission of the packet.
        in_flight: u32 = 0 => sample.in_flight,
        /// Whether the packet was sent in an application-limited phase.
        application_limited: bool = false => sample.application_limited,
    }

    /// An acknowledgement.
    Acked from acked: cwnd::Acked {
        /// Packets newly acknowledged, cumulatively or selectively.
        packets: u32 = 1 => acked.packets,
        /// Packets that the window may grow by in slow start.
        credit: u32 = 1 => acked.credit,
        /// Packets in flight after this acknowledgement.
        in_flight: u32 = 0 => acked.in_flight,
        /// Packets sent since the connection began, with retransmissions.
        sent: u64 = 0 => acked.sent,
        /// When the most recently sent of the newly acknowledged packets was sent, in seconds.
        sent_at: f64 = 0.0 => acked.sent_at.as_secs(),
        /// The round-trip time sample in seconds; None where Karn's algorithm forbids one.
        rtt: Option<f64> = None => acked.rtt.map(Dur::as_secs),
        /// The arrival time of the newest packet by the receiver's clock in seconds (RFC 7323
        /// timestamps), or None.
        received_at: Option<f64> = None => acked.received_at.map(Time::as_secs),
        /// Whether the acknowledgement carries ECN-Echo. The window does not grow on it.
        echo: bool = false => acked.echo,
        /// Packets newly reported as CE-marked, where the transport counts them.
        marked: u32 = 0 => acked.marked,
        /// What limited the sender since the previous acknowledgement: window, pacing, receiver or
        /// application.
        limit: String = String::from("window") => limit(acked.limit).into(),
        /// The delivery-rate sample, for controllers that need one; None otherwise.
        delivery: Option<RateSample> = None => acked.delivery.as_ref().map(RateSample::from),
        /// The earliest time at which the pacing rate lets the next packet leave, in seconds; None
        /// where it is not reported.
        departure: Option<f64> = None => acked.departure.map(Time::as_secs),
    }

    /// Packets declared lost, one event for each detection.
    Lost from lost: cwnd::Lost {
        /// Packets newly declared lost.
        packets: u32 = 1 => lost.packets,
        /// When the most recently sent of them was sent, in seconds.
        sent_at: f64 = 0.0 => lost.sent_at.as_secs(),
        /// Packets sent since the connection began, with retransmissions.
        sent: u64 = 0 => lost.sent,
        /// The state of the most recently sent of them, for controllers that need delivery-rate
        /// samples; None otherwise.
        delivery: Option<LossSample> = None => lost.delivery.as_ref().map(LossSample::from),
    }

    /// The retransmission timer expired, and the driver declared packets lost.
    Timeout from lost: cwnd::Lost {
        /// Packets newly declared lost. They are reported here alone.
        packets: u32 = 1 => lost.packets,
        /// When the most recently sent of them was sent, in seconds.
        sent_at: f64 = 0.0 => lost.sent_at.as_secs(),
        /// Packets sent since the connection began, with retransmissions.
        sent: u64 = 0 => lost.sent,
        /// The state of the most recently sent of them, for controllers that need delivery-rate
        /// samples; None otherwise.
        delivery: Option<LossSample> = None => lost.delivery.as_ref().map(LossSample::from),
    }

    /// Packets reported as CE-marked.
    Marked from marked: cwnd::Marked {
        /// Packets newly reported as CE-marked, or 1 for an ECN-Echo.
        packets: u32 = 1 => marked.packets,
        /// When the most recently sent of them was sent, in seconds.
        sent_at: f64 = 0.0 => marked.sent_at.as_secs(),
        /// Packets sent since the connection began, with retransmissions.
        sent: u64 = 0 => marked.sent,
    }

    /// The receiver's periodic report.
    Report from report: cwnd::Report {
        /// Packets newly acknowledged.
        packets: u32 = 1 => report.packets,
        /// Packets sent since the connection began, with retransmissions.
        sent: u64 = 0 => report.sent,
        /// The packet arrival rate that the receiver measures in packets per second; None before
        /// its first estimate.
        arrival: Option<f64> = None => report.arrival.map(Rate::as_per_sec),
        /// The link capacity that the receiver estimates in packets per second; None before its
        /// first estimate.
        capacity: Option<f64> = None => report.capacity.map(Rate::as_per_sec),
        /// The round-trip time in seconds.
        rtt: f64 = 0.0 => report.rtt.as_secs(),
    }

    /// What a driver sets for a whole controller at the start of a connection.
    Settings from settings: cwnd::Settings {
        /// The maximum packet size in bytes.
        packet: u32 = 1500 => settings.packet,
        /// The initial window in packets.
        initial_window: f64 = 10.0 => settings.initial_window.get(),
        /// The largest window in packets; infinite without one.
        max_window: f64 = f64::INFINITY => settings.max_window.get(),
        /// Packets by which one acknowledgement opens the window in slow start at most (L of RFC
        /// 3465).
        slow_start_limit: f64 = 2.0 => settings.slow_start_limit,
        /// Seed of the controller's own randomness.
        seed: u64 = 0 => settings.seed,
    }
}

classes! {
    /// The handshake of a TCP is complete.
    Handshake {
        /// The time between the SYN and its acknowledgement in seconds: no sample for a least
        /// round-trip time.
        rtt: f64 = 0.0,
    }

    /// The driver reduced the window by a rule of its own.
    Reduced {
        /// The new window in packets. A larger one than the controller's changes nothing.
        window: f64 = 1.0,
    }

    /// The maximum packet size changed.
    Mtu {
        /// The new size in bytes.
        packet: u32 = 1500,
    }
}

bare_classes! {
    /// Loss recovery is over.
    Recovered,

    /// All packets sent over a period longer than the persistent congestion duration were lost (RFC
    /// 9002).
    PersistentCongestion,

    /// The last reduction answered a loss that was spurious: the controller reverts it.
    Undo,

    /// The wake-up time that the controller asked for has come.
    Tick,
}

/// An object as the expression that constructs it.
fn represent(object: &Bound<'_, PyAny>, name: &str, fields: &[&str]) -> PyResult<String> {
    let field = |field: &&str| Ok(format!("{field}={}", object.getattr(*field)?.repr()?));
    let fields = fields.iter().map(field).collect::<PyResult<Vec<_>>>()?;
    Ok(format!("{name}({})", fields.join(", ")))
}

/// The values of an object's fields.
fn values<'py>(object: &Bound<'py, PyAny>, fields: &[&str]) -> PyResult<Bound<'py, PyTuple>> {
    let values = fields.iter().map(|field| object.getattr(*field));
    PyTuple::new(object.py(), values.collect::<PyResult<Vec<_>>>()?)
}

/// What an object is copied and unpickled from: a callable and its arguments.
type AsCall<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>);

/// An object as a call of its class, whose arguments are keywords.
fn reduce<'py>(object: &Bound<'py, PyAny>, fields: &[&str]) -> PyResult<AsCall<'py>> {
    let py = object.py();
    let keywords = PyDict::new(py);
    for field in fields {
        keywords.set_item(field, object.getattr(*field)?)?;
    }
    let partial = py.import("functools")?.getattr("partial")?;
    Ok((partial.call((object.get_type(),), Some(&keywords))?, PyTuple::empty(py)))
}

fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Window => "window",
        Limit::Pacing => "pacing",
        Limit::Receiver => "receiver",
        Limit::Application => "application",
    }
}
