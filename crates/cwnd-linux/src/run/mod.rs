//! A scenario in real time: its network over a [`Testbed`], and its flows with the TCP of this kernel
//! or with UDT sockets. It leaves the records that the simulator does.
//!
//! A flow has a thread at each end, in the namespace of that end. The calling thread reads what is to be
//! read of them every few milliseconds, takes the samples, and lets the caller say that it is enough.
//!
//! Controllers with a form in the kernel ([`Implementation`](crate::bpf::Implementation)) are loaded for the run and are gone
//! after it, whatever happens to the process: nothing of them is pinned.

mod datagrams;
mod meter;
mod plan;
mod stage;
mod sys;
mod tcp;
mod traced;
mod udt;

use std::collections::HashMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use cwnd::{Dur, Time};
use cwnd_sim::network::Network;
use cwnd_sim::record::Records;

use crate::bpf;
use crate::emulate::{self, Testbed};
use meter::{Meter, Reading};
use plan::{Notes, Plan, Protocol};
use stage::Stage;
use traced::Traced;

/// Between two looks at what changes while nobody asks.
const LOOK: Dur = Dur::from_millis(5);
/// Between two questions whether to go on.
const ASK: Duration = Duration::from_millis(50);

/// What the flows of a run are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The kernel's TCP; flows of UDT are UDT.
    Linux,
    /// UDT sockets, for TCP's flows as well.
    Udt,
}

impl On {
    /// The one that is called so: `linux` or `udt`.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "linux" => Some(On::Linux),
            "udt" => Some(On::Udt),
            _ => None,
        }
    }
}

