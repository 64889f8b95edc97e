//! What all ends of all flows share: the clock, the namespaces, and that they end together.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cwnd::Time;
use cwnd_sim::network::Network;

use crate::emulate::{Namespace, Testbed};

/// The longest sleep of a thread before it looks whether all is over.
pub(super) const SLICE: Duration = Duration::from_millis(20);
/// A flow's end has little to keep.
const STACK: usize = 128 << 10;

/// For both namespaces. Nothing is kept of one connection for the next; controllers are chosen for each
/// socket, and this one is for those that send nothing.
const BOTH: [(&str, &str); 4] = [
    ("tcp_no_metrics_save", "1"),
    ("tcp_congestion_control", "reno"),
    ("tcp_ecn", "2"),
    ("tcp_slow_start_after_idle", "0"),
];

/// Sets `net.ipv4.NAME` in the calling thread's namespace.
pub(super) fn set(name: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/net/ipv4/{name}"), value)
}

/// What a flow's threads see of it all.
#[derive(Debug)]
pub(super) struct Scene {
    begun: Instant,
    end: Time,
    started: AtomicBool,
    over: AtomicBool,
    notes: Mutex<Vec<String>>,
    /// Who begins a connection holds it: its options are the namespace's.
    pub opening: Mutex<()>,
}

impl Scene {
    /// Time since the links' began.
    pub(super) fn now(&self) -> Time {
        let nanos = self.begun.elapsed().as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Whether all is over.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Waits until a time, and until all ends are there. False if all is over before.
    pub(super) fn wait_until(&self, at: Time) -> bool {
        loop {
            if self.is_over() || at > self.end {
                return false;
            }
            let left = if self.started.load(Ordering::Relaxed) {
                Duration::from_nanos(at.as_nanos().saturating_sub(self.now().as_nanos()))
            } else {
                Duration::from_micros(200)
            };
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(SLICE));
        }
    }

    /// Something that went otherwise than the scenario says.
    pub(super) fn note(&self, sentence: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(sentence);
    }
}

/// Where a flow's thread lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Sink,
}

pub(super) struct Stage {
    sources: Namespace,
    sinks: Namespace,
    pub scene: Arc<Scene>,
    threads: Vec<JoinHandle<()>>,
}

impl Stage {
    pub(super) fn new(testbed: &Testbed, network: &Network) -> io::Result<Self> {
        let scene = Scene {
            begun: testbed.start_time(),
            end: Time::ZERO + network.duration,
            started: AtomicBool::new(false),
            over: AtomicBool::new(false),
            notes: Mutex::default(),
            opening: Mutex::default(),
        };
        let (sources, sinks) = (testbed.sources().try_clone()?, testbed.sinks().try_clone()?);
        Ok(Stage { sources, sinks, scene: Arc::new(scene), threads: Vec::new() })
    }

    pub(super) fn space(&self, side: Side) -> &Namespace {
        match side {
            Side::Source => &self.sources,
            Side::Sink => &self.sinks,
        }
    }

    /// Makes both namespaces ready.
    pub(super) fn prepare(&self) -> io::Result<()> {
        for side in [Side::Source, Side::Sink] {
            let refused = self.space(side).run(|| {
                BOTH.iter().filter(|(name, value)| set(name, value).is_err()).collect::<Vec<_>>()
            })?;
            for (name, value) in refused {
                self.scene.note(format!("net.ipv4.{name} could not be set to {value}"));
            }
        }
        Ok(())
    }

    /// Starts a thread of a flow in a namespace.
    pub(super) fn spawn(
        &mut self,
        side: Side,
        flow: &str,
        work: impl FnOnce(&Scene) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let (space, scene) = (self.space(side).try_clone()?, Arc::clone(&self.scene));
        let flow = flow.to_owned();
        let enter = move || {
            if let Err(error) = space.enter().and_then(|()| work(&scene))
                && !scene.is_over()
            {
                scene.note(format!(
                    "flow {flow} failed after {:.3} s: {error}",
                    scene.now().as_secs()
                ));
            }
        };
        let builder = thread::Builder::new().name("cwnd-flow".into()).stack_size(STACK);
        self.threads.push(builder.spawn(enter)?);
        Ok(())
    }

    /// All ends are there: flows may begin.
    pub(super) fn begin(&self) {
        self.scene.started.store(true, Ordering::Relaxed);
    }

    /// All is over, and nothing that goes wrong from here on matters.
    pub(super) fn close(&self) {
        self.scene.over.store(true, Ordering::Relaxed);
    }

    /// Waits for all threads to end. Gives what they had to say.
    pub(super) fn finish(mut self) -> Vec<String> {
        self.end();
        std::mem::take(&mut self.scene.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn end(&mut self) {
        self.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.end();
    }
}
