//! Properties of a link besides a constant rate, a constant delay and independent loss.

use cwnd::Dur;
use std::sync::Arc;

/// Bytes that a delivery opportunity of a trace delivers (mahimahi).
pub(crate) const OPPORTUNITY: u64 = 1504;

/// What varies on a link, and what it does to packets besides queueing, transmitting and delaying
/// them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impairments {
    /// Changes of rate, delay and loss, in the order of time.
    pub changes: Vec<Change>,
    /// Changes to the network during a run, in the order of time and in steps
    /// ([`Simulation::change`](crate::Simulation::change)): of what `changes` and `model` leave
    /// constant. Results up to the first one are those of the link without it.
    pub altered: Vec<Change>,
    /// A process that sets the rate, and with [`Model::Leo`] and some traces the delay.
    pub model: Option<Model>,
    /// Periods in which all packets that reach the queue are lost on the link, in the order of
    /// time.
    pub blackouts: Vec<Blackout>,
    /// A random delay of each packet. Packets stay in order.
    pub jitter: Option<Jitter>,
    /// Packets that others may overtake.
    pub reorder: Option<Reorder>,
    /// Loss in bursts, in place of independent loss.
    pub burst_loss: Option<GilbertElliott>,
    /// Packets without data are released at multiples of this time only; zero for at once.
    pub ack_aggregation: Dur,
    /// Of the acknowledgements of a flow one enters the queue within this time; zero for all.
    pub ack_thinning: Dur,
    /// A token bucket before the queue; packets without tokens are dropped.
    pub policer: Option<TokenBucket>,
    /// A token bucket between queue and transmitter; packets wait for tokens. The link's rate is
    /// the peak rate.
    pub shaper: Option<TokenBucket>,
}

/// A change of a link. Values that are not given stay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// Beginning of the change.
    pub at: Dur,
    /// Duration of a linear transition; zero for a step.
    pub over: Dur,
    /// Rate in bits per second; zero stops the transmitter.
    pub rate: Option<f64>,
    /// Propagation delay.
    pub delay: Option<Dur>,
    /// Probability of independent loss.
    pub loss: Option<f64>,
}

/// A period without delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blackout {
    /// Beginning.
    pub at: Dur,
    /// Duration.
    pub length: Dur,
}

/// A process that sets the rate of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// A recorded schedule.
    Trace(Trace),
    /// The cellular link of Sprout (Winstein, Sivaraman and Balakrishnan 2013): a Brownian motion
    /// between zero and a maximum, with sticky outages at zero.
    Cellular(Cellular),
    /// A low-earth-orbit satellite link whose rate and delay are drawn anew at each
    /// reconfiguration.
    Leo(Leo),
}

/// The schedule of a mahimahi trace, with the delays of a LeoCC trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Times of the delivery opportunities in milliseconds, in order. Each delivers 1504 bytes. The
    /// last one is the period after which they repeat.
    pub opportunities: Arc<[u32]>,
    /// One-way delays in milliseconds, each for one `interval`; they repeat. Empty for the link's
    /// own delay.
    pub delays: Arc<[u32]>,
    /// Duration of each delay.
    pub interval: Dur,
}

/// Parameters of [`Model::Cellular`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cellular {
    /// The maximum rate in bits per second.
    pub max: f64,
    /// Standard deviation of the rate's change after one second, in bits per second.
    pub sigma: f64,
    /// Mean duration of an outage.
    pub outage: Dur,
    /// Time between changes of the rate.
    pub step: Dur,
}

/// Parameters of [`Model::Leo`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leo {
    /// Time between reconfigurations.
    pub interval: Dur,
    /// The least and the largest rate in bits per second.
    pub rate: [f64; 2],
    /// The least and the largest propagation delay.
    pub delay: [Dur; 2],
    /// Time without transmission at each reconfiguration.
    pub outage: Dur,
}

/// The distribution of a packet's additional delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// Uniform between zero and this time.
    Uniform(Dur),
    /// The Wi-Fi jitter of the tests of C4 (draft-huitema-ccwg-c4-test, "Handling of High Jitter
    /// Environments") with this target mean; the actual one is 0.32 ms less.
    Wifi(Dur),
}

/// Reordering: a packet takes longer with this probability, and those behind it overtake it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Probability that a packet takes longer.
    pub probability: f64,
    /// Additional delay of such a packet.
    pub delay: Dur,
}

/// The loss model of Gilbert (1960) and Elliott (1963), with the parameters of Hasslinger and
/// Hohlfeld (2008): a Markov chain of a good and a bad state, with a step for each packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability of a transition from the good to the bad state.
    pub p: f64,
    /// Probability of a transition from the bad to the good state.
    pub r: f64,
    /// Probability of loss in the bad state: 1 - h.
    pub bad: f64,
    /// Probability of loss in the good state: 1 - k.
    pub good: f64,
}

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenBucket {
    /// Token rate in bits per second.
    pub rate: f64,
    /// Size of the bucket in bytes.
    pub burst: u64,
}

impl Trace {
    /// The mean rate in bits per second; `None` if the trace is not [valid](super::Link::validate).
    #[must_use]
    pub fn mean_rate(&self) -> Option<f64> {
        let &period = self.opportunities.last().filter(|&&last| last > 0)?;
        let bits = 8.0 * OPPORTUNITY as f64 * self.opportunities.len() as f64;
        Some(1000.0 * bits / f64::from(period))
    }

    /// The mean delay; `None` without delays.
    #[must_use]
    pub fn mean_delay(&self) -> Option<Dur> {
        let sum: u64 = self.delays.iter().map(|&delay| u64::from(delay)).sum();
        let mean = (1_000_000 * sum).checked_div(self.delays.len() as u64)?;
        Some(Dur::from_nanos(mean))
    }
}

impl Impairments {
    /// Whether packets may overtake others.
    pub(crate) fn reorders(&self) -> bool {
        self.reorder.is_some_and(|reorder| reorder.probability > 0.0)
    }

    /// Whether the rate varies with time.
    pub(crate) fn varies_rate(&self) -> bool {
        self.model.is_some() || self.changes.iter().any(|change| change.rate.is_some())
    }

    /// The least propagation delay during a run, if the link's own delay is `initial`.
    pub(crate) fn least_delay(&self, initial: Dur) -> Dur {
        let own = match &self.model {
            Some(Model::Leo(leo)) => leo.delay[0],
            Some(Model::Trace(trace)) => trace
                .delays
                .iter()
                .min()
                .map_or(initial, |&delay| Dur::from_millis(u64::from(delay))),
            _ => initial,
        };
        let changes = self.changes.iter().chain(&self.altered);
        changes.filter_map(|change| change.delay).fold(own, Dur::min)
    }
}
