//! Scenarios in real time: the network of a scenario on a [`Testbed`], and its flows with the
//! kernel's TCP, UDT sockets or QUIC stacks. The results are the simulator's records.
//!
//! Each flow has a thread for its source and one for its sink, in the namespace of that end. The
//! calling thread reads the state and the events of the flows every few milliseconds, takes the
//! samples, and reports the progress.
//!
//! Controllers with a kernel implementation ([`Implementation`](crate::bpf::Implementation)) are
//! loaded for the run. They are not pinned: the kernel unloads them when the run or the process
//! ends.

mod flow_config;
mod kernel_controllers;
mod measurement;
mod notes;
#[cfg(feature = "quic")]
mod quic;
mod sys;
mod tcp;
mod threads;
mod udp;
mod udt;

pub use flow_config::Backend;

use std::collections::HashMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use cwnd::{Dur, Time};
use cwnd_sim::DataSource;
use cwnd_sim::network::Network;
use cwnd_sim::record::Records;

use crate::bpf;
use crate::emulate::{self, Testbed};
use flow_config::{Protocol, flow_configs};
use kernel_controllers::KernelControllers;
use measurement::{Measurement, Snapshot};
use notes::Notes;
use threads::FlowThreads;

/// Interval at which events and the state of UDT and QUIC are read.
const POLL_INTERVAL: Dur = Dur::from_millis(5);
/// Interval at which the progress is reported.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// An error of a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The backend does not support a part of the scenario.
    #[error("{0}")]
    Scenario(String),
    /// A controller cannot be loaded into the kernel.
    #[error(transparent)]
    Kernel(#[from] bpf::Error),
    /// A system call failed.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Results of a completed run.
#[derive(Debug)]
pub struct RunOutcome {
    /// Records as of the simulator. `events` is the number of packets delivered by the links.
    pub records: Records,
    /// The reason why the emulator, not the network, was the limit; `None` if it was not.
    pub limit: Option<String>,
}

/// A running flow.
enum RunningFlow {
    Tcp(tcp::TcpFlow),
    Udt(udt::UdtFlow),
    Udp(udp::UdpFlow),
    #[cfg(feature = "quic")]
    Quic(quic::QuicFlow),
}

impl RunningFlow {
    /// Returns the current state.
    fn snapshot(&self) -> Snapshot {
        match self {
            RunningFlow::Tcp(running) => running.snapshot(),
            RunningFlow::Udt(running) => running.snapshot(),
            RunningFlow::Udp(running) => running.snapshot(),
            #[cfg(feature = "quic")]
            RunningFlow::Quic(running) => running.snapshot(),
        }
    }

    /// Records what happened since the last call.
    fn poll(&self, now: Time, measurement: &mut Measurement) {
        match self {
            RunningFlow::Udt(running) => running.poll(now, measurement),
            #[cfg(feature = "quic")]
            RunningFlow::Quic(running) => running.poll(now, measurement),
            RunningFlow::Tcp(_) | RunningFlow::Udp(_) => {}
        }
    }
}

/// Checks that a backend supports `network`, as far as this is known before a run.
///
/// # Errors
/// The backend does not support a controller or another part of the scenario.
pub fn check(network: &Network, backend: Backend) -> Result<(), Error> {
    flow_configs(network, backend, &mut Notes::default()).map(drop).map_err(Error::Scenario)
}

/// Runs `network` in real time. Calls `progress` every 50 ms with the completed fraction of the
/// run; if it returns false, the run stops and the result is `None`.
///
/// The seed determines random loss, RED and the times of random sources, as in the simulator.
///
/// # Errors
/// The backend does not support a controller or another part of the scenario, or the system does
/// not permit namespaces, TUN devices or BPF.
pub fn run(
    network: &Network,
    seed: u64,
    backend: Backend,
    mut progress: impl FnMut(f64) -> bool,
) -> Result<Option<RunOutcome>, Error> {
    let mut notes = Notes::default();
    let configs = flow_configs(network, backend, &mut notes).map_err(Error::Scenario)?;
    let mut kernel_controllers = KernelControllers::load(&configs)?;
    let testbed = Testbed::new(network, &emulate::Options { seed, ..Default::default() })?;
    // Dropped in reverse order: first the threads, then the network, then the controllers.
    let mut threads = FlowThreads::new(&testbed, network)?;
    threads.configure_namespaces()?;
    let mut flows = Vec::with_capacity(configs.len());
    for flow in &configs {
        let running = match &flow.protocol {
            Protocol::Tcp(options) => {
                let name = kernel_controllers.name(&options.controller);
                let source = flow.application.as_ref().map(|application| {
                    DataSource::new(
                        application,
                        options.payload,
                        network.duration,
                        seed,
                        flow.index,
                    )
                });
                RunningFlow::Tcp(tcp::TcpFlow::new(&mut threads, flow, options, name, source)?)
            }
            Protocol::Udt(config) => {
                RunningFlow::Udt(udt::UdtFlow::new(&mut threads, flow, config, seed)?)
            }
            Protocol::Udp(traffic) => {
                RunningFlow::Udp(udp::UdpFlow::new(&mut threads, flow, traffic, seed)?)
            }
            #[cfg(feature = "quic")]
            Protocol::Quic(quic, spec) => {
                RunningFlow::Quic(quic::QuicFlow::new(&mut threads, flow, quic, *spec, seed)?)
            }
        };
        flows.push((running, Measurement::new(flow, network)));
    }
    let sinks: HashMap<[u8; 4], usize> =
        configs.iter().enumerate().map(|(n, flow)| (flow.addresses[1].octets(), n)).collect();
    threads.start();

    let duration = network.duration.as_secs();
    let mut clock = SampleClock::new(network);
    let mut last_progress = Instant::now();
    loop {
        let now = threads.state.now();
        kernel_controllers.read(now, |peer, event| {
            if let Some(&flow) = sinks.get(&peer) {
                flows[flow].1.add_event(event);
            }
        })?;
        for (running, measurement) in &mut flows {
            running.poll(now, measurement);
        }
        let (warmup_ended, due) = clock.due(now);
        if warmup_ended || due > 0 {
            for (running, measurement) in &mut flows {
                let snapshot = running.snapshot();
                if warmup_ended {
                    measurement.start(&snapshot);
                }
                (0..due).for_each(|_| measurement.sample(&snapshot));
            }
        }
        if last_progress.elapsed() >= PROGRESS_INTERVAL {
            last_progress = Instant::now();
            if !progress((now.as_secs() / duration).min(1.0)) {
                return Ok(None);
            }
        }
        if now >= Time::ZERO + network.duration {
            break;
        }
        let next = clock.next().min(now + POLL_INTERVAL);
        thread::sleep(Duration::from_nanos(next.since(threads.state.now()).as_nanos()));
    }
    let missed = kernel_controllers.missed()?;
    if missed > 0 {
        notes.extend([format!(
            "{missed} events of the kernel's controllers were not read in time."
        )]);
    }
    let last: Vec<_> = flows.iter().map(|(running, _)| running.snapshot()).collect();
    threads.stop();
    let report = testbed.stop()?;
    notes.extend(threads.join());
    let limit = report.limit();
    let time = clock.times;
    let packets = last.iter().map(|snapshot| snapshot.sent).sum();
    let measured = flows.into_iter().zip(last).zip(&report.flows);
    let flows = measured.map(|(((running, measurement), last), report)| {
        let mut record = measurement.finish(&last, report, &time);
        match &running {
            RunningFlow::Tcp(running) => {
                let end = Time::ZERO + network.duration;
                (record.transfers, record.application) = running.results(end, &last);
            }
            #[cfg(feature = "quic")]
            RunningFlow::Quic(running) => record.closed = running.closed(),
            RunningFlow::Udt(_) | RunningFlow::Udp(_) => {}
        }
        record
    });
    let flows = flows.collect();
    let mut links = report.links;
    for link in &mut links {
        link.queue.truncate(time.len());
        link.drops_series.truncate(time.len());
    }
    let (events, notes) = (report.lateness.packets(), notes.into_lines());
    let records = Records { time, flows, links, packets, events, notes };
    Ok(Some(RunOutcome { records, limit }))
}

/// Times of the samples, and of the end of the warm-up.
struct SampleClock {
    times: Vec<f64>,
    step: u64,
    end: u64,
    warmup_end: Option<u64>,
}

impl SampleClock {
    fn new(network: &Network) -> Self {
        SampleClock {
            times: Vec::new(),
            step: network.sample.as_nanos().max(1),
            end: network.duration.as_nanos(),
            warmup_end: Some(network.warmup.as_nanos()),
        }
    }

    /// Returns the next time at which a sample or the end of the warm-up is due.
    fn next(&self) -> Time {
        let sample = (self.times.len() as u64 * self.step).min(self.end);
        Time::from_nanos(self.warmup_end.unwrap_or(sample).min(sample))
    }

    /// Returns whether the warm-up has ended since the last call, and the number of samples that
    /// became due.
    fn due(&mut self, now: Time) -> (bool, usize) {
        let now = now.as_nanos();
        let warmup_ended = self.warmup_end.take_if(|end| *end <= now).is_some();
        let before = self.times.len();
        // As in the simulator, there is no sample at the end of the run.
        while (self.times.len() as u64 * self.step) <= now.min(self.end - 1) {
            self.times.push(Time::from_nanos(self.times.len() as u64 * self.step).as_secs());
        }
        (warmup_ended, self.times.len() - before)
    }
}
