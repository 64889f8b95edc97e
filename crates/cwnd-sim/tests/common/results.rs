//! The results of a run as named columns of words, for comparisons bit by bit.

use cwnd_sim::record::{Closed, Delay, FlowRecord, LinkRecord, Records, Transfer};

/// Numbers with a name. A column of floating-point numbers begins with their count.
pub(crate) struct Column {
    /// `flow`, `link` or `run`, and the index of the flow or link.
    of: (&'static str, usize),
    name: &'static str,
    floats: bool,
    words: Vec<u64>,
}

/// Returns all results of a run except for the number of events and the notes, which are no results, and
/// the recorded events. The patterns list all fields, so that a new field of the records is added here
/// too.
fn columns(records: &Records) -> Vec<Column> {
    let Records { time, flows, links, packets, events: _, notes: _ } = records;
    let mut all = vec![
        Column::of_floats(("run", 0), "time", time),
        Column::of_counts(("run", 0), "packets", vec![*packets]),
    ];
    flows.iter().enumerate().for_each(|(index, flow)| add_flow(&mut all, index, flow));
    links.iter().enumerate().for_each(|(index, link)| add_link(&mut all, index, link));
    all
}

/// Returns the digest of all results of a run: FNV-1a over the bits of all numbers.
pub(crate) fn digest(records: &Records) -> u64 {
    let columns = columns(records);
    let words = columns.iter().flat_map(|column| &column.words);
    let bytes = words.flat_map(|word| word.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |digest: u64, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the counters of a flow by name.
pub(crate) fn flow_counters(flow: &FlowRecord) -> [(&'static str, u64); 10] {
    [
        ("packets_sent", flow.packets_sent),
        ("bytes_sent", flow.bytes_sent),
        ("packets_delivered", flow.packets_delivered),
        ("bytes_delivered", flow.bytes_delivered),
        ("packets_received", flow.packets_received),
        ("retransmissions", flow.retransmissions),
        ("packets_lost", flow.packets_lost),
        ("packets_marked", flow.packets_marked),
        ("timeouts", flow.timeouts),
        ("ecn_cuts", flow.ecn_cuts),
    ]
}

fn add_flow(all: &mut Vec<Column>, index: usize, flow: &FlowRecord) {
    let FlowRecord {
        packets_sent: _,
        bytes_sent: _,
        packets_delivered: _,
        bytes_delivered: _,
        packets_received: _,
        retransmissions: _,
        packets_lost: _,
        packets_marked: _,
        timeouts: _,
        ecn_cuts: _,
        limited,
        mean_rtt,
        min_rtt,
        completed,
        acknowledged,
        closed,
        cuts,
        transfers,
        application,
        series,
        events: _,
        packets: _,
    } = flow;
    let of = ("flow", index);
    for (name, count) in flow_counters(flow) {
        all.push(Column::of_counts(of, name, vec![count]));
    }
    all.push(Column::of_floats(of, "limited", &limited.seconds()));
    all.push(Column::of_floats(
        of,
        "mean_rtt, min_rtt, completed, acknowledged",
        &[*mean_rtt, *min_rtt, *completed, *acknowledged],
    ));
    if let Some(Closed { at, reason }) = closed {
        all.push(Column::of_floats(of, "closed", &[*at]));
        all.push(Column::of_counts(of, "closed", reason.bytes().map(u64::from).collect()));
    }
    for cut in cuts {
        all.push(Column::of_counts(of, "cuts", vec![cut.at.as_nanos(), cut.cut.why as u64]));
        all.push(Column::of_floats(of, "cuts", &[cut.cut.before(), cut.cut.after()]));
    }
    for &Transfer { begin, bytes, end } in transfers {
        all.push(Column::of_counts(of, "transfers", vec![bytes]));
        all.push(Column::of_floats(of, "transfers", &[begin, end]));
    }
    for (name, value) in application {
        all.push(Column::of_floats(of, name, &[*value]));
    }
    for (name, values) in series.clone().by_name() {
        all.push(Column::of_floats(of, name, &values));
    }
    for (name, values) in &series.gauges {
        all.push(Column::of_counts(of, "gauges", name.bytes().map(u64::from).collect()));
        all.push(Column::of_floats(of, name, values));
    }
}

fn add_link(all: &mut Vec<Column>, index: usize, link: &LinkRecord) {
    let LinkRecord {
        arrivals,
        offered,
        departures,
        drops,
        marks,
        losses,
        bytes_departed,
        utilization,
        mean_queue,
        delay,
        queue,
        drops_series,
        capacity,
    } = link;
    let of = ("link", index);
    for (name, count) in [
        ("arrivals", arrivals),
        ("offered", offered),
        ("departures", departures),
        ("drops", drops),
        ("marks", marks),
        ("losses", losses),
    ] {
        all.push(Column::of_counts(of, name, vec![*count]));
    }
    all.push(Column::of_floats(
        of,
        "bytes_departed, utilization, mean_queue",
        &[*bytes_departed, *utilization, *mean_queue],
    ));
    let Delay { mean, p50, p95, p99 } = *delay;
    all.push(Column::of_floats(of, "delay", &[mean, p50, p95, p99]));
    all.push(Column::of_floats(of, "queue", queue));
    all.push(Column::of_floats(of, "drops_series", drops_series));
    if !capacity.is_empty() {
        all.push(Column::of_floats(of, "capacity", capacity));
    }
}

impl Column {
    fn of_counts(of: (&'static str, usize), name: &'static str, words: Vec<u64>) -> Self {
        Column { of, name, floats: false, words }
    }

    fn of_floats(of: (&'static str, usize), name: &'static str, numbers: &[f64]) -> Self {
        // The bits of NaN are not unique.
        let bits = |&number: &f64| if number.is_nan() { u64::MAX } else { number.to_bits() };
        let words = [numbers.len() as u64].into_iter().chain(numbers.iter().map(bits)).collect();
        Column { of, name, floats: true, words }
    }

    /// The word at `at` as text.
    fn show(&self, at: usize) -> String {
        match self.words.get(at) {
            None => "nothing".into(),
            Some(&word) if self.floats && at > 0 => format!("{:?}", f64::from_bits(word)),
            Some(word) => word.to_string(),
        }
    }
}

/// Describes the first difference between the results of two runs of the same network, including
/// events that both recorded.
pub(crate) fn difference(one: &Records, other: &Records) -> Option<String> {
    let (these, those) = (columns(one), columns(other));
    for (this, that) in these.iter().zip(&those) {
        let longest = this.words.len().max(that.words.len());
        if let Some(at) = (0..longest).find(|&at| this.words.get(at) != that.words.get(at)) {
            let ((kind, index), name) = (this.of, this.name);
            let (this, that) = (this.show(at), that.show(at));
            return Some(format!("{kind} {index}: {name}, word {at}: {this} or {that}"));
        }
    }
    if these.len() != those.len() {
        return Some(format!("{} or {} columns", these.len(), those.len()));
    }
    let flows = one.flows.iter().zip(&other.flows).enumerate();
    let recorded = flows.filter_map(|(index, (one, other))| {
        Some((index, &one.events.as_ref()?.entries, &other.events.as_ref()?.entries))
    });
    for (index, one, other) in recorded {
        let longest = one.len().max(other.len());
        if let Some(at) = (0..longest).find(|&at| one.get(at) != other.get(at)) {
            let (one, other) = (one.get(at), other.get(at));
            return Some(format!("flow {index}: recorded event {at}: {one:?} or {other:?}"));
        }
    }
    None
}
