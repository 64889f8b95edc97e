//! The event loop of a network, or of one of its two partitions.

use crate::cast::{saturate32, to_index};
use crate::driver::Payload;
use crate::endpoint::Endpoint;
use crate::engine::link::capacity;
use crate::engine::net::{Delivery, LIFE, Net, Next, Place, TIMERS};
use crate::engine::tap::Tap;
use crate::flows::{PendingFlow, Specs, create};
use crate::network::Network;
use crate::options::{Options, SimulationError};
use crate::packet::{SINK, SOURCE};
use crate::partitioning::Partitioning;
use crate::record::{FlowRecord, LinkRecord, Records};
use crate::samples::Samples;
use crate::sync::Peer;
use std::sync::Arc;

/// A flow during a run.
#[derive(Default)]
struct FlowState {
    /// Created when the flow starts; controllers that are not in the registry are created in
    /// advance.
    endpoint: Option<Box<dyn Endpoint>>,
    started: bool,
    finished: bool,
    /// From the start to the end of the flow.
    samples: Option<Box<Samples>>,
    /// Data sent during the warm-up.
    sent_before: Payload,
    /// Data arrived for the first time, and packets arrived, at the end of the warm-up.
    base: (Payload, u64),
}

/// The end of a flow's data: what its source knows, and what its sink knows.
#[derive(Clone, Copy, Default)]
pub(crate) struct End {
    /// Data packets of the whole flow, if that is known.
    pub total: Option<u64>,
    /// Data packets that have arrived, and the time of the last one in seconds.
    pub arrived: u64,
    pub last: f64,
}

impl End {
    /// Time in seconds at which all data had arrived; NaN if some had not.
    pub(crate) fn completed(self) -> f64 {
        if self.arrived > 0 && self.total == Some(self.arrived) { self.last } else { f64::NAN }
    }
}

/// A network during a run, or one of its two partitions.
pub(crate) struct Partition {
    network: Arc<Network>,
    net: Net,
    flows: Vec<FlowState>,
    /// For each flow the first hops of both directions.
    hops: Vec<[u32; 2]>,
    /// The flow that starts next, or a later one.
    next_start: usize,
    seed: u64,
    specs: Specs,
    record_events: bool,
    /// For each flow whether its source and its sink are in this partition.
    here: Vec<[bool; 2]>,
    /// For each link whether its queue is in this partition.
    links_here: Vec<bool>,
    peer: Option<Peer>,
    records: Records,
    ends: Vec<End>,
}

impl Partition {
    /// Creates a run of `network`, or one of its two partitions with the connection to the other
    /// one.
    pub(crate) fn new(
        network: &Arc<Network>,
        seed: u64,
        options: &Options,
        share: Option<(&Partitioning, usize, Peer)>,
    ) -> Result<Self, SimulationError> {
        let own = share.as_ref().map(|&(partitioning, part, _)| (partitioning, part));
        let link_here = |link| own.is_none_or(|(it, part)| it.link_start(network, link) == part);
        let crosses = |link| {
            own.is_some_and(|(it, part)| link_here(link) && it.link_end(network, link) != part)
        };
        let (mut net, hops) =
            Net::new(network, seed, options.lookahead, crosses).ok_or_else(|| {
                SimulationError::TooLong {
                    duration: network.duration.as_secs(),
                    sources: TIMERS * network.flows.len() + 2 * network.links.len(),
                }
            })?;
        let mut specs = Specs::default();
        let mut flows: Vec<_> = network.flows.iter().map(|_| FlowState::default()).collect();
        let mut here = vec![[true; 2]; flows.len()];
        // In the order of the network, where flows with the same controller are adjacent.
        for (index, flow) in network.flows.iter().enumerate() {
            let number = net.order.number(index);
            let (hops, place) = (hops[number], place(&net, hops[number], number));
            let pending = PendingFlow::new(flow, place, hops[SINK], seed, options, &mut specs)?;
            net.permit_ahead(flow, hops, pending.ahead);
            flows[number].endpoint = pending.endpoint;
            if let Some((partitioning, part)) = own {
                here[number] = partitioning.ends(network, &flow.path).map(|end| end == part);
            }
        }
        let mut partition = Partition {
            net,
            flows,
            hops,
            next_start: 0,
            seed,
            specs,
            record_events: options.record_events,
            here,
            links_here: (0..network.links.len()).map(link_here).collect(),
            peer: share.map(|(_, _, peer)| peer),
            records: Records {
                flows: vec![FlowRecord::default(); network.flows.len()],
                links: vec![LinkRecord::default(); network.links.len()],
                ..Records::default()
            },
            ends: vec![End::default(); network.flows.len()],
            network: network.clone(),
        };
        partition.arm_next_start();
        Ok(partition)
    }

