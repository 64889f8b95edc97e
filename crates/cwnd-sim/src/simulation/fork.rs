//! Copies of a run in progress, which continue independently.
//!
//! All state of a run is its own: a copy shares the network only, which does not change. Nodes may
//! be ahead of the clock, and links know departures in advance. A run that is to be changed at some
//! time must therefore stop before anything of that time is determined ([`Net::reach`]).

use super::{FlowState, Simulation};
use crate::flows::Specs;
use crate::network::{Flow, Traffic, custom_name};
use cwnd::Time;

/// Events of the first and the shortest step towards a time.
const FIRST_STEP: u64 = 1 << 16;
const LAST_STEP: u64 = 1 << 8;

/// Why a run cannot be copied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForkError {
    /// A tap sees each packet once.
    #[error("a run whose packets are captured cannot be forked")]
    Tapped,
    /// The state of a flow cannot be copied.
    #[error("flow {flow}: the state of {what} cannot be copied")]
    Flow {
        /// The flow's name.
        flow: String,
        /// Its protocol, or the name of its controller.
        what: String,
    },
}

impl FlowState {
    fn fork(&self, flow: &Flow) -> Result<Self, ForkError> {
        let spec = match &*flow.traffic {
            Traffic::Tcp(tcp) => tcp.controller.as_str(),
            Traffic::Udt(udt) => &udt.controller,
            Traffic::Quic(_) | Traffic::Cbr { .. } | Traffic::Pareto { .. } => "",
        };
        let refuse = |what: &str| ForkError::Flow { flow: flow.name.clone(), what: what.into() };
        let endpoint = match &self.endpoint {
            None => None,
            // A controller of another crate may share state with its copies.
            Some(_) if custom_name(spec).is_some() => return Err(refuse(spec)),
            Some(endpoint) => Some(endpoint.fork().ok_or_else(|| refuse("a QUIC connection"))?),
        };
        let (samples, base) = (self.samples.clone(), self.base);
        let FlowState { settings, started, finished, sent_before, .. } = *self;
        Ok(FlowState { endpoint, settings, started, finished, samples, sent_before, base })
    }
}

impl Simulation {
    /// Returns a copy of the run. Both continue independently, and have the results of a run that
    /// was not copied.
    ///
    /// ```
    /// use cwnd_sim::scenario::Scenario;
    /// use cwnd_sim::{Options, Simulation};
    /// use cwnd::{Dur, Time};
    ///
    /// let text = r#"
    ///     duration = "4s"
    ///     dumbbell = { rate = "10mbit", delay = "10ms", queue = "20p" }
    ///     flow = [{ controller = "cubic" }, { controller = "reno" }]
    /// "#;
    /// let network = Scenario::from_toml(text, "fork.toml").unwrap().network(1).unwrap();
    /// let mut one = Simulation::new(&network, 1, &Options::default())?;
    /// one.run_until(Time::ZERO + Dur::from_secs(2.0))?;
    /// let mut other = one.fork()?;
    /// one.run();
    /// other.run();
    /// assert_eq!(one.finish().links, other.finish().links);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A run with a [tap](Self::tap), with a QUIC connection, or with a controller that is not in
    /// the registry.
    pub fn fork(&self) -> Result<Self, ForkError> {
        if self.net.is_tapped() {
            return Err(ForkError::Tapped);
        }
        let flow = |(number, state): (usize, &FlowState)| {
            state.fork(&self.network.flows[self.net.order.index(number)])
        };
        Ok(Simulation {
            network: self.network.clone(),
            net: self.net.clone(),
            flows: self.flows.iter().enumerate().map(flow).collect::<Result<_, _>>()?,
            hops: self.hops.clone(),
            next_start: self.next_start,
            seed: self.seed,
            specs: Specs::default(),
            record_events: self.record_events,
            replacements: self.replacements.clone(),
            changed: self.changed,
            records: self.records.clone(),
        })
    }

    /// Runs as far towards `at` as nothing of this time or later is determined, at the most to the
    /// last event before: about a round-trip time and a full queue before `at`.
    ///
    /// # Errors
    /// A run that cannot be [copied](Self::fork): it stops where it is.
    pub fn run_until(&mut self, at: Time) -> Result<(), ForkError> {
        let at = self.net.clock.ticks(at.as_nanos());
        let mut step = FIRST_STEP;
        while step >= LAST_STEP {
            let mut ahead = self.fork()?;
            if !ahead.run_for(step) && ahead.net.reach() < at {
                *self = ahead;
            } else {
                step /= 4;
            }
        }
        Ok(())
    }
}
