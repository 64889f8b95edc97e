//! Links, routes, timers and the event queue: the network as seen by endpoints.
//!
//! A packet that is sent passes all links that may receive it ahead of the clock
//! ([`lookahead`](super::lookahead)); its arrival at the next link or endpoint is an event. Packets
//! that would arrive after the end of the run are discarded.

use super::flow_order::FlowOrder;
use super::host::Host;
use super::in_flight::Lists;
use super::link::{Enqueued, Link, NO_LIST};
use super::lookahead::SingleFeeder;
use super::observation::Observations;
use super::route::{Routes, Step};
use super::schedule::{NONE, Schedule};
use super::tap::{self, PacketLog, Tap, TapSlot};
use super::timer::Timer;
use crate::cast::{low32, saturate32, to_index};
use crate::clock::Clock;
use crate::network::{Flow, Network, Traffic};
use crate::packet::{Extras, Packet, SINK, SOURCE, flags};
use crate::record::{PacketKind, PacketRecord};

/// Timers of a flow: of its source, of its sink, and of its start and stop.
pub(crate) const TIMERS: usize = 3;
pub(crate) const LIFE: usize = 2;

/// The position of a sender in the network.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub clock: Clock,
    pub flow: u32,
    /// The first hop of the route.
    pub hop: u32,
    pub timer: usize,
    /// Whether a link of either route reorders packets.
    pub reordered: bool,
}

#[derive(Clone)]
pub(crate) struct Net {
    pub clock: Clock,
    pub observations: Observations,
    /// Time of the last event.
    pub now: u64,
    schedule: Schedule,
    /// Bits of an event key below the time: the source of the event.
    shift: u32,
    /// Times from here on exceed an event key, and no run reaches them.
    horizon: u64,
    /// The links of the network.
    pub links: Vec<Link>,
    /// The hosts with a processing time. In routes and event keys their numbers are behind those of
    /// the links.
    pub(super) hosts: Vec<Host>,
    /// Packets in flight: lists for links, hosts and, for each link that reorders, for those that
    /// others may overtake.
    pub(super) in_flight: Lists,
    /// Numbers of the flows, in routes and in timers; event keys have those of the network.
    pub order: FlowOrder,
    pub(super) routes: Routes,
    /// For each flow the contents of its acknowledgements in flight.
    pub extras: Vec<Extras>,
    /// For each flow the entries of its timers in the event queue.
    pub(super) timers: Vec<[Timer; TIMERS]>,
    /// For each flow the next observation of its source and its sink; [`NONE`] before it starts.
    pub due: Vec<[u64; 2]>,
    /// A packet that has reached an endpoint ahead of the clock. There is at most one: handling it
    /// may arm a timer that precedes the next one.
    delivery: Option<Delivery>,
    tap: TapSlot,
    /// For each flow the packets of its source, if they are recorded. Only TCP's have numbers.
    packets: Option<Vec<PacketLog>>,
    /// For each flow its data packets dropped by queues and lost on links since the end of the
    /// warm-up.
    pub lost: Vec<u64>,
    /// For each flow its packets with and without data dropped and lost since the start, also those
    /// after the end of the run.
    pub gone: Vec<[u64; 2]>,
}

/// A packet that arrives at an endpoint.
#[derive(Clone, Copy)]
pub(crate) struct Delivery {
    pub at: u64,
    pub flow: u32,
    pub packet: Packet,
    /// The last link, if further packets in flight on it may be delivered ahead of the clock.
    pub link: Option<u32>,
}

/// What happens next.
pub(crate) enum Next {
    /// No event before the end of the run.
    End,
    /// The given number of events has been processed.
    Pause,
    Delivery(Delivery),
    /// A timer expires at this time.
    Timer(u64, usize),
}

