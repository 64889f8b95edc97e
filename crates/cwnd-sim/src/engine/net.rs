//! Links, routes, timers and the event queue: what endpoints see of the network.
//!
//! Most links never queue: those behind a slower one. Where a link is fed by one other alone, its
//! packets come in an order that is known; one that will find it idle is given to it at once, at the
//! time at which it will arrive, and costs no event there. Nothing else differs: queues, losses and
//! times are those of the events left out.
//!
//! The same holds for a TCP endpoint whose own first link nobody else feeds: what it does when a
//! packet reaches it depends on nothing that can still happen before. It is told at once and runs
//! ahead of the clock, as far as its next timer and the end of the measurement. Once it had to wait,
//! packets queue up for events behind the one that did: they are told of when that has arrived.
//!
//! A paced flow has its own ways to cost fewer events: an [`Inbox`] at its receiver, and a sender that
//! sends ahead of the clock what nothing can keep it from sending.

use super::clock::Clock;
use super::inbox::Inbox;
use super::link::Link;
use super::packet::{Extras, Packet, flags};
use super::schedule::{NONE, Schedule};
use super::tap::Tap;
use crate::cast::{low32, saturate32, to_index};
use crate::network::Network;
use std::collections::VecDeque;

/// Set in a route's last entry; the rest of it is the flow.
const LAST: u32 = 1 << 31;
/// Set where a link is fed by the one before it alone.
const ALONE: u32 = 1 << 30;
/// Set in a route's last entry where the endpoint may be told ahead of time.
const EARLY: u32 = 1 << 29;
/// Set in a route's last entry where the endpoint has an inbox.
const INBOX: u32 = 1 << 27;

/// Set where the link before leads to the other half of a network run in two.
const FAR: u32 = 1 << 28;

/// Set where the queue of a link is in the other half.
const QUEUE: u32 = 1 << 26;

/// The bits of a route's entry that name the link, and of its last one that name the flow.
const LINK: u32 = !(ALONE | FAR | QUEUE);
const FLOW: u32 = !(LAST | EARLY | INBOX | FAR);

/// Timers of a flow: its source's, its sink's, and the one that starts and stops it.
pub(crate) const TIMERS: usize = 3;
pub(crate) const SOURCE: usize = 0;
pub(crate) const SINK: usize = 1;
pub(crate) const LIFE: usize = 2;

pub(crate) struct Net {
    pub clock: Clock,
    schedule: Schedule,
    /// Bits of a key below the time: the source.
    shift: u32,
    pub links: Vec<Link>,
    /// No key holds a time from here on, and no run gets there.
    horizon: u64,
    /// For each position on a route the link to take, with [`ALONE`] set or not; after them the flow,
    /// with [`LAST`] set.
    routes: Vec<u32>,
    /// For each flow what its acknowledgements on the way carry.
    pub extras: Vec<Extras>,
    /// For each flow.
    timers: Vec<[Timer; TIMERS]>,
    /// For each flow what has reached a receiver that looks at it later.
    pub inboxes: Vec<Option<Box<Inbox>>>,
    /// No endpoint runs ahead of the clock to here: where the measurement begins, then where it ends.
    pub fence: u64,
    /// Where it ends.
    end: u64,
    /// No sender sends ahead of the clock from here on: somebody looks at it.
    pub pause: u64,
    /// A packet that an endpoint sent and that has reached the other one ahead of time. One at a time:
    /// what the other does then may set a timer that fires before the next one reaches it.
    early: Option<Told>,
    /// Packets on their way to the other half.
    pub far: Vec<Crossing>,
    /// Packets that have reached a queue of the other half.
    pub far_queueing: Vec<Crossing>,
    /// Packets that reach queues of this half, told by the other one, in the order of events.
    pub queueing: VecDeque<Crossing>,
    tap: Option<Tap>,
    /// For each flow its data packets dropped by queues and lost in pipes.
    pub lost: Vec<u64>,
}

/// A packet that has reached an endpoint ahead of time: when, and of which flow.
type Told = (u64, u32, Packet);

/// A packet on its way from one half of a network to the other.
#[derive(Clone, Copy)]
pub(crate) struct Crossing {
    /// The link that it comes on.
    link: u32,
    /// When it arrives at the link's end.
    at: u64,
    packet: Packet,
}

#[derive(Clone, Copy)]
struct Timer {
    /// The time of its live entry in the schedule, [`NONE`] for none.
    armed: u64,
    /// The time it was last set to, [`NONE`] once it has fired.
    set_to: u64,
}

