//! The reports of docs/quic-findings.md: each test shows the fault of the stack. One that fails
//! tells that the stack has been mended.

use crate::support;
use crate::support::link::{Datagram, Link, Outcome, PASS};
use noq_proto::VarInt;
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

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

/// A transfer of `bytes` bytes over 40 ms with `fixed`, with packets of 1200 bytes unless the
/// path's MTU is discovered.
fn quinn_transfer(fixed: &Fixed, bytes: u64, discovery: bool, seconds: u64) -> Outcome {
    let mut transport = quinn_proto::TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(fixed.clone()));
    if !discovery {
        transport.mtu_discovery_config(None);
    }
    let start = Instant::now();
    let mut client = support::quinn::Host::client(start, bytes, transport);
    let mut server = support::quinn::Host::server(quinn_proto::TransportConfig::default());
    let link = Link::new(|_, _, _| PASS);
    link.run(start, [&mut client, &mut server], bytes, Duration::from_secs(seconds))
}

/// quinn: a packet that would fill the window exactly does not leave.
#[test]
fn quinn_does_not_fill_the_window() {
    // At the minimum window of RFC 9002, one packet leaves in a round trip and a delay of the
    // acknowledgement, not two in a round trip.
    let exact = quinn_transfer(&Fixed::new(2 * 1200, None), 48_000, false, 60);
    let more = quinn_transfer(&Fixed::new(2 * 1200 + 1, None), 48_000, false, 60);
    println!("quinn at the minimum window: {:?}, with a byte more {:?}", exact.time, more.time);
    assert!(exact.time > more.time * 2);
    // A window of one packet lets no data leave.
    let none = quinn_transfer(&Fixed::new(1200, None), 48_000, false, 60);
    println!("quinn with a window of a packet: {none:?}");
    assert_eq!(none.received, 0);
}

/// quinn: the pacing rate of a controller has no effect.
#[test]
fn quinn_ignores_the_pacing_rate() {
    // 100 kB at 80 kb/s take 10 s.
    let outcome = quinn_transfer(&Fixed::new(1_000_000, Some(80_000)), 100_000, true, 60);
    println!("quinn paced at 80 kb/s: 100 kB in {:?}", outcome.time);
    assert!(outcome.time < Duration::from_secs(1));
}

/// quinn: `on_sent` is not called for probes of the path's MTU, of which `on_ack` is.
#[test]
fn quinn_acknowledges_probes_that_it_did_not_report_as_sent() {
    let fixed = Fixed::new(24_000, None);
    quinn_transfer(&fixed, 100_000, true, 60);
    let sent = fixed.sent_at_probe.lock().expect("no thread panics").expect("a probe arrives");
    println!("quinn: largest datagram in on_sent when a larger one was acknowledged: {sent}");
    assert_eq!(sent, 1200);
}

/// Clears the ECN field of one datagram; counts the later ones, from the 400th on, and those of them
/// that are ECN-capable.
fn bleached(counts: &Arc<[AtomicU64; 2]>) -> Link {
    let counts = Arc::clone(counts);
    Link::new(move |number, _, datagram: &mut Datagram| {
        if number >= 400 {
            counts[0].fetch_add(1, Ordering::Relaxed);
            counts[1].fetch_add(u64::from(datagram.ecn != 0), Ordering::Relaxed);
        }
        if number == 151 {
            datagram.ecn = 0;
        }
        PASS
    })
}

/// Both stacks: ECN validation compares the counts with the number of ranges, not of packets, and so
/// does not notice a cleared field (RFC 9000 section 13.4.2.1).
#[test]
fn a_cleared_ecn_field_is_not_noticed() {
    let start = Instant::now();
    let (bytes, deadline) = (1_000_000, Duration::from_secs(60));
    let [noq, quinn] = [Arc::default(), Arc::default()];
    let mut client = support::noq::Host::client(start, bytes, Default::default());
    let mut server = support::noq::Host::server(Default::default());
    bleached(&noq).run(start, [&mut client, &mut server], bytes, deadline);
    let mut client = support::quinn::Host::client(start, bytes, Default::default());
    let mut server = support::quinn::Host::server(Default::default());
    bleached(&quinn).run(start, [&mut client, &mut server], bytes, deadline);
    for (stack, counts) in [("noq", noq), ("quinn", quinn)] {
        let [all, capable] = [0, 1].map(|at| counts[at].load(Ordering::Relaxed));
        println!("{stack}: {capable} of {all} datagrams after the 400th are ECN-capable");
        assert!(all > 200 && capable == all);
    }
}

/// Both stacks: a receiver closes the connection if an episode of losses leaves more than 1024 gaps
/// in a stream, which a window above that many packets makes possible.
#[test]
fn a_receiver_closes_the_connection_for_its_gaps() {
    let bytes = 50_000_000;
    let window = 20_000_000_u32;
    // Every second packet of a while is lost, as an overflowing queue may do.
    let link = || {
        let fate = |number: u64, _, _: &mut Datagram| {
            PASS.filter(|_| !(8000..11_000).contains(&number) || number.is_multiple_of(2))
        };
        Link { rate: 125e6, queue: 5e6, ..Link::new(fate) }
    };
    let (start, deadline) = (Instant::now(), Duration::from_secs(60));
    let mut server = noq_proto::TransportConfig::default();
    server.receive_window(VarInt::from_u32(window)).stream_receive_window(VarInt::from_u32(window));
    let mut client = noq_proto::TransportConfig::default();
    client.send_window(window.into());
    let mut client = support::noq::Host::client(start, bytes, client);
    let mut server = support::noq::Host::server(server);
    let outcome = link().run(start, [&mut client, &mut server], bytes, deadline);
    println!("noq: {outcome:?}, {} packets lost", client.counts().1);
    assert!(outcome.closed.is_some_and(|reason| reason.contains("gaps")));

    let window = quinn_proto::VarInt::from_u32(window);
    let mut server = quinn_proto::TransportConfig::default();
    server.receive_window(window).stream_receive_window(window);
    let mut client = quinn_proto::TransportConfig::default();
    client.send_window(window.into_inner());
    let mut client = support::quinn::Host::client(start, bytes, client);
    let mut server = support::quinn::Host::server(server);
    let outcome = link().run(start, [&mut client, &mut server], bytes, deadline);
    println!("quinn: {outcome:?}, {} packets lost", client.counts().1);
    assert!(outcome.closed.is_some_and(|reason| reason.contains("gaps")));
}