impl Net {
    /// Returns the network with three timers for each flow, and the first hops of both directions
    /// of each flow. Without `lookahead` every arrival and every departure is an event.
    ///
    /// `None` if event keys have too few bits for the duration and the number of links and timers,
    /// or routes for that of links and flows.
    pub(crate) fn new(
        network: &Network,
        seed: u64,
        lookahead: bool,
    ) -> Option<(Self, Vec<[u32; 2]>)> {
        let flows = network.flows.len();
        let hosts = Host::count(network);
        let reordering = network.links.iter().filter(|link| link.reorders()).count();
        let lists = network.links.len() + hosts + reordering;
        // Sources of events: arrivals at the ends of links, timers, departures.
        let sources = 2 * lists + TIMERS * flows;
        let shift = 64 - (sources as u64).leading_zeros();
        let clock = Clock::new(network.duration, 64 - shift)?;
        let (hosts, host_of) = Host::all(network, clock, seed);
        let observations = Observations::new(network, clock);
        let new = |(index, link)| Link::new(link, clock, observations, index, seed);
        let mut links: Vec<_> = network.links.iter().enumerate().map(new).collect();
        if !lookahead {
            links.iter_mut().for_each(Link::schedule_departures);
        }
        let reordering = links.iter_mut().zip(&network.links).filter(|(_, link)| link.reorders());
        for (list, (link, _)) in (network.links.len() + hosts.len()..).zip(reordering) {
            link.late = list;
        }
        let single = SingleFeeder::of(network);
        // One sender feeds a host.
        let permits =
            |step| lookahead && links.get(step).is_none_or(|link| single.permits(step, link));
        let order = FlowOrder::of(network);
        let (routes, hops) = Routes::new(network, &order, &host_of, permits)?;
        let extras = (0..flows).map(|number| {
            let flow = &network.flows[order.index(number)];
            let mut links = flow.path.iter().chain(&*flow.back);
            Extras::new(links.any(|&link| network.links[link].reorders()))
        });
        let extras = extras.collect();
        let net = Net {
            clock,
            observations,
            now: 0,
            schedule: Schedule::new(),
            shift,
            horizon: 1 << (63 - shift),
            links,
            hosts,
            in_flight: Lists::new(lists),
            order,
            routes,
            extras,
            timers: vec![[Timer::IDLE; TIMERS]; flows],
            due: vec![[NONE; 2]; flows],
            delivery: None,
            tap: TapSlot::default(),
            packets: None,
            lost: vec![0; flows],
            gone: vec![[0; 2]; flows],
        };
        Some((net, hops))
    }

    /// Lets the source and the sink of `flow` process packets ahead of the clock where `ahead`, if
    /// their first links permit it. `hops` are the first hops of both directions.
    pub(crate) fn permit_ahead(&mut self, flow: &Flow, hops: [u32; 2], ahead: [bool; 2]) {
        // The packets that reach one end come from the other one.
        for (end, path) in [(SOURCE, &flow.back), (SINK, &flow.path)] {
            let in_order = path.last().is_none_or(|&link| self.links[link].late == NO_LIST);
            if ahead[end] && in_order && self.may_send_ahead(hops[end]) {
                self.routes.permit_end_ahead(hops[1 - end]);
            }
        }
    }

    /// Whether an end of a flow whose route begins at `hop` may send ahead of the clock.
    pub(crate) fn may_send_ahead(&self, hop: u32) -> bool {
        self.routes.step(hop).is_link_ahead()
    }

    /// Sends a packet on the link of its hop, or through the host before it.
    #[inline(always)]
    pub(crate) fn send(&mut self, now: u64, packet: Packet) {
        self.record_departure(now, packet);
        let step = self.routes.step(packet.hop());
        if let Some(host) = step.link().checked_sub(self.links.len()) {
            self.process(now, host, packet);
        } else if let Some(delivery) = self.forward(now, step, packet) {
            self.delivery = Some(delivery);
        }
    }

    /// A packet passes a host.
    #[inline(never)]
    fn process(&mut self, now: u64, host: usize, packet: Packet) {
        let arrives = self.hosts[host].receive(now, self.clock);
        if arrives < self.observations.end() {
            let packet = packet.onward();
            let next = self.routes.step(packet.hop());
            if let Some(delivery) = self.carry(self.links.len() + host, arrives, next, packet) {
                self.delivery = Some(delivery);
            }
        }
    }

    /// A packet arrives at the queue of the link `step`. Returns its delivery if it reaches an
    /// endpoint ahead of the clock.
    #[inline(always)]
    fn forward(&mut self, now: u64, step: Step, mut packet: Packet) -> Option<Delivery> {
        let link = step.link();
        let (arrives, gained) = self.links[link].receive(now, packet);
        if gained != 0 {
            packet = self.forward_changed(now, link, arrives, gained, packet)?;
        }
        let packet = packet.onward();
        let next = self.routes.step(packet.hop());
        if arrives >= self.observations.end() {
            return None;
        }
        if next.is_plain() {
            self.schedule_arrival(link, arrives, packet);
            return None;
        }
        self.carry(link, arrives, next, packet)
    }

