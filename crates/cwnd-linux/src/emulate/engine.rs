//! The thread that is the network: reads packets at both ends, has the simulator's links judge them,
//! and writes those that pass when their time has come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cwnd::Time;
use cwnd_sim::queue::{Fate, LiveLink};
use cwnd_sim::record::LinkRecord;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use super::bundle::Bundle;
use super::journal::{Entry, Journal};
use super::packet;
use super::report::{FlowReport, Lateness, Report, Tool};
use super::{Course, EngineConfig, sys};

/// The longest super-packet with its prefix.
const LONGEST: usize = packet::PREFIX + (1 << 16);
/// How long before a packet's time sleep ends and waiting goes on awake, in nanoseconds: the kernel
/// wakes even a real-time thread some ten microseconds late.
const AWAKE: u64 = 30_000;
/// The longest time without sleep, and how long the sleep is that must follow it, in nanoseconds. At
/// high rates packets are then released a few at once, which costs much less than each alone; and a
/// processor of which a real-time thread leaves nothing is taken away from it for 50 ms.
const VIGIL: u64 = 80_000;
const REST: u64 = 50_000;
/// The longest sleep in nanoseconds: how soon the end is noticed.
const DOZE: u64 = 20_000_000;
/// When nothing is on its way and nothing has come for so many nanoseconds, the links are quiet.
const QUIET: u64 = 50_000_000;
/// Super-packets that are read before the clock is looked at again.
const BATCH: usize = 4;

/// The two ends of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// A packet on its way.
#[derive(Default)]
struct Parcel {
    bytes: Vec<u8>,
    /// Length of its IPv4 header.
    header: usize,
    /// Its way, and how much of it lies behind.
    course: usize,
    backward: bool,
    hop: usize,
}

pub(super) struct Engine {
    /// When time began.
    start: Instant,
    left: File,
    right: File,
    links: Vec<LiveLink>,
    courses: Vec<Course>,
    /// When which parcel reaches the end of the link that it is on; equals in order of arrival.
    ahead: BinaryHeap<Reverse<(u64, u64, usize)>>,
    given: u64,
    parcels: Vec<Parcel>,
    free: Vec<usize>,
    scratch: Vec<u8>,
    /// What goes to the left and to the right.
    bundles: [Bundle; 2],
    lateness: Lateness,
    tool: Tool,
    journal: Option<Journal>,
    sample: u64,
    next_sample: u64,
    warm: Option<u64>,
    /// How long to go on after the end until the links are quiet.
    patience: u64,
    times: Vec<f64>,
    queues: Vec<(Vec<f64>, Vec<f64>)>,
    flows: Vec<FlowReport>,
    /// Whether there is a processor to stay awake on.
    vigilant: bool,
}

impl Engine {
    pub(super) fn new(left: File, right: File, config: EngineConfig) -> io::Result<Self> {
        let EngineConfig { links, courses, seed, sample, warmup, patience, journal } = config;
        let live = |(index, link)| LiveLink::new(link, index, seed);
        let live = links.iter().enumerate().map(live).collect::<Result<_, _>>();
        Ok(Engine {
            start: Instant::now(),
            left,
            right,
            queues: vec![(Vec::new(), Vec::new()); links.len()],
            links: live.map_err(io::Error::other)?,
            flows: vec![FlowReport::default(); courses.len()],
            courses,
            ahead: BinaryHeap::new(),
            given: 0,
            parcels: Vec::new(),
            free: Vec::new(),
            scratch: Vec::with_capacity(LONGEST),
            bundles: Default::default(),
            lateness: Lateness::default(),
            tool: Tool::default(),
            journal,
            sample: sample.as_nanos().max(1),
            next_sample: 0,
            warm: (!warmup.is_zero()).then(|| warmup.as_nanos()),
            patience: patience.as_nanos(),
            times: Vec::new(),
            vigilant: std::thread::available_parallelism().is_ok_and(|count| count.get() > 1),
        })
    }

