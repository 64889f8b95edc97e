//! A run: endpoints on a network, from the first event to the records.

use crate::driver::{Counters, Driver};
use crate::engine::clock::Clock;
use crate::engine::net::{LIFE, Net, Next, SINK, SOURCE, TIMERS, own_links};
use crate::engine::packet::{Packet, flags};
use crate::engine::tap::{Seen, Tap};
use crate::network::{Conventions, Flow, Network, Tcp, Traffic};
use crate::paced::{PacedReceiver, PacedSender};
use crate::record::{FlowRecord, FlowSeries, LinkRecord, Records};
use crate::tcp::sender::Place;
use crate::tcp::{Receiver, Sender};
use crate::traffic::Source;
use cwnd::AnyController;
use cwnd::record::Record;
use cwnd::registry::Spec;
use cwnd::{Controller, Settings, SlowStart};

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
    /// There are more links and timers than event keys can name at this duration.
    #[error("{duration} s is too long for a network with {sources} links and timers")]
    TooLong {
        /// Seconds asked for.
        duration: f64,
        /// Links and timers.
        sources: usize,
    },
}

/// Makes a controller from its name and the machine's settings.
pub type MakeController<'a> = dyn Fn(&str, Settings) -> Option<AnyController> + 'a;

/// What a run may be told besides its network and seed.
#[derive(Default)]
pub struct Options<'a> {
    /// Makes controllers that the registry does not know: by the text after `python:` in a flow's
    /// controller.
    pub custom: Option<&'a MakeController<'a>>,
    /// Records every event told to every controller.
    pub tell: bool,
}

enum Endpoint {
    Tcp(Box<(Sender, Receiver)>),
    Paced(Box<(PacedSender, PacedReceiver)>),
    Source(Box<Source>),
}

/// A network in the middle of a run. It shares nothing: many run side by side.
pub struct Simulation {
    net: Net,
    endpoints: Vec<Endpoint>,
    flows: Vec<Flow>,
    seed: u64,
    rates: Vec<Option<f64>>,
    now: u64,
    warmup: u64,
    end: u64,
    sample: u64,
    next_sample: u64,
    /// For each flow when its source and its sink are to be sampled next: an endpoint that runs ahead
    /// of the clock is sampled as it passes.
    samples: Vec<[u64; 2]>,
    warm: bool,
    events: u64,
    /// Delivered when the measurement began.
    base: Vec<u64>,
    records: Records,
}

impl Simulation {
    /// A run of `network` with this seed.
    pub fn new(network: &Network, seed: u64, options: &Options) -> Result<Self, SimulationError> {
        let timers = TIMERS * network.flows.len();
        let (mut net, hops) =
            Net::new(network, seed, timers).ok_or_else(|| SimulationError::TooLong {
                duration: network.duration.as_secs(),
                sources: timers + network.links.len(),
            })?;
        let clock = net.clock;
        let mut endpoints = Vec::with_capacity(network.flows.len());
        let own = own_links(network);
        for (index, (flow, hops)) in network.flows.iter().zip(&hops).enumerate() {
            let place = Place { clock, flow: index as u32, hop: hops[0], timer: TIMERS * index };
            let endpoint = endpoint(flow, place, hops[1], seed, options)?;
            if endpoint.may_run_ahead() {
                net.let_run_ahead(network, index, *hops, &own);
            }
            endpoints.push(endpoint);
            net.arm(TIMERS * index + LIFE, clock.ticks(flow.start.as_nanos()));
        }
        Ok(Simulation {
            net,
            endpoints,
            seed,
            rates: network.links.iter().map(|link| link.rate).collect(),
            now: 0,
            warmup: clock.ticks(network.warmup.as_nanos()),
            end: clock.ticks(network.duration.as_nanos()),
            sample: clock.ticks(network.sample.as_nanos().max(1)),
            next_sample: 0,
            samples: vec![[0; 2]; network.flows.len()],
            warm: false,
            events: 0,
            base: vec![0; network.flows.len()],
            records: Records {
                flows: vec![FlowRecord::default(); network.flows.len()],
                links: vec![LinkRecord::default(); network.links.len()],
                ..Records::default()
            },
            flows: network.flows.clone(),
        })
    }