    /// Handles a packet that gained flags at `link`. Returns it if it reaches the far end.
    #[cold]
    #[inline(never)]
    fn forward_changed(
        &mut self,
        now: u64,
        link: usize,
        arrives: u64,
        gained: u16,
        packet: Packet,
    ) -> Option<Packet> {
        if gained & flags::QUEUED != 0 {
            let hash = if self.links[link].uses_flows() { self.flow_hash(packet) } else { 0 };
            match self.links[link].enqueue(now, packet, hash) {
                Enqueued::Dropped => self.count_loss(now, packet),
                Enqueued::Waits(departure) => self.schedule_departure(link, departure),
                Enqueued::Transmitted(arrives, packet) => self.transmitted(link, arrives, packet),
            }
            self.count_dropped(now, link);
            return None;
        }
        if gained & flags::DROPPED != 0 {
            self.count_loss(now, packet);
            return None;
        }
        let packet = packet.flagged(gained & !flags::INSPECT);
        if !self.reaches_far_end(link, arrives, packet) {
            return None;
        }
        if self.links[link].is_late() {
            self.schedule_late(link, arrives, packet);
            return None;
        }
        Some(packet)
    }

    /// Schedules the arrival of a packet that others on `link` may overtake.
    fn schedule_late(&mut self, link: usize, arrives: u64, packet: Packet) {
        if arrives < self.observations.end() {
            self.schedule_arrival(self.links[link].late, arrives, packet.onward());
        }
    }

    /// Shows a transmitted packet to the tap and counts it if it is lost on the link. Returns
    /// whether it reaches the far end.
    #[inline(always)]
    fn reaches_far_end(&mut self, link: usize, arrives: u64, packet: Packet) -> bool {
        if self.links[link].is_tapped() && arrives < self.observations.end() {
            self.show(link, packet);
        }
        let lost = packet.flags() & flags::LOST != 0;
        if lost {
            self.count_loss(arrives, packet);
        }
        !lost
    }

    /// Shows a packet that `link` transmits to the tap.
    #[cold]
    fn show(&mut self, link: usize, packet: Packet) {
        if let TapSlot(Some(tap)) = &mut self.tap {
            let at = self.clock.nanos(self.links[link].departed());
            let flow = self.routes.flow(packet.hop());
            let index = saturate32(self.order.index(flow as usize));
            tap::show(tap, at, index, packet, &self.extras[flow as usize]);
        }
    }

    /// A packet that left the queue of the scheduled path arrives at the far end at `arrives`.
    fn transmitted(&mut self, link: usize, arrives: u64, packet: Packet) {
        if !self.reaches_far_end(link, arrives, packet) {
            return;
        }
        if self.links[link].is_late() {
            self.schedule_late(link, arrives, packet);
        } else if arrives < self.observations.end() {
            let packet = packet.onward();
            let next = self.routes.step(packet.hop());
            if let Some(delivery) = self.carry(link, arrives, next, packet) {
                self.delivery = Some(delivery);
            }
        }
    }

    /// Counts a packet that is dropped or lost at `at`.
    pub(crate) fn count_loss(&mut self, at: u64, packet: Packet) {
        let flow = self.routes.flow(packet.hop()) as usize;
        let dataless = packet.flags() & flags::DATALESS != 0;
        let counts = !dataless && packet.flags() & flags::SYN == 0;
        let measured = self.observations.warmup()..self.observations.end();
        self.gone[flow][usize::from(dataless)] += 1;
        self.lost[flow] += u64::from(counts && measured.contains(&at));
    }

    /// A packet on `link` arrives at `next` at `arrives`: processes it ahead of the clock where the
    /// lookahead permits.
    #[inline(always)]
    fn carry(
        &mut self,
        mut link: usize,
        mut arrives: u64,
        mut next: Step,
        mut packet: Packet,
    ) -> Option<Delivery> {
        while next.is_link_ahead() {
            link = next.link();
            let gained;
            let now = arrives;
            (arrives, gained) = self.links[link].receive(now, packet);
            if gained != 0 {
                packet = self.forward_changed(now, link, arrives, gained, packet)?;
            }
            packet = packet.onward();
            next = self.routes.step(packet.hop());
            if arrives >= self.observations.end() {
                return None;
            }
        }
        if next.is_end_ahead()
            && self.in_flight.is_empty(link)
            && self.delivery.is_none()
            && arrives <= self.safe_until(next.flow(), packet)
        {
            return Some(Delivery { at: arrives, flow: next.flow(), packet, link: None });
        }
        self.schedule_arrival(link, arrives, packet);
        None
    }

