//! Controllers that a run loads into the kernel, and their events.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use cwnd::Time;

use super::flow_config::{FlowConfig, Protocol, TcpController};
use super::measurement::FlowEvent;
use crate::bpf::event::{Event, Kind, per_second};
use crate::bpf::{Error, Trace, UnpinnedController, monotonic};

/// A controller that was loaded for the run.
struct Loaded {
    controller: UnpinnedController,
    trace: Trace,
    paced: bool,
}

/// The loaded controllers by specification.
pub(super) struct KernelControllers {
    loaded: HashMap<String, Loaded>,
    events: Vec<Event>,
}

impl KernelControllers {
    /// Loads each controller of the flows once.
    pub(super) fn load(flows: &[FlowConfig]) -> Result<Self, Error> {
        let mut loaded = HashMap::new();
        for flow in flows {
            let Protocol::Tcp(options) = &flow.protocol else { continue };
            let TcpController::Law { spec, paced } = &options.controller else { continue };
            if let Entry::Vacant(entry) = loaded.entry(spec.to_string()) {
                let controller = UnpinnedController::load(spec)?;
                let trace = controller.trace()?;
                entry.insert(Loaded { controller, trace, paced: *paced });
            }
        }
        Ok(KernelControllers { loaded, events: Vec::new() })
    }

    /// Returns the name of a controller in the kernel.
    pub(super) fn name<'a>(&'a self, controller: &'a TcpController) -> &'a str {
        match controller {
            TcpController::BuiltIn(name) => name,
            TcpController::Law { spec, .. } => {
                self.loaded.get(&spec.to_string()).map_or("", |loaded| loaded.controller.name())
            }
        }
    }

    /// Passes the events since the last call to `add_event`, with the address of the sink. `now` is
    /// the time of the links.
    pub(super) fn read(
        &mut self,
        now: Time,
        mut add_event: impl FnMut([u8; 4], FlowEvent),
    ) -> Result<(), Error> {
        let clock = monotonic()?;
        for Loaded { trace, paced, .. } in self.loaded.values_mut() {
            self.events.clear();
            trace.read(Duration::ZERO, &mut self.events)?;
            for event in &self.events {
                let ago = clock.saturating_sub(event.time);
                let at = Time::from_nanos(now.as_nanos().saturating_sub(ago));
                add_flow_events(event, at, *paced, |flow_event| add_event(event.peer, flow_event));
            }
        }
        Ok(())
    }

    /// Returns the number of events that were not read in time.
    pub(super) fn missed(&self) -> Result<u64, Error> {
        self.loaded.values().map(|loaded| loaded.trace.missed()).sum()
    }
}

/// Converts an event of the kernel to events of a flow.
fn add_flow_events(event: &Event, at: Time, paced: bool, mut add_event: impl FnMut(FlowEvent)) {
    if event.rtt > 0 && matches!(event.kind, Kind::Acked | Kind::Report) {
        add_event(FlowEvent::Rtt(at, f64::from(event.rtt) * 1e-6));
    }
    if event.replaces_cut(paced) {
        add_event(FlowEvent::CutReplaced);
    }
    if let Some(cut) = event.cut(paced) {
        add_event(FlowEvent::Cut(at, cut));
    }
    if let Some(whole) = &event.whole {
        add_event(FlowEvent::Rate(per_second(whole.pace)));
    }
    if let Some(rate) = event.new_rate().filter(|_| paced) {
        add_event(FlowEvent::Rate(rate));
    }
}