/// The next thing that concerns an endpoint.
pub(crate) enum Next {
    /// Nothing before the end.
    End,
    /// Nothing among the events that were asked for.
    Pause,
    /// A packet of this flow reaches its destination. Where others on the link may be told of ahead of
    /// the clock, there is no event for them yet: ask for them ([`Net::follow`]).
    Arrival(u32, Packet, Option<u32>),
    /// The same, ahead of the clock.
    Early(u32, Packet),
    /// A timer fires.
    Timer(usize),
}

impl Net {
    /// The network's links, with `timers` timers, and the first hop of each flow's way there and
    /// way back. `far` tells of a link whether its queue is in the other half, for packets that come to it
    /// in this one, and whether it leads there.
    ///
    /// `None` if the event keys cannot hold that many sources for that long, or routes that many links or flows.
    pub(crate) fn new(
        network: &Network,
        seed: u64,
        timers: usize,
        far: impl Fn(usize) -> [bool; 2],
    ) -> Option<(Self, Vec<[u32; 2]>)> {
        // The entry of a route has 26 bits for a link or a flow.
        if network.links.len().max(network.flows.len()) >= QUEUE as usize {
            return None;
        }
        let sources = (network.links.len() + timers) as u64;
        let shift = 64 - sources.leading_zeros();
        let clock = Clock::new(network.duration, 64 - shift)?;
        let links = network.links.iter().enumerate();
        let mut links: Vec<_> =
            links.map(|(index, link)| Link::new(link, clock, index, seed)).collect();
        let feeders = feeders(network);
        for (link, feeder) in feeders.iter().enumerate() {
            let steady = feeder.is_some_and(|feeder| links[feeder].steady);
            links[link].keeps_step &= steady;
        }
        let mut routes = Vec::new();
        let mut add = |flow: usize, path: &[usize]| {
            let first = saturate32(routes.len());
            let mut across = 0;
            for &link in path {
                let [queue, end] = far(link);
                let alone = feeders[link].is_some() && links[link].is_plain() && !queue;
                let alone = if alone { ALONE } else { 0 };
                routes.push(saturate32(link) | alone | across | if queue { QUEUE } else { 0 });
                across = if end { FAR } else { 0 };
            }
            routes.push(saturate32(flow) | LAST | across);
            first
        };
        let flows = network.flows.iter().enumerate();
        let hops =
            flows.map(|(index, flow)| [add(index, &flow.path), add(index, &flow.back)]).collect();
        u32::try_from(routes.len()).ok()?;
        let net = Net {
            clock,
            schedule: Schedule::new(),
            shift,
            horizon: 1 << (63 - shift),
            links,
            routes,
            extras: network.flows.iter().map(|_| Extras::new()).collect(),
            timers: vec![[Timer { armed: NONE, set_to: NONE }; TIMERS]; network.flows.len()],
            inboxes: network.flows.iter().map(|_| None).collect(),
            fence: 0,
            end: clock.ticks(network.duration.as_nanos()),
            pause: 0,
            early: None,
            far: Vec::new(),
            far_queueing: Vec::new(),
            queueing: VecDeque::new(),
            tap: None,
            lost: vec![0; network.flows.len()],
        };
        Some((net, hops))
    }

    /// Lets the endpoints of flow number `flow` run ahead of the clock where their own first links
    /// allow it; `hops` are the first hops of its ways.
    pub(crate) fn let_run_ahead(
        &mut self,
        network: &Network,
        flow: usize,
        hops: [u32; 2],
        own: &[bool],
    ) {
        let paths = [&network.flows[flow].path, &network.flows[flow].back];
        for (side, path) in paths.iter().enumerate() {
            // A link that takes packets over at once would be ahead of its samples.
            let second = self.routes[hops[side] as usize + 1];
            if own[path[0]] && second & (ALONE | LAST) != ALONE {
                // The packets that reach this side come the other way.
                self.routes[hops[1 - side] as usize + paths[1 - side].len()] |= EARLY;
            }
        }
    }

    /// Gives an inbox to the receiver of flow number `flow` if nobody misses the events that it saves.
    /// The way there begins at `hop`, its packets have `size` bytes, and `own` tells of each link
    /// whether it is on one way alone.
    pub(crate) fn give_inbox(
        &mut self,
        path: &[usize],
        flow: usize,
        hop: u32,
        size: u64,
        own: &[bool],
    ) {
        let last = path.len() - 1;
        let link = &self.links[path[last]];
        // A link without delay counts the events of an instant, but for one that is idle whenever a
        // packet comes.
        let never_busy = own[path[last]]
            && self.routes[hop as usize + last] & ALONE != 0
            && link.transmission(size) < self.links[path[last - 1]].transmission(size);
        if link.delay() > 0 || never_busy {
            self.inboxes[flow] = Some(Box::new(Inbox::new()));
            self.routes[hop as usize + path.len()] |= INBOX;
        }
    }

