//! A run: the event loop of a network, from the first event to the records.

mod change;
mod fork;

pub use change::ChangeError;
pub use fork::ForkError;

use crate::cast::{saturate32, to_index};
use crate::driver::Payload;
use crate::endpoint::{Endpoint, Progress};
use crate::engine::link::capacity;
use crate::engine::net::{Delivery, LIFE, Net, Next, Place, TIMERS};
use crate::engine::tap::Seen;
use crate::flows::{PendingFlow, Specs, create, note, settings};
use crate::network::{Flow, Network, Traffic};
use crate::options::{Options, SimulationError};
use crate::packet::{Extras, SINK, SOURCE};
use crate::record::{FlowRecord, LinkRecord, Records};
use crate::samples::Samples;
use change::Replacement;
use cwnd::{Settings, Time};
use std::sync::Arc;

/// A flow during a run.
#[derive(Default)]
struct FlowState {
    /// Created when the flow starts; those of QUIC and with controllers that are not in the
    /// registry are created in advance.
    endpoint: Option<Box<dyn Endpoint>>,
    /// Those of the controller if the protocol determines them.
    settings: Option<Settings>,
    started: bool,
    finished: bool,
    /// From the start to the end of the flow.
    samples: Option<Box<Samples>>,
    /// Data sent during the warm-up.
    sent_before: Payload,
    /// Data arrived for the first time, and packets arrived, at the end of the warm-up.
    base: (Payload, u64),
}

/// A network during a run. Simulations share no mutable state and may run in parallel.
pub struct Simulation {
    network: Arc<Network>,
    net: Net,
    flows: Vec<FlowState>,
    /// For each flow the first hops of both directions.
    hops: Vec<[u32; 2]>,
    /// The flow that starts next.
    next_start: usize,
    seed: u64,
    specs: Specs,
    record_events: bool,
    /// The laws to be replaced, in the order of time.
    replacements: Vec<Replacement>,
    /// The time of the last change.
    changed: Time,
    records: Records,
}

impl Simulation {
    /// Creates a run of `network` with this seed. A network passed by reference is copied.
    ///
    /// # Errors
    /// A network that is not [valid](Network::validate) or too large for its duration, or an
    /// unknown controller.
    pub fn new(
        network: impl Into<Arc<Network>>,
        seed: u64,
        options: &Options,
    ) -> Result<Self, SimulationError> {
        let network = network.into();
        network.validate()?;
        let (mut net, hops) = Net::new(&network, seed, options.lookahead).ok_or_else(|| {
            SimulationError::TooLong {
                duration: network.duration.as_secs(),
                sources: TIMERS * network.flows.len() + 2 * network.links.len(),
            }
        })?;
        if options.record_packets {
            net.record_packets(&network);
        }
        let mut specs = Specs::default();
        let mut flows: Vec<_> = network.flows.iter().map(|_| FlowState::default()).collect();
        // In the order of the network, where flows with the same controller are adjacent.
        for (index, flow) in network.flows.iter().enumerate() {
            let number = net.order.number(index);
            let (hops, place) = (hops[number], place(&net, hops[number], number));
            let pending = PendingFlow::new(flow, place, hops[SINK], seed, options, &mut specs)?;
            net.permit_ahead(flow, hops, pending.ahead);
            flows[number].settings = pending.endpoint.as_ref().and_then(|own| own.settings());
            flows[number].endpoint = pending.endpoint;
        }
        let records = Records {
            flows: vec![FlowRecord::default(); network.flows.len()],
            links: vec![LinkRecord::default(); network.links.len()],
            ..Records::default()
        };
        let mut simulation = Simulation {
            network,
            net,
            flows,
            hops,
            next_start: 0,
            seed,
            specs,
            record_events: options.record_events,
            replacements: Vec::new(),
            changed: Time::ZERO,
            records,
        };
        simulation.arm_next_start();
        Ok(simulation)
    }