    /// What the controller of flow number `flow` was made with: its specification and these settings
    /// make another that answers its record bit by bit. `None` for a flow without a controller.
    pub fn settings(&self, flow: usize) -> Option<Settings> {
        match &self.flows[flow].traffic {
            Traffic::Tcp(tcp) => Some(settings(tcp, self.seed, flow)),
            Traffic::Cbr { .. } | Traffic::Pareto { .. } => None,
        }
    }

    /// Shows every packet that crosses link number `link` to `watch`.
    pub fn tap(&mut self, link: usize, watch: impl FnMut(&Seen) + Send + 'static) {
        self.net.set_tap(Tap { link, watch: Box::new(watch) });
    }

    /// Runs to the end.
    pub fn run(&mut self) {
        while !self.run_for(u64::MAX) {}
    }

    /// Runs for this many events; true when the end is reached.
    pub fn run_for(&mut self, events: u64) -> bool {
        let mut left = events;
        while left > 0 {
            if self.now >= self.next_sample && self.now < self.end {
                self.take_sample();
            }
            if self.now >= self.warmup && !self.warm {
                self.begin_measurement();
            }
            if self.now >= self.end {
                return true;
            }
            let pause = if self.warm { self.end } else { self.warmup.min(self.end) };
            self.net.fence = pause;
            left = self.step(pause.min(self.next_sample), left);
        }
        false
    }

    /// The fraction of simulated time that has passed.
    pub fn progress(&self) -> f64 {
        self.now as f64 / self.end as f64
    }

    /// Deals with events until `pause`, at most `left` of them; returns how many are left over.
    fn step(&mut self, pause: u64, mut left: u64) -> u64 {
        let given = left;
        loop {
            let (now, next) = self.net.next(pause, &mut left);
            match next {
                Next::Arrival(flow, packet) => self.arrive(now, flow, packet),
                Next::Early(flow, packet) => {
                    self.pass_samples(now, flow as usize, packet.flags() & flags::ACK != 0);
                    self.arrive(now, flow, packet);
                    continue;
                }
                Next::Timer(timer) => self.fire(now, timer),
                Next::End => {
                    self.now = pause;
                    break;
                }
                Next::Pause => {
                    self.now = self.now.max(now);
                    break;
                }
            }
            self.now = now;
        }
        self.events += given - left;
        left
    }

    #[inline(always)]
    fn arrive(&mut self, now: u64, flow: u32, packet: Packet) {
        let answer = packet.flags() & flags::ACK != 0;
        match &mut self.endpoints[flow as usize] {
            Endpoint::Tcp(tcp) if answer => tcp.0.acknowledgement(&mut self.net, now, packet),
            Endpoint::Tcp(tcp) => tcp.1.data(&mut self.net, now, packet),
            Endpoint::Paced(paced) if answer => paced.0.answer(&mut self.net, now, packet),
            Endpoint::Paced(paced) => paced.1.data(&mut self.net, now, packet),
            Endpoint::Source(source) => source.arrived += 1,
        }
    }

    fn fire(&mut self, now: u64, timer: usize) {
        let (flow, kind) = (timer / TIMERS, timer % TIMERS);
        if kind == LIFE {
            return self.begin_or_end(now, flow);
        }
        let net = &mut self.net;
        match &mut self.endpoints[flow] {
            Endpoint::Tcp(tcp) if kind == SINK => tcp.1.wake(net, now),
            Endpoint::Tcp(tcp) => tcp.0.wake(net, now),
            Endpoint::Paced(paced) if kind == SINK => {
                let rtt = paced.0.driver.last_rtt;
                paced.1.wake(net, now, rtt);
            }
            Endpoint::Paced(paced) => paced.0.wake(net, now),
            Endpoint::Source(source) => source.wake(net, now),
        }
    }

    fn begin_or_end(&mut self, now: u64, index: usize) {
        let flow = &self.flows[index];
        let net = &mut self.net;
        let stop = net.clock.ticks(flow.stop.as_nanos());
        if now >= stop {
            match &mut self.endpoints[index] {
                Endpoint::Tcp(tcp) => tcp.0.stop(),
                Endpoint::Paced(paced) => paced.0.stop(),
                Endpoint::Source(source) => source.stop(),
            }
            return;
        }
        net.arm(TIMERS * index + LIFE, stop);
        match &mut self.endpoints[index] {
            Endpoint::Tcp(tcp) => tcp.0.start(net, now),
            Endpoint::Paced(paced) => paced.0.start(net, now),
            Endpoint::Source(source) => source.start(net, now),
        }
    }

