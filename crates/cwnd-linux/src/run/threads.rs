//! Threads of the flows, one for each source and sink, and their shared state: the clock, the stop
//! flag, and the notes.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cwnd::Time;
use cwnd_sim::network::Network;

use crate::emulate::{LARGE_BUFFERS, Namespace, Testbed, set_sysctl};

/// Longest wait of a thread before it checks the stop flag.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Interval at which a source checks whether all data are acknowledged.
pub(super) const COMPLETION_INTERVAL: Duration = Duration::from_micros(500);
/// Port of a sink.
pub(super) const PORT: u16 = 9;
/// Bytes per write and read.
pub(super) const CHUNK: usize = 64 << 10;
/// Stack of a thread in bytes: TLS needs most.
const STACK_SIZE: usize = 512 << 10;

/// Settings of both namespaces. No metrics are cached between connections. Sources select their
/// controller by a socket option; reno is the controller of the sinks, which send no data.
const SYSCTLS: [(&str, &str); 3] =
    [("tcp_no_metrics_save", "1"), ("tcp_congestion_control", "reno"), ("tcp_ecn", "2")];

/// State shared by all threads of a run.
#[derive(Debug)]
pub(super) struct RunState {
    start_time: Instant,
    end: Time,
    started: AtomicBool,
    stopped: AtomicBool,
    notes: Mutex<Vec<String>>,
    /// Held while a connection is opened: its options are settings of the namespace.
    pub connect_lock: Mutex<()>,
}

impl RunState {
    /// Returns the time of the links.
    pub(super) fn now(&self) -> Time {
        self.time(Instant::now())
    }

    /// Returns the time of the links at an instant.
    pub(super) fn time(&self, at: Instant) -> Time {
        Time::from_instant(at, self.start_time)
    }

    /// Returns the instant of a time of the links.
    #[cfg(feature = "quic")]
    pub(super) fn instant(&self, at: Time) -> Instant {
        self.start_time + Duration::from_nanos(at.as_nanos())
    }

    /// Whether the run has stopped.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Waits until time `at`, and until all threads are ready. Returns false if the run stops
    /// before.
    pub(super) fn wait_until(&self, at: Time) -> bool {
        loop {
            if self.is_stopped() || at > self.end {
                return false;
            }
            let remaining = if self.started.load(Ordering::Relaxed) {
                Duration::from_nanos(at.as_nanos().saturating_sub(self.now().as_nanos()))
            } else {
                Duration::from_micros(200)
            };
            if remaining.is_zero() {
                return true;
            }
            thread::sleep(remaining.min(POLL_INTERVAL));
        }
    }

    /// Adds a note on a difference from the scenario.
    pub(super) fn note(&self, note: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }
}

/// End of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Sink,
}

/// The threads of a run.
pub(super) struct FlowThreads {
    sources: Namespace,
    sinks: Namespace,
    pub state: Arc<RunState>,
    threads: Vec<JoinHandle<()>>,
}

impl FlowThreads {
    pub(super) fn new(testbed: &Testbed, network: &Network) -> io::Result<Self> {
        let state = RunState {
            start_time: testbed.start_time(),
            end: Time::ZERO + network.duration,
            started: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            notes: Mutex::default(),
            connect_lock: Mutex::default(),
        };
        let (sources, sinks) = (testbed.sources().try_clone()?, testbed.sinks().try_clone()?);
        Ok(FlowThreads { sources, sinks, state: Arc::new(state), threads: Vec::new() })
    }

    /// Returns the namespace of all sources or sinks.
    pub(super) fn namespace(&self, side: Side) -> &Namespace {
        match side {
            Side::Source => &self.sources,
            Side::Sink => &self.sinks,
        }
    }

    /// Applies the settings to both namespaces.
    pub(super) fn configure_namespaces(&self) -> io::Result<()> {
        for side in [Side::Source, Side::Sink] {
            let failed = self.namespace(side).run(|| {
                SYSCTLS
                    .iter()
                    .chain(&LARGE_BUFFERS)
                    .filter(|(name, value)| set_sysctl(name, value).is_err())
                    .collect::<Vec<_>>()
            })?;
            for (name, value) in failed {
                self.state.note(format!("net.ipv4.{name} could not be set to {value}"));
            }
        }
        Ok(())
    }

    /// Starts a thread of a flow in the namespace of `side`.
    pub(super) fn spawn(
        &mut self,
        side: Side,
        flow: &str,
        work: impl FnOnce(&RunState) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let (namespace, state) = (self.namespace(side).try_clone()?, Arc::clone(&self.state));
        let flow = flow.to_owned();
        let run = move || {
            if let Err(error) = namespace.enter().and_then(|()| work(&state))
                && !state.is_stopped()
            {
                state.note(format!(
                    "flow {flow} failed after {:.3} s: {error}",
                    state.now().as_secs()
                ));
            }
        };
        let builder = thread::Builder::new().name("cwnd-flow".into()).stack_size(STACK_SIZE);
        self.threads.push(builder.spawn(run)?);
        Ok(())
    }

    /// Starts the flows: all threads are ready.
    pub(super) fn start(&self) {
        self.state.started.store(true, Ordering::Relaxed);
    }

    /// Stops the run. Later errors of threads are ignored.
    pub(super) fn stop(&self) {
        self.state.stopped.store(true, Ordering::Relaxed);
    }

    /// Stops the run, waits for all threads, and returns the notes.
    pub(super) fn join(mut self) -> Vec<String> {
        self.stop_and_join();
        std::mem::take(&mut self.state.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn stop_and_join(&mut self) {
        self.stop();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for FlowThreads {
    fn drop(&mut self) {
        self.stop_and_join();
    }
}
