//! Emulated links for real traffic: a thread between two network namespaces runs the simulator's
//! queues in real time.
//!
//! Each end is a TUN device. One thread reads packets from both, passes each to the simulator's
//! [`LiveLink`](cwnd_sim::live::LiveLink) with the time of the read, and writes it to the other
//! device when the link delivers it. Super-packets are segmented before they enter a queue. The
//! links carry IPv4 only.
//!
//! * [`Emulation`] is one link between a new namespace and the caller's, for `cwnd emulate`.
//! * [`Testbed`] is the network of a scenario between two new namespaces: all sources are in one,
//!   all sinks in the other, and each flow has an address of its own in both.
//!
//! Namespaces have no names and devices are not persistent. When the process ends for any reason,
//! the kernel removes them, and kills the processes started by [`Namespace::start`].
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
//! // Sockets opened by a closure, and commands, are in the namespace.
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
mod event_loop;
mod gro;
mod namespace;
mod packet;
mod packet_log;
mod report;
mod route;
mod sys;
mod tcp_limits;

pub(crate) use namespace::{LARGE_BUFFERS, set_sysctl};
pub use namespace::{Namespace, RunningCommand};
pub use report::{EmulatorStats, FlowReport, Lateness, Report};
pub(crate) use route::{Metric, add_route};
pub use tcp_limits::TcpLimits;

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
use ipnet::Ipv4Net;

use event_loop::EventLoop;
use namespace::join;
use packet_log::PacketLog;
use tcp_limits::TcpDiagnosis;

/// Bits of an address that identify a flow, from 1. Sources have 10.0.0.0/9, sinks 10.128.0.0/9.
const FLOW_BITS: u32 = 0x7f_ffff;
const SOURCES: u32 = 0x0a00_0000;
const SINKS: u32 = 0x0a80_0000;

/// Transmit queue of a device in packets. The emulator reads packets at once.
const DEVICE_QUEUE: i32 = 10_000;
/// Sample interval of a link without a scenario.
const SAMPLE: Dur = Dur::from_millis(100);
/// Time after the command for its connections to end.
const DRAIN_TIME: Dur = Dur::from_millis(2000);
/// Name of the device that is the default route of a namespace.
pub(crate) const UPLINK: &str = "uplink";

/// Environment variables of a command: its own address, the address of the other end, the outermost
/// address of nested links, and the prefix for links nested in this one.
const ADDRESS: &str = "CWND_ADDRESS";
const PEER: &str = "CWND_PEER";
const BASE: &str = "CWND_BASE";
const NET: &str = "CWND_NET";

/// Options of an emulation.
#[derive(Debug, Default)]
pub struct Options {
    /// Seed of random loss and RED. The same packets at the same times have the same fates as in
    /// the simulator.
    pub seed: u64,
    /// File for the fate of each packet at each link, as CSV.
    pub record: Option<File>,
    /// Largest packet of the devices in bytes, 1500 by default.
    pub mtu: Option<u16>,
}

/// Indices of the links that a flow's packets cross, from the source to the sink and back.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Path {
    forward: Vec<usize>,
    reverse: Vec<usize>,
}

/// Configuration of an event loop.
struct EventLoopConfig<'a> {
    links: &'a [network::Link],
    paths: Vec<Path>,
    seed: u64,
    sample: Dur,
    warmup: Dur,
    /// Time after the end for packets in flight.
    drain_time: Dur,
    packet_log: Option<PacketLog>,
}

/// A running event loop and its two devices.
struct RunningLinks {
    ends: [(Namespace, String); 2],
    /// [`total_drops`] at the start.
    drops_at_start: u64,
    /// Time 0 of the links.
    start_time: Instant,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Report>>,
}

impl RunningLinks {
    fn start(
        links: &[network::Link],
        paths: Vec<Path>,
        [sample, warmup, drain_time]: [Dur; 3],
        options: &Options,
        [left, right]: [(Namespace, String, File); 2],
    ) -> io::Result<Self> {
        let names = links.iter().map(|link| link.name.clone()).collect();
        let record = options.record.as_ref().map(File::try_clone).transpose()?;
        let packet_log = record.map(|file| PacketLog::new(file, names)).transpose()?;
        let seed = options.seed;
        let config = EventLoopConfig { links, paths, seed, sample, warmup, drain_time, packet_log };
        let event_loop = EventLoop::new(left.2, right.2, config)?;
        let start_time = event_loop.start_time();
        let ends = [(left.0, left.1), (right.0, right.1)];
        let drops_at_start = total_drops(&ends)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stop_flag = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("cwnd-link".into())
            .spawn(move || event_loop.run(&stop_flag))?;
        Ok(RunningLinks { ends, drops_at_start, start_time, stop, thread: Some(thread) })
    }

