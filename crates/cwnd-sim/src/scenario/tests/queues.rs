//! The defaults of queue disciplines are those of their RFCs.

use super::{NetQueue, compile};
use crate::network::{self, QueueLimit};
use cwnd::Dur;

/// Compiles a queue on a link of 20 Mb/s whose largest packet has 1000 bytes.
fn queue(text: &str) -> NetQueue {
    let network = compile(&format!(
        "duration = 9\n[dumbbell]\nrate = \"20mbit\"\ndelay = \"20ms\"\nqueue = {text}\n\
         [tcp]\npacket = 960\n[[flow]]\ncontroller = \"reno\"\n"
    ));
    network.links[0].queue
}

#[test]
fn codel() {
    // RFC 8289 section 5.3.
    let expected = network::Codel {
        limit: QueueLimit::Packets(1000),
        target: Dur::from_millis(5),
        interval: Dur::from_millis(100),
        ecn: false,
        maxpacket: 1000,
    };
    assert_eq!(queue("\"codel\""), NetQueue::Codel(expected));
    // RFC 8290 section 5.2.
    let codel = network::Codel { limit: QueueLimit::Packets(10_240), ecn: true, ..expected };
    let expected = network::FqCodel { codel, flows: 1024, quantum: 1514, ce_threshold: None };
    assert_eq!(queue("\"fq_codel\""), NetQueue::FqCodel(expected));
}

#[test]
fn pie() {
    // RFC 8033 appendices A and B.
    let expected = network::Pie {
        limit: QueueLimit::Packets(1000),
        qdelay_ref: Dur::from_millis(15),
        t_update: Dur::from_millis(15),
        alpha: 1.0 / 8.0,
        beta: 1.0 + 1.0 / 4.0,
        max_burst: Dur::from_millis(150),
        ecn: false,
        mark_ecnth: 0.1,
        mean_pktsize: 1000,
        derandomize: true,
    };
    assert_eq!(queue("\"pie\""), NetQueue::Pie(expected));
    let random = network::Pie { derandomize: false, ..expected };
    assert_eq!(queue("{ kind = \"pie\", derandomize = false }"), NetQueue::Pie(random));
}

#[test]
fn dualpi2() {
    let of = |keys: &str| {
        let NetQueue::DualPi2(queue) = queue(&format!("{{ kind = \"dualpi2\"{keys} }}")) else {
            panic!("not DualPI2")
        };
        queue
    };
    let near = |one: f64, other: f64| (one - other).abs() < 1e-12;
    // RFC 9332 figure 2.
    let queue = of("");
    // 250 ms of 20 Mb/s.
    assert_eq!(queue.limit, QueueLimit::Bytes(625_000));
    assert_eq!((queue.target, queue.tupdate), (Dur::from_millis(15), Dur::from_millis(15)));
    assert!(near(queue.alpha, 0.15) && near(queue.beta, 3.0));
    assert_eq!((queue.k, queue.th_len, queue.mtu), (2.0, 1, 1000));
    assert_eq!((queue.min_th, queue.range), (Dur::from_micros(800), Dur::from_micros(400)));
    // Appendix A.1: with an update every 16 ms, alpha is 0.16.
    assert!(near(of(", tupdate = \"16ms\"").alpha, 0.16));
    // At least three updates in the worst-case round-trip time.
    let queue = of(", rtt_max = \"30ms\"");
    assert_eq!(queue.tupdate, Dur::from_millis(10));
    assert!(near(queue.alpha, 0.1 * 0.01 / (0.03 * 0.03)) && near(queue.beta, 10.0));
}