/// Why a scenario is not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something of it cannot be had here.
    #[error("{0}")]
    Scenario(String),
    /// The kernel's controllers.
    #[error(transparent)]
    Kernel(#[from] bpf::Error),
    /// The system refused something.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// A run that came to its end.
#[derive(Debug)]
pub struct Real {
    /// What the simulator's records hold. Of the events that it counts these are packets carried.
    pub records: Records,
    /// Why the tool, not the network, was the limit; `None` if it was not.
    pub limit: Option<String>,
    /// What of the scenario is not done, or in another way, one sentence each.
    pub notes: Vec<String>,
}

/// One flow at work.
enum Ends {
    Tcp(tcp::Ends),
    Udt(udt::Ends),
    Datagrams(datagrams::Ends),
}

impl Ends {
    /// What there is to see now.
    fn read(&self) -> Reading {
        match self {
            Ends::Tcp(ends) => ends.read(),
            Ends::Udt(ends) => ends.read(),
            Ends::Datagrams(ends) => ends.read(),
        }
    }
}

/// Whether this reality has what `network` asks for, as far as that is known beforehand.
///
/// # Errors
/// One line: a controller or another thing of the scenario that it does not have.
pub fn check(network: &Network, on: On) -> Result<(), Error> {
    Plan::new(network, on, &mut Notes::default()).map(drop)
}

/// Runs `network` in real time. `go_on` is told every 50 ms the part that is done, and answers whether
/// to go on.
///
/// The seed decides on random loss, RED and sources that draw their times, as in the simulator.
/// `None` when it was told to stop.
///
/// # Errors
/// One line: a controller or another thing of the scenario that this reality does not have, or what
/// the system does not permit (namespaces, TUN devices, eBPF).
pub fn run(
    network: &Network,
    seed: u64,
    on: On,
    mut go_on: impl FnMut(f64) -> bool,
) -> Result<Option<Real>, Error> {
    let mut notes = Notes::default();
    let plan = Plan::new(network, on, &mut notes)?;
    let mut traced = Traced::load(&plan)?;
    let testbed = Testbed::new(network, &emulate::Options { seed, ..Default::default() })?;
    // Declared after what they need: threads end first, then the network, then the controllers.
    let mut stage = Stage::new(&testbed, network)?;
    stage.prepare()?;
    let mut flows = Vec::with_capacity(plan.flows.len());
    for flow in &plan.flows {
        let ends = match &flow.protocol {
            Protocol::Tcp(options) => {
                let name = traced.name(&options.controller);
                Ends::Tcp(tcp::Ends::new(&mut stage, flow, options, name)?)
            }
            Protocol::Udt(config) => Ends::Udt(udt::Ends::new(&mut stage, flow, config, seed)?),
            Protocol::Datagrams(traffic) => {
                Ends::Datagrams(datagrams::Ends::new(&mut stage, flow, traffic, seed)?)
            }
        };
        flows.push((ends, Meter::new(flow, network)));
    }
    let sinks: HashMap<[u8; 4], usize> =
        plan.flows.iter().enumerate().map(|(n, flow)| (flow.ends[1].octets(), n)).collect();
    stage.begin();

    let duration = network.duration.as_secs();
    let mut clock = Samples::new(network);
    let mut asked = Instant::now();
    loop {
        let now = stage.scene.now();
        traced.read(now, |peer, told| {
            if let Some(&flow) = sinks.get(&peer) {
                flows[flow].1.told(told);
            }
        })?;
        for (ends, meter) in &mut flows {
            if let Ends::Udt(ends) = ends {
                ends.look(now, meter);
            }
        }
        let (warm, due) = clock.due(now);
        if warm || due > 0 {
            for (ends, meter) in &mut flows {
                let reading = ends.read();
                if warm {
                    meter.begin(&reading);
                }
                (0..due).for_each(|_| meter.sample(&reading));
            }
        }
        if asked.elapsed() >= ASK {
            asked = Instant::now();
            if !go_on((now.as_secs() / duration).min(1.0)) {
                return Ok(None);
            }
        }
        if now >= Time::ZERO + network.duration {
            break;
        }
        let next = clock.next().min(now + LOOK);
        thread::sleep(Duration::from_nanos(next.since(stage.scene.now()).as_nanos()));
    }
    let missed = traced.missed()?;
    if missed > 0 {
        notes.extend([format!(
            "{missed} events of the kernel's controllers were not read in time."
        )]);
    }
    let last: Vec<_> = flows.iter().map(|(ends, _)| ends.read()).collect();
    stage.close();
    let report = testbed.stop()?;
    notes.extend(stage.finish());
    let limit = report.limit();
    let time = clock.times;
    let packets = last.iter().map(|reading| reading.sent).sum();
    let metered = flows.into_iter().zip(last).zip(&report.flows);
    let flows = metered.map(|(((ends, meter), last), carried)| {
        drop(ends);
        meter.finish(&last, carried, &time)
    });
    let flows = flows.collect();
    let mut links = report.links;
    for link in &mut links {
        link.queue.truncate(time.len());
        link.drops_series.truncate(time.len());
    }
    let records = Records { time, flows, links, packets, events: report.lateness.packets() };
    Ok(Some(Real { records, limit, notes: notes.sentences() }))
}

/// When samples are due, and the warm-up is over.
struct Samples {
    times: Vec<f64>,
    step: u64,
    end: u64,
    warm: Option<u64>,
}

impl Samples {
    fn new(network: &Network) -> Self {
        Samples {
            times: Vec::new(),
            step: network.sample.as_nanos().max(1),
            end: network.duration.as_nanos(),
            warm: Some(network.warmup.as_nanos()),
        }
    }

    /// The next time at which something is due.
    fn next(&self) -> Time {
        let sample = (self.times.len() as u64 * self.step).min(self.end);
        Time::from_nanos(self.warm.unwrap_or(sample).min(sample))
    }

    /// Whether the warm-up has just ended, and how many samples are due; takes them as taken.
    fn due(&mut self, now: Time) -> (bool, usize) {
        let now = now.as_nanos();
        let warm = self.warm.take_if(|warm| *warm <= now).is_some();
        let before = self.times.len();
        // As in the simulator there is none at the very end.
        while (self.times.len() as u64 * self.step) <= now.min(self.end - 1) {
            self.times.push(Time::from_nanos(self.times.len() as u64 * self.step).as_secs());
        }
        (warm, self.times.len() - before)
    }
}