    fn stop(mut self) -> io::Result<Report> {
        let overrun = total_drops(&self.ends)?.saturating_sub(self.drops_at_start);
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take();
        let mut report = thread.map_or_else(|| Err(namespace::thread_panicked()), join)?;
        report.emulator.overrun = overrun;
        Ok(report)
    }
}

impl Drop for RunningLinks {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Returns the number of packets that the kernel dropped before they were read, for both devices.
fn total_drops(ends: &[(Namespace, String); 2]) -> io::Result<u64> {
    ends.iter().map(|(namespace, device)| namespace.run(|| tx_drops(device))).sum()
}

/// Returns the number of packets that the kernel dropped before they were read from `device`.
fn tx_drops(device: &str) -> u64 {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let line =
        table.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'));
    let dropped = line.and_then(|line| line.split_ascii_whitespace().nth(11));
    dropped.and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Sets the address of a device and brings it up, without a queueing discipline.
fn configure_device(device: &str, address: Ipv4Net, mtu: Option<u16>) -> io::Result<()> {
    let interfaces = sys::Interfaces::new()?;
    if let Some(bytes) = mtu {
        interfaces.set_mtu(device, bytes)?;
    }
    // The links do not carry IPv6. If this setting cannot be written, packets of IPv6 are read and
    // discarded.
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"), "1");
    // A device that is brought up with a transmit queue of 0 has no queueing discipline. Only root
    // of the initial user namespace may change the length: for other users the queue has 500
    // packets, after the packets of a queueing discipline.
    let _ = interfaces.set_queue_length(device, 0);
    interfaces.set_address(device, address)?;
    interfaces.bring_up(device)?;
    let _ = interfaces.set_queue_length(device, DEVICE_QUEUE);
    Ok(())
}

/// Creates the device that is the default route of the calling thread's namespace.
fn create_uplink(address: Ipv4Addr, mtu: Option<u16>) -> io::Result<File> {
    let file = sys::open_tun(UPLINK)?;
    configure_device(UPLINK, address.into(), mtu)?;
    add_route(Ipv4Net::default(), UPLINK, &[])?;
    Ok(file)
}

/// A link between a new namespace and the caller's.
pub struct Emulation {
    links: RunningLinks,
    inside: Namespace,
    prefix: Ipv4Net,
    base: Ipv4Addr,
    /// TCP in the new namespace and in the caller's.
    tcp: [TcpDiagnosis; 2],
}

impl Emulation {
    /// Creates a link. `up` carries packets from the new namespace, `down` to it.
    ///
    /// # Errors
    /// It is not permitted (`CAP_NET_ADMIN` and `CAP_SYS_ADMIN` are required), there is no
    /// `/dev/net/tun`, or no prefix is free.
    pub fn new(up: &network::Link, down: &network::Link, options: &Options) -> io::Result<Self> {
        let links = [up.clone(), down.clone()];
        let path = Path { forward: vec![0], reverse: vec![1] };
        let enclosing = std::env::var(NET).ok().and_then(|text| address::parse(&text));
        let outside = Namespace::current()?;
        let (prefix, device, outer) = create_outer_device(enclosing, options.mtu)?;
        let inside = Namespace::new()?;
        let (inner, tcp_inside) = inside.run(|| {
            // The link is the limit, not the buffers. Errors are reported as limits.
            for (name, value) in LARGE_BUFFERS {
                let _ = set_sysctl(name, value);
            }
            // Links nested in this one are routed through it. Errors are ignored: the setting may
            // be read-only.
            let _ = fs::write("/proc/sys/net/ipv4/ip_forward", "1");
            let device = create_uplink(address::inner(prefix), options.mtu)?;
            Ok::<_, io::Error>((device, TcpDiagnosis::new()?))
        })??;
        let base = std::env::var(BASE).ok().and_then(|text| text.parse().ok());
        let left = (inside.try_clone()?, UPLINK.to_owned(), inner);
        let right = (outside, device, outer);
        // The end of the command must not lose the last packets of its connections.
        let times = [SAMPLE, Dur::ZERO, DRAIN_TIME];
        let links = RunningLinks::start(&links, vec![path], times, options, [left, right])?;
        Ok(Emulation {
            links,
            inside,
            prefix,
            base: base.filter(|_| enclosing.is_some()).unwrap_or(address::outer(prefix)),
            tcp: [tcp_inside, TcpDiagnosis::new()?],
        })
    }

    /// Returns the address of the caller's end.
    pub fn peer(&self) -> Ipv4Addr {
        address::outer(self.prefix)
    }

    /// Returns the address of the new namespace's end.
    pub fn address(&self) -> Ipv4Addr {
        address::inner(self.prefix)
    }

    /// Returns the new namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.inside
    }

    /// Starts a command in the new namespace. Its environment has the addresses.
    ///
    /// # Errors
    /// As [`Namespace::start`].
    pub fn start(&self, mut command: Command) -> io::Result<RunningCommand> {
        command.env(ADDRESS, self.address().to_string());
        command.env(PEER, self.peer().to_string());
        command.env(BASE, self.base.to_string());
        command.env(NET, self.prefix.to_string());
        self.inside.start(command)
    }

    /// Ends the emulation. The links of the report are up and down.
    ///
    /// # Errors
    /// A thread panicked, or the statistics of the connections cannot be read.
    pub fn stop(self) -> io::Result<Report> {
        let Emulation { links, prefix, tcp: [inside, outside], .. } = self;
        let mut report = links.stop()?;
        let is_inside = |peer| address::is_inside(prefix, peer);
        let up =
            inside.limits(|local, peer| local == address::inner(prefix) && !is_inside(peer))?;
        let down = outside.limits(|_, peer| is_inside(peer))?;
        report.tcp = vec![up, down];
        Ok(report)
    }
}

/// Creates a device in the caller's namespace, with a prefix that is free there.
fn create_outer_device(
    enclosing: Option<Ipv4Net>,
    mtu: Option<u16>,
) -> io::Result<(Ipv4Net, String, File)> {
    let prefixes = address::candidates(enclosing);
    if prefixes.is_empty() {
        return Err(io::Error::other("emulated links can be nested four deep"));
    }
    for (number, prefix) in prefixes.into_iter().enumerate() {
        // The name of the device is the lock of the prefix.
        let device = format!("cwnd{number}");
        let file = match sys::open_tun(&device) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => continue,
            other => other?,
        };
        let routes = fs::read_to_string("/proc/thread-self/net/route")?;
        if address::is_routed(prefix, &routes, enclosing) {
            continue;
        }
        let outer = Ipv4Net::new_assert(address::outer(prefix), prefix.prefix_len());
        configure_device(&device, outer, mtu)?;
        return Ok((prefix, device, file));
    }
    Err(io::Error::other("all prefixes for emulated links are in use"))
}