    /// When time began.
    pub(super) fn begun(&self) -> Instant {
        self.start
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Is the network until `stop` says no more.
    pub(super) fn run(mut self, stop: &Arc<AtomicBool>) -> Report {
        self.tool.realtime = sys::run_first().is_ok();
        // Without that, the kernel gathers wake-ups of 50 µs.
        let _ = prctl::set_timerslack(1);
        let mut buffer = vec![0; LONGEST];
        let (mut rested, mut heard, mut end) = (0, 0, None);
        loop {
            let now = self.catch_up();
            if stop.load(Ordering::Relaxed) {
                let quiet = self.ahead.is_empty() && now - heard > QUIET;
                if quiet || now >= *end.get_or_insert(now + self.patience) {
                    break;
                }
            }
            let mut found = self.read(Side::Left, &mut buffer);
            found |= self.read(Side::Right, &mut buffer);
            if found {
                heard = now;
            }
            let next = match self.ahead.peek() {
                Some(Reverse((at, ..))) => (*at).min(self.next_sample),
                None => self.next_sample,
            };
            let spare = next.saturating_sub(now).min(DOZE);
            if now - rested > VIGIL {
                std::thread::sleep(Duration::from_nanos(REST));
                rested = self.now();
            } else if !found && (spare > AWAKE || !self.vigilant) {
                self.sleep(if self.vigilant { spare - AWAKE } else { spare });
                rested = self.now();
            }
        }
        self.finish()
    }

    /// Waits for a packet, for so many nanoseconds at most.
    fn sleep(&self, nanos: u64) {
        let mut files =
            [&self.left, &self.right].map(|f| PollFd::new(f.as_fd(), PollFlags::POLLIN));
        let limit = TimeSpec::from_duration(Duration::from_nanos(nanos));
        // What interrupts it only makes it shorter.
        let _ = ppoll(&mut files, Some(limit), None);
    }

    /// Does what is due, in order. Gives the time up to which all is done.
    fn catch_up(&mut self) -> u64 {
        loop {
            let now = self.now();
            while let Some(&Reverse((at, _, index))) = self.ahead.peek()
                && at <= now
            {
                self.look(at);
                self.ahead.pop();
                self.step(at, index);
            }
            self.look(now);
            if self.bundles.iter().all(Bundle::is_empty) {
                return now;
            }
            self.write(Side::Left);
            self.write(Side::Right);
        }
    }

    /// Takes the samples that are due until `now`, and begins the measurement.
    fn look(&mut self, now: u64) {
        while self.next_sample <= now {
            let at = Time::from_nanos(self.next_sample);
            self.times.push(at.as_secs());
            for (link, (queue, lost)) in self.links.iter_mut().zip(&mut self.queues) {
                queue.push(f64::from(link.waiting(at)));
                lost.push(link.lost() as f64);
            }
            for flow in &mut self.flows {
                flow.bytes_series.push(flow.bytes as f64);
            }
            self.next_sample += self.sample;
        }
        if self.warm.is_some_and(|warm| warm <= now) {
            let warm = self.warm.take().unwrap_or(now);
            for link in &mut self.links {
                link.begin(Time::from_nanos(warm));
            }
            for flow in &mut self.flows {
                flow.begin();
            }
        }
    }

    /// Reads what has come at one end. False if that is nothing.
    fn read(&mut self, side: Side, buffer: &mut [u8]) -> bool {
        for count in 0..BATCH {
            let mut file = if side == Side::Left { &self.left } else { &self.right };
            let length = match file.read(buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return count > 0,
            };
            // Everything before this packet comes first.
            let now = self.catch_up();
            let mut scratch = std::mem::take(&mut self.scratch);
            packet::split(&mut buffer[..length], &mut scratch, |bytes, header| {
                self.accept(now, side, bytes, header);
            });
            self.scratch = scratch;
        }
        true
    }

    /// Puts a packet on its way.
    fn accept(&mut self, now: u64, side: Side, bytes: &[u8], header: usize) {
        let (source, destination) = packet::ends(&bytes[packet::PREFIX..]);
        let flow = if side == Side::Left { source } else { destination };
        let course = match self.courses.len() {
            1 => 0,
            _ => (flow & super::FLOWS).wrapping_sub(1) as usize,
        };
        if course >= self.courses.len() {
            self.tool.strangers += 1;
            return;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.parcels.push(Parcel::default());
            self.parcels.len() - 1
        });
        let parcel = &mut self.parcels[index];
        parcel.bytes.clear();
        parcel.bytes.extend_from_slice(bytes);
        parcel.header = header;
        parcel.course = course;
        parcel.backward = side == Side::Right;
        parcel.hop = 0;
        self.flows[course].packets += u64::from(side == Side::Left);
        self.step(now, index);
    }