    /// Whether packets of `size` bytes find the link at `hop` as they would when they are sent ahead of
    /// the clock, if nobody else sends there.
    pub(crate) fn may_send_ahead(&self, hop: u32, size: u64) -> bool {
        let link = &self.links[(self.routes[hop as usize] & LINK) as usize];
        // Without a delay there must be an event for each of them, and after the one that sends it.
        let in_events = self.routes[hop as usize + 1] & ALONE == 0;
        link.delay() > 0 || in_events && link.transmission(size) > 0
    }

    /// The packets that leave the link at `hop` at this instant have left: what is sent next is sent as
    /// by a timer of `at`.
    pub(crate) fn pass_events(&mut self, hop: u32, at: u64) {
        self.links[(self.routes[hop as usize] & LINK) as usize].pass_events(at);
    }

    /// The links of the way that begins at `hop`.
    fn way(&self, hop: u32) -> impl Iterator<Item = &Link> {
        let way = self.routes[hop as usize..].iter().take_while(|&&entry| entry & LAST == 0);
        way.map(|&entry| &self.links[(entry & LINK) as usize])
    }

    /// Nothing reaches the source of flow number `flow` before this time, nor does anybody look at
    /// it, whatever happens from `now` on. `hops` are the first hops of its ways.
    pub(crate) fn quiet_until(&self, now: u64, flow: usize, hops: [u32; 2]) -> u64 {
        let pass = |from, hop| self.way(hop).fold(now.max(from), |from, link| link.next_from(from));
        let timers = &self.timers[flow];
        // The receiver answers packets and its own timer.
        let answer = pass(pass(now, hops[0]).min(timers[SINK].armed), hops[1]);
        answer.min(self.unwatched_until(flow))
    }

    /// Nobody stops the source of flow number `flow` before this time, or looks at it.
    pub(crate) fn unwatched_until(&self, flow: usize) -> u64 {
        self.timers[flow][LIFE].set_to.min(self.pause)
    }

    /// Puts a packet on the link its hop names.
    #[inline(always)]
    pub(crate) fn send(&mut self, now: u64, packet: Packet) {
        let link = self.routes[packet.hop() as usize];
        if let Some(told) = self.give(now, link, packet) {
            self.early = Some(told);
        }
    }

    /// Gives a packet to a link, and to those after it where it will not wait. Tells when it reaches
    /// which flow's endpoint, if that is to be told ahead of time.
    #[inline(always)]
    fn give(&mut self, now: u64, link: u32, mut packet: Packet) -> Option<Told> {
        let (arrives, gained) = self.links[link as usize].give(now, packet.size(), packet.flags());
        if gained != 0 {
            packet = packet.flagged(gained);
        }
        if arrives == NONE {
            self.lose(packet);
            return None;
        }
        self.arrive(link, arrives, packet, gained & flags::LOST != 0)
    }

    /// Takes over a packet from the other half. Tells as [`give`](Self::give) does.
    pub(crate) fn come_across(&mut self, crossing: Crossing) -> Option<Told> {
        let Crossing { link, at, packet } = crossing;
        self.arrive(link, at, packet, packet.flags() & flags::LOST != 0)
    }

