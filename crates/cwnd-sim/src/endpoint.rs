//! The source and the sink of a flow.

use crate::driver::Driver;
use crate::engine::clock::Clock;
use crate::engine::net::SINK;
use crate::network::{Conventions, Flow, Tcp, Traffic};
use crate::paced::{PacedReceiver, PacedSender};
use crate::record::FlowRecord;
use crate::scenario::custom_name;
use crate::simulation::{Options, SimulationError};
use crate::tcp::sender::Place;
use crate::tcp::{self, Ns2, Receiver, Rfc, Sender};
use crate::traffic::Source;
use crate::udt::UdtFlow;
use cwnd::registry::Spec;
use cwnd::{AnyController, Controller, MakeController, Packets, Settings};
use std::sync::Arc;

pub(crate) enum Endpoint {
    /// The flow has not started.
    Waiting,
    Tcp(Box<(Sender<Rfc>, Receiver)>),
    Ns2Tcp(Box<(Sender<Ns2>, Receiver)>),
    Paced(Box<(PacedSender, PacedReceiver)>),
    Udt(Box<UdtFlow>),
    Source(Box<Source>),
}

impl Endpoint {
    /// Creates the endpoints of a flow. `back` is the first hop of the return route.
    pub(crate) fn new(
        flow: &Flow,
        place: Place,
        back: u32,
        seed: u64,
        options: &Options,
        specs: &mut Specs,
    ) -> Result<Self, SimulationError> {
        let tcp = match &flow.traffic {
            Traffic::Tcp(tcp) => tcp,
            Traffic::Udt(udt) => {
                let make = find(flow, &udt.controller, options)?;
                let made =
                    UdtFlow::new(udt, make, place, back, (seed, flow.start), options.record_events);
                return Ok(Endpoint::Udt(Box::new(made)));
            }
            Traffic::Cbr { .. } | Traffic::Pareto { .. } => {
                let source = Source::new(&flow.traffic, place, seed);
                return Ok(Endpoint::Source(Box::new(source.expect("an open-loop source"))));
            }
        };
        let settings = settings(tcp, seed, place.flow as usize);
        let controller = specs.controller(flow, tcp, settings, options)?;
        let clock = place.clock;
        let driver = Driver::new(clock, controller, options.record_events);
        Ok(if driver.controller.needs().reports {
            let sender = PacedSender::new(tcp, driver, place);
            let receiver = PacedReceiver::new(tcp, clock, back, place.timer + SINK);
            Endpoint::Paced(Box::new((sender, receiver)))
        } else {
            let receiver = Receiver::new(tcp, clock, back, place.timer + SINK);
            if tcp.conventions == Conventions::Rfc {
                Endpoint::Tcp(Box::new((Sender::new(tcp, driver, place, seed), receiver)))
            } else {
                Endpoint::Ns2Tcp(Box::new((Sender::new(tcp, driver, place, seed), receiver)))
            }
        })
    }

    /// Data packets delivered in order since the start of the flow.
    pub(crate) fn delivered(&self) -> u64 {
        match self {
            Endpoint::Tcp(tcp) => tcp.1.delivered(),
            Endpoint::Ns2Tcp(tcp) => tcp.1.delivered(),
            Endpoint::Paced(paced) => u64::from(paced.1.in_order()),
            Endpoint::Udt(udt) => udt.delivered(),
            Endpoint::Source(source) => source.arrived,
            Endpoint::Waiting => 0,
        }
    }

    /// CE-marked data packets received since the end of the warm-up.
    pub(crate) fn marked(&self) -> u64 {
        match self {
            Endpoint::Tcp(tcp) => tcp.1.marked,
            Endpoint::Ns2Tcp(tcp) => tcp.1.marked,
            Endpoint::Waiting | Endpoint::Paced(_) | Endpoint::Udt(_) | Endpoint::Source(_) => 0,
        }
    }

    /// Returns the driver of the controller; open-loop sources have none.
    fn driver(&self) -> Option<&Driver> {
        match self {
            Endpoint::Tcp(tcp) => Some(tcp.0.driver()),
            Endpoint::Ns2Tcp(tcp) => Some(tcp.0.driver()),
            Endpoint::Paced(paced) => Some(&paced.0.driver),
            Endpoint::Udt(udt) => Some(&udt.driver),
            Endpoint::Waiting | Endpoint::Source(_) => None,
        }
    }

