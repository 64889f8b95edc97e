//! The times and the bytes of all datagrams, for one version of each stack.

use crate::{noq, quinn};
use bytes::BytesMut;
use cwnd::{Limit, Output, Time};
use cwnd_sim::datagrams::{Codepoint, Connection, Datagram, Datagrams, End, Feedback};
use cwnd_sim::network::QuicStack;
use cwnd_sim::record::FlowRecord;
use cwnd_sim::scenario::Scenario;
use cwnd_sim::{Options, QuicFlow, Simulation};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A connection, and the digest (FNV-1a) of what its ends send.
struct Digested<P> {
    inner: P,
    digest: Arc<AtomicU64>,
}

impl<P> Digested<P> {
    fn add(&self, bytes: &[u8]) {
        let mut digest = self.digest.load(Ordering::Relaxed);
        for &byte in bytes {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.digest.store(digest, Ordering::Relaxed);
    }
}

impl<P: Datagrams<Message = BytesMut>> Datagrams for Digested<P> {
    type Message = BytesMut;

    fn stop(&mut self, now: Time) {
        self.inner.stop(now);
    }

    fn receive(&mut self, now: Time, end: End, ecn: Codepoint, message: BytesMut) -> u64 {
        self.inner.receive(now, end, ecn, message)
    }

    fn wake(&mut self, now: Time, end: End) {
        self.inner.wake(now, end);
    }

    fn poll(&mut self, now: Time, end: End) -> Option<Datagram<BytesMut>> {
        let datagram = self.inner.poll(now, end)?;
        self.add(&now.as_nanos().to_le_bytes());
        self.add(&datagram.message);
        Some(datagram)
    }

    fn deadline(&mut self, end: End) -> Option<Time> {
        self.inner.deadline(end)
    }

    fn feedback(&mut self) -> Feedback {
        self.inner.feedback()
    }

    fn limit(&self) -> Limit {
        self.inner.limit()
    }

    fn output(&self) -> Output {
        self.inner.output()
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.gauges(emit);
    }

    fn total(&self) -> Option<u64> {
        self.inner.total()
    }

    fn open(&mut self) {
        self.inner.open();
    }

    fn make_available(&mut self, units: u64) -> u64 {
        self.inner.make_available(units)
    }

    fn acknowledged(&self) -> u64 {
        self.inner.acknowledged()
    }

    fn begin_measurement(&mut self) {
        self.inner.begin_measurement();
    }

    fn finish(self, record: &mut FlowRecord) {
        self.inner.finish(record);
    }
}

/// Returns the digest of a transfer with losses, marks and reordering.
fn digest(stack: &str, controller: &str, seed: u64) -> u64 {
    let text = format!(
        r#"
        duration = "3s"
        [dumbbell]
        rate = "5mbit"
        delay = "10ms"
        queue = {{ kind = "codel", ecn = true }}
        loss = 0.01
        loss_of_acks = true
        reorder = {{ probability = 0.01, delay = "3ms" }}
        [[flow]]
        protocol = "quic"
        stack = "{stack}"
        controller = "{controller}"
        bytes = 500000
        quic = {{ streams = 2 }}
        "#
    );
    let network = Scenario::from_toml(&text, "digest.toml").unwrap().network(seed).unwrap();
    let digest = Arc::new(AtomicU64::new(0xcbf2_9ce4_8422_2325));
    let connect = |flow: QuicFlow| {
        let digest = digest.clone();
        Ok(match flow.quic.stack {
            QuicStack::Noq => Connection::new(Digested { inner: noq::connect(flow)?, digest }),
            QuicStack::Quinn => Connection::new(Digested { inner: quinn::connect(flow)?, digest }),
        })
    };
    let options = Options { quic: Some(&connect), ..Options::default() };
    let mut simulation = Simulation::new(network, seed, &options).unwrap();
    simulation.run();
    let records = simulation.finish();
    assert_eq!(records.flows[0].bytes_delivered, 500_000, "{:?}", records.flows[0].closed);
    digest.load(Ordering::Relaxed)
}

/// A change of these values is a change of all results: of a stack's version, its configuration or
/// the seeds. Another process, with other addresses in memory and other times, has the same.
#[test]
fn digests_of_the_versions() {
    let found: Vec<_> = [
        ("noq", "own:cubic"),
        ("noq", "own:reno"),
        ("noq", "cubic"),
        ("noq", "bbr3"),
        ("quinn", "own:cubic"),
        ("quinn", "own:reno"),
        ("quinn", "cubic"),
        ("quinn", "reno"),
    ]
    .into_iter()
    .map(|(stack, controller)| {
        format!("{stack} {controller} {:016x}", digest(stack, controller, 1))
    })
    .collect();
    assert_eq!(found, DIGESTS);
    assert_ne!(digest("noq", "own:cubic", 1), digest("noq", "own:cubic", 2));
}

/// Of noq-proto 1.4.0 and quinn-proto 0.11.19.
const DIGESTS: [&str; 8] = [
    "noq own:cubic ee38355feff32e4a",
    "noq own:reno 291ea681f6f60c8e",
    "noq cubic d8e9d4da352c95a3",
    "noq bbr3 86e1f98fb12677b5",
    "quinn own:cubic cf5d9abbbf244fe1",
    "quinn own:reno b0421841e514b9b3",
    "quinn cubic 4173e61c20251db8",
    "quinn reno c0c3aead437a3a4f",
];
