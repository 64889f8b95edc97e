//! The event loop of an emulated network, in one thread: reads packets from the TUN devices of both
//! ends, passes them to the simulator's links, and writes each packet when it is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cwnd::Time;
use cwnd_sim::live::{Arrival, Fate, LiveLink, Outcome};
use cwnd_sim::record::LinkRecord;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use super::gro::Coalescer;
use super::packet;
use super::packet_log::{Entry, PacketLog};
use super::report::{EmulatorStats, FlowReport, Lateness, Report};
use super::{EventLoopConfig, Path, sys};

/// Bytes of the largest super-packet with its `virtio_net_hdr`.
const MAX_READ: usize = packet::VNET_HEADER + (1 << 16);
/// Sleep ends this many nanoseconds before a packet is due, and the thread then waits actively: the
/// kernel wakes even real-time threads about 10 µs late.
const BUSY_WAIT: u64 = 30_000;
/// Longest time without sleep in nanoseconds, and the sleep that must follow. At high rates several
/// packets are then due at once, which costs less than one at a time. The kernel deschedules a
/// real-time thread that leaves no processor time to other threads, for 50 ms.
const MAX_AWAKE: u64 = 80_000;
const MIN_SLEEP: u64 = 50_000;
/// Longest sleep in nanoseconds, which bounds the delay until the thread notices the end.
const MAX_SLEEP: u64 = 20_000_000;
/// Idle time in nanoseconds, without packets in flight, after which the links are considered
/// drained.
const DRAINED_AFTER: u64 = 50_000_000;
/// Super-packets read from one device before the thread turns to the other.
const READ_BATCH: usize = 4;

/// End of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// A packet in flight.
#[derive(Default)]
struct Packet {
    bytes: Vec<u8>,
    /// Length of the IPv4 header.
    ip_header: usize,
    /// Index of its path.
    path: usize,
    /// Whether it travels from sink to source.
    reverse: bool,
    /// Number of links of the path that it has entered.
    hop: usize,
    /// Its properties and the time in nanoseconds at which it arrived at its link.
    arrival: Arrival,
    arrived: u64,
}

/// An emulated network between two TUN devices.
pub(super) struct EventLoop {
    /// Time 0 of the links.
    start: Instant,
    left: File,
    right: File,
    links: Vec<LiveLink>,
    paths: Vec<Path>,
    /// Packets in flight: the time in nanoseconds at which the packet reaches the end of its link,
    /// the order of arrival, and the index of the packet.
    in_flight: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// Departures of links that decide on packets at their departure: the time in nanoseconds and
    /// the link.
    departures: BinaryHeap<Reverse<(u64, usize)>>,
    /// For each link whether it is in `departures`.
    departs: Vec<bool>,
    /// Number of packets that links have accepted.
    enqueued: u64,
    packets: Vec<Packet>,
    /// Indices of unused packets.
    free: Vec<usize>,
    scratch: Vec<u8>,
    /// Packets to write at the left and right end.
    coalescers: [Coalescer; 2],
    lateness: Lateness,
    stats: EmulatorStats,
    packet_log: Option<PacketLog>,
    sample_interval: u64,
    next_sample: u64,
    warmup_end: Option<u64>,
    /// Time after the end for packets in flight, in nanoseconds.
    drain_time: u64,
    times: Vec<f64>,
    /// Samples of each link: packets waiting, and packets lost.
    link_series: Vec<(Vec<f64>, Vec<f64>)>,
    flows: Vec<FlowReport>,
    /// Whether to wait actively, which needs a second processor.
    busy_wait: bool,
}

impl EventLoop {
    pub(super) fn new(left: File, right: File, config: EventLoopConfig) -> io::Result<Self> {
        let EventLoopConfig { links, paths, seed, sample, warmup, drain_time, packet_log } = config;
        let create_link = |(index, link)| LiveLink::new(link, index, seed);
        let created = links.iter().enumerate().map(create_link).collect::<Result<_, _>>();
        Ok(EventLoop {
            start: Instant::now(),
            left,
            right,
            link_series: vec![(Vec::new(), Vec::new()); links.len()],
            departures: BinaryHeap::new(),
            departs: vec![false; links.len()],
            links: created.map_err(io::Error::other)?,
            flows: vec![FlowReport::default(); paths.len()],
            paths,
            in_flight: BinaryHeap::new(),
            enqueued: 0,
            packets: Vec::new(),
            free: Vec::new(),
            scratch: Vec::with_capacity(MAX_READ),
            coalescers: Default::default(),
            lateness: Lateness::default(),
            stats: EmulatorStats::default(),
            packet_log,
            sample_interval: sample.as_nanos().max(1),
            next_sample: 0,
            warmup_end: (!warmup.is_zero()).then(|| warmup.as_nanos()),
            drain_time: drain_time.as_nanos(),
            times: Vec::new(),
            busy_wait: std::thread::available_parallelism().is_ok_and(|count| count.get() > 1),
        })
    }