    /// A parcel is at the beginning of its next link, or at the end of its way.
    fn step(&mut self, at: u64, index: usize) {
        let parcel = &mut self.parcels[index];
        let Course { there, back } = &self.courses[parcel.course];
        let way = if parcel.backward { back } else { there };
        let Some(&link) = way.get(parcel.hop) else {
            self.release(at, index);
            return;
        };
        parcel.hop += 1;
        let ip = &mut parcel.bytes[packet::PREFIX..];
        let arrival = packet::arrival(ip, parcel.header);
        let fate = self.links[link].give(Time::from_nanos(at), arrival);
        if let Some(journal) = &mut self.journal {
            journal.add(Entry { at, link: link as u32, arrival, fate });
        }
        let (flow, counts) = (&mut self.flows[parcel.course], u64::from(!parcel.backward));
        match fate {
            Fate::Dropped | Fate::Lost => {
                flow.lost += counts;
                self.free.push(index);
            }
            Fate::Passes { arrives, marked } => {
                if marked {
                    flow.marked += counts;
                    packet::mark(ip);
                }
                self.given += 1;
                self.ahead.push(Reverse((arrives.as_nanos(), self.given, index)));
            }
        }
    }

    /// Lets a packet go whose time was `due`.
    fn release(&mut self, due: u64, index: usize) {
        self.lateness.add(self.now() - due);
        let Parcel { bytes, header, backward, course, .. } = &self.parcels[index];
        let side = if *backward { Side::Left } else { Side::Right };
        if side == Side::Right {
            self.flows[*course].bytes += (bytes.len() - packet::PREFIX) as u64;
        }
        if !self.bundles[side as usize].add(bytes, *header) {
            self.write(side);
            let Parcel { bytes, header, .. } = &self.parcels[index];
            self.bundles[side as usize].add(bytes, *header);
        }
        self.free.push(index);
    }

    /// Writes what goes to one end.
    fn write(&mut self, side: Side) {
        let bundle = &mut self.bundles[side as usize];
        let mut file = if side == Side::Left { &self.left } else { &self.right };
        if !bundle.is_empty() && file.write(bundle.take()).is_err() {
            self.tool.refused += 1;
        }
    }

    fn finish(mut self) -> Report {
        let now = self.catch_up();
        let mut links: Vec<LinkRecord> = Vec::with_capacity(self.links.len());
        for (link, (queue, drops_series)) in self.links.iter_mut().zip(self.queues) {
            let record = link.record(Time::from_nanos(now));
            links.push(LinkRecord { queue, drops_series, ..record });
        }
        let cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
        self.tool.cpu = cpu.unwrap_or_default().as_secs_f64();
        self.tool.wall = now as f64 * 1e-9;
        let journal = self.journal.map_or(Ok(()), Journal::finish);
        let Engine { times: time, flows, lateness, tool, .. } = self;
        Report { time, links, flows, lateness, tool, journal }
    }
}