    pub(crate) fn set_tap(&mut self, link: usize, tap: Tap) {
        self.net.set_tap(link, tap);
    }

    /// Processes at most `events` events. Returns whether the end of the run is reached.
    pub(crate) fn run_for(&mut self, events: u64) -> bool {
        let end = self.net.observations.end();
        self.advance(end, events)
    }

    /// Advances by `windows` synchronisation windows. Returns whether the end of the run is
    /// reached.
    pub(crate) fn run_windows(&mut self, windows: u64) -> bool {
        // Owned here, so that a panic disconnects the other partition, which would wait for ever.
        let Some(mut peer) = self.peer.take() else { return true };
        let end = self.net.observations.end();
        let mut until = 0;
        for _ in 0..windows {
            until = self.net.clock.ticks(peer.begin_window()).min(end);
            if let Some(mut batch) = peer.receive() {
                for crossing in batch.crossings.drain(..) {
                    // One at a time: handling it may arm a timer that precedes the next one.
                    self.net.receive_crossing(crossing, &mut batch.extras);
                    while let Some(delivery) = self.net.take_delivery() {
                        self.deliver(&delivery);
                    }
                }
                peer.recycle(batch);
            }
            self.advance(until, u64::MAX);
            peer.send(&mut self.net.outbox);
            if until == end {
                break;
            }
        }
        self.peer = Some(peer);
        until == end
    }

    /// The fraction of simulated time that has passed.
    pub(crate) fn progress(&self) -> f64 {
        self.net.now as f64 / self.net.observations.end() as f64
    }

    /// Mean number of events in a synchronisation window so far; at least one.
    pub(crate) fn events_per_window(&self) -> u64 {
        let windows = self.peer.as_ref().map_or(0, Peer::windows);
        (self.records.events / windows.max(1)).max(1)
    }