    /// Returns the settings of the controller of flow number `flow`; `None` for a flow without one
    /// of cwnd's, and for one of QUIC whose events are not recorded. A controller created with the
    /// flow's specification and these settings reproduces its recorded outputs bit by bit.
    pub fn settings(&self, flow: usize) -> Option<Settings> {
        match &*self.network.flows[flow].traffic {
            Traffic::Tcp(tcp) => Some(settings(tcp, self.seed, flow)),
            Traffic::Udt(udt) => crate::udt::settings(udt, self.seed, flow),
            Traffic::Quic(_) => self.flows[self.net.order.number(flow)].settings,
            Traffic::Cbr { .. } | Traffic::Pareto { .. } => None,
        }
    }

    /// Calls `watch` for every packet that link number `link` transmits.
    pub fn tap(&mut self, link: usize, watch: impl FnMut(&Seen) + Send + 'static) {
        self.net.set_tap(link, Box::new(watch));
    }

    /// Runs to the end.
    pub fn run(&mut self) {
        while !self.run_for(u64::MAX) {}
    }

    /// Returns the fraction of simulated time that has passed.
    pub fn progress(&self) -> f64 {
        self.net.now as f64 / self.net.observations.end() as f64
    }

    /// Processes at most `events` events. Returns whether the end of the run is reached.
    pub fn run_for(&mut self, events: u64) -> bool {
        let mut left = events;
        let done = loop {
            match self.net.next(&mut left) {
                Next::Delivery(delivery) => {
                    self.deliver(&delivery);
                    if let Some(link) = delivery.link {
                        self.deliver_following(link);
                    }
                }
                Next::Timer(now, timer) => self.expire(now, timer),
                Next::End => {
                    self.net.now = self.net.observations.end();
                    break true;
                }
                Next::Pause => break false,
            }
        };
        self.records.events += events - left;
        done
    }

    /// Delivers the packets in flight on `link` behind one that an event has delivered, as far as
    /// the lookahead permits.
    #[inline(never)]
    fn deliver_following(&mut self, link: u32) {
        let mut link = Some(link);
        while let Some(delivery) = link.and_then(|link| self.net.next_delivery(link)) {
            self.deliver(&delivery);
            link = delivery.link;
        }
    }

    /// An endpoint receives a packet.
    #[inline(always)]
    fn deliver(&mut self, delivery: &Delivery) {
        let &Delivery { at, flow, packet, .. } = delivery;
        let side = packet.side();
        self.net.record_arrival(at, flow, packet);
        if self.net.due[flow as usize][side] <= at {
            self.observe(flow as usize, side, at);
        }
        if let Some(endpoint) = &mut self.flows[flow as usize].endpoint
            && endpoint.receive(&mut self.net, at, packet)
        {
            self.finish_flow(flow as usize);
        }
    }

    /// Handles an expired timer.
    #[inline(always)]
    fn expire(&mut self, now: u64, timer: usize) {
        let (flow, kind) = (timer / TIMERS, timer % TIMERS);
        if kind == LIFE {
            return self.start_or_stop(now, flow);
        }
        if self.net.due[flow][kind] <= now {
            self.observe(flow, kind, now);
        }
        if let Some(endpoint) = &mut self.flows[flow].endpoint {
            endpoint.wake(&mut self.net, now, kind);
        }
    }

    fn start_or_stop(&mut self, now: u64, flow: usize) {
        let &Flow { start, stop, .. } = &self.network.flows[self.net.order.index(flow)];
        let [start, stop] = [start, stop].map(|at| self.net.clock.ticks(at.as_nanos()));
        if self.flows[flow].started && now != stop {
            return self.act(now, flow, stop);
        }
        let starts = now < stop;
        if !self.flows[flow].started {
            if now < start {
                // The start was moved to a later time.
                return self.net.arm(TIMERS * flow + LIFE, start);
            }
            // A flow that stops at its start sends nothing. The next flow must be armed then, too.
            self.arm_next_start();
        }
        if starts {
            self.net.arm(TIMERS * flow + LIFE, stop);
            self.start_flow(flow, now);
        } else {
            self.observe(flow, SOURCE, now);
        }
        if let Some(endpoint) = &mut self.flows[flow].endpoint {
            if starts {
                endpoint.start(&mut self.net, now);
            } else {
                endpoint.stop(&mut self.net, now);
            }
        }
        self.replace_laws(now, flow);
    }

