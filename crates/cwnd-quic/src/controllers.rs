//! The controllers of an application's connections, and their settings.

use crate::connection::Connection;
use crate::error::Error;
use crate::recording::Recordings;
use cwnd::delivery::DeliveryEstimator;
use cwnd::registry::{Algorithm, declare};
use cwnd::{
    Acked, AnyController, Controller, Conventions, Dur, Event, MakeController, Packets, Settings,
    Spec, Time,
};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes the controller of each connection.
///
/// It is made from the name of a controller with its parameters, from the path of a `.law` file,
/// from a [`Spec`], or from an `Arc` of any [`MakeController`]. A law whose text is at hand becomes
/// a [`Spec`] by [`law`].
///
/// ```
/// use cwnd_quic::Controllers;
///
/// let controllers = Controllers::try_from("simd(beta=1/16)")?.seed(7);
/// assert_eq!(controllers.to_string(), "simd");
/// assert_eq!(
///     Controllers::try_from("cubicc").unwrap_err().to_string().split(" (").next(),
///     Some("unknown controller \"cubicc\", did you mean cubic?"),
/// );
/// # Ok::<(), cwnd_quic::Error>(())
/// ```
#[derive(Debug)]
pub struct Controllers {
    make: Arc<dyn MakeController>,
    seed: u64,
    max_window: Packets,
    made: AtomicU64,
    recordings: Option<Recordings>,
}

impl Controllers {
    fn new(make: Arc<dyn MakeController>) -> Self {
        Controllers {
            make,
            seed: 0,
            max_window: Packets::INFINITY,
            made: AtomicU64::new(0),
            recordings: None,
        }
    }

    /// Sets the seed of the first connection's controller; each further one has the next seed.
    /// Default: 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the largest window, which the peer's flow control usually bounds. Default: none.
    #[must_use]
    pub fn max_window(mut self, window: Packets) -> Self {
        self.max_window = window;
        self
    }

    /// Records the events and answers of each connection in `recordings`.
    #[must_use]
    pub fn record(mut self, recordings: &Recordings) -> Self {
        self.recordings = Some(recordings.clone());
        self
    }

    /// A controller from the start of a connection, as a stack gets it.
    pub fn controller(&self, settings: &Settings) -> AnyController {
        self.make.controller(settings)
    }

    /// Whether the controllers set a pacing rate: rate laws, and those that do so in the first round
    /// trips of a connection.
    pub fn pace(&self) -> bool {
        let mut controller = self.controller(&settings(INITIAL_PACKET));
        let (mut estimator, rtt) = (DeliveryEstimator::default(), Dur::from_millis(50));
        let mut now = Time::ZERO;
        let paces = (1..=4).any(|sent| {
            let packet = estimator.sent(now, 1);
            let mut acked = Acked::new(1, now);
            now += rtt;
            acked.rtt = Some(rtt);
            acked.sent = sent;
            acked.delivery = Some(estimator.sample_newest(now, 1, &packet, rtt));
            controller.on(now, &Event::Acked(acked));
            controller.output().pace.is_some()
        });
        paces || matches!(controller, AnyController::Rate(_))
    }

    /// The next connection, whose packets have `packet` bytes at first.
    #[cfg(any(feature = "noq", feature = "quinn"))]
    pub(crate) fn connection(&self, packet: u16) -> Connection {
        self.begin(settings(u32::from(packet)))
    }

    /// The next connection of a stack that paces only as the controller says: window laws pace at
    /// 1.25 windows in a round-trip time (RFC 9002 section 7.7).
    #[cfg(feature = "s2n")]
    pub(crate) fn paced_connection(&self, packet: u16) -> Connection {
        let mut settings = settings(u32::from(packet));
        settings.pacing = Some(1.25);
        self.begin(settings)
    }

    fn begin(&self, mut settings: Settings) -> Connection {
        settings.seed = self.seed.wrapping_add(self.made.fetch_add(1, Ordering::Relaxed));
        settings.max_window = self.max_window;
        let recording = self.recordings.as_ref().map(|recordings| recordings.begin(&settings));
        Connection::new(self.controller(&settings), &settings, recording)
    }
}

/// The size of packets in bytes before anything is known of the path (RFC 9000 section 14).
const INITIAL_PACKET: u32 = 1200;

/// The settings of a connection whose packets have `packet` bytes.
fn settings(packet: u32) -> Settings {
    let mut settings = Settings::default();
    settings.packet = packet;
    // RFC 9002 section 7.2.
    let initial = (10 * packet).min((2 * packet).max(14_720));
    settings.initial_window = Packets::from_bytes(u64::from(initial), packet);
    // The stacks pace all senders, and so RFC 9406 section 4.3 sets no limit.
    settings.slow_start_limit = f64::INFINITY;
    settings.conventions = &Conventions::QUIC;
    settings
}

impl std::fmt::Display for Controllers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.make.fmt(f)
    }
}

impl TryFrom<&str> for Controllers {
    type Error = Error;

    /// Reads a specification. A name that ends in `.law` is the path of a file.
    fn try_from(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let (name, arguments) = text.split_at(text.find('(').unwrap_or(text.len()));
        let path = Path::new(name.trim_end());
        if path.extension().is_none_or(|extension| extension != "law") {
            return Ok(Controllers::from(Spec::parse(text)?));
        }
        let name = path.display().to_string();
        let law = match fs::read_to_string(path) {
            Ok(law) => law,
            Err(source) => return Err(Error::Read { path: name, source }),
        };
        let base = path.file_name().unwrap_or_default().to_string_lossy();
        let spec = Spec::new(declared(&base, &name, &law)?);
        match arguments {
            "" => Ok(Controllers::from(spec)),
            _ => Ok(Controllers::from(Spec::parse(&format!("{base}{arguments}"))?)),
        }
    }
}

impl From<Spec> for Controllers {
    fn from(spec: Spec) -> Self {
        Controllers::new(Arc::new(spec))
    }
}

impl<M: MakeController + 'static> From<Arc<M>> for Controllers {
    fn from(make: Arc<M>) -> Self {
        Controllers::new(make)
    }
}

impl From<Arc<dyn MakeController>> for Controllers {
    fn from(make: Arc<dyn MakeController>) -> Self {
        Controllers::new(make)
    }
}

/// The law that `text` describes, with the defaults of its parameters; `name` stands in messages.
///
/// ```
/// let text = "law gentle \"AIMD(1, 1/4)\"\n\
///     on grow:\n    return w + acked / w\n\
///     on cut:\n    return 3 * w / 4\n";
/// let spec = cwnd_quic::law("gentle.law", text)?;
/// assert_eq!(spec.name(), "gentle.law");
/// # Ok::<(), cwnd_quic::Error>(())
/// ```
///
/// # Errors
/// The first fault of the text with its line and column.
pub fn law(name: &str, text: &str) -> Result<Spec, Error> {
    Ok(Spec::new(declared(name, name, text)?))
}

/// Declares the law of `text` as `name`; a fault is said of `file`.
fn declared(name: &str, file: &str, text: &str) -> Result<&'static Algorithm, Error> {
    declare(name, text).map_err(|fault| {
        let (line, column) = fault.position(text);
        Error::Law { name: format!("{file}:{line}:{column}"), fault: fault.to_string() }
    })
}
