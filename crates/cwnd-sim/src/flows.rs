//! The flows of a network: their endpoints and their controllers.

use crate::application::with_application;
use crate::datagrams::DatagramFlow;
use crate::driver::Driver;
use crate::endpoint::Endpoint;
use crate::engine::net::Place;
use crate::network::{self, Conventions, Flow, Tcp, Traffic, custom_name, own_name, simulated};
use crate::options::{Options, QuicFlow, SimulationError};
use crate::paced::PacedFlow;
use crate::packet::SOURCE;
use crate::tcp::{self, Ns2, Rfc, Selective, TcpFlow};
use crate::traffic::Source;
use crate::udt::UdtConnection;
use cwnd::registry::Spec;
use cwnd::{AnyController, Controller, MakeController, Packets, Settings, SlowStart};
use std::sync::Arc;

/// Creates the endpoints of a flow. `back` is the first hop of the return route.
pub(crate) fn create(
    flow: &Flow,
    place: Place,
    back: u32,
    seed: u64,
    options: &Options,
    specs: &mut Specs,
) -> Result<Box<dyn Endpoint>, SimulationError> {
    let with_bytes = flow.bytes.map(|bytes| flow.traffic.with_bytes(bytes));
    let tcp = match with_bytes.as_ref().unwrap_or(&flow.traffic) {
        Traffic::Tcp(tcp) => tcp,
        Traffic::Udt(udt) => {
            let make = find(flow, &udt.controller, options)?;
            let (start, events) = ((seed, flow.start), options.record_events);
            let connection = UdtConnection::new(udt, make, place.flow as usize, start, events);
            let endpoint = DatagramFlow::new(connection, flow, place, back);
            return Ok(with_application(flow, endpoint, place, seed));
        }
        Traffic::Quic(quic) => {
            let connect = options.quic.ok_or_else(|| refuse(flow, "QUIC is not available here"))?;
            let connection = connect(QuicFlow {
                quic,
                controller: match own_name(&quic.controller) {
                    Some(_) => None,
                    None => Some(find(flow, &quic.controller, options)?),
                },
                seed,
                index: place.flow as usize,
                start: flow.start,
                record_events: options.record_events,
            });
            let connection = connection.map_err(|message| refuse(flow, message))?;
            return Ok(connection.endpoint(flow, place, back, seed));
        }
        Traffic::Cbr { .. } | Traffic::Pareto { .. } => {
            let source = Source::new(&flow.traffic, place, seed);
            return Ok(Box::new(source.expect("a source without feedback")));
        }
    };
    let settings = settings(tcp, seed, place.flow as usize);
    let controller = specs.controller(flow, tcp, settings, options)?;
    let driver = Driver::new(place.clock, controller, options.record_events);
    Ok(if driver.controller.needs().reports {
        with_application(flow, PacedFlow::new(tcp, driver, place, back), place, seed)
    } else if tcp.is_extended() {
        let connection = TcpFlow::<Selective>::new(tcp, driver, place, back, seed);
        with_application(flow, connection, place, seed)
    } else if tcp.conventions == Conventions::Rfc {
        let connection = TcpFlow::<Rfc>::new(tcp, driver, place, back, seed);
        with_application(flow, connection, place, seed)
    } else {
        let connection = TcpFlow::<Ns2>::new(tcp, driver, place, back, seed);
        with_application(flow, connection, place, seed)
    })
}

/// Returns a note on a controller whose flow lacks what it needs.
pub(crate) fn note(flow: &Flow, endpoint: &dyn Endpoint) -> Option<String> {
    if !endpoint.needs().ecn {
        return None;
    }
    let (spec, lacks) = match &*flow.traffic {
        Traffic::Tcp(tcp) if !tcp.ecn => (&tcp.controller, "`ecn` of its flows is false"),
        Traffic::Udt(udt) => (&udt.controller, "UDT has none"),
        _ => return None,
    };
    Some(format!("{spec} needs ECN, and {lacks}: no mark is reported."))
}

/// `tcp_pacing_ca_ratio` and `tcp_pacing_ss_ratio` of Linux.
const LINUX_PACING: f64 = 1.2;
const LINUX_STARTUP_PACING: f64 = 2.0;