    /// The timer of a flow's application expired, or its law changes.
    #[cold]
    fn act(&mut self, now: u64, flow: usize, stop: u64) {
        if self.net.due[flow][SOURCE] <= now {
            self.observe(flow, SOURCE, now);
        }
        if now < stop {
            if let Some(endpoint) = &mut self.flows[flow].endpoint {
                endpoint.act(&mut self.net, now);
            }
            self.net.arm(TIMERS * flow + LIFE, stop);
        }
        self.replace_laws(now, flow);
    }

    /// Arms the timer of the flow that starts next.
    fn arm_next_start(&mut self) {
        let flow = self.next_start;
        if flow < self.flows.len() {
            self.next_start += 1;
            let start = self.network.flows[self.net.order.index(flow)].start;
            self.net.arm(TIMERS * flow + LIFE, self.net.clock.ticks(start.as_nanos()));
        }
    }

    /// Creates the endpoints of a flow at `now`, and samples them from then on.
    fn start_flow(&mut self, flow: usize, now: u64) {
        let observations = self.net.observations;
        self.net.due[flow] = [observations.after(now); 2];
        self.create(flow, observations.samples_until(now));
    }

    /// Creates the endpoints of a flow that has missed `before` samples.
    fn create(&mut self, flow: usize, before: u64) {
        let (clock, hops) = (self.net.clock, self.hops[flow]);
        let at_start = self.flow_at_start(flow);
        let state = &mut self.flows[flow];
        state.started = true;
        let spec = &self.network.flows[self.net.order.index(flow)];
        let spec = at_start.as_deref().unwrap_or(spec);
        let endpoint = state.endpoint.get_or_insert_with(|| {
            let options = Options { record_events: self.record_events, ..Options::default() };
            let place = place(&self.net, hops, flow);
            create(spec, place, hops[SINK], self.seed, &options, &mut self.specs)
                .expect("a controller that was created before")
        });
        if let Some(note) = note(spec, endpoint.as_ref())
            && !self.records.notes.contains(&note)
        {
            self.records.notes.push(note);
        }
        let to_come = to_index(self.net.observations.sample_count().saturating_sub(before));
        state.samples.insert(Box::default()).start(before, to_come, endpoint.as_ref(), clock);
    }

    /// Takes the samples of an end of a flow up to `now` and begins the measurement if the warm-up
    /// has ended.
    #[cold]
    #[inline(never)]
    fn observe(&mut self, flow: usize, side: usize, now: u64) {
        let observations = self.net.observations;
        while self.net.due[flow][side] <= now {
            let at = self.net.due[flow][side];
            if observations.is_sample(at) {
                self.sample(flow, side);
            }
            if observations.is_warmup(at) {
                self.begin_measurement(flow, side, at);
            }
            self.net.due[flow][side] = observations.after(at);
        }
    }

    fn sample(&mut self, flow: usize, side: usize) {
        let state = &mut self.flows[flow];
        let (Some(endpoint), Some(samples)) = (&state.endpoint, &mut state.samples) else { return };
        match side {
            SINK => samples.take_sink(endpoint.progress().arrived),
            _ => samples.take_source(endpoint.as_ref(), self.net.clock),
        }
    }

    /// Resets the counters of an end of a flow at the end of the warm-up.
    fn begin_measurement(&mut self, flow: usize, side: usize, now: u64) {
        let state = &mut self.flows[flow];
        let Some(endpoint) = &mut state.endpoint else { return };
        let Progress { sent, arrived, received, .. } = endpoint.progress();
        if side == SINK {
            state.base = (arrived, received);
        } else {
            state.sent_before = sent;
        }
        endpoint.begin_measurement(now, side);
    }

