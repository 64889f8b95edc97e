//! The event loop: endpoints on a network, or on that half of it which one thread runs.

use crate::beside::{Batch, Other};
use crate::cast::{saturate32, to_index};
use crate::endpoint::{Endpoint, Prospects, Specs};
use crate::engine::net::{LIFE, Net, Next, SINK, SOURCE, TIMERS, own_links};
use crate::engine::packet::{Packet, flags};
use crate::engine::schedule::NONE;
use crate::engine::split::Split;
use crate::engine::tap::Tap;
use crate::network::Network;
use crate::record::{FlowRecord, LinkRecord, Records};
use crate::samples::{LinkSamples, Samples};
use crate::simulation::{Options, SimulationError};
use crate::tcp::sender::Place;
use std::sync::Arc;

/// A network in the middle of a run, or one half of it.
pub(crate) struct Half {
    network: Arc<Network>,
    net: Net,
    endpoints: Vec<Endpoint>,
    /// For each link whether it is on one way of one flow alone.
    own: Vec<bool>,
    /// For each flow the first hops of its ways.
    hops: Vec<[u32; 2]>,
    seed: u64,
    specs: Specs,
    record_events: bool,
    /// For each flow whether its source and its sink are in this half.
    here: Vec<[bool; 2]>,
    /// For each link whether its queue is.
    links_here: Vec<bool>,
    other: Option<Other>,
    now: u64,
    warmup: u64,
    end: u64,
    sample: u64,
    next_sample: u64,
    /// For each flow when its source and its sink are to be sampled next, [`NONE`] before it begins:
    /// an endpoint that runs ahead of the clock is sampled as it passes.
    due: Vec<[u64; 2]>,
    samples: Vec<Samples>,
    link_samples: Vec<LinkSamples>,
    warm: bool,
    events: u64,
    /// Delivered when the measurement began.
    base: Vec<u64>,
    records: Records,
}

impl Half {
    /// A run of `network`, or one half of it with what joins it to the other.
    pub(crate) fn new(
        network: &Arc<Network>,
        seed: u64,
        options: &Options,
        split: Option<(&Split, usize, Other)>,
    ) -> Result<Self, SimulationError> {
        let timers = TIMERS * network.flows.len();
        let cut = split.as_ref().map(|&(cut, half, _)| (cut, half));
        let link_here = |link| cut.is_none_or(|(cut, half)| cut.of_link(link) == half);
        let far = |link| {
            cut.map_or([false; 2], |(cut, half)| {
                let [before, beyond] =
                    [cut.before_link(network, link), cut.beyond_link(network, link)];
                [before == half && !link_here(link), link_here(link) && beyond != half]
            })
        };
        let (mut net, hops) =
            Net::new(network, seed, timers, far).ok_or_else(|| SimulationError::TooLong {
                duration: network.duration.as_secs(),
                sources: timers + network.links.len(),
            })?;
        let clock = net.clock;
        let mut endpoints = Vec::with_capacity(network.flows.len());
        let own = own_links(network);
        let mut here = Vec::with_capacity(network.flows.len());
        let mut prospects = Prospects::default();
        for (index, (flow, hops)) in network.flows.iter().zip(&hops).enumerate() {
            let place =
                Place { clock, flow: saturate32(index), hop: hops[0], timer: TIMERS * index };
            let prospect = prospects.add(flow, place, hops[1], seed, options)?;
            if prospect.prompt {
                net.let_run_ahead(network, index, *hops, &own);
            }
            if let Some(size) = prospect.paced {
                net.give_inbox(&flow.path, index, hops[0], size, &own);
            }
            endpoints.push(prospect.endpoint);
            let ends = cut.map_or([true; 2], |(cut, half)| {
                cut.of_path(network, &flow.path).map(|end| end == half)
            });
            here.push(ends);
            if ends[SOURCE] {
                net.arm(TIMERS * index + LIFE, clock.ticks(flow.start.as_nanos()));
            }
        }
        Ok(Half {
            net,
            endpoints,
            own,
            hops,
            seed,
            specs: prospects.specs,
            record_events: options.record_events,
            here,
            links_here: (0..network.links.len()).map(link_here).collect(),
            other: split.map(|(_, _, other)| other),
            now: 0,
            warmup: clock.ticks(network.warmup.as_nanos()),
            end: clock.ticks(network.duration.as_nanos()),
            sample: clock.ticks(network.sample.as_nanos().max(1)),
            next_sample: 0,
            due: vec![[NONE; 2]; network.flows.len()],
            samples: network.flows.iter().map(|_| Samples::default()).collect(),
            link_samples: network.links.iter().map(|_| LinkSamples::default()).collect(),
            warm: false,
            events: 0,
            base: vec![0; network.flows.len()],
            records: Records {
                links: vec![LinkRecord::default(); network.links.len()],
                ..Records::default()
            },
            network: network.clone(),
        })
    }