    pub(crate) fn total_sent(&self) -> u64 {
        match self {
            Endpoint::Source(source) => source.sent,
            _ => self.driver().map_or(0, |driver| driver.packets_sent),
        }
    }

    pub(crate) fn reset(&mut self, now: u64) {
        let driver = match self {
            Endpoint::Tcp(tcp) => {
                tcp.1.marked = 0;
                tcp.0.driver_mut()
            }
            Endpoint::Ns2Tcp(tcp) => {
                tcp.1.marked = 0;
                tcp.0.driver_mut()
            }
            Endpoint::Paced(paced) => &mut paced.0.driver,
            Endpoint::Udt(udt) => return udt.reset(now),
            Endpoint::Source(source) => {
                source.base = source.sent;
                return;
            }
            Endpoint::Waiting => return,
        };
        driver.reset(now);
    }

    /// Emits the sampled variables of the source: packets sent and, with a controller, the window, the round-trip time
    /// and the controller's own variables.
    pub(crate) fn look(&self, clock: Clock, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("sent", self.total_sent() as f64);
        let Some(driver) = self.driver() else { return };
        let rtt = driver.last_rtt;
        let controller = match self {
            Endpoint::Udt(udt) => udt.controller(),
            _ => &driver.controller,
        };
        emit("window", controller.output().window.get());
        emit("rtt", if rtt == 0 { f64::NAN } else { clock.seconds(rtt) });
        controller.gauges(emit);
    }

    pub(crate) fn finish(self, end: u64, clock: Clock, record: &mut FlowRecord) {
        let mut driver = match self {
            Endpoint::Tcp(tcp) => tcp.0.into_driver(),
            Endpoint::Ns2Tcp(tcp) => tcp.0.into_driver(),
            Endpoint::Paced(paced) => paced.0.driver,
            Endpoint::Udt(udt) => udt.into_driver(),
            Endpoint::Source(source) => {
                record.packets_sent = source.sent - source.base;
                (record.mean_rtt, record.min_rtt, record.completed) =
                    (f64::NAN, f64::NAN, f64::NAN);
                return;
            }
            Endpoint::Waiting => return,
        };
        driver.settle(end);
        record.packets_sent = driver.sent();
        record.cuts = std::mem::take(&mut driver.cuts);
        record.events = driver.events.take().map(|events| *events);
        let counters = driver.counters;
        let seconds = |ticks: u64| if ticks == u64::MAX { f64::NAN } else { clock.seconds(ticks) };
        record.retransmissions = counters.retransmitted;
        record.timeouts = u64::from(counters.timeouts);
        record.ecn_cuts = u64::from(counters.mark_cuts);
        record.limited = counters.limited.map(|ticks| clock.seconds(ticks));
        record.mean_rtt = clock.seconds(counters.rtt_sum) / f64::from(counters.rtt_count);
        record.min_rtt = seconds(driver.min_rtt);
        record.completed = seconds(driver.completed);
    }
}

/// Returns the settings of flow `index`'s controller. Each flow has its own random seed.
pub(crate) fn settings(tcp: &Tcp, seed: u64, index: usize) -> Settings {
    let mut settings = Settings::default();
    settings.packet = tcp.packet;
    settings.initial_window = Packets::new(f64::from(tcp.initial_window));
    settings.max_window = Packets::new(f64::from(tcp.window));
    settings.seed = crate::rng::Rng::new(seed, "law", index as u64).bits();
    if tcp.conventions != Conventions::Rfc {
        settings.conventions = &tcp::ns2::CONVENTIONS;
    }
    settings
}

/// A flow that has not started.
pub(crate) struct Prospect {
    /// [`Endpoint::Waiting`], unless the controller is a custom one, which is created in advance.
    pub endpoint: Endpoint,
    /// Whether the endpoints act only on packets and their own timers.
    pub prompt: bool,
    /// Size of a data packet in bytes, for a paced flow.
    pub paced: Option<u64>,
}

/// The kind of sender that a controller requires.
#[derive(Clone, Copy)]
struct SenderKind {
    /// A paced sender with receiver reports.
    paced: bool,
    /// A TCP sender that acts only on acknowledgements and its retransmission timer.
    prompt: bool,
}

