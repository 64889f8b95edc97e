//! The programs of laws that are texts, compiled for the host: what they count for a law on a
//! connection that has sent before, and what a trace shows of it.

#[expect(dead_code, reason = "its powers")]
mod program;

use cwnd::registry::declare;
use cwnd::{Signal, Spec};
use cwnd_law::REGISTERS;
use cwnd_linux::bpf::encode_law;
use cwnd_linux::bpf::event::{Event, Kind};
use cwnd_linux::bpf::{Agreement, Connection, Connections};

/// `struct law` in 64-bit words: operations, inputs, hooks and registers.
const LAW: usize = 256 + 64 + 16 + REGISTERS;
const EVENTS: usize = 5;
const EVENT_WORDS: usize = 26;

/// A law whose window is what the last round had, in decimal places: 100,000 times the marked
/// packets, 1,000 times the lost ones, and those sent.
const ROUNDS: &str = r#"
law rounds "the last round as a window"
state told = 2 "packets"
on round:
    told = 100000 * round.marked + 1000 * round.lost + round.sent
on grow:
    return told
on cut:
    return w / 2
"#;

/// A law whose rate is that of the packets that it was told were marked.
const MARKS: &str = r#"
rate law marks "the marks as a rate"
state told = 0 "packets"
on clock:
    return timer
on interval:
    return 10 ms
on start:
    return 1000 /s
on losses:
    told = told + lost.packets
on tick:
    return rate
on cut:
    return told * 1 /s
"#;

/// `enum call` of texts.h.
#[derive(Clone, Copy)]
enum Call {
    Init,
    Acked,
    Ssthresh,
    Release,
}

/// A call of the kernel, and before it the counters of the socket: packets sent, delivered, marked,
/// lost, and lost but not retransmitted yet.
type Step = (Call, [u64; 5]);

/// The events of these calls, 1 ms apart, under the law `NAME.law` in the program `PROGRAM.c`.
fn events(program: &str, name: &str, steps: &[Step]) -> Vec<Event> {
    let law = Spec::parse(name).unwrap().algorithm().law().unwrap();
    let words = encode_law(law, &[]).unwrap();
    let mut before = steps[0].1[1];
    let row = |(number, (call, counters)): (usize, &Step)| -> [u64; LAW + 8] {
        let mut row = [0; LAW + 8];
        row[..LAW].copy_from_slice(&words);
        row[LAW..LAW + 2].copy_from_slice(&[*call as u64, 1000 * (1 + number as u64)]);
        row[LAW + 2..LAW + 7].copy_from_slice(counters);
        row[LAW + 7] = counters[1] - before;
        before = counters[1];
        row
    };
    let mut events = Vec::new();
    let take = |heard: [u64; 1 + EVENTS * EVENT_WORDS]| {
        for event in heard[1..].chunks(EVENT_WORDS).take(heard[0] as usize) {
            let bytes: Vec<u8> = event.iter().flat_map(|word| word.to_ne_bytes()).collect();
            events.push(Event::from_bytes(&bytes).unwrap());
        }
    };
    program::run(&format!("{program}.c"), program, steps.iter().enumerate().map(row), take);
    events
}

/// The one connection of a trace under the law `name`.
fn connection(name: &str, events: &[Event]) -> Connection {
    let mut connections = Connections::new(&Spec::parse(name).unwrap());
    events.iter().for_each(|event| connections.push(event, |_, _| {}));
    let [connection] = connections.all() else { panic!("one connection") };
    connection.clone()
}

/// Another controller has sent 1,000 packets, of which 3 were marked and 7 lost.
#[test]
fn rounds_and_marks_are_counted_from_the_start_of_the_law() {
    declare("rounds.law", ROUNDS).unwrap();
    let steps = [
        (Call::Init, [1000, 980, 3, 7, 0]),
        (Call::Acked, [1012, 985, 3, 7, 0]),
        (Call::Acked, [1020, 990, 5, 9, 2]),
        // The round that ends here has 20 packets; the next acknowledgement reveals a third loss.
        (Call::Ssthresh, [1020, 990, 5, 9, 2]),
        (Call::Acked, [1030, 1001, 5, 10, 0]),
        (Call::Acked, [1033, 1003, 9, 10, 0]),
        // Nothing is lost: the kernel has entered CWR for marks.
        (Call::Ssthresh, [1033, 1003, 9, 10, 0]),
        (Call::Acked, [1034, 1005, 9, 10, 0]),
        (Call::Release, [1034, 1005, 9, 10, 0]),
    ];
    let events = events("window_law", "rounds.law", &steps);

    let rounds = events.iter().filter(|event| event.kind == Kind::Round);
    let counts: Vec<_> = rounds.map(|event| (event.sent, event.lost)).collect();
    assert_eq!(counts, [(20, 3), (13, 0)]);
    let grown = events.iter().filter(|event| event.kind == Kind::Grow);
    let windows: Vec<f64> = grown.map(|event| f64::from_bits(event.after)).collect();
    assert_eq!(windows, [203_020.0, 203_020.0, 400_013.0]);

    let connection = connection("rounds.law", &events);
    assert_eq!(connection.marked, 6);
    let reasons: Vec<_> = connection.cuts.iter().map(|(_, cut)| cut.why).collect();
    assert_eq!(reasons, [Signal::Loss, Signal::Mark]);
    let expected = Agreement { steps: 7, cuts: 2, max_error: 0.0, parted: 0 };
    assert_eq!(connection.agreement(), Some(expected));
}

#[test]
fn marks_are_reported_to_a_rate_law_from_its_start() {
    declare("marks.law", MARKS).unwrap();
    let steps = [
        (Call::Init, [1000, 980, 3, 7, 0]),
        (Call::Acked, [1012, 985, 3, 7, 0]),
        (Call::Acked, [1020, 990, 5, 7, 0]),
        // Sent before the cut, and after it.
        (Call::Acked, [1020, 996, 9, 7, 0]),
        (Call::Acked, [1022, 998, 10, 7, 0]),
        (Call::Release, [1022, 998, 10, 7, 0]),
    ];
    let events = events("rate_law", "marks.law", &steps);
    let marked = events.iter().filter(|event| matches!(event.kind, Kind::Cut | Kind::Lost));
    let counts: Vec<_> = marked.map(|event| (event.kind, event.packets)).collect();
    assert_eq!(counts, [(Kind::Cut, 2), (Kind::Lost, 4), (Kind::Cut, 1)]);
    let connection = connection("marks.law", &events);
    assert_eq!(connection.marked, 7);
    let agreement = connection.agreement().unwrap();
    assert_eq!((agreement.cuts, agreement.max_error, agreement.parted), (2, 0.0, 0));
}
