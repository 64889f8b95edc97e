//! Transfers over loopback.

use cwnd::Dur;
use cwnd_quic_net::{Controllers, Identity, Job, Receiver, Sender};
use cwnd_sim::network::{Quic, QuicStack, Traffic};
use cwnd_sim::scenario::Scenario;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BYTES: u64 = 3_000_000;

/// Returns a flow of 3 MB with the default options.
fn quic(stack: QuicStack, controller: &str, streams: u32) -> Quic {
    let stack = if stack == QuicStack::Noq { "noq" } else { "quinn" };
    let text = format!(
        "duration = \"1s\"\n[dumbbell]\nrate = \"1mbit\"\ndelay = \"1ms\"\nqueue = \"1bdp\"\n\
         [[flow]]\nprotocol = \"quic\"\nstack = \"{stack}\"\ncontroller = \"{controller}\"\n\
         bytes = \"{BYTES}\"\nquic = {{ streams = {streams} }}\n"
    );
    let network = Scenario::from_toml(&text, "test").and_then(|it| it.network(1)).expect("valid");
    match &*network.flows[0].traffic {
        Traffic::Quic(quic) => quic.clone(),
        _ => panic!("not QUIC"),
    }
}

/// Runs both ends, with the identity that the sender expects, until `done`.
fn transfer(
    quic: &Quic,
    controllers: Option<Controllers>,
    expected: Option<Identity>,
    done: impl Fn(&Receiver, &Sender) -> bool,
) -> (Arc<Receiver>, Sender) {
    let bind = || UdpSocket::bind("127.0.0.1:0").expect("a port");
    let (receiver, sender) = (Arc::new(Receiver::default()), Sender::default());
    let (socket, stopped) = (bind(), AtomicBool::new(false));
    let identity = Identity::generate().expect("random numbers");
    let peer = socket.local_addr().expect("bound");
    let stop = || stopped.load(Ordering::Relaxed);
    thread::scope(|scope| {
        scope.spawn(|| receiver.run(socket, quic, &identity, stop).expect("runs"));
        scope.spawn(|| {
            let identity = expected.as_ref().unwrap_or(&identity);
            let job = Job { quic, controllers, identity, peer, stop: None };
            sender.run(bind(), job, stop).expect("runs");
        });
        let begin = Instant::now();
        while !done(&receiver, &sender) {
            assert!(begin.elapsed() < Duration::from_secs(20), "{receiver:?} {sender:?}");
            thread::sleep(Duration::from_millis(1));
        }
        stopped.store(true, Ordering::Relaxed);
    });
    (receiver, sender)
}

#[test]
fn all_data_arrives_under_controllers_of_the_stack_and_of_cwnd() {
    for stack in [QuicStack::Noq, QuicStack::Quinn] {
        for (controller, streams) in [("own:cubic", 1), ("simd", 3)] {
            let controllers = Controllers::try_from(controller).ok();
            let quic = quic(stack, controller, streams);
            let complete = |receiver: &Receiver, sender: &Sender| {
                receiver.received() == BYTES && sender.acknowledged().is_some()
            };
            let (receiver, sender) = transfer(&quic, controllers, None, complete);
            assert!(receiver.last_arrival().is_some());
            assert_eq!(sender.closed(), None);
            let snapshot = sender.snapshot().expect("connected");
            assert!(snapshot.sent >= BYTES / 1452, "{snapshot:?}");
            assert!(snapshot.window.get() >= 2.0, "{snapshot:?}");
            assert!(sender.news().rtt.is_some());
        }
    }
}

#[test]
fn a_receiver_with_another_key_is_refused() {
    for stack in [QuicStack::Noq, QuicStack::Quinn] {
        let other = Identity::generate().expect("random numbers");
        let closed = |receiver: &Receiver, sender: &Sender| {
            sender.closed().is_some() && receiver.closed().is_some()
        };
        let (receiver, sender) = transfer(&quic(stack, "own:reno", 1), None, Some(other), closed);
        let (_, reason) = sender.closed().expect("closed");
        assert!(reason.contains("UnknownIssuer"), "{reason}");
        let (_, reason) = receiver.closed().expect("closed by the sender");
        assert!(reason.starts_with("aborted by peer"), "{reason}");
        assert_eq!(receiver.received(), 0);
    }
}

#[test]
fn a_connection_whose_receiver_is_gone_is_closed() {
    for stack in [QuicStack::Noq, QuicStack::Quinn] {
        let mut endless = quic(stack, "own:cubic", 1);
        endless.bytes = None;
        endless.idle_timeout = Dur::from_millis(300);
        let bind = || UdpSocket::bind("127.0.0.1:0").expect("a port");
        let (receiver, sender) = (Arc::new(Receiver::default()), Sender::default());
        let (socket, identity) = (bind(), Identity::generate().expect("random numbers"));
        let peer = socket.local_addr().expect("bound");
        thread::scope(|scope| {
            scope.spawn(|| {
                let begun = || receiver.received() > 0;
                receiver.run(socket, &endless, &identity, begun).expect("runs");
            });
            let job =
                Job { quic: &endless, controllers: None, identity: &identity, peer, stop: None };
            sender.run(bind(), job, || sender.closed().is_some()).expect("runs");
        });
        let (_, reason) = sender.closed().expect("closed");
        assert_eq!(reason, "timed out");
        assert_eq!(sender.acknowledged(), None);
    }
}