    /// Returns time 0 of the links.
    pub(super) fn start_time(&self) -> Instant {
        self.start
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Runs the network until `stop` is set and the links are drained.
    pub(super) fn run(mut self, stop: &Arc<AtomicBool>) -> Report {
        self.stats.realtime = sys::set_realtime().is_ok();
        // By default the kernel delays wake-ups by up to 50 µs to coalesce them.
        let _ = prctl::set_timerslack(1);
        let mut buffer = vec![0; MAX_READ];
        let (mut last_sleep, mut last_arrival, mut end) = (0, 0, None);
        loop {
            let now = self.catch_up();
            if stop.load(Ordering::Relaxed) {
                let empty = self.in_flight.is_empty() && self.departures.is_empty();
                let drained = empty && now - last_arrival > DRAINED_AFTER;
                if drained || now >= *end.get_or_insert(now + self.drain_time) {
                    break;
                }
            }
            let mut received = self.read(Side::Left, &mut buffer);
            received |= self.read(Side::Right, &mut buffer);
            if received {
                last_arrival = now;
            }
            let next = self.next_arrival().min(self.next_departure()).min(self.next_sample);
            let idle = next.saturating_sub(now).min(MAX_SLEEP);
            if now - last_sleep > MAX_AWAKE {
                std::thread::sleep(Duration::from_nanos(MIN_SLEEP));
                last_sleep = self.now();
            } else if !received && (idle > BUSY_WAIT || !self.busy_wait) {
                self.sleep(if self.busy_wait { idle - BUSY_WAIT } else { idle });
                last_sleep = self.now();
            }
        }
        self.finish()
    }

    /// Waits for a packet, at most `nanos` nanoseconds.
    fn sleep(&self, nanos: u64) {
        let mut files =
            [&self.left, &self.right].map(|f| PollFd::new(f.as_fd(), PollFlags::POLLIN));
        let limit = TimeSpec::from_duration(Duration::from_nanos(nanos));
        // An interrupted wait ends early.
        let _ = ppoll(&mut files, Some(limit), None);
    }

    /// Processes everything that is due, in order. Returns the time up to which all is processed.
    fn catch_up(&mut self) -> u64 {
        loop {
            let now = self.now();
            loop {
                // An arrival at the time of a departure precedes it.
                let (arrival, departure) = (self.next_arrival(), self.next_departure());
                let at = arrival.min(departure);
                if at > now {
                    break;
                }
                self.sample_until(at);
                if arrival <= departure {
                    if let Some(Reverse((_, _, index))) = self.in_flight.pop() {
                        self.forward(at, index);
                    }
                } else if let Some(Reverse((_, link))) = self.departures.pop() {
                    self.departs[link] = false;
                    self.collect(at, link);
                }
            }
            self.sample_until(now);
            if self.coalescers.iter().all(Coalescer::is_empty) {
                return now;
            }
            self.write(Side::Left);
            self.write(Side::Right);
        }
    }

    /// Returns the time in nanoseconds of the next packet in flight to reach the end of its link.
    fn next_arrival(&self) -> u64 {
        self.in_flight.peek().map_or(u64::MAX, |Reverse((at, ..))| *at)
    }

    /// Returns the time in nanoseconds of the next departure that decides on packets.
    fn next_departure(&self) -> u64 {
        self.departures.peek().map_or(u64::MAX, |Reverse((at, _))| *at)
    }

    /// Takes the samples that are due until `now`, and starts the measurement after the warm-up.
    fn sample_until(&mut self, now: u64) {
        while self.next_sample <= now {
            let at = Time::from_nanos(self.next_sample);
            self.times.push(at.as_secs());
            for (link, (queue, lost)) in self.links.iter_mut().zip(&mut self.link_series) {
                queue.push(f64::from(link.waiting(at)));
                lost.push(link.lost() as f64);
            }
            for flow in &mut self.flows {
                flow.bytes_series.push(flow.bytes as f64);
            }
            self.next_sample += self.sample_interval;
        }
        if self.warmup_end.is_some_and(|warmup_end| warmup_end <= now) {
            let warmup_end = self.warmup_end.take().unwrap_or(now);
            for link in &mut self.links {
                link.begin(Time::from_nanos(warmup_end));
            }
            for flow in &mut self.flows {
                flow.begin();
            }
        }
    }

    /// Reads packets from one device. Returns false if there were none.
    fn read(&mut self, side: Side, buffer: &mut [u8]) -> bool {
        for count in 0..READ_BATCH {
            let mut file = if side == Side::Left { &self.left } else { &self.right };
            let length = match file.read(buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return count > 0,
            };
            // Process everything that is due before this packet.
            let now = self.catch_up();
            let mut scratch = std::mem::take(&mut self.scratch);
            packet::segment(&mut buffer[..length], &mut scratch, |bytes, ip_header| {
                self.enqueue(now, side, bytes, ip_header);
            });
            self.scratch = scratch;
        }
        true
    }

    /// Sends a packet into the first link of its path.
    fn enqueue(&mut self, now: u64, side: Side, bytes: &[u8], ip_header: usize) {
        let (source, destination) = packet::addresses(&bytes[packet::VNET_HEADER..]);
        let flow = if side == Side::Left { source } else { destination };
        let path = match self.paths.len() {
            1 => 0,
            _ => (flow & super::FLOW_BITS).wrapping_sub(1) as usize,
        };
        if path >= self.paths.len() {
            self.stats.unknown += 1;
            return;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.packets.push(Packet::default());
            self.packets.len() - 1
        });
        let packet = &mut self.packets[index];
        packet.bytes.clear();
        packet.bytes.extend_from_slice(bytes);
        packet.ip_header = ip_header;
        packet.path = path;
        packet.reverse = side == Side::Right;
        packet.hop = 0;
        self.flows[path].packets += u64::from(side == Side::Left);
        self.forward(now, index);
    }

