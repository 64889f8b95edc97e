//! Links for real traffic: a process between two network namespaces that runs the simulator's queues
//! by the time of day.
//!
//! Each end is a TUN device; one thread reads packets at both, gives each to the simulator's
//! [`LiveLink`](cwnd_sim::queue::LiveLink) as of when it was read, and writes it at the other end when
//! it would have arrived there. Super-packets are cut before any queue sees them. The links carry
//! IPv4 and nothing else.
//!
//! * [`Emulation`] is one link from a new namespace to the caller's, for `cwnd emulate`.
//! * [`Testbed`] is the network of a scenario between two new namespaces: all sources live in the one,
//!   all sinks in the other, and flow `n` has an address of its own in each.
//!
//! Namespaces have no names and devices last as long as their files: whatever happens to the process,
//! the kernel removes all of it, with the processes that were started by [`Space::start`].
//!
//! ```no_run
//! use cwnd_linux::emulate::{Options, Testbed};
//! use cwnd_sim::scenario::Scenario;
//! use std::{process::Command, thread, time::Duration};
//!
//! let scenario = Scenario::from_bytes(&std::fs::read("four.toml")?, "four.toml")?;
//! let network = scenario.network(1)?;
//! let testbed = Testbed::new(&network, &Options { seed: 1, ..Options::default() })?;
//! let address = testbed.sink_address(0);
//! // In a namespace: sockets of a closure, or a whole command.
//! let listener = testbed.sinks().run(|| std::net::TcpListener::bind((address, 5001)))??;
//! let sender = Command::new("sender");
//! let running = testbed.sources().start(sender)?;
//! thread::sleep(Duration::from_secs(10));
//! drop(running);
//! let report = testbed.stop()?;
//! println!("{} drops, {:?}", report.links[0].drops, report.limit());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod bundle;
mod engine;
mod journal;
mod packet;
mod report;
mod space;
mod sys;

pub use report::{FlowReport, Lateness, Report, Tool};
pub use space::{Running, Space};

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use cwnd::Dur;
use cwnd_sim::network::{self, Network};

use address::Prefix;
use engine::Engine;
use journal::Journal;
use space::join;

/// The bits of an address that number flows, from 1: 10.0.0.0/9 are sources, 10.128.0.0/9 sinks.
const FLOWS: u32 = 0x7f_ffff;
const SOURCES: u32 = 0x0a00_0000;
const SINKS: u32 = 0x0a80_0000;

/// Packets that wait at most until the tool reads them; it reads them at once.
const UNREAD: i32 = 10_000;
/// Between two samples of a link that is no scenario's.
const SAMPLE: Dur = Dur::from_millis(100);
/// How long connections may take to end after the command.
const PATIENCE: Dur = Dur::from_millis(2000);
/// The link's device in a namespace of which it is the way out.
pub(crate) const WAY_OUT: &str = "uplink";

/// The variables that tell a command its own address, the address of the other end, that of the
/// outermost end where links are nested, and the addresses for links inside this one.
const ADDRESS: &str = "CWND_ADDRESS";
const PEER: &str = "CWND_PEER";
const BASE: &str = "CWND_BASE";
const NET: &str = "CWND_NET";

/// How to emulate.
#[derive(Debug, Default)]
pub struct Options {
    /// The seed of random loss and RED: packet for packet that of a simulation.
    pub seed: u64,
    /// Where to write what becomes of each packet at each link, as CSV.
    pub record: Option<File>,
}

/// The links that a flow's packets cross, and those of what comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Course {
    there: Vec<usize>,
    back: Vec<usize>,
}

/// Configuration of an engine.
struct EngineConfig<'a> {
    links: &'a [network::Link],
    courses: Vec<Course>,
    seed: u64,
    sample: Dur,
    warmup: Dur,
    /// How long what is on its way may still arrive after the end.
    patience: Dur,
    journal: Option<Journal>,
}

/// An engine at work between two devices.
struct Wire {
    ends: [(Space, String); 2],
    /// What [`unread`] said of both at the beginning.
    before: u64,
    /// When its time began.
    begun: Instant,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Report>>,
}