    pub(crate) fn set_tap(&mut self, tap: Tap) {
        self.net.set_tap(tap);
    }

    /// Runs for this many events, and to `until` at most; true when that or the end is reached.
    pub(crate) fn run_for(&mut self, events: u64, until: u64) -> bool {
        let mut left = events;
        while left > 0 {
            if self.now >= self.next_sample && self.now < self.end {
                self.take_sample();
            }
            if self.now >= self.warmup && !self.warm {
                self.begin_measurement();
            }
            if self.now >= self.end.min(until) {
                return true;
            }
            let pause = if self.warm { self.end } else { self.warmup.min(self.end) };
            self.net.fence = pause;
            self.net.pause = pause.min(self.next_sample).min(until);
            left = self.step(self.net.pause, left);
        }
        false
    }

    /// Runs for so many windows beside the other half; true when the end is reached.
    pub(crate) fn run_beside(&mut self, windows: u64) -> bool {
        for _ in 0..windows {
            let Some(other) = &mut self.other else { return true };
            if self.now >= self.end {
                return true;
            }
            let until = other.next_window(self.net.clock);
            if let Some(batch) = other.receive() {
                self.take_over(batch);
            }
            self.run_for(u64::MAX, until);
            self.hand_over();
        }
        self.now >= self.end
    }

    /// Takes over what the other half sent.
    fn take_over(&mut self, mut batch: Batch) {
        for (flow, extras) in batch.extras.drain(..) {
            self.net.extras[flow].take_over(extras);
        }
        self.net.queueing.extend(batch.queueing.drain(..));
        for crossing in batch.crossings.drain(..) {
            // One after the other: what an endpoint does now may set a timer that fires before the
            // next packet reaches it.
            let mut told = self.net.come_across(crossing);
            while let Some((at, flow, packet)) = told {
                self.arrive_early(at, flow, packet);
                told = self.net.pop_early();
            }
        }
        if let Some(other) = &mut self.other {
            other.reuse(batch);
        }
    }

    /// Sends the other half what is on its way there.
    fn hand_over(&mut self) {
        let Some(other) = &mut self.other else { return };
        let mut batch = other.batch();
        std::mem::swap(&mut batch.crossings, &mut self.net.far);
        std::mem::swap(&mut batch.queueing, &mut self.net.far_queueing);
        for (flow, here) in self.here.iter().enumerate() {
            let queued = &mut self.net.extras[flow];
            if here[SINK] && !here[SOURCE] && !queued.is_empty() {
                batch.extras.push((flow, queued.hand_over().collect()));
            }
        }
        other.send(batch);
    }

    /// The fraction of simulated time that has passed.
    pub(crate) fn progress(&self) -> f64 {
        self.now as f64 / self.end as f64
    }

    /// Events dealt with in a window beside the other half, on average so far; at least one.
    pub(crate) fn events_in_window(&self) -> u64 {
        let windows = self.other.as_ref().map_or(0, Other::windows);
        (self.events / windows.max(1)).max(1)
    }