    /// Sends a packet into its next link, or delivers it at the end of its path.
    fn forward(&mut self, at: u64, index: usize) {
        let packet = &mut self.packets[index];
        let Path { forward, reverse } = &self.paths[packet.path];
        let links = if packet.reverse { reverse } else { forward };
        let Some(&link) = links.get(packet.hop) else {
            self.deliver(at, index);
            return;
        };
        packet.hop += 1;
        let ip = &packet.bytes[packet::VNET_HEADER..];
        let arrival = packet::arrival(ip, packet.ip_header);
        (packet.arrival, packet.arrived) = (arrival, at);
        self.links[link].offer(Time::from_nanos(at), index as u32, arrival);
        self.collect(at, link);
    }

    /// Handles the packets on which `link` has decided until `at`.
    fn collect(&mut self, at: u64, link: usize) {
        while let Some(Outcome { id, fate }) = self.links[link].poll(Time::from_nanos(at)) {
            self.decided(link, id as usize, fate);
        }
        if !self.departs[link]
            && let Some(next) = self.links[link].next_departure()
        {
            self.departs[link] = true;
            self.departures.push(Reverse((next.as_nanos(), link)));
        }
    }

    /// Handles the fate of a packet at `link`.
    fn decided(&mut self, link: usize, index: usize, fate: Fate) {
        let packet = &mut self.packets[index];
        if let Some(packet_log) = &mut self.packet_log {
            let Packet { arrival, arrived: at, .. } = *packet;
            packet_log.add(Entry { at, link: link as u32, arrival, fate });
        }
        let (flow, count) = (&mut self.flows[packet.path], u64::from(!packet.reverse));
        match fate {
            Fate::Dropped | Fate::Lost => {
                flow.lost += count;
                self.free.push(index);
            }
            Fate::Passes { arrives, marked } => {
                if marked {
                    flow.marked += count;
                    packet::mark(&mut packet.bytes[packet::VNET_HEADER..]);
                }
                self.enqueued += 1;
                self.in_flight.push(Reverse((arrives.as_nanos(), self.enqueued, index)));
            }
        }
    }

    /// Delivers a packet that was due at `due`.
    fn deliver(&mut self, due: u64, index: usize) {
        self.lateness.add(self.now() - due);
        let Packet { bytes, ip_header, reverse, path, .. } = &self.packets[index];
        let side = if *reverse { Side::Left } else { Side::Right };
        if side == Side::Right {
            self.flows[*path].bytes += (bytes.len() - packet::VNET_HEADER) as u64;
        }
        if !self.coalescers[side as usize].add(bytes, *ip_header) {
            self.write(side);
            let Packet { bytes, ip_header, .. } = &self.packets[index];
            self.coalescers[side as usize].add(bytes, *ip_header);
        }
        self.free.push(index);
    }

    /// Writes the packets for one end.
    fn write(&mut self, side: Side) {
        let coalescer = &mut self.coalescers[side as usize];
        let mut file = if side == Side::Left { &self.left } else { &self.right };
        if !coalescer.is_empty() && file.write(coalescer.take()).is_err() {
            self.stats.refused += 1;
        }
    }

    /// Returns the report.
    fn finish(mut self) -> Report {
        let now = self.catch_up();
        let mut links: Vec<LinkRecord> = Vec::with_capacity(self.links.len());
        for (link, (queue, drops_series)) in self.links.iter_mut().zip(self.link_series) {
            let record = link.record(Time::from_nanos(now));
            links.push(LinkRecord { queue, drops_series, ..record });
        }
        let cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
        self.stats.cpu = cpu.unwrap_or_default().as_secs_f64();
        self.stats.wall = now as f64 * 1e-9;
        let packet_log = self.packet_log.map_or(Ok(()), PacketLog::finish);
        let EventLoop { times: time, flows, lateness, stats, .. } = self;
        Report { time, links, flows, lateness, emulator: stats, tcp: Vec::new(), packet_log }
    }
}