    /// Schedules the arrival of a packet that is in flight in `list`.
    #[inline(always)]
    fn schedule_arrival(&mut self, list: usize, arrives: u64, packet: Packet) {
        if self.in_flight.push(list, arrives, packet) {
            self.schedule.push(arrives << self.shift | list as u64);
        }
    }

    /// Schedules the next departure from the queue of `link`.
    fn schedule_departure(&mut self, link: usize, departure: Option<u64>) {
        if let Some(at) = departure.filter(|&at| at < self.horizon) {
            self.schedule.push(at << self.shift | self.departures_of(link));
        }
    }

    /// The source of the departures from `link` in event keys.
    fn departures_of(&self, link: usize) -> u64 {
        (self.in_flight.count() + TIMERS * self.timers.len() + link) as u64
    }

    /// The transmitter of `link` becomes idle, and packets wait: the first event of the event
    /// queue.
    #[cold]
    fn depart(&mut self, now: u64, link: usize) {
        let departed = self.links[link].dequeue(now);
        match departed.and_then(|(.., departure)| departure).filter(|&at| at < self.horizon) {
            Some(at) => self.schedule.replace_first(at << self.shift | self.departures_of(link)),
            None => self.schedule.take_first(),
        }
        if let Some((arrives, packet, _)) = departed {
            self.transmitted(link, arrives, packet);
        }
        self.count_dropped(now, link);
    }

    /// Counts the packets that the discipline of `link` has dropped.
    fn count_dropped(&mut self, now: u64, link: usize) {
        while let Some(packet) = self.links[link].take_dropped() {
            self.count_loss(now, packet);
        }
    }

    /// Identifies a direction of a flow by the flow's index in the network.
    fn flow_hash(&self, packet: Packet) -> u32 {
        let flow = self.order.index(self.routes.flow(packet.hop()) as usize);
        low32((flow << 1 | packet.side()) as u64)
    }

    /// Removes the next packet in flight on `link` if its endpoint can process it ahead of the
    /// clock; schedules its arrival otherwise.
    pub(crate) fn next_delivery(&mut self, link: u32) -> Option<Delivery> {
        let (at, packet) = self.in_flight.first(link as usize)?;
        let end = self.routes.step(packet.hop());
        if end.is_end_ahead() && at <= self.safe_until(end.flow(), packet) {
            let (packet, following) = self.in_flight.pop(link as usize)?;
            let link = following.map(|_| link);
            return Some(Delivery { at, flow: end.flow(), packet, link });
        }
        self.schedule.push(at << self.shift | u64::from(link));
        None
    }

    /// The packet that has reached an endpoint ahead of the clock.
    pub(crate) fn take_delivery(&mut self) -> Option<Delivery> {
        self.delivery.take()
    }

    /// Time of the packet that has reached an endpoint ahead of the clock; [`NONE`] without one.
    pub(super) fn pending_delivery(&self) -> u64 {
        self.delivery.map_or(NONE, |delivery| delivery.at)
    }

    /// Shows every packet that `link` transmits to `tap`.
    pub(crate) fn set_tap(&mut self, link: usize, tap: Tap) {
        self.links[link].set_tapped();
        self.tap = TapSlot(Some(tap));
    }

    /// Whether a tap sees the packets of a link.
    pub(crate) fn is_tapped(&self) -> bool {
        self.tap.0.is_some()
    }

    /// The latest time of which something is determined: of the last event, or ahead of the clock.
    pub(crate) fn reach(&self) -> u64 {
        let links = self.links.iter().map(Link::reach);
        links.chain(self.hosts.iter().map(Host::reach)).fold(self.now, u64::max)
    }

    /// Records the packets that the source of every flow sends and receives.
    pub(crate) fn record_packets(&mut self, network: &Network) {
        let tcp =
            |number| matches!(&*network.flows[self.order.index(number)].traffic, Traffic::Tcp(_));
        let logs = (0..network.flows.len()).map(|number| PacketLog::new(tcp(number)));
        self.packets = Some(logs.collect());
    }