impl Wire {
    fn start(
        links: &[network::Link],
        courses: Vec<Course>,
        [sample, warmup, patience]: [Dur; 3],
        options: &Options,
        [left, right]: [(Space, String, File); 2],
    ) -> io::Result<Self> {
        let names = links.iter().map(|link| link.name.clone()).collect();
        let record = options.record.as_ref().map(File::try_clone).transpose()?;
        let journal = record.map(|file| Journal::new(file, names)).transpose()?;
        let seed = options.seed;
        let config = EngineConfig { links, courses, seed, sample, warmup, patience, journal };
        let engine = Engine::new(left.2, right.2, config)?;
        let begun = engine.begun();
        let ends = [(left.0, left.1), (right.0, right.1)];
        let before = unread_at(&ends)?;
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let thread =
            thread::Builder::new().name("cwnd-link".into()).spawn(move || engine.run(&until))?;
        Ok(Wire { ends, before, begun, stop, thread: Some(thread) })
    }

    fn stop(mut self) -> io::Result<Report> {
        let overrun = unread_at(&self.ends)?.saturating_sub(self.before);
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take();
        let mut report = thread.map_or_else(|| Err(space::panicked()), join)?;
        report.tool.overrun = overrun;
        Ok(report)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Packets that were dropped before they could be read at the two ends.
fn unread_at(ends: &[(Space, String); 2]) -> io::Result<u64> {
    ends.iter().map(|(space, device)| space.run(|| unread(device))).sum()
}

/// Packets that were dropped before they could be read from a device.
fn unread(device: &str) -> u64 {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let line =
        table.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'));
    let dropped = line.and_then(|line| line.split_ascii_whitespace().nth(11));
    dropped.and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Gives a device its address and brings it up, with no queue of the kernel's before it.
fn raise(device: &str, address: Ipv4Addr, prefix: u32) -> io::Result<sys::Interfaces> {
    let interfaces = sys::Interfaces::new()?;
    // Nobody would carry what the kernel sends of its own accord; where this file cannot be written,
    // it is read and left.
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"), "1");
    // A device without room gets no queueing discipline. Only the machine's root may change it: for
    // others 500 packets may wait, and some before them.
    let _ = interfaces.room(device, 0);
    interfaces.address(device, address, prefix)?;
    interfaces.raise(device)?;
    let _ = interfaces.room(device, UNREAD);
    Ok(interfaces)
}

/// Makes a device that is the way out of the calling thread's namespace.
fn way_out(address: Ipv4Addr) -> io::Result<File> {
    let file = sys::open_tun(WAY_OUT)?;
    raise(WAY_OUT, address, 32)?.default_route(WAY_OUT)?;
    Ok(file)
}

/// One link from a new namespace to the caller's.
pub struct Emulation {
    wire: Wire,
    inside: Space,
    prefix: Prefix,
    base: Ipv4Addr,
}

impl Emulation {
    /// A link: `up` carries what leaves the new namespace, `down` what enters it.
    ///
    /// # Errors
    /// When this is not permitted (it needs `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`), there is no TUN
    /// device, or there are no addresses left.
    pub fn new(up: &network::Link, down: &network::Link, options: &Options) -> io::Result<Self> {
        let links = [up.clone(), down.clone()];
        let course = Course { there: vec![0], back: vec![1] };
        let within = std::env::var(NET).ok().and_then(|text| text.parse().ok());
        let outside = Space::current()?;
        let (prefix, device, outer) = outer_end(within)?;
        let inside = Space::new()?;
        let inner = inside.run(|| {
            // Links inside this one lead through it; what cannot be set stays as it is.
            let _ = fs::write("/proc/sys/net/ipv4/ip_forward", "1");
            way_out(prefix.inner())
        })??;
        let base = std::env::var(BASE).ok().and_then(|text| text.parse().ok());
        let left = (inside.try_clone()?, WAY_OUT.to_owned(), inner);
        let right = (outside, device, outer);
        // The last words of a connection are not lost with the command.
        let times = [SAMPLE, Dur::ZERO, PATIENCE];
        let wire = Wire::start(&links, vec![course], times, options, [left, right])?;
        Ok(Emulation {
            wire,
            inside,
            prefix,
            base: base.filter(|_| within.is_some()).unwrap_or(prefix.outer()),
        })
    }

    /// The address of the caller's end.
    pub fn peer(&self) -> Ipv4Addr {
        self.prefix.outer()
    }

    /// The address of the end in the new namespace.
    pub fn address(&self) -> Ipv4Addr {
        self.prefix.inner()
    }

    /// The new namespace.
    pub fn space(&self) -> &Space {
        &self.inside
    }

    /// Starts a command in the new namespace; variables of its environment say where it is.
    ///
    /// # Errors
    /// As [`Space::start`].
    pub fn start(&self, mut command: Command) -> io::Result<Running> {
        command.env(ADDRESS, self.address().to_string());
        command.env(PEER, self.peer().to_string());
        command.env(BASE, self.base.to_string());
        command.env(NET, self.prefix.to_string());
        self.inside.start(command)
    }

    /// Ends the link. The report's links are up and down.
    ///
    /// # Errors
    /// When a thread has failed.
    pub fn stop(self) -> io::Result<Report> {
        self.wire.stop()
    }
}

/// Makes a device in the caller's namespace, with addresses that nobody else has there.
fn outer_end(within: Option<Prefix>) -> io::Result<(Prefix, String, File)> {
    let prefixes = Prefix::inside(within);
    if prefixes.is_empty() {
        return Err(io::Error::other("links are nested at most four deep"));
    }
    for (number, prefix) in prefixes.into_iter().enumerate() {
        // The name is the lock: who has the device has the addresses.
        let device = format!("cwnd{number}");
        let file = match sys::open_tun(&device) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => continue,
            other => other?,
        };
        let routes = fs::read_to_string("/proc/thread-self/net/route")?;
        if prefix.is_routed(&routes, within) {
            continue;
        }
        raise(&device, prefix.outer(), prefix.length)?;
        return Ok((prefix, device, file));
    }
    Err(io::Error::other("no addresses are left for another link"))
}

/// The addresses of a flow's source and sink in any testbed.
pub(crate) fn ends(flow: u32) -> [Ipv4Addr; 2] {
    [SOURCES, SINKS].map(|first| Ipv4Addr::from_bits(first + 1 + flow))
}

/// The network of a scenario between two namespaces.
pub struct Testbed {
    wire: Wire,
    sources: Space,
    sinks: Space,
}

impl Testbed {
    /// The links of `network`, for its flows. What they send is up to the caller: nothing is sent
    /// here. The measurement begins after the network's warm-up, and samples are taken as it says.
    ///
    /// # Errors
    /// As [`Emulation::new`].
    pub fn new(network: &Network, options: &Options) -> io::Result<Self> {
        let course =
            |flow: &network::Flow| Course { there: flow.path.clone(), back: flow.back.clone() };
        let courses: Vec<_> = network.flows.iter().map(course).collect();
        let end = |first: u32| {
            let space = Space::new()?;
            let device = space.run(|| {
                let file = way_out(Ipv4Addr::from_bits(first + 1))?;
                let interfaces = sys::Interfaces::new()?;
                for flow in 1..courses.len() as u32 {
                    let alias = format!("{WAY_OUT}:{flow}");
                    interfaces.address(&alias, Ipv4Addr::from_bits(first + 1 + flow), 32)?;
                }
                io::Result::Ok(file)
            })??;
            io::Result::Ok((space, device))
        };
        let ((sources, left), (sinks, right)) = (end(SOURCES)?, end(SINKS)?);
        let left = (sources.try_clone()?, WAY_OUT.to_owned(), left);
        let right = (sinks.try_clone()?, WAY_OUT.to_owned(), right);
        let times = [network.sample, network.warmup, Dur::ZERO];
        let wire = Wire::start(&network.links, courses, times, options, [left, right])?;
        Ok(Testbed { wire, sources, sinks })
    }

    /// When the links' time began: samples and the warm-up count from here.
    pub fn begun(&self) -> Instant {
        self.wire.begun
    }

    /// Where sources live.
    pub fn sources(&self) -> &Space {
        &self.sources
    }

    /// Where sinks live.
    pub fn sinks(&self) -> &Space {
        &self.sinks
    }

    /// The address from which flow number `flow` must send: its packets cross the flow's links.
    pub fn source_address(&self, flow: u32) -> Ipv4Addr {
        ends(flow)[0]
    }

    /// The address to which flow number `flow` must send.
    pub fn sink_address(&self, flow: u32) -> Ipv4Addr {
        ends(flow)[1]
    }

    /// Ends it. The report's links are the network's.
    ///
    /// # Errors
    /// When a thread has failed.
    pub fn stop(self) -> io::Result<Report> {
        self.wire.stop()
    }
}