    fn begin_measurement(&mut self) {
        self.warm = true;
        let now = self.now;
        for (index, endpoint) in self.endpoints.iter_mut().enumerate() {
            self.base[index] = endpoint.delivered();
            endpoint.reset(now);
        }
        self.net.lost.fill(0);
        for link in &mut self.net.links {
            link.counters = link.queued(now);
            link.delays.clear();
        }
    }

    fn take_sample(&mut self) {
        let now = self.now;
        self.next_sample += self.sample;
        self.records.time.push(self.net.clock.seconds(now));
        for flow in 0..self.endpoints.len() {
            for side in [SOURCE, SINK] {
                if self.samples[flow][side] <= now {
                    self.sample_side(flow, side);
                }
            }
        }
        for link in 0..self.net.links.len() {
            if self.records.links[link].queue.len() < self.records.time.len() {
                self.sample_link(link, now);
            }
        }
    }

    /// Takes the samples that an endpoint which runs ahead of the clock passes on its way to `at`.
    #[inline(always)]
    fn pass_samples(&mut self, at: u64, flow: usize, source: bool) {
        let side = if source { SOURCE } else { SINK };
        while self.samples[flow][side] <= at {
            let path = if source { &self.flows[flow].path } else { &self.flows[flow].back };
            self.sample_link(path[0], self.samples[flow][side]);
            self.sample_side(flow, side);
        }
    }

    fn sample_side(&mut self, flow: usize, side: usize) {
        self.samples[flow][side] += self.sample;
        let series = &mut self.records.flows[flow].series;
        let endpoint = &self.endpoints[flow];
        if side == SINK {
            series.delivered.push(endpoint.delivered() as f64);
        } else {
            endpoint.sample(series, self.net.clock);
        }
    }

    fn sample_link(&mut self, link: usize, at: u64) {
        let record = &mut self.records.links[link];
        let link = &mut self.net.links[link];
        record.queue.push(f64::from(link.waiting(at)));
        record.drops_series.push(link.total_lost as f64);
    }

    /// The records of a run that has reached its end.
    pub fn finish(mut self) -> Records {
        let end = self.end;
        let clock = self.net.clock;
        let seconds = clock.seconds(self.end - self.warmup);
        let mut records = std::mem::take(&mut self.records);
        records.events = self.events;
        for (index, endpoint) in self.endpoints.into_iter().enumerate() {
            let record = &mut records.flows[index];
            record.packets_delivered = endpoint.delivered() - self.base[index];
            record.packets_lost = self.net.lost[index];
            records.packets += endpoint.total_sent();
            endpoint.finish(end, clock, record);
        }
        let links = self.net.links.iter_mut().zip(&self.rates).zip(&mut records.links);
        for ((link, &rate), record) in links {
            let queued = link.queued(end);
            link.summarise(queued, rate, seconds, record);
        }
        records
    }
}

/// What surrounds the law of flow number `index`, which draws from its own stream.
fn settings(tcp: &Tcp, seed: u64, index: usize) -> Settings {
    Settings {
        packet: tcp.packet,
        initial_window: f64::from(tcp.initial_window),
        max_window: f64::from(tcp.window),
        slow_start: SlowStart::Classic,
        ns2: tcp.conventions != Conventions::Rfc,
        seed: crate::rng::Rng::new(seed, "law", index as u64).bits(),
    }
}

/// The controller of a flow.
fn controller(
    flow: &Flow,
    tcp: &Tcp,
    settings: Settings,
    options: &Options,
) -> Result<AnyController, SimulationError> {
    let fail = |message: String| SimulationError::Controller { flow: flow.name.clone(), message };
    if let Some(name) = tcp.controller.strip_prefix("python:") {
        let made = options.custom.and_then(|custom| custom(name, settings));
        return made.ok_or_else(|| fail(format!("no controller class named {name:?} was given")));
    }
    let spec = Spec::parse(&tcp.controller).map_err(|error| fail(error.to_string()))?;
    Ok(spec.controller(settings))
}

