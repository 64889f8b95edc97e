//! The controllers of a run in the kernel, and what their programs tell.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use cwnd::{Cut, Packets, Rate, Signal, Time};

use super::meter::Told;
use super::plan::{Kernel, Plan, Protocol};
use crate::bpf::event::{Event, Kind, packets, per_second};
use crate::bpf::{Error, Trace, UnpinnedController, monotonic};

/// A controller that was loaded for the run.
struct Loaded {
    held: UnpinnedController,
    trace: Trace,
    paced: bool,
}

/// By specification.
pub(super) struct Traced {
    loaded: HashMap<String, Loaded>,
    events: Vec<Event>,
}

impl Traced {
    /// Loads those that the plan asks for, each once.
    pub(super) fn load(plan: &Plan) -> Result<Self, Error> {
        let mut loaded = HashMap::new();
        for flow in &plan.flows {
            let Protocol::Tcp(options) = &flow.protocol else { continue };
            let Kernel::Law { spec, paced } = &options.controller else { continue };
            if let Entry::Vacant(place) = loaded.entry(spec.to_string()) {
                let held = UnpinnedController::load(spec)?;
                let trace = held.trace()?;
                place.insert(Loaded { held, trace, paced: *paced });
            }
        }
        Ok(Traced { loaded, events: Vec::new() })
    }

    /// What the kernel calls a controller.
    pub(super) fn name<'a>(&'a self, controller: &'a Kernel) -> &'a str {
        match controller {
            Kernel::Own(name) => name,
            Kernel::Law { spec, .. } => {
                self.loaded.get(&spec.to_string()).map_or("", |loaded| loaded.held.name())
            }
        }
    }

    /// Reads what has happened since; `now` is the time.
    pub(super) fn read(
        &mut self,
        now: Time,
        mut tell: impl FnMut([u8; 4], Told),
    ) -> Result<(), Error> {
        let clock = monotonic()?;
        for Loaded { trace, paced, .. } in self.loaded.values_mut() {
            self.events.clear();
            trace.read(Duration::ZERO, &mut self.events)?;
            for event in &self.events {
                let ago = clock.saturating_sub(event.time);
                let at = Time::from_nanos(now.as_nanos().saturating_sub(ago));
                of(event, at, *paced, |told| tell(event.peer, told));
            }
        }
        Ok(())
    }

    /// Events that nobody read in time.
    pub(super) fn missed(&self) -> Result<u64, Error> {
        self.loaded.values().map(|loaded| loaded.trace.missed()).sum()
    }
}

/// What an event tells.
fn of(event: &Event, at: Time, paced: bool, mut tell: impl FnMut(Told)) {
    let timeout = event.kind == Kind::Timeout;
    match event.kind {
        Kind::Acked | Kind::Report if event.rtt > 0 => {
            tell(Told::Rtt(at, f64::from(event.rtt) * 1e-6));
        }
        Kind::Cut | Kind::Timeout => {
            if timeout && !paced {
                tell(Told::Again);
            }
            let why = if timeout { Signal::Timeout } else { Signal::Loss };
            let values = [event.before, event.after];
            tell(Told::Cut(
                at,
                if paced {
                    let [before, after] = values.map(|q24| Rate::per_sec(per_second(q24)));
                    Cut::rate(why, before, after)
                } else {
                    let [before, after] = values.map(|q40| Packets::new(packets(q40)));
                    Cut::window(why, before, after)
                },
            ));
        }
        _ => {}
    }
    if paced && matches!(event.kind, Kind::Tick | Kind::Start | Kind::Cut | Kind::Timeout) {
        tell(Told::Rate(per_second(event.after)));
    }
}