/// Returns the settings of flow `index`'s controller. Each flow has its own random seed.
pub(crate) fn settings(tcp: &Tcp, seed: u64, index: usize) -> Settings {
    let mut settings = Settings::default();
    settings.packet = tcp.packet;
    settings.initial_window = Packets::new(f64::from(tcp.initial_window));
    settings.max_window = Packets::new(f64::from(tcp.window));
    settings.seed = crate::rng::Rng::new(seed, "law", index as u64).bits();
    if tcp.conventions.is_ns2() {
        settings.conventions = &tcp::ns2::CONVENTIONS;
    } else if tcp.conventions == Conventions::Linux {
        settings.conventions = &cwnd::Conventions::LINUX;
        // An acknowledgement opens the window by all packets that it covers (`tcp_slow_start` in
        // net/ipv4/tcp_cong.c).
        settings.slow_start_limit = f64::INFINITY;
    }
    settings.slow_start = match tcp.extensions.slow_start {
        network::SlowStart::Standard => SlowStart::Standard,
        network::SlowStart::HyStart => SlowStart::HyStart,
        network::SlowStart::HyStartLinux => SlowStart::HyStartLinux,
    };
    if tcp.extensions.pacing {
        settings.pacing = Some(LINUX_PACING);
        settings.startup_pacing = LINUX_STARTUP_PACING / LINUX_PACING;
    }
    if let Some(limit) = settings.slow_start.limit(tcp.extensions.pacing) {
        settings.slow_start_limit = settings.slow_start_limit.max(limit);
    }
    settings
}

/// A flow that has not started.
pub(crate) struct PendingFlow {
    /// The endpoints, if the controller is not in the registry or the protocol is QUIC: they are
    /// available in advance only.
    pub endpoint: Option<Box<dyn Endpoint>>,
    /// Whether the source and the sink may process packets ahead of the clock.
    pub ahead: [bool; 2],
}

impl PendingFlow {
    /// Validates a flow and its controller.
    ///
    /// # Errors
    /// If the flow's controller is unknown.
    pub(crate) fn new(
        flow: &Flow,
        place: Place,
        back: u32,
        seed: u64,
        options: &Options,
        specs: &mut Specs,
    ) -> Result<Self, SimulationError> {
        let mut pending = PendingFlow { endpoint: None, ahead: [true; 2] };
        let spec = match &*flow.traffic {
            Traffic::Tcp(tcp) => &tcp.controller,
            Traffic::Udt(udt) => &udt.controller,
            Traffic::Quic(quic) => &quic.controller,
            Traffic::Cbr { .. } | Traffic::Pareto { .. } => return Ok(pending),
        };
        let mut paced = false;
        if custom_name(spec).is_some() || matches!(*flow.traffic, Traffic::Quic(_)) {
            let endpoint = create(flow, place, back, seed, options, specs)?;
            paced = endpoint.needs().reports;
            pending.endpoint = Some(endpoint);
        } else if let Traffic::Tcp(tcp) = &*flow.traffic {
            paced = specs.get(flow, tcp)?.paced;
        } else {
            find(flow, spec, options)?;
        }
        // A paced receiver reads the round-trip time of its sender, which therefore follows the
        // clock.
        pending.ahead[SOURCE] = !paced;
        Ok(pending)
    }
}

/// Returns the error for a flow's invalid controller.
fn refuse(flow: &Flow, message: impl ToString) -> SimulationError {
    SimulationError::Controller { flow: flow.name.clone(), message: message.to_string() }
}

/// Caches the last specification: the flows of a group share one, and short flows are many.
#[derive(Default)]
pub(crate) struct Specs {
    last: Option<CachedSpec>,
}

struct CachedSpec {
    text: String,
    spec: Spec,
    /// Whether the controller needs a paced sender with receiver reports.
    paced: bool,
}

impl Specs {
    /// Creates the controller of a TCP or paced flow.
    pub(crate) fn controller(
        &mut self,
        flow: &Flow,
        tcp: &Tcp,
        settings: Settings,
        options: &Options,
    ) -> Result<AnyController, SimulationError> {
        if custom_name(&tcp.controller).is_some() {
            return Ok(find(flow, &tcp.controller, options)?.controller(&settings));
        }
        Ok(self.get(flow, tcp)?.spec.controller(&settings))
    }

    fn get(&mut self, flow: &Flow, tcp: &Tcp) -> Result<&CachedSpec, SimulationError> {
        let cached = match self.last.take() {
            Some(last) if last.text == tcp.controller => last,
            _ => {
                let spec = simulated(&tcp.controller).map_err(|error| refuse(flow, error))?;
                let paced = spec.controller(&Settings::default()).needs().reports;
                CachedSpec { text: tcp.controller.clone(), spec, paced }
            }
        };
        Ok(self.last.insert(cached))
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