    /// A packet given to `link` reaches its far end at `arrives`, unless it is lost there.
    #[inline(always)]
    fn arrive(
        &mut self,
        mut link: u32,
        mut arrives: u64,
        mut packet: Packet,
        lost: bool,
    ) -> Option<Told> {
        let (links, routes) = (&mut self.links[..], &self.routes[..]);
        let mut next = routes[packet.hop() as usize + 1];
        if next & (ALONE | LAST | FAR) == 0 {
            // The way of most: to a queue that others feed too.
            if links[link as usize].bring(arrives, packet) {
                self.schedule.push(arrives << self.shift | u64::from(link));
            }
            return None;
        }
        while next & (ALONE | LAST | FAR) == ALONE {
            let following = &mut links[(next & LINK) as usize];
            if lost {
                break;
            }
            let size = u64::from(packet.size());
            arrives = if arrives < self.fence && following.will_pass(arrives) {
                following.carry(arrives, size)
            } else if arrives < self.end
                && let Some(arrives) = following.pass_in_step(arrives, size, arrives >= self.fence)
            {
                arrives
            } else {
                following.coming += 1;
                break;
            };
            packet = packet.onward();
            link = next & LINK;
            next = routes[packet.hop() as usize + 1];
        }
        if next & FAR != 0 {
            self.far.push(Crossing { link, at: arrives, packet });
            return None;
        }
        let this = &mut links[link as usize];
        let in_order = this.brings_nothing() && self.early.is_none();
        let early = next & EARLY != 0 && !lost && arrives < self.fence && in_order;
        if early && nothing_before(&self.timers[(next & FLOW) as usize], arrives, packet) {
            return Some((arrives, next & FLOW, packet.onward()));
        }
        if next & INBOX != 0 && !lost {
            let flow = (next & FLOW) as usize;
            let running = self.timers[flow][SINK].set_to != NONE;
            let inbox = &mut self.inboxes[flow];
            if inbox.as_mut().is_some_and(|inbox| inbox.put(arrives, packet, running)) {
                return None;
            }
        }
        if this.bring(arrives, packet) {
            self.schedule.push(arrives << self.shift | u64::from(link));
        }
        None
    }

    /// The next packet that `link` brings to its endpoint, if that may be told ahead of time; otherwise
    /// an event is to bring it.
    pub(crate) fn follow(&mut self, link: u32) -> Option<(u64, Packet)> {
        let this = &mut self.links[link as usize];
        let (at, packet) = this.first()?;
        let last = self.routes[packet.hop() as usize + 1];
        // Without delay the next one counts as sent only now.
        let early = at < self.fence && packet.flags() & flags::LOST == 0 && this.delay() > 0;
        if early && nothing_before(&self.timers[(last & FLOW) as usize], at, packet) {
            this.take();
            return Some((at, packet.onward()));
        }
        self.schedule.push(at << self.shift | u64::from(link));
        None
    }

    /// The next packet that has reached its endpoint ahead of time.
    pub(crate) fn pop_early(&mut self) -> Option<Told> {
        self.early.take()
    }

    /// Gives the next packet that the other half told of to its queue, if that is before `end` and the
    /// next event. Tells when that was, and what [`give`](Self::give) does.
    #[inline(never)]
    fn take_queueing(&mut self, end: u64) -> Option<(u64, Option<Told>)> {
        let Crossing { link, at, packet } = *self.queueing.front()?;
        if at >= end || self.schedule.first() < (at << self.shift | u64::from(link)) {
            return None;
        }
        self.queueing.pop_front();
        let link = self.routes[packet.hop() as usize] & LINK;
        Some((at, self.give(at, link, packet)))
    }

    /// Shows every packet that crosses link number `link` to `tap`.
    pub(crate) fn set_tap(&mut self, tap: Tap) {
        let link = saturate32(tap.link);
        // A tap sees packets in events: every one of its link's must have one.
        for next in 1..self.routes.len() {
            if self.routes[next - 1] & LINK == link {
                let last = self.routes[next];
                if last & INBOX != 0 {
                    self.inboxes[(last & FLOW) as usize] = None;
                }
                self.routes[next] &= !(ALONE | EARLY | INBOX);
            }
        }
        self.tap = Some(tap);
    }

    #[cold]
    fn lose(&mut self, packet: Packet) {
        if packet.flags() & flags::DATALESS == 0 {
            let flow = self.flow(&packet);
            self.lost[flow as usize] += 1;
        }
    }

    /// Whose packet it is: the end of its route says so.
    fn flow(&self, packet: &Packet) -> u32 {
        let ahead = &self.routes[packet.hop() as usize..];
        ahead.iter().find(|&&entry| entry & LAST != 0).map_or(0, |&last| last & FLOW)
    }

    /// Shows a packet at the end of link `source` to the tap, as of when it left the transmitter.
    #[cold]
    fn show(&mut self, now: u64, source: usize, packet: Packet) {
        let at = self.clock.nanos(now - self.links[source].delay());
        let flow = self.flow(&packet);
        if let Some(tap) = &mut self.tap
            && tap.link == source
        {
            tap.see(at, flow, &packet, &self.extras[flow as usize]);
        }
    }

    /// Has `timer` fire at `at`, or earlier if it is set to already.
    #[inline(always)]
    pub(crate) fn arm(&mut self, timer: usize, at: u64) {
        let entry = &mut self.timers.as_flattened_mut()[timer];
        entry.set_to = at;
        if at < entry.armed && at < self.horizon {
            entry.armed = at;
            self.schedule.push(at << self.shift | (self.links.len() + timer) as u64);
        }
    }