fn endpoint(
    flow: &Flow,
    place: Place,
    back: u32,
    seed: u64,
    options: &Options,
) -> Result<Endpoint, SimulationError> {
    let Traffic::Tcp(tcp) = &flow.traffic else {
        let source = Source::new(&flow.traffic, place, seed);
        return Ok(Endpoint::Source(Box::new(source.expect("traffic that is not TCP"))));
    };
    let controller = controller(flow, tcp, settings(tcp, seed, place.flow as usize), options)?;
    let clock = place.clock;
    let driver = Driver::new(clock, controller, options.tell.then(Record::default));
    Ok(match driver.controller {
        AnyController::Window(_) => {
            let sender = Sender::new(tcp, driver, place, seed);
            let receiver = Receiver::new(tcp, clock, back, place.timer + SINK);
            Endpoint::Tcp(Box::new((sender, receiver)))
        }
        AnyController::Rate(_) => {
            let sender = PacedSender::new(tcp, driver, place);
            let receiver = PacedReceiver::new(tcp, clock, back, place.timer + SINK);
            Endpoint::Paced(Box::new((sender, receiver)))
        }
    })
}

impl Endpoint {
    /// Data packets delivered in order since the start.
    fn delivered(&self) -> u64 {
        match self {
            Endpoint::Tcp(tcp) => tcp.1.delivered(),
            Endpoint::Paced(paced) => u64::from(paced.1.in_order()),
            Endpoint::Source(source) => source.arrived,
        }
    }

    /// The driver of a controller; open-loop sources have none.
    fn driver(&self) -> Option<&Driver> {
        match self {
            Endpoint::Tcp(tcp) => Some(&tcp.0.driver),
            Endpoint::Paced(paced) => Some(&paced.0.driver),
            Endpoint::Source(_) => None,
        }
    }

    fn total_sent(&self) -> u64 {
        match self {
            Endpoint::Source(source) => source.sent,
            _ => self.driver().map_or(0, |driver| driver.packets_sent),
        }
    }

    fn reset(&mut self, now: u64) {
        let driver = match self {
            Endpoint::Tcp(tcp) => {
                tcp.1.marked = 0;
                &mut tcp.0.driver
            }
            Endpoint::Paced(paced) => &mut paced.0.driver,
            Endpoint::Source(source) => {
                source.base = source.sent;
                return;
            }
        };
        driver.settle(now);
        driver.counters = Counters::default();
    }

    /// Whether it does nothing but answer packets and its timers, each at its time.
    fn may_run_ahead(&self) -> bool {
        matches!(self, Endpoint::Tcp(tcp) if !tcp.0.puts_off())
    }

    fn sample(&self, series: &mut FlowSeries, clock: Clock) {
        series.sent.push(self.total_sent() as f64);
        let samples = series.sent.len();
        let Some(driver) = self.driver() else { return };
        let rtt = driver.last_rtt;
        series.window.push(driver.window());
        series.rtt.push(if rtt == 0 { f64::NAN } else { clock.seconds(rtt) });
        driver.controller.gauges(&mut |name, value| {
            let known = series.gauges.iter().position(|gauge| gauge.0 == name);
            let place = known.unwrap_or_else(|| {
                series.gauges.push((name, Vec::new()));
                series.gauges.len() - 1
            });
            let values = &mut series.gauges[place].1;
            values.resize(samples - 1, f64::NAN);
            values.push(value);
        });
    }

    fn finish(self, end: u64, clock: Clock, record: &mut FlowRecord) {
        let mut driver = match self {
            Endpoint::Tcp(tcp) => {
                record.packets_marked = tcp.1.marked;
                tcp.0.driver
            }
            Endpoint::Paced(paced) => paced.0.driver,
            Endpoint::Source(source) => {
                record.packets_sent = source.sent - source.base;
                (record.mean_rtt, record.min_rtt, record.completed) =
                    (f64::NAN, f64::NAN, f64::NAN);
                return;
            }
        };
        driver.settle(end);
        record.cuts = driver.cuts;
        record.told = driver.told;
        let counters = driver.counters;
        let seconds = |ticks: u64| if ticks == u64::MAX { f64::NAN } else { clock.seconds(ticks) };
        record.packets_sent = counters.sent;
        record.retransmissions = counters.retransmitted;
        record.timeouts = counters.timeouts;
        record.ecn_cuts = counters.mark_cuts;
        record.limited = counters.limited.map(|ticks| clock.seconds(ticks));
        record.mean_rtt = clock.seconds(counters.rtt_sum) / counters.rtt_count as f64;
        record.min_rtt = seconds(driver.min_rtt);
        record.completed = seconds(driver.completed);
    }
}
