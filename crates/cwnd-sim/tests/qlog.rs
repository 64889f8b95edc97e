//! Qlog files, read by the reader of this crate. `crates/cwnd-quic/tests/outside` reads them with
//! another one.

use crate::common::{entries, ms, packets, pair, run_with, tcp};
use cwnd::record::Entry;
use cwnd::{Event as Report, MakeController, Spec};
use cwnd_sim::network::{Network, Tcp, Traffic};
use cwnd_sim::qlog::{QlogError, read, write};
use cwnd_sim::record::Records;
use cwnd_sim::{Options, Simulation};

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
    for json in ["{}", "[]", r#"{"qlog_version":"0.3","traces":[]}"#] {
        assert_eq!(
            error(json).to_string(),
            "expected a qlog of the version 0.3 in the format JSON-SEQ, whose records begin with \
             U+001E, not in JSON"
        );
    }
    let version = OTHER.replace("\"0.3\"", "\"0.4\"");
    assert_eq!(
        error(&version).to_string(),
        "expected a qlog of the version 0.3 in the format JSON-SEQ, not \"0.4\" in \"JSON-SEQ\""
    );
    let broken = OTHER.replace("\"time\":152", "\"time\":");
    assert!(error(&broken).to_string().starts_with("record 7: "), "{}", error(&broken));
    for cut in [&OTHER[..OTHER.len() - 1], &OTHER[..OTHER.len() - 9]] {
        assert_eq!(
            error(cut).to_string(),
            "record 10: expected a line feed at the end of the record, which is cut"
        );
    }
    assert_eq!(error(&OTHER.replace("raw", "row")), QlogError::NoPacketSize);
    assert_eq!(error(&OTHER.replace("congestion_window", "window")), QlogError::NoWindow);
    assert_eq!(error(&OTHER.replace("acked_ranges", "ranges")), QlogError::NoAcknowledgement);
}