    /// `timer` has nothing to do when it fires: nobody needs to wait for it.
    #[inline(always)]
    pub(crate) fn disarm(&mut self, timer: usize) {
        self.timers.as_flattened_mut()[timer].set_to = NONE;
    }

    /// Deals with events before `end`, as many as are `left`, until one concerns an endpoint. Gives
    /// its time.
    #[inline(always)]
    pub(crate) fn next(&mut self, end: u64, left: &mut u64) -> (u64, Next) {
        let mut now = 0;
        while *left > 0 {
            if let Some((at, flow, packet)) = self.pop_early() {
                *left -= 1;
                return (at, Next::Early(flow, packet));
            }
            if !self.queueing.is_empty()
                && let Some((at, told)) = self.take_queueing(end)
            {
                *left -= 1;
                now = at;
                if let Some((at, flow, packet)) = told {
                    return (at, Next::Early(flow, packet));
                }
                continue;
            }
            let key = self.schedule.first();
            if key >> self.shift >= end {
                return (end, Next::End);
            }
            *left -= 1;
            now = key >> self.shift;
            let source = to_index(key ^ now << self.shift);
            let Some(link) = self.links.get_mut(source) else {
                self.schedule.take_first();
                let timer = source - self.links.len();
                // A timer that was set again leaves its earlier entries behind.
                let entry = &mut self.timers.as_flattened_mut()[timer];
                if entry.armed == now {
                    entry.armed = NONE;
                    if entry.set_to <= now {
                        entry.set_to = NONE;
                    }
                    return (now, Next::Timer(timer));
                }
                continue;
            };
            let (packet, following) = link.take();
            let link = low32(source as u64);
            let packet = packet.onward();
            let next = self.routes[packet.hop() as usize];
            if next & EARLY != 0 && packet.flags() & flags::LOST == 0 {
                self.schedule.take_first();
                return (now, Next::Arrival(next & FLOW, packet, Some(link)));
            }
            match following {
                Some(at) => self.schedule.replace_first(at << self.shift | source as u64),
                None => self.schedule.take_first(),
            }
            if self.tap.is_some() {
                self.show(now, source, packet);
            }
            if packet.flags() & flags::LOST != 0 {
                self.lose(packet);
                continue;
            }
            if next & LAST != 0 {
                return (now, Next::Arrival(next & FLOW, packet, None));
            }
            if next & (ALONE | QUEUE) != 0 {
                if next & QUEUE != 0 {
                    // An event of the other half.
                    *left += 1;
                    self.far_queueing.push(Crossing { link, at: now, packet });
                    continue;
                }
                self.links[(next & LINK) as usize].coming -= 1;
            }
            if let Some((at, flow, packet)) = self.give(now, next & LINK, packet) {
                return (at, Next::Early(flow, packet));
            }
        }
        (now, Next::Pause)
    }
}

/// Whether none of an endpoint's timers fires before `packet` reaches it at `at`.
#[inline(always)]
fn nothing_before(timers: &[Timer; TIMERS], at: u64, packet: Packet) -> bool {
    let side = if packet.flags() & flags::ACK != 0 { SOURCE } else { SINK };
    at <= timers[side].set_to && at <= timers[LIFE].set_to
}

/// For each link the one other that alone feeds it, if there is one.
fn feeders(network: &Network) -> Vec<Option<usize>> {
    /// What feeds a link: endpoints are nobody.
    #[derive(Clone, Copy, PartialEq)]
    enum Feeder {
        Unseen,
        One(Option<usize>),
        Several,
    }
    let mut feeders = vec![Feeder::Unseen; network.links.len()];
    for path in network.flows.iter().flat_map(|flow| [&flow.path, &flow.back]) {
        let mut before = None;
        for &link in path {
            let one = Feeder::One(before);
            let seen = feeders[link];
            feeders[link] =
                if seen == Feeder::Unseen || seen == one { one } else { Feeder::Several };
            before = Some(link);
        }
    }
    let one = |feeder| if let Feeder::One(one) = feeder { one } else { None };
    feeders.into_iter().map(one).collect()
}

/// For each link whether it is on one way of one flow alone.
pub(crate) fn own_links(network: &Network) -> Vec<bool> {
    let mut ways = vec![0; network.links.len()];
    for path in network.flows.iter().flat_map(|flow| [&flow.path, &flow.back]) {
        path.iter().for_each(|&link| ways[link] += 1);
    }
    ways.iter().map(|&ways| ways == 1).collect()
}
