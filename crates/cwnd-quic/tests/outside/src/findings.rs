//! The reports of docs/quic-findings.md: each test shows the fault of the stack. One that fails
//! tells that the stack has been mended.

use cwnd_quic_sim::{Outcome, Run, noq, quinn};
use quinn_proto::Side;
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A controller of quinn with a window and a pacing rate that do not change; it notes the largest
/// datagrams that were sent and acknowledged.
#[derive(Clone, Debug)]
struct Fixed {
    window: u64,
    pacing_rate: Option<u64>,
    sent: Arc<AtomicU64>,
    /// The largest one sent when one larger than 1200 bytes was first acknowledged.
    sent_at_probe: Arc<Mutex<Option<u64>>>,
}

impl Fixed {
    fn new(window: u64, pacing_rate: Option<u64>) -> Self {
        Fixed { window, pacing_rate, sent: Arc::default(), sent_at_probe: Arc::default() }
    }
}

impl quinn_proto::congestion::Controller for Fixed {
    fn on_sent(&mut self, _: Instant, bytes: u64, _: u64) {
        self.sent.fetch_max(bytes, Ordering::Relaxed);
    }

    fn on_ack(
        &mut self,
        _: Instant,
        _: Instant,
        bytes: u64,
        _: bool,
        _: &quinn_proto::RttEstimator,
    ) {
        if bytes > 1200 {
            let sent = self.sent.load(Ordering::Relaxed);
            self.sent_at_probe.lock().expect("no thread panics").get_or_insert(sent);
        }
    }

    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        self.window
    }

    fn metrics(&self) -> quinn_proto::congestion::ControllerMetrics {
        let mut metrics = quinn_proto::congestion::ControllerMetrics::default();
        metrics.congestion_window = self.window;
        metrics.pacing_rate = self.pacing_rate;
        metrics
    }

    fn clone_box(&self) -> Box<dyn quinn_proto::congestion::Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl quinn_proto::congestion::ControllerFactory for Fixed {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn quinn_proto::congestion::Controller> {
        Box::new((*self).clone())
    }
}

/// Returns a scenario with a flow of `stack` over a link of this rate and 40 ms.
fn scenario(stack: &str, rate: &str, queue: &str, seconds: u32) -> String {
    format!(
        "duration = \"{seconds}s\"\n\
         dumbbell = {{ rate = \"{rate}\", delay = \"20ms\", queue = \"{queue}\" }}\n\
         [[flow]]\nprotocol = \"quic\"\nstack = \"{stack}\"\ncontroller = \"own:cubic\"\n"
    )
}

/// A transfer of `bytes` bytes over 40 ms with `fixed`, with packets of 1200 bytes unless the
/// path's MTU is discovered.
fn quinn_transfer(fixed: &Fixed, bytes: u64, discovery: bool) -> Run {
    let config = |_: Side| {
        let mut transport = quinn_proto::TransportConfig::default();
        transport.congestion_controller_factory(Arc::new(fixed.clone()));
        if !discovery {
            transport.mtu_discovery_config(None);
        }
        transport
    };
    let text = scenario("quinn", "20mbit", "1bdp", 60);
    let scenario = quinn::Scenario::from_toml(&text).expect("a scenario").transport(config);
    let runs = scenario.client(|stream| stream.write_all(bytes)).run().expect("it runs");
    runs.iter().next().expect("a seed").clone()
}

/// quinn: a packet that would fill the window exactly does not leave.
#[test]
fn quinn_does_not_fill_the_window() {
    // At the minimum window of RFC 9002, one packet leaves in a round trip and a delay of the
    // acknowledgement, not two in a round trip.
    let exact = quinn_transfer(&Fixed::new(2 * 1200, None), 48_000, false);
    let more = quinn_transfer(&Fixed::new(2 * 1200 + 1, None), 48_000, false);
    println!("quinn at the minimum window: {exact:?}, with a byte more {more:?}");
    assert!(exact.at > more.at * 2.0 && exact.outcome == Outcome::Done);
    // A window of one packet lets no data leave.
    let none = quinn_transfer(&Fixed::new(1200, None), 1, false);
    println!("quinn with a window of a packet: {none:?}");
    assert_eq!(none.outcome, Outcome::Deadline);
}

/// quinn: the pacing rate of a controller has no effect.
#[test]
fn quinn_ignores_the_pacing_rate() {
    // 100 kB at 80 kb/s take 10 s.
    let run = quinn_transfer(&Fixed::new(1_000_000, Some(80_000)), 100_000, true);
    println!("quinn paced at 80 kb/s: 100 kB, {run:?}");
    assert!(run.at < 1.0 && run.outcome == Outcome::Done);
}

/// quinn: `on_sent` is not called for probes of the path's MTU, of which `on_ack` is.
#[test]
fn quinn_acknowledges_probes_that_it_did_not_report_as_sent() {
    let fixed = Fixed::new(24_000, None);
    quinn_transfer(&fixed, 100_000, true);
    let sent = fixed.sent_at_probe.lock().expect("no thread panics").expect("a probe arrives");
    println!("quinn: largest datagram in on_sent when a larger one was acknowledged: {sent}");
    assert_eq!(sent, 1200);
}

/// Both stacks: a receiver closes the connection if an episode of losses leaves more than 1024 gaps
/// in a stream, which a window above that many packets makes possible: here the overflow of a slow
/// start.
#[test]
fn a_receiver_closes_the_connection_for_its_gaps() {
    let text = |stack: &str| {
        let path = scenario(stack, "1gbit", "4bdp", 20);
        path + "bytes = \"100mb\"\nquic = { receive_window = \"64mb\" }\n"
    };
    let noq = noq::Scenario::from_toml(&text("noq")).expect("a scenario").run();
    let quinn = quinn::Scenario::from_toml(&text("quinn")).expect("a scenario").run();
    for (stack, runs) in [("noq", noq), ("quinn", quinn)] {
        let runs = runs.expect("it runs");
        println!("{stack}: {runs:?}");
        let closed =
            |run: &Run| matches!(&run.outcome, Outcome::Closed(why) if why.contains("gaps"));
        assert!(runs.iter().all(closed));
    }
}
