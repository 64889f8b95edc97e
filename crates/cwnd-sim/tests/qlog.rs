//! Qlog files, read by the crate `qlog` and by the reader of this crate.

use crate::common::{RED, entries, ms, packets, pair, run_with, tcp, udt};
use ::qlog::QlogSeq;
use ::qlog::events::{Event, EventData, quic};
use cwnd::record::Entry;
use cwnd::{Event as Report, MakeController, Spec};
use cwnd_sim::network::{Network, Queue, Red, Tcp, Traffic};
use cwnd_sim::qlog::{QlogError, read, write};
use cwnd_sim::record::Records;
use cwnd_sim::{Options, Simulation};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

/// Runs a network and returns the records and the qlog of flow 0.
fn log(network: &Network) -> (Records, String) {
    let options = Options { record_events: true, record_packets: true, ..Options::default() };
    let settings = Simulation::new(network, 1, &options).unwrap().settings(0).unwrap();
    let controller = match &*network.flows[0].traffic {
        Traffic::Tcp(tcp) => &tcp.controller,
        Traffic::Udt(udt) => &udt.controller,
        _ => panic!("no controller"),
    };
    let controller = Spec::parse(controller).unwrap().controller(&settings);
    let records = run_with(network, 1, &options);
    let mut out = Vec::new();
    write(&mut out, network, 0, &records.flows[0], Some(controller)).unwrap();
    (records, String::from_utf8(out).unwrap())
}

fn lossy(tcp: Tcp) -> Network {
    let mut network = pair(8e6, ms(20), packets(12), vec![Traffic::Tcp(tcp)], ms(8_000));
    network.links[0].loss = 0.004;
    network
}

/// Whether two documents are equal but for the precision of numbers.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let [one, other] = [one, other].map(|number| number.as_f64().unwrap());
            (one - other).abs() <= 1e-6 * one.abs()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let found = |(key, one)| other.get(key).is_some_and(|other| same(one, other));
            one.len() == other.len() && one.iter().all(found)
        }
        _ => one == other,
    }
}

/// Reads a file with the crate `qlog`. Each record is written again: it has no field of an unknown
/// name or type.
fn independently(text: &str) -> (QlogSeq, Vec<Event>) {
    let mut records = text.split('\u{1e}');
    assert_eq!(records.next(), Some(""));
    let known = |record: &str, read: Value| {
        let ours: Value = serde_json::from_str(record).unwrap();
        assert!(record.ends_with('\n') && same(&ours, &read), "{record} {read}");
    };
    let record = records.next().unwrap();
    let header: QlogSeq = serde_json::from_str(record).unwrap();
    known(record, serde_json::to_value(&header).unwrap());
    let event = |record: &str| {
        // draft-ietf-quic-qlog-quic-events-04 has "ECN".
        let record = &record.replace("\"ECN\"", "\"ecn\"");
        let event: Event = serde_json::from_str(record).unwrap_or_else(|e| panic!("{e}: {record}"));
        known(record, serde_json::to_value(&event).unwrap());
        event
    };
    (header, records.map(event).collect())
}

/// Checks what every file has, and returns the number of packets acknowledged and lost.
fn check(records: &Records, text: &str) -> [usize; 2] {
    let (header, events) = independently(text);
    assert_eq!([header.qlog_version, header.qlog_format], ["0.3", "JSON-SEQ"]);
    assert!(events.is_sorted_by(|one, other| one.time <= other.time));
    let (mut in_flight, mut offsets) = (HashSet::new(), BTreeMap::new());
    let (mut sent, mut acked, mut lost) = (0, HashSet::new(), HashSet::new());
    for event in &events {
        match &event.data {
            EventData::PacketSent(packet) => {
                assert_eq!(packet.header.packet_number, Some(sent));
                assert!(packet.raw.as_ref().unwrap().length.unwrap() >= 1000);
                in_flight.insert(sent);
                sent += 1;
                let [quic::QuicFrame::Stream { offset, length, .. }] =
                    &packet.frames.as_ref().unwrap()[..]
                else {
                    panic!("{packet:?}")
                };
                offsets.insert(*offset, *length);
            }
            EventData::PacketReceived(packet) => {
                let [quic::QuicFrame::Ack { acked_ranges, .. }] =
                    &packet.frames.as_ref().unwrap()[..]
                else {
                    panic!("{packet:?}")
                };
                let Some(quic::AckedRanges::Single(ranges)) = acked_ranges else { continue };
                for range in ranges {
                    for number in range[0]..=*range.last().unwrap() {
                        // A packet that was declared lost may arrive.
                        assert!(in_flight.remove(&number) || lost.contains(&number), "{number}");
                        assert!(acked.insert(number), "{number} is acknowledged twice");
                    }
                }
            }
            EventData::PacketLost(packet) => {
                let number = packet.header.as_ref().unwrap().packet_number.unwrap();
                assert!(in_flight.remove(&number) && lost.insert(number), "{number}");
            }
            _ => {}
        }
    }
    assert_eq!(sent, records.flows[0].packets_sent);
    let mut end = 0;
    for (offset, length) in offsets {
        assert_eq!(offset, end, "the stream has a gap");
        end += length;
    }
    [acked.len(), lost.len()]
}

