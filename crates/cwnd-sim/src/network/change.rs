//! What of a network can change during a run.

use super::{Change, Flow, Impairments, Link, Network, Tcp, Traffic, custom_name, simulated};
use cwnd::{Dur, MakeController, Settings, Time};
use std::sync::Arc;

/// A run that becomes that of another network.
pub(crate) struct Changes {
    /// The network with the changes of its links, and the flows of the other one.
    pub network: Network,
    /// The links that change.
    pub links: Vec<usize>,
    /// The flows that change.
    pub flows: Vec<usize>,
}

impl Network {
    /// Returns the changes by which a run of this network becomes one of `other` at `at`.
    ///
    /// # Errors
    /// What cannot change, and what can.
    pub(crate) fn changes_to(&self, other: &Network, at: Dur) -> Result<Changes, String> {
        let same_size =
            self.links.len() == other.links.len() && self.flows.len() == other.flows.len();
        let times = |network: &Network| (network.duration, network.warmup, network.sample);
        if !same_size || self.nodes.len() != other.nodes.len() || times(self) != times(other) {
            return Err("the number of links and flows and the times of a run cannot change".into());
        }
        let mut changes = Changes { network: self.clone(), links: Vec::new(), flows: Vec::new() };
        for (index, (link, other)) in changes.network.links.iter_mut().zip(&other.links).enumerate()
        {
            if link.change_to(other, at)? {
                changes.links.push(index);
            }
        }
        for (index, (flow, other)) in changes.network.flows.iter_mut().zip(&other.flows).enumerate()
        {
            if *flow != (Flow { name: flow.name.clone(), ..other.clone() }) {
                flow.check_change(other, Time::ZERO + at)?;
                *flow = Flow { name: flow.name.clone(), ..other.clone() };
                changes.flows.push(index);
            }
        }
        changes.network.validate().map_err(|error| error.to_string())?;
        Ok(changes)
    }
}

impl Link {
    /// Rate, delay and loss at the end of the run, as far as runs change them.
    fn current(&self) -> (Option<f64>, Dur, f64) {
        let mut current = (self.rate, self.delay, self.loss);
        for change in self.impairments.iter().flat_map(|own| &own.altered) {
            current.0 = change.rate.or(current.0);
            current.1 = change.delay.unwrap_or(current.1);
            current.2 = change.loss.unwrap_or(current.2);
        }
        current
    }

    /// Makes the link another one from `at` on. Returns whether it changes.
    fn change_to(&mut self, other: &Link, at: Dur) -> Result<bool, String> {
        let (before, after) = (self.current(), other.current());
        let base = Link {
            name: self.name.clone(),
            rate: self.rate,
            delay: self.delay,
            loss: self.loss,
            ..other.clone()
        };
        let own = self.impairments.as_deref().cloned().unwrap_or_default();
        let unaltered = Link { impairments: None, ..self.clone() };
        let others = other.impairments.as_deref().cloned().unwrap_or_default();
        let same_impairments = Impairments { altered: Vec::new(), ..own.clone() }
            == Impairments { altered: Vec::new(), ..others };
        // The size of a queue may follow from the rate. As with `changes`, it stays that of the
        // beginning.
        let altered = before != after || !own.altered.is_empty();
        let queue = if altered { self.queue } else { base.queue };
        if unaltered != (Link { impairments: None, queue, ..base }) || !same_impairments {
            let name = &self.name;
            return Err(format!("link {name}: only its rate, delay and loss can change in a run"));
        }
        if before == after {
            return Ok(false);
        }
        if before.0.is_none() != after.0.is_none() {
            return Err(format!("link {}: its rate stays finite, or infinite", self.name));
        }
        if after.1.is_zero() && before.1 != after.1 {
            return Err(format!("link {}: its delay stays above 0", self.name));
        }
        let change = Change {
            at,
            over: Dur::ZERO,
            rate: after.0.filter(|_| before.0 != after.0),
            delay: (before.1 != after.1).then_some(after.1),
            loss: (before.2 != after.2).then_some(after.2),
        };
        let mut own = own;
        own.altered.push(change);
        self.impairments = Some(Arc::new(own));
        Ok(true)
    }
}

impl Flow {
    /// Checks that the flow can become `other` at `at`.
    fn check_change(&self, other: &Flow, at: Time) -> Result<(), String> {
        let refuse = |what: &str| Err(format!("flow {}: {what}", self.name));
        let (before, after) = (self.tcp_controller(), other.tcp_controller());
        let traffic = other.traffic.with_controller(before.unwrap_or_default()).into();
        if *self
            != (Flow {
                name: self.name.clone(),
                start: self.start,
                stop: self.stop,
                traffic,
                ..other.clone()
            })
        {
            return refuse(
                "only its start, its stop and the controller of TCP can change in a run",
            );
        }
        if let (true, Some(what)) = (self.start != other.start, self.connected_in_advance()) {
            return refuse(&format!("the start of {what} cannot change in a run"));
        }
        if self.start != other.start && (self.start < at || other.start < at) {
            return refuse("it has started, or would have started before the change");
        }
        if self.stop != other.stop && (self.stop < at || other.stop < at) {
            return refuse("it has stopped, or would have stopped before the change");
        }
        match (before, after) {
            (Some(before), Some(after)) if before != after => {
                check_laws(before, after).or_else(|message| refuse(&message))
            }
            _ => Ok(()),
        }
    }

    /// What the flow is if its connection has the time of its start from the beginning of a run.
    fn connected_in_advance(&self) -> Option<String> {
        match &*self.traffic {
            Traffic::Quic(_) => Some("QUIC".into()),
            Traffic::Udt(udt) => {
                custom_name(&udt.controller).map(|_| format!("{} over UDT", udt.controller))
            }
            _ => None,
        }
    }

    /// The specification of the controller of a TCP flow.
    pub(crate) fn tcp_controller(&self) -> Option<&str> {
        match &*self.traffic {
            Traffic::Tcp(tcp) => Some(&tcp.controller),
            _ => None,
        }
    }
}

impl Traffic {
    /// The source with another controller, if it is TCP.
    fn with_controller(&self, controller: &str) -> Traffic {
        match self {
            Traffic::Tcp(tcp) => Traffic::Tcp(Tcp { controller: controller.into(), ..tcp.clone() }),
            other => other.clone(),
        }
    }
}

/// Checks that the law of a controller can take the place of another one.
fn check_laws(before: &str, after: &str) -> Result<(), String> {
    let made = |text: &str| Some(simulated(text).ok()?.controller(&Settings::default()));
    let replaced = made(before).zip(made(after));
    if replaced.is_some_and(|(mut law, other)| law.replace_law(Time::ZERO, other)) {
        return Ok(());
    }
    Err(format!(
        "{before} cannot become {after} in a run: a law of the registry or in a file can become one \
         of the same kind with the same needs and the same pacing"
    ))
}