    /// Records a packet that an end of a flow sends, if it is the source.
    #[inline(always)]
    pub(crate) fn record_departure(&mut self, now: u64, packet: Packet) {
        if self.packets.is_some() && packet.side() == SINK {
            self.log(now, self.routes.flow(packet.hop()), packet);
        }
    }

    /// Records a packet that arrives at an end of a flow, if it is the source.
    #[inline(always)]
    pub(crate) fn record_arrival(&mut self, now: u64, flow: u32, packet: Packet) {
        if self.packets.is_some() && packet.side() == SOURCE {
            self.log(now, flow, packet);
        }
    }

    #[cold]
    #[inline(never)]
    fn log(&mut self, now: u64, flow: u32, packet: Packet) {
        if let Some(logs) = &mut self.packets {
            logs[flow as usize].push(self.clock.time(now), packet, &self.extras[flow as usize]);
        }
    }

    /// Whether packets are recorded.
    #[inline(always)]
    pub(crate) fn records_packets(&self) -> bool {
        self.packets.is_some()
    }

    /// Sets the contents of the packet that was recorded last of the network's flow `flow`.
    #[inline(always)]
    pub(crate) fn describe(&mut self, flow: u32, contents: Option<PacketKind>) {
        if let (Some(contents), Some(logs)) = (contents, &mut self.packets) {
            logs[self.order.number(flow as usize)].describe(contents);
        }
    }

    /// The packets recorded of a flow.
    pub(crate) fn take_packets(&mut self, flow: usize) -> Vec<PacketRecord> {
        self.packets.as_mut().map(|logs| logs[flow].take()).unwrap_or_default()
    }

    /// Arms `timer` to expire at `at`. If it is armed for an earlier time, it expires then, and its
    /// owner arms it again: a timer that moves later needs no change of the event queue.
    #[inline(always)]
    pub(crate) fn arm(&mut self, timer: usize, at: u64) {
        if at < self.horizon && self.timers.as_flattened_mut()[timer].arm(at) {
            let index = self.order.index(timer / TIMERS);
            let source = self.in_flight.count() + TIMERS * index + timer % TIMERS;
            self.schedule.push(at << self.shift | source as u64);
        }
    }

    /// Processes at most `left` events, until one reaches an endpoint.
    #[inline(always)]
    pub(crate) fn next(&mut self, left: &mut u64) -> Next {
        while *left > 0 {
            // Tested first: most events have none, and its fields need not be read.
            if self.delivery.is_some()
                && let Some(delivery) = self.take_delivery()
            {
                *left -= 1;
                return Next::Delivery(delivery);
            }
            let key = self.schedule.first();
            let now = key >> self.shift;
            if now >= self.observations.end() {
                return Next::End;
            }
            *left -= 1;
            self.now = now;
            let source = to_index(key ^ now << self.shift);
            let Some((packet, following)) = self.in_flight.pop(source) else {
                let timer = source - self.in_flight.count();
                if timer >= TIMERS * self.timers.len() {
                    self.depart(now, timer - TIMERS * self.timers.len());
                    continue;
                }
                self.schedule.take_first();
                if let Some(timer) = self.take_timer(now, timer) {
                    return Next::Timer(now, timer);
                }
                continue;
            };
            let step = self.routes.step(packet.hop());
            if step.is_end() {
                let flow = step.flow();
                if following.is_some() && step.is_end_ahead() {
                    self.schedule.take_first();
                    let link = Some(saturate32(source));
                    return Next::Delivery(Delivery { at: now, flow, packet, link });
                }
                self.reschedule(source, following);
                return Next::Delivery(Delivery { at: now, flow, packet, link: None });
            }
            self.reschedule(source, following);
            if let Some(delivery) = self.forward(now, step, packet) {
                return Next::Delivery(delivery);
            }
        }
        Next::Pause
    }

    /// The entry of a timer was removed from the event queue. Returns the timer if it expires.
    #[inline(always)]
    fn take_timer(&mut self, now: u64, source: usize) -> Option<usize> {
        let timer = TIMERS * self.order.number(source / TIMERS) + source % TIMERS;
        self.timers.as_flattened_mut()[timer].expire(now).then_some(timer)
    }

    /// Replaces the event of `link` by that of the `following` packet in flight.
    #[inline(always)]
    fn reschedule(&mut self, link: usize, following: Option<u64>) {
        match following {
            Some(at) => self.schedule.replace_first(at << self.shift | link as u64),
            None => self.schedule.take_first(),
        }
    }
}
