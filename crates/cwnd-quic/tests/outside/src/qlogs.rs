//! Qlog files of the simulator, read by the crate `qlog`.

use cwnd::record::Entry;
use cwnd::{Event as Report, MakeController, Spec};
use cwnd_sim::network::Traffic;
use cwnd_sim::qlog::write;
use cwnd_sim::record::Records;
use cwnd_sim::scenario::Scenario;
use cwnd_sim::{Options, Simulation};
use qlog::QlogSeq;
use qlog::events::{Event, EventData, quic};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

const LOSSY: &str =
    "dumbbell = { rate = \"8mbit\", delay = \"10ms\", queue = \"12p\", loss = 0.004 }";

/// Runs a flow of 8 s and returns the records and its qlog.
fn log(network: &str, flow: &str) -> (Records, String) {
    let text = format!("duration = 8\n{network}\nflow = [{{ {flow} }}]");
    let network = Scenario::from_toml(&text, "qlogs").unwrap().network(1).unwrap();
    let options = Options { record_events: true, record_packets: true, ..Options::default() };
    let mut simulation = Simulation::new(&network, 1, &options).unwrap();
    let settings = simulation.settings(0).unwrap();
    let controller = match &*network.flows[0].traffic {
        Traffic::Tcp(tcp) => &tcp.controller,
        Traffic::Udt(udt) => &udt.controller,
        _ => panic!("no controller"),
    };
    let controller = Spec::parse(controller).unwrap().controller(&settings);
    simulation.run();
    let records = simulation.finish();
    let mut out = Vec::new();
    write(&mut out, &network, 0, &records.flows[0], Some(controller)).unwrap();
    (records, String::from_utf8(out).unwrap())
}

fn entries(records: &Records) -> &[Entry] {
    &records.flows[0].events.as_ref().unwrap().entries
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
    for (tcp, controller) in
        [("", "cubic"), ("rack = true, timestamps = \"1ms\"", "reno"), ("", "bbr3")]
    {
        let network = format!("{LOSSY}\ntcp = {{ syn = false, {tcp} }}");
        let (records, text) = log(&network, &format!("controller = \"{controller}\""));
        let entries = entries(&records);
        let [acked, lost] = check(&records, &text);
        let [of_record, of_losses] = counts(entries);
        assert_eq!(acked, of_record);
        // A packet that a timeout declares lost again is still one transmission.
        assert!(lost > 20 && of_losses - lost <= of_losses / 100, "{lost} of {of_losses}");
    }
}

#[test]
fn the_states_of_a_window_law_and_marks_are_written() {
    let red = "queue = { kind = \"red\", limit = \"60p\", min = \"4p\", max = \"12p\", weight = 0.05, ecn = true }";
    let network = format!(
        "dumbbell = {{ rate = \"8mbit\", delay = \"10ms\", {red} }}\ntcp = {{ ecn = true }}"
    );
    let (records, text) = log(&network, "controller = \"reno\"");
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
fn the_files_of_udt_have_every_acknowledged_and_lost_packet() {
    for controller in ["reno", "udt"] {
        let flow = format!("protocol = \"udt\", controller = \"{controller}\"");
        let (records, text) = log(LOSSY, &flow);
        let (_, events) = independently(&text);
        let (mut acked, mut lost, mut sent) = (HashSet::new(), HashSet::new(), 0);
        for event in &events {
            match &event.data {
                EventData::PacketSent(packet) => {
                    sent += u64::from(!packet.frames.as_ref().unwrap().is_empty());
                }
                EventData::PacketReceived(packet) => {
                    for frame in packet.frames.iter().flatten() {
                        let quic::QuicFrame::Ack { acked_ranges, .. } = frame else { continue };
                        let Some(quic::AckedRanges::Single(ranges)) = acked_ranges else {
                            continue;
                        };
                        for range in ranges {
                            acked.extend(range[0]..=*range.last().unwrap());
                        }
                    }
                }
                EventData::PacketLost(packet) => {
                    lost.insert(packet.header.as_ref().unwrap().packet_number.unwrap());
                }
                _ => {}
            }
        }
        assert_eq!(sent, records.flows[0].packets_sent);
        let [of_record, of_losses] = counts(entries(&records));
        assert!(controller == "udt" || acked.len() == of_record, "{} {of_record}", acked.len());
        assert_eq!(lost.len(), of_losses, "{controller}");
        assert!(acked.len() > 1000 && lost.len() > 10, "{} {}", acked.len(), lost.len());
    }
}