    /// Processes events before `until`, at most `events` of them. Returns whether all are
    /// processed.
    fn advance(&mut self, until: u64, events: u64) -> bool {
        let mut left = events;
        let done = loop {
            match self.net.next(until, &mut left) {
                Next::Delivery(delivery) => {
                    self.deliver(&delivery);
                    if let Some(link) = delivery.link {
                        self.deliver_following(link);
                    }
                }
                Next::Timer(now, timer) => self.expire(now, timer),
                Next::End => {
                    self.net.now = until;
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
        if self.net.due[flow as usize][side] <= at {
            self.observe(flow as usize, side, at);
        }
        match &mut self.flows[flow as usize].endpoint {
            Some(endpoint) => {
                if endpoint.receive(&mut self.net, at, packet) {
                    self.finish_flow(flow as usize);
                }
            }
            // A copy: a reference would force the delivery out of registers.
            None => self.deliver_first(&{ *delivery }),
        }
    }

    /// Delivers the first packet of a flow whose source is in the other partition.
    #[cold]
    fn deliver_first(&mut self, delivery: &Delivery) {
        debug_assert!(!self.flows[delivery.flow as usize].finished);
        self.start_flow(delivery.flow as usize, delivery.at);
        self.deliver(delivery);
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
        let stop = self.network.flows[self.net.order.index(flow)].stop;
        let stop = self.net.clock.ticks(stop.as_nanos());
        if self.flows[flow].started && now < stop {
            return self.act(now, flow, stop);
        }
        let starts = now < stop;
        // A flow that stops at its start sends nothing. The next flow must be armed then, too.
        if !self.flows[flow].started {
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
    }

    /// The timer of a flow's application expired.
    #[cold]
    fn act(&mut self, now: u64, flow: usize, stop: u64) {
        if self.net.due[flow][SOURCE] <= now {
            self.observe(flow, SOURCE, now);
        }
        if let Some(endpoint) = &mut self.flows[flow].endpoint {
            endpoint.act(&mut self.net, now);
        }
        self.net.arm(TIMERS * flow + LIFE, stop);
    }

    /// Arms the timer of the flow that starts next.
    fn arm_next_start(&mut self) {
        while let Some(here) = self.here.get(self.next_start) {
            let flow = self.next_start;
            self.next_start += 1;
            if here[SOURCE] {
                let start = self.network.flows[self.net.order.index(flow)].start;
                let at = self.net.clock.ticks(start.as_nanos());
                return self.net.arm(TIMERS * flow + LIFE, at);
            }
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
        let state = &mut self.flows[flow];
        state.started = true;
        let endpoint = state.endpoint.get_or_insert_with(|| {
            let options = Options { record_events: self.record_events, ..Options::default() };
            let place = place(&self.net, hops, flow);
            let flow = &self.network.flows[self.net.order.index(flow)];
            create(flow, place, hops[SINK], self.seed, &options, &mut self.specs)
                .expect("a controller that was created before")
        });
        let left = to_index(self.net.observations.sample_count().saturating_sub(before));
        let to_come = self.here[flow].map(|here| if here { left } else { 0 });
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
            SINK => samples.take_sink(endpoint.arrived()),
            _ => samples.take_source(endpoint.as_ref(), self.net.clock),
        }
    }

    /// Resets the counters of an end of a flow at the end of the warm-up.
    fn begin_measurement(&mut self, flow: usize, side: usize, now: u64) {
        let state = &mut self.flows[flow];
        let Some(endpoint) = &mut state.endpoint else { return };
        if side == SINK {
            state.base = (endpoint.arrived(), endpoint.received());
        } else {
            state.sent_before = endpoint.sent();
        }
        endpoint.begin_measurement(now, side);
    }

    /// Completes the record of a flow whose state does not change any more: of its ends in this
    /// partition.
    #[cold]
    fn finish_flow(&mut self, flow: usize) {
        let (end, clock) = (self.net.observations.end(), self.net.clock);
        let [source, sink] = self.here[flow];
        if (source || sink) && !self.flows[flow].started {
            self.create(flow, self.net.observations.sample_count());
            for side in [SOURCE, SINK] {
                self.begin_measurement(flow, side, self.net.observations.warmup());
            }
        }
        for side in [SOURCE, SINK] {
            self.observe(flow, side, end - 1);
        }
        let state = &mut self.flows[flow];
        state.finished = true;
        let samples = state.samples.take().unwrap_or_default();
        let index = self.net.order.index(flow);
        let (record, ends) = (&mut self.records.flows[index], &mut self.ends[index]);
        record.packets_lost = self.net.lost[flow];
        if let Some(endpoint) = state.endpoint.take() {
            let arrived = endpoint.arrived();
            let measured = arrived.since(state.base.0);
            record.packets_delivered = measured.packets;
            record.bytes_delivered = measured.bytes;
            record.packets_received = endpoint.received() - state.base.1;
            record.packets_marked = endpoint.marked();
            ends.arrived = arrived.packets;
            ends.last = clock.seconds(endpoint.last_new());
            if source {
                ends.total = endpoint.total();
                let sent = endpoint.sent();
                let measured = sent.since(state.sent_before);
                (record.packets_sent, record.bytes_sent) = (measured.packets, measured.bytes);
                self.records.packets += sent.packets;
                record.series = samples.columns(endpoint.as_ref(), clock);
                endpoint.finish(end, clock, record);
            }
            if sink {
                samples.write_delivered(&mut record.series);
            }
        }
    }

    /// The records of a run that has reached its end: of what is in this partition, and zeros for
    /// the rest. Also the ends of the flows' data, from which the records lack the time of
    /// completion.
    pub(crate) fn finish(mut self) -> (Records, Vec<End>) {
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
        for (index, of_network) in self.network.links.iter().enumerate() {
            if self.links_here[index] {
                let link = &mut self.net.links[index];
                link.observe(end - 1);
                let record = &mut records.links[index];
                let measured = [observations.warmup(), end];
                let place = (index, self.seed);
                let (rate, capacity) = capacity(of_network, clock, place, measured, &samples);
                link.summarise(end, rate, record);
                record.capacity = capacity;
                [record.queue, record.drops_series] = link.sample_columns();
            }
        }
        (records, self.ends)
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