fn counts(entries: &[Entry]) -> [usize; 2] {
    let mut counts = [0; 2];
    for entry in entries {
        match &entry.event {
            Report::Acked(acked) => counts[0] += acked.packets as usize,
            Report::Lost(lost) | Report::Timeout(lost) => counts[1] += lost.packets as usize,
            _ => {}
        }
    }
    counts
}

#[test]
fn the_files_of_tcp_have_every_packet_and_every_loss_once() {
    let sack = tcp("cubic");
    let extended = {
        let mut tcp = Tcp { timestamps: Some(ms(1)), ..tcp("reno") };
        tcp.extensions.rack = true;
        tcp
    };
    for options in [sack, extended, tcp("bbr3")] {
        let network = lossy(options);
        let (records, text) = log(&network);
        let entries = entries(&records.flows[0]);
        let [acked, lost] = check(&records, &text);
        let [of_record, of_losses] = counts(entries);
        assert_eq!(acked, of_record);
        // A packet that a timeout declares lost again is still one transmission.
        assert!(lost > 20 && of_losses - lost <= of_losses / 100, "{lost} of {of_losses}");
    }
}

#[test]
fn a_file_reads_back_as_the_record_of_the_run() {
    let delayed = Traffic::Tcp(Tcp { delayed_acks: true, ..tcp("cubic") });
    check_reading(&lossy(tcp("cubic")));
    check_reading(&pair(8e6, ms(10), packets(20), vec![delayed], ms(8_000)));
}