impl SenderKind {
    fn of(controller: &AnyController) -> Self {
        let paced = controller.needs().reports;
        SenderKind { paced, prompt: !paced && !tcp::demands::demanding(controller) }
    }
}

/// Validates flows and their controllers before the run.
#[derive(Default)]
pub(crate) struct Prospects<'a> {
    /// The last controller and its kind of sender, cached because flows of a group share a controller.
    last: Option<(&'a str, SenderKind)>,
    pub(crate) specs: Specs,
}

impl<'a> Prospects<'a> {
    /// Validates a flow.
    ///
    /// # Errors
    /// If the flow's controller is unknown.
    pub(crate) fn add(
        &mut self,
        flow: &'a Flow,
        place: Place,
        back: u32,
        seed: u64,
        options: &Options,
    ) -> Result<Prospect, SimulationError> {
        let waits = Prospect { endpoint: Endpoint::Waiting, prompt: false, paced: None };
        let tcp = match &flow.traffic {
            Traffic::Tcp(tcp) => tcp,
            Traffic::Udt(udt) if custom_name(&udt.controller).is_some() => {
                let endpoint = Endpoint::new(flow, place, back, seed, options, &mut self.specs)?;
                return Ok(Prospect { endpoint, ..waits });
            }
            Traffic::Udt(udt) => {
                find(flow, &udt.controller, options)?;
                return Ok(waits);
            }
            Traffic::Cbr { .. } | Traffic::Pareto { .. } => {
                return Ok(Prospect { prompt: true, ..waits });
            }
        };
        if custom_name(&tcp.controller).is_some() {
            // `options.custom` is only available now.
            let endpoint = Endpoint::new(flow, place, back, seed, options, &mut self.specs)?;
            let prompt = match &endpoint {
                Endpoint::Tcp(tcp) => tcp.0.is_prompt(),
                Endpoint::Ns2Tcp(tcp) => tcp.0.is_prompt(),
                _ => false,
            };
            return Ok(Prospect { endpoint, prompt, paced: None });
        }
        let (_, kind) = match self.last {
            Some(known) if known.0 == tcp.controller => known,
            _ => {
                let made = self.specs.controller(flow, tcp, settings(tcp, seed, 0), options)?;
                (tcp.controller.as_str(), SenderKind::of(&made))
            }
        };
        self.last = Some((&tcp.controller, kind));
        let prompt = kind.prompt && tcp.overhead.is_zero();
        let paced = kind.paced.then_some(u64::from(tcp.packet + tcp.header));
        Ok(Prospect { endpoint: Endpoint::Waiting, prompt, paced })
    }
}

/// Returns the error for a flow's invalid controller.
fn refuse(flow: &Flow, message: impl ToString) -> SimulationError {
    SimulationError::Controller { flow: flow.name.clone(), message: message.to_string() }
}

/// Caches the last specification: the flows of a group share one, and short flows are many.
#[derive(Default)]
pub(crate) struct Specs {
    last: Option<(String, Spec)>,
}

impl Specs {
    /// Creates the controller of a TCP or paced flow.
    fn controller(
        &mut self,
        flow: &Flow,
        tcp: &Tcp,
        settings: Settings,
        options: &Options,
    ) -> Result<AnyController, SimulationError> {
        if let Some((text, spec)) = &self.last
            && *text == tcp.controller
        {
            return Ok(spec.controller(&settings));
        }
        if custom_name(&tcp.controller).is_some() {
            return Ok(find(flow, &tcp.controller, options)?.controller(&settings));
        }
        let spec = Spec::parse(&tcp.controller).map_err(|error| refuse(flow, error))?;
        self.last = Some((tcp.controller.clone(), spec));
        Ok(spec.controller(&settings))
    }
}

/// Returns the factory of a flow's controllers.
fn find(
    flow: &Flow,
    spec: &str,
    options: &Options,
) -> Result<Arc<dyn MakeController>, SimulationError> {
    if custom_name(spec).is_some() {
        let found = options.custom.and_then(|custom| custom(spec));
        return found.ok_or_else(|| refuse(flow, format!("there is no controller {spec}")));
    }
    Ok(Arc::new(Spec::parse(spec).map_err(|error| refuse(flow, error))?))
}
