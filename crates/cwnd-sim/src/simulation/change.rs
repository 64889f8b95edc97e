//! Changes of a run at a time: it becomes a run of another network.

use super::{FlowState, Simulation};
use crate::engine::net::{LIFE, TIMERS};
use crate::network::{Flow, Network, Traffic};
use crate::options::{Options, SimulationError};
use cwnd::Time;
use std::sync::Arc;

/// Why a run cannot become that of another network.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChangeError {
    /// The network cannot be simulated.
    #[error(transparent)]
    Invalid(#[from] SimulationError),
    /// The run is too far.
    #[error("what happens at {at} s is determined already: run_until stops before it")]
    Late {
        /// The time of the change in seconds.
        at: f64,
    },
    /// The run has a later change.
    #[error("a change at {at} s is before one at {later} s, which the run has")]
    Disordered {
        /// The time of the change in seconds.
        at: f64,
        /// The time of the later one in seconds.
        later: f64,
    },
    /// The networks differ in what cannot change; what can.
    #[error("{0}")]
    Refused(String),
}

/// A law that another one replaces.
#[derive(Clone)]
pub(super) struct Replacement {
    at: u64,
    flow: usize,
    /// The traffic before, for a flow that starts before the change.
    before: Arc<Traffic>,
}

impl Simulation {
    /// Makes the run one of `network` from `at` on, which is not before an earlier call's `at`. Up to this time its results are those of the
    /// run without the change. The networks may differ in
    ///
    /// * rate, delay and independent loss of links where they are constant. A queue keeps its size,
    ///   also if that follows from the rate.
    /// * controllers of TCP flows. A law continues with the window or the rate of one of the same
    ///   kind with the same needs; samples keep the variables of the first one.
    /// * starts and stops of flows from `at` on.
    ///
    /// A change of a [copy](Self::fork) has the results of the same change of a run that has just
    /// begun.
    ///
    /// # Errors
    /// A network that differs in more, and a run in which something at `at` is determined already:
    /// [`run_until`](Self::run_until) stops before.
    pub fn change(
        &mut self,
        at: Time,
        network: impl Into<Arc<Network>>,
    ) -> Result<(), ChangeError> {
        let network = network.into();
        network.validate().map_err(SimulationError::from)?;
        let ticks = self.net.clock.ticks(at.as_nanos());
        let begun = self.records.events > 0;
        if begun && self.net.reach() >= ticks || ticks >= self.net.observations.end() {
            return Err(ChangeError::Late { at: at.as_secs() });
        }
        if at < self.changed {
            let [at, later] = [at, self.changed].map(Time::as_secs);
            return Err(ChangeError::Disordered { at, later });
        }
        let changes = self.network.changes_to(&network, at.since(Time::ZERO));
        let changes = changes.map_err(ChangeError::Refused)?;
        for &link in &changes.links {
            self.net.links[link].change(&changes.network.links[link], link, self.seed);
        }
        self.changed = at;
        let before = std::mem::replace(&mut self.network, Arc::new(changes.network));
        for index in changes.flows {
            self.change_flow(ticks, index, &before.flows[index]);
        }
        Ok(())
    }

    /// The network of the run, with its changes.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Changes flow `index` of the network, which was `before`.
    fn change_flow(&mut self, at: u64, index: usize, before: &Flow) {
        let network = self.network.clone();
        let (flow, number) = (&network.flows[index], self.net.order.number(index));
        let timer = TIMERS * number + LIFE;
        let [start, stop] = [flow.start, flow.stop].map(|at| self.net.clock.ticks(at.as_nanos()));
        if flow.start != before.start {
            self.arm_all_starts();
        }
        if start < at && flow.tcp_controller() != before.tcp_controller() {
            let before = before.traffic.clone();
            self.replacements.push(Replacement { at, flow: number, before });
        }
        if self.flows[number].started {
            if flow.stop != before.stop {
                self.net.arm(timer, stop);
            }
            self.arm_replacements(number);
        }
    }

    /// Arms the timers of all flows that have not started: their starts are no longer in the order
    /// of their numbers.
    fn arm_all_starts(&mut self) {
        for flow in 0..self.flows.len() {
            if !self.flows[flow].started {
                let start = self.network.flows[self.net.order.index(flow)].start;
                self.net.arm(TIMERS * flow + LIFE, self.net.clock.ticks(start.as_nanos()));
            }
        }
        self.next_start = self.flows.len();
    }

    /// Arms the timer of a flow for the replacements of its law.
    fn arm_replacements(&mut self, flow: usize) {
        for change in self.replacements.iter().filter(|change| change.flow == flow) {
            self.net.arm(TIMERS * flow + LIFE, change.at);
        }
    }

    /// The flow as it is at its start, if its law changes later.
    #[inline]
    pub(super) fn flow_at_start(&self, flow: usize) -> Option<Box<Flow>> {
        let change = self.replacements.iter().find(|change| change.flow == flow)?;
        let later = &self.network.flows[self.net.order.index(flow)];
        Some(Box::new(Flow { traffic: change.before.clone(), ..later.clone() }))
    }

    /// Replaces the law of a flow if its time has come, and arms the timer for the next time.
    #[inline]
    pub(super) fn replace_laws(&mut self, now: u64, flow: usize) {
        if !self.replacements.is_empty() {
            self.replace_due(now, flow);
        }
    }

    #[cold]
    fn replace_due(&mut self, now: u64, flow: usize) {
        let due = |change: &Replacement| change.flow == flow && change.at <= now;
        while let Some(place) = self.replacements.iter().position(due) {
            self.replacements.remove(place);
            // The next one knows the law until then.
            let later = self.replacements.iter().find(|change| change.flow == flow);
            let index = self.net.order.index(flow);
            let traffic = later.map_or(&self.network.flows[index].traffic, |later| &later.before);
            let Traffic::Tcp(tcp) = &**traffic else { continue };
            let settings = crate::flows::settings(tcp, self.seed, index);
            let flow_spec = &self.network.flows[index];
            let made = self.specs.controller(flow_spec, tcp, settings, &Options::default());
            if let (Ok(other), FlowState { endpoint: Some(endpoint), samples, .. }) =
                (made, &mut self.flows[flow])
            {
                if let Some(samples) = samples {
                    samples.keep_names(&**endpoint, self.net.clock);
                }
                endpoint.replace_law(now, other);
            }
        }
        self.arm_replacements(flow);
    }
}