fn check_reading(network: &Network) {
    let (records, text) = log(network);
    let qlog = read(&text).unwrap();
    assert_eq!((qlog.protocol.as_str(), qlog.packet), ("TCP", 960));
    // A file has the end of a recovery and a reduction by the driver only if they change the state
    // or the window.
    let known = |entry: &&Entry| {
        !matches!(
            entry.event,
            Report::Handshake { .. } | Report::Recovered | Report::Reduced { .. }
        )
    };
    let ours: Vec<_> = entries(&records.flows[0]).iter().filter(known).collect();
    let theirs: Vec<_> = qlog.record.entries.iter().filter(known).collect();
    let same = |one: &Entry, other: &Entry| match (&one.event, &other.event) {
        (Report::Acked(one), Report::Acked(other)) => {
            (one.packets, one.sent, one.sent_at, one.limit)
                == (other.packets, other.sent, other.sent_at, other.limit)
        }
        (Report::Lost(one), Report::Lost(other))
        | (Report::Timeout(one), Report::Timeout(other)) => {
            let sent_at = one.packets == 0 || one.sent_at == other.sent_at;
            (one.packets, one.sent) == (other.packets, other.sent) && sent_at
        }
        (one, other) => one == other,
    };
    for (one, other) in ours.iter().zip(&theirs) {
        let near = |one: u64, other: u64| one.abs_diff(other) <= 1_000;
        assert!(near(one.at.as_nanos(), other.at.as_nanos()), "{one} {other}");
        let apart = (one.output.window.get() - other.output.window.get()).abs() * 960.0;
        assert!(apart <= 1.0 && same(one, other), "{one}\n{other}");
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn the_states_of_a_window_law_and_marks_are_written() {
    let red = Queue::Red(Red { limit: 60, min: 4.0, max: 12.0, weight: 0.05, ..RED });
    let tcp = Tcp { ecn: true, ..tcp("reno") };
    let network = pair(8e6, ms(20), red, vec![Traffic::Tcp(tcp)], ms(8_000));
    let (records, text) = log(&network);
    let (_, events) = independently(&text);
    let states: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.data {
            EventData::CongestionStateUpdated(state) => Some(state.new.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(states[..2], ["slow_start", "congestion_avoidance"]);
    assert!(text.contains(r#""trigger":"ECN""#));
    assert!(records.flows[0].ecn_cuts > 5);
    let cuts = records.flows[0].cuts.len();
    let thresholds = events.iter().filter(|event| match &event.data {
        EventData::MetricsUpdated(metrics) => metrics.ssthresh.is_some(),
        _ => false,
    });
    assert_eq!(thresholds.count(), cuts);
}

#[test]
fn the_files_of_udt_have_the_metrics_without_the_numbers_of_acknowledged_packets() {
    let network = pair(8e6, ms(20), packets(30), vec![Traffic::Udt(udt("udt"))], ms(4_000));
    let (records, text) = log(&network);
    let (_, events) = independently(&text);
    let count = |wanted: fn(&EventData) -> bool| {
        events.iter().filter(|event| wanted(&event.data)).count() as u64
    };
    let sent =
        count(|data| matches!(data, EventData::PacketSent(packet) if packet.frames.is_none()));
    assert_eq!(sent, records.flows[0].packets_sent);
    assert!(count(|data| matches!(data, EventData::PacketReceived(_))) > 100);
    assert!(
        count(|data| matches!(data, EventData::MetricsUpdated(m) if m.pacing_rate.is_some())) > 50
    );
    assert_eq!(count(|data| matches!(data, EventData::PacketLost(_))), 0);
}

#[test]
fn a_source_without_feedback_has_no_file() {
    let cbr = Traffic::Cbr { rate: 1e6, packet: 1000, schedule: None, jitter: 0.0 };
    let network = pair(8e6, ms(20), packets(30), vec![cbr], ms(100));
    let records = run_with(&network, 1, &Options::default());
    let error = write(Vec::new(), &network, 0, &records.flows[0], None).unwrap_err();
    assert_eq!(error.to_string(), "flow has no feedback");
}

/// A file with times and frames as other implementations write them.
const OTHER: &str = concat!(
    "\u{1e}{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"other\",\"trace\":",
    "{\"vantage_point\":{\"type\":\"server\"},\"common_fields\":{\"protocol_type\":[\"QUIC\"],",
    "\"time_format\":\"relative\",\"reference_time\":5}}}\n",
    "\u{1e}{\"time\":100,\"name\":\"transport:parameters_set\",\"data\":{\"owner\":\"local\"}}\n",
    "\u{1e}{\"time\":100,\"name\":\"recovery:metrics_updated\",\"data\":{\"congestion_window\":12000}}\n",
    "\u{1e}{\"time\":101,\"name\":\"transport:packet_sent\",\"data\":{\"header\":{\"packet_type\":",
    "\"initial\",\"packet_number\":0},\"raw\":{\"length\":1200}}}\n",
    "\u{1e}{\"time\":102,\"name\":\"transport:packet_sent\",\"data\":{\"header\":{\"packet_type\":",
    "\"1RTT\",\"packet_number\":0},\"raw\":{\"length\":900},\"frames\":[{\"frame_type\":\"crypto\"}]}}\n",
    "\u{1e}{\"time\":102,\"name\":\"transport:packet_sent\",\"data\":{\"header\":{\"packet_type\":",
    "\"1RTT\",\"packet_number\":1},\"raw\":{\"length\":40},\"frames\":[{\"frame_type\":\"ack\"}]}}\n",
    "\u{1e}{\"time\":152,\"name\":\"transport:packet_received\",\"data\":{\"header\":{\"packet_type\":",
    "\"1RTT\",\"packet_number\":0},\"frames\":[{\"frame_type\":\"ack\",\"acked_ranges\":",
    "[[0,9000000000]]}]}}\n",
    "\u{1e}{\"time\":152,\"name\":\"recovery:metrics_updated\",\"data\":{\"congestion_window\":13200,",
    "\"latest_rtt\":50}}\n",
    "\u{1e}{\"time\":160,\"name\":\"recovery:packet_lost\",\"data\":{\"header\":{\"packet_type\":",
    "\"initial\",\"packet_number\":0}}}\n",
    "\u{1e}{\"time\":160,\"name\":\"recovery:metrics_updated\",\"data\":{\"congestion_window\":6600}}\n",
);

#[test]
fn packet_numbers_have_spaces_and_pure_acknowledgements_do_not_count() {
    let qlog = read(OTHER).unwrap();
    assert_eq!((qlog.protocol.as_str(), qlog.title.as_str(), qlog.packet), ("QUIC", "other", 1200));
    assert_eq!(
        qlog.record.to_string(),
        "52000000 acked 1 1 1 2 2000000 50000000 - 0 0 application | 11 - -\n\
         60000000 lost 1 1000000 2 | 5.5 - -\n"
    );
}

#[test]
fn errors_name_the_record() {
    let error = |text: &str| read(text).unwrap_err();
    assert!(matches!(error(""), QlogError::Header(_)));
    assert!(matches!(error("{}"), QlogError::Header(_)));
    let version = OTHER.replace("\"0.3\"", "\"0.4\"");
    assert_eq!(
        error(&version).to_string(),
        "expected a qlog of the version 0.3 in the format JSON-SEQ, not \"0.4\" in \"JSON-SEQ\""
    );
    let broken = OTHER.replace("\"time\":152", "\"time\":");
    assert!(error(&broken).to_string().starts_with("record 7: "), "{}", error(&broken));
    assert_eq!(error(&OTHER.replace("raw", "row")), QlogError::NoPacketSize);
    assert_eq!(error(&OTHER.replace("congestion_window", "window")), QlogError::NoWindow);
}
