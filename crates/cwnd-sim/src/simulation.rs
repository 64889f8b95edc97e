//! A run, from the first event to the records.

use crate::beside::Other;
use crate::endpoint::settings;
use crate::engine::split::Split;
use crate::engine::tap::{Seen, Tap};
use crate::half::Half;
use crate::network::{Network, NetworkError, Traffic};
use crate::record::Records;
use cwnd::{MakeController, Settings};
use std::sync::Arc;

/// Why a network cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimulationError {
    /// A flow's controller is unknown or its parameters are wrong.
    #[error("flow {flow}: {message}")]
    Controller {
        /// The flow's name.
        flow: String,
        /// What was wrong and what is allowed.
        message: String,
    },
    /// The network has an invalid field.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// There are more links and timers than event keys can name at this duration.
    #[error("{duration} s is too long for a network with {sources} links and timers")]
    TooLong {
        /// Seconds asked for.
        duration: f64,
        /// Links and timers.
        sources: usize,
    },
}

/// Finds what makes the laws of a specification.
pub type FindController<'a> = dyn Fn(&str) -> Option<Arc<dyn MakeController>> + 'a;

/// What a run may be told besides its network and seed.
#[derive(Default)]
pub struct Options<'a> {
    /// Finds the controllers whose specifications are not for the registry ([`crate::network::custom_name`]).
    pub custom: Option<&'a FindController<'a>>,
    /// Records the events and outputs of every controller.
    pub record_events: bool,
    /// Runs on two threads where the network can be cut in two halves that are worth it. The results
    /// are those of one thread.
    pub two_threads: bool,
}

/// A network in the middle of a run. It shares nothing: many run side by side.
pub struct Simulation {
    network: Arc<Network>,
    seed: u64,
    run: Run,
}

enum Run {
    Whole(Box<Half>),
    Split(Box<[Half; 2]>, Split),
}

impl Simulation {
    /// A run of `network` with this seed. A reference is copied.
    ///
    /// # Errors
    /// A network that is not [valid](Network::validate) or too large for its duration, or an unknown controller.
    pub fn new(
        network: impl Into<Arc<Network>>,
        seed: u64,
        options: &Options,
    ) -> Result<Self, SimulationError> {
        let network = network.into();
        network.validate()?;
        // A controller from outside is made once.
        let may_split = options.two_threads && options.custom.is_none();
        let split = may_split.then(|| Split::find(&network)).flatten();
        let run = match split {
            None => Run::Whole(Box::new(Half::new(&network, seed, options, None)?)),
            Some(split) => {
                let [first, second] = Other::pair(split.lookahead);
                let first = Half::new(&network, seed, options, Some((&split, 0, first)))?;
                let second = Half::new(&network, seed, options, Some((&split, 1, second)))?;
                Run::Split(Box::new([first, second]), split)
            }
        };
        Ok(Simulation { network, seed, run })
    }

    /// What the controller of flow number `flow` was made with: its specification and these settings
    /// make another that answers its record bit by bit. `None` for a flow without a controller.
    pub fn settings(&self, flow: usize) -> Option<Settings> {
        match &self.network.flows[flow].traffic {
            Traffic::Tcp(tcp) => Some(settings(tcp, self.seed, flow)),
            Traffic::Udt(udt) => crate::udt::settings(udt, self.seed, flow),
            Traffic::Cbr { .. } | Traffic::Pareto { .. } => None,
        }
    }

    /// Threads that the run takes.
    pub fn threads(&self) -> usize {
        match &self.run {
            Run::Whole(_) => 1,
            Run::Split(..) => 2,
        }
    }

    /// Shows every packet that crosses link number `link` to `watch`.
    pub fn tap(&mut self, link: usize, watch: impl FnMut(&Seen) + Send + 'static) {
        let tap = Tap { link, watch: Box::new(watch) };
        match &mut self.run {
            Run::Whole(whole) => whole.set_tap(tap),
            Run::Split(halves, split) => {
                // Packets are seen where they arrive.
                halves[split.beyond_link(&self.network, link)].set_tap(tap);
            }
        }
    }

    /// Runs to the end.
    pub fn run(&mut self) {
        while !self.run_for(u64::MAX) {}
    }

    /// Runs for about this many events; true when the end is reached.
    pub fn run_for(&mut self, events: u64) -> bool {
        match &mut self.run {
            Run::Whole(whole) => whole.run_for(events, u64::MAX),
            Run::Split(halves, _) => {
                let [first, second] = &mut **halves;
                let windows = (events / first.events_in_window()).max(1);
                std::thread::scope(|scope| {
                    scope.spawn(|| second.run_beside(windows));
                    first.run_beside(windows)
                })
            }
        }
    }

    /// The fraction of simulated time that has passed.
    pub fn progress(&self) -> f64 {
        match &self.run {
            Run::Whole(whole) => whole.progress(),
            Run::Split(halves, _) => halves[0].progress(),
        }
    }

    /// The records of a run that has reached its end.
    pub fn finish(self) -> Records {
        match self.run {
            Run::Whole(whole) => whole.finish(),
            Run::Split(halves, split) => {
                let [first, second] = *halves;
                merge(&self.network, &split, [first.finish(), second.finish()])
            }
        }
    }
}

/// The records of both halves in one: each end of a flow and each link from where it is.
fn merge(network: &Network, split: &Split, mut halves: [Records; 2]) -> Records {
    let mut merged = Records {
        time: std::mem::take(&mut halves[0].time),
        packets: halves[0].packets + halves[1].packets,
        events: halves[0].events + halves[1].events,
        ..Records::default()
    };
    for (index, flow) in network.flows.iter().enumerate() {
        let [source, sink] = split.of_path(network, &flow.path);
        let mut record = std::mem::take(&mut halves[source].flows[index]);
        let other = std::mem::take(&mut halves[1 - source].flows[index]);
        record.packets_lost += other.packets_lost;
        if source != sink {
            record.packets_delivered = other.packets_delivered;
            record.packets_marked = other.packets_marked;
            record.series.delivered = other.series.delivered;
        }
        merged.flows.push(record);
    }
    for link in 0..network.links.len() {
        let half = &mut halves[split.of_link(link)];
        merged.links.push(std::mem::take(&mut half.links[link]));
    }
    merged
}