    /// Completes the record of a flow whose state does not change any more.
    #[cold]
    fn finish_flow(&mut self, flow: usize) {
        let (end, clock) = (self.net.observations.end(), self.net.clock);
        if !self.flows[flow].started {
            self.create(flow, self.net.observations.sample_count());
            for side in [SOURCE, SINK] {
                self.begin_measurement(flow, side, self.net.observations.warmup());
            }
        }
        for side in [SOURCE, SINK] {
            self.observe(flow, side, end - 1);
        }
        // No acknowledgement is in flight.
        self.net.extras[flow] = Extras::new(false);
        let state = &mut self.flows[flow];
        state.finished = true;
        let samples = state.samples.take().unwrap_or_default();
        let index = self.net.order.index(flow);
        let record = &mut self.records.flows[index];
        record.packets_lost = self.net.lost[flow];
        record.packets = self.net.take_packets(flow);
        if let Some(endpoint) = state.endpoint.take() {
            let Progress { sent, total, arrived, received, last_new, marked } = endpoint.progress();
            let measured = arrived.since(state.base.0);
            record.packets_delivered = measured.packets;
            record.bytes_delivered = measured.bytes;
            record.packets_received = received - state.base.1;
            record.packets_marked = marked;
            let complete = arrived.packets > 0 && total == Some(arrived.packets);
            record.completed = if complete { clock.seconds(last_new) } else { f64::NAN };
            let measured = sent.since(state.sent_before);
            (record.packets_sent, record.bytes_sent) = (measured.packets, measured.bytes);
            self.records.packets += sent.packets;
            record.series = samples.columns(endpoint.as_ref(), clock);
            endpoint.finish(end, clock, record);
            samples.write_delivered(&mut record.series);
        }
    }

    /// Returns the records of a run that has reached its end.
    pub fn finish(mut self) -> Records {
        let observations = self.net.observations;
        let (end, clock) = (observations.end(), self.net.clock);
        for flow in 0..self.flows.len() {
            if !self.flows[flow].finished {
                self.finish_flow(flow);
            }
        }
        let mut records = self.records;
        records.time = observations.samples().map(|at| clock.seconds(at)).collect();
        let samples: Vec<_> = observations.samples().collect();
        for (index, record) in records.links.iter_mut().enumerate() {
            let link = &mut self.net.links[index];
            link.observe(end - 1);
            let measured = [observations.warmup(), end];
            let (of_network, place) = (&self.network.links[index], (index, self.seed));
            let (rate, capacity) = capacity(of_network, clock, place, measured, &samples);
            link.summarise(end, rate, record);
            record.capacity = capacity;
            [record.queue, record.drops_series] = link.sample_columns();
        }
        records
    }
}

/// The position of a flow in the network.
fn place(net: &Net, hops: [u32; 2], flow: usize) -> Place {
    let index = saturate32(net.order.index(flow));
    let reordered = net.extras[flow].is_reordered();
    Place { clock: net.clock, flow: index, hop: hops[SOURCE], timer: TIMERS * flow, reordered }
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;
    use crate::{Options, Simulation};
    use cwnd::Dur;

    #[test]
    fn a_flow_that_stops_when_it_starts_does_not_prevent_the_next_start() {
        let text = r#"
            duration = "4s"
            warmup = "0s"
            [[link]]
            from = "a"
            to = "b"
            rate = "10mbit"
            delay = "20ms"
            queue = 10
            [[cbr]]
            rate = "1mbit"
            packet = 1000
            from = "a"
            to = "b"
            count = 2
            measured = true
            "#;
        let mut network = Scenario::from_toml(text, "starts.toml").unwrap().network(1).unwrap();
        network.flows[0].start = cwnd::Time::ZERO + Dur::from_secs(1.0);
        network.flows[0].stop = network.flows[0].start;
        network.flows[1].start = cwnd::Time::ZERO + Dur::from_secs(2.0);
        let mut simulation = Simulation::new(&network, 1, &Options::default()).unwrap();
        simulation.run();
        let sent: Vec<_> = simulation.finish().flows.iter().map(|flow| flow.packets_sent).collect();
        assert!(sent[0] == 0 && sent[1] > 100, "{sent:?}");
    }
}