/// Returns the addresses of the source and sink of a flow in any testbed.
pub(crate) fn flow_addresses(flow: u32) -> [Ipv4Addr; 2] {
    [SOURCES, SINKS].map(|first| Ipv4Addr::from_bits(first + 1 + flow))
}

/// The network of a scenario between two namespaces.
pub struct Testbed {
    links: RunningLinks,
    sources: Namespace,
    sinks: Namespace,
}

impl Testbed {
    /// Creates the links of `network`. The caller sends the traffic of the flows. The measurement
    /// starts after the network's warm-up; samples are taken at the network's interval.
    ///
    /// # Errors
    /// As [`Emulation::new`].
    pub fn new(network: &Network, options: &Options) -> io::Result<Self> {
        let path = |flow: &network::Flow| Path {
            forward: flow.path.to_vec(),
            reverse: flow.back.to_vec(),
        };
        let paths: Vec<_> = network.flows.iter().map(path).collect();
        let create_end = |first: u32| {
            let namespace = Namespace::new()?;
            let device = namespace.run(|| {
                let file = create_uplink(Ipv4Addr::from_bits(first + 1), options.mtu)?;
                let interfaces = sys::Interfaces::new()?;
                for flow in 1..paths.len() as u32 {
                    let alias = format!("{UPLINK}:{flow}");
                    let address = Ipv4Addr::from_bits(first + 1 + flow);
                    interfaces.set_address(&alias, address.into())?;
                }
                io::Result::Ok(file)
            })??;
            io::Result::Ok((namespace, device))
        };
        let ((sources, left), (sinks, right)) = (create_end(SOURCES)?, create_end(SINKS)?);
        let left = (sources.try_clone()?, UPLINK.to_owned(), left);
        let right = (sinks.try_clone()?, UPLINK.to_owned(), right);
        let times = [network.sample, network.warmup, Dur::ZERO];
        let links = RunningLinks::start(&network.links, paths, times, options, [left, right])?;
        Ok(Testbed { links, sources, sinks })
    }

    /// Returns time 0 of the links, of their samples and of the warm-up.
    pub fn start_time(&self) -> Instant {
        self.links.start_time
    }

    /// Returns the namespace of the sources.
    pub fn sources(&self) -> &Namespace {
        &self.sources
    }

    /// Returns the namespace of the sinks.
    pub fn sinks(&self) -> &Namespace {
        &self.sinks
    }

    /// Returns the source address of flow number `flow`: packets from it cross the links of the
    /// flow.
    pub fn source_address(&self, flow: u32) -> Ipv4Addr {
        flow_addresses(flow)[0]
    }

    /// Returns the sink address of flow number `flow`.
    pub fn sink_address(&self, flow: u32) -> Ipv4Addr {
        flow_addresses(flow)[1]
    }

    /// Ends the emulation. The links of the report are those of the network.
    ///
    /// # Errors
    /// A thread panicked.
    pub fn stop(self) -> io::Result<Report> {
        self.links.stop()
    }
}