    /// Deals with events until `pause`, at most `left` of them; returns how many are left over.
    fn step(&mut self, pause: u64, mut left: u64) -> u64 {
        let given = left;
        loop {
            let (now, next) = self.net.next(pause, &mut left);
            match next {
                Next::Arrival(flow, packet, None) => self.arrive(now, flow, packet),
                Next::Arrival(flow, packet, Some(link)) => {
                    self.arrive_in_time(now, flow, packet, link);
                }
                Next::Early(flow, packet) => {
                    self.arrive_early(now, flow, packet);
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

    /// A packet reaches its destination in an event of `link`, and those behind it ahead of the clock
    /// where they may: an endpoint that had to wait for a timer runs ahead again.
    #[inline(never)]
    fn arrive_in_time(&mut self, now: u64, flow: u32, packet: Packet, link: u32) {
        let mut next = Some((now, packet));
        while let Some((at, packet)) = next {
            self.arrive_early(at, flow, packet);
            next = self.net.follow(link);
        }
    }

    /// A packet reaches its destination ahead of the clock.
    #[inline(always)]
    fn arrive_early(&mut self, at: u64, flow: u32, packet: Packet) {
        self.pass_samples(at, flow as usize, packet.flags() & flags::ACK != 0);
        self.arrive(at, flow, packet);
    }

    #[inline(always)]
    fn arrive(&mut self, now: u64, flow: u32, packet: Packet) {
        let answer = packet.flags() & flags::ACK != 0;
        match &mut self.endpoints[flow as usize] {
            Endpoint::Tcp(tcp) if answer => tcp.0.acknowledgement(&mut self.net, now, packet),
            Endpoint::Ns2Tcp(tcp) if answer => tcp.0.acknowledgement(&mut self.net, now, packet),
            Endpoint::Tcp(tcp) => tcp.1.data(&mut self.net, now, packet),
            Endpoint::Ns2Tcp(tcp) => tcp.1.data(&mut self.net, now, packet),
            _ => self.arrive_at_others(now, flow, packet),
        }
    }

    /// The same where an endpoint is not TCP's.
    #[inline(never)]
    fn arrive_at_others(&mut self, now: u64, flow: u32, packet: Packet) {
        let answer = packet.flags() & flags::ACK != 0;
        match &mut self.endpoints[flow as usize] {
            Endpoint::Tcp(_) | Endpoint::Ns2Tcp(_) => {}
            Endpoint::Paced(paced) if answer => paced.0.feedback(&mut self.net, now, packet),
            Endpoint::Paced(paced) => paced.1.data(&mut self.net, now, packet),
            Endpoint::Udt(udt) => udt.arrive(&mut self.net, now, packet),
            Endpoint::Source(source) => source.arrived += 1,
            Endpoint::Waiting => self.arrive_first(now, flow, packet),
        }
    }

    /// The first packet of a flow whose source is in the other half.
    #[cold]
    fn arrive_first(&mut self, now: u64, flow: u32, packet: Packet) {
        self.begin(flow as usize);
        self.arrive_early(now, flow, packet);
    }

    /// Makes the ends of a flow that begins, and takes its samples from here on.
    fn begin(&mut self, index: usize) {
        if let Endpoint::Waiting = self.endpoints[index] {
            let clock = self.net.clock;
            let [hop, back] = self.hops[index];
            let place = Place { clock, flow: saturate32(index), hop, timer: TIMERS * index };
            let options = Options { record_events: self.record_events, ..Options::default() };
            let flow = &self.network.flows[index];
            let specs = &mut self.specs;
            let mut endpoint = Endpoint::new(flow, place, back, self.seed, &options, specs)
                .expect("a controller that was made before");
            if self.own[flow.path[0]] {
                match &mut endpoint {
                    Endpoint::Paced(paced) => paced.0.send_ahead(&self.net, back),
                    Endpoint::Source(source) => source.send_ahead(&self.net),
                    _ => {}
                }
            }
            self.endpoints[index] = endpoint;
        }
        self.due[index] = [self.next_sample; 2];
        let (before, clock) = (self.records.time.len(), self.net.clock);
        let left = to_index(self.end.saturating_sub(self.next_sample).div_ceil(self.sample));
        let to_come = self.here[index].map(|here| if here { left } else { 0 });
        self.samples[index].begin(before, to_come, &self.endpoints[index], clock);
    }

    fn fire(&mut self, now: u64, timer: usize) {
        let (flow, kind) = (timer / TIMERS, timer % TIMERS);
        if kind == LIFE {
            return self.begin_or_end(now, flow);
        }
        let net = &mut self.net;
        match &mut self.endpoints[flow] {
            Endpoint::Tcp(tcp) if kind == SINK => tcp.1.wake(net, now),
            Endpoint::Ns2Tcp(tcp) if kind == SINK => tcp.1.wake(net, now),
            Endpoint::Tcp(tcp) => tcp.0.wake(net, now),
            Endpoint::Ns2Tcp(tcp) => tcp.0.wake(net, now),
            Endpoint::Paced(paced) if kind == SINK => {
                let rtt = paced.0.driver.last_rtt;
                paced.1.wake(net, now, rtt);
            }
            Endpoint::Paced(paced) => paced.0.wake(net, now),
            Endpoint::Udt(udt) => udt.wake(net, now, kind),
            Endpoint::Source(source) => source.wake(net, now),
            Endpoint::Waiting => {}
        }
    }

    fn begin_or_end(&mut self, now: u64, index: usize) {
        let flow = &self.network.flows[index];
        let net = &mut self.net;
        let stop = net.clock.ticks(flow.stop.as_nanos());
        if now >= stop {
            match &mut self.endpoints[index] {
                Endpoint::Tcp(tcp) => tcp.0.stop(),
                Endpoint::Ns2Tcp(tcp) => tcp.0.stop(),
                Endpoint::Paced(paced) => paced.0.stop(),
                Endpoint::Udt(udt) => udt.stop(net, now),
                Endpoint::Source(source) => source.stop(),
                Endpoint::Waiting => {}
            }
            return;
        }
        net.arm(TIMERS * index + LIFE, stop);
        self.begin(index);
        let net = &mut self.net;
        match &mut self.endpoints[index] {
            Endpoint::Tcp(tcp) => tcp.0.start(net, now),
            Endpoint::Ns2Tcp(tcp) => tcp.0.start(net, now),
            Endpoint::Paced(paced) => paced.0.start(net, now),
            Endpoint::Udt(udt) => udt.start(net, now),
            Endpoint::Source(source) => source.start(net, now),
            Endpoint::Waiting => {}
        }
    }

    fn begin_measurement(&mut self) {
        self.warm = true;
        let now = self.now;
        self.look_into_inboxes(now);
        for (index, endpoint) in self.endpoints.iter_mut().enumerate() {
            self.base[index] = endpoint.delivered();
            endpoint.reset(now);
        }
        self.net.lost.fill(0);
        for link in &mut self.net.links {
            link.begin(now);
        }
    }

    /// Has receivers that put packets by deal with those that have arrived before `now`.
    fn look_into_inboxes(&mut self, now: u64) {
        for endpoint in &mut self.endpoints {
            if let (Endpoint::Paced(paced), Some(last)) = (endpoint, now.checked_sub(1)) {
                paced.1.catch_up(&mut self.net, last);
            }
        }
    }

    fn take_sample(&mut self) {
        let now = self.now;
        self.look_into_inboxes(now);
        self.next_sample += self.sample;
        self.records.time.push(self.net.clock.seconds(now));
        for flow in 0..self.endpoints.len() {
            for side in [SOURCE, SINK] {
                if self.here[flow][side] && self.due[flow][side] <= now {
                    self.sample_side(flow, side);
                }
            }
        }
        for link in 0..self.net.links.len() {
            let taken = self.link_samples[link].taken as usize;
            if self.links_here[link] && taken < self.records.time.len() {
                self.sample_link(link, now);
            }
        }
    }

    /// Takes the samples that an endpoint which runs ahead of the clock passes on its way to `at`.
    #[inline(always)]
    fn pass_samples(&mut self, at: u64, flow: usize, source: bool) {
        let side = if source { SOURCE } else { SINK };
        while self.due[flow][side] <= at {
            let flow_here = &self.network.flows[flow];
            let first = if source { flow_here.path[0] } else { flow_here.back[0] };
            self.sample_link(first, self.due[flow][side]);
            self.sample_side(flow, side);
        }
    }

    fn sample_side(&mut self, flow: usize, side: usize) {
        self.due[flow][side] += self.sample;
        let endpoint = &self.endpoints[flow];
        if side == SINK {
            self.samples[flow].count(endpoint.delivered());
        } else {
            self.samples[flow].look(endpoint, self.net.clock);
        }
    }

    fn sample_link(&mut self, link: usize, at: u64) {
        let samples = &mut self.link_samples[link];
        let link = &mut self.net.links[link];
        samples.take(link.waiting(at), link.total_lost);
    }

    /// The records of a flow: of its ends in this half.
    fn finish_flow(&mut self, index: usize) -> FlowRecord {
        let (end, clock) = (self.end, self.net.clock);
        let [source, sink] = self.here[index];
        if (source || sink) && self.due[index][SOURCE] == NONE {
            self.begin(index);
            if self.warm {
                self.endpoints[index].reset(self.warmup);
            }
        }
        let endpoint = std::mem::replace(&mut self.endpoints[index], Endpoint::Waiting);
        let samples = std::mem::take(&mut self.samples[index]);
        let mut record = FlowRecord {
            packets_delivered: endpoint.delivered() - self.base[index],
            packets_marked: endpoint.marked(),
            packets_lost: self.net.lost[index],
            ..FlowRecord::default()
        };
        if source {
            self.records.packets += endpoint.total_sent();
            record.series = samples.columns(&endpoint, clock);
            endpoint.finish(end, clock, &mut record);
        }
        if sink {
            record.series.delivered = samples.delivered();
        }
        record
    }

    /// The records of a run that has reached its end: of what is in this half, and zeros for the rest.
    pub(crate) fn finish(mut self) -> Records {
        let end = self.end;
        self.look_into_inboxes(end);
        let clock = self.net.clock;
        let seconds = clock.seconds(self.end - self.warmup);
        let flows: Vec<_> = (0..self.endpoints.len()).map(|flow| self.finish_flow(flow)).collect();
        let mut records = Records { flows, ..std::mem::take(&mut self.records) };
        records.events = self.events;
        for (index, link) in self.net.links.iter_mut().enumerate() {
            if self.links_here[index] {
                let queued = link.queued(end);
                let rate = self.network.links[index].rate;
                let record = &mut records.links[index];
                link.summarise(queued, rate, seconds, record);
                [record.queue, record.drops_series] = self.link_samples[index].columns();
            }
        }
        records
    }
}
