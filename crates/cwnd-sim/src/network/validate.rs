//! The values that can be simulated. The scenario compiler applies the same rules.

use super::{
    Conventions, Flow, Link, Network, PacketChange, Quic, Recovery, Tcp, TcpExtensions, Traffic,
    UDT_HEADERS, Udt,
};
use crate::check::{
    Checked, InvalidField, MAX_PACKET, RATES, check_data, check_positive, check_probability,
    check_rate, check_size, check_spans, invalid, shown,
};
use cwnd::{Dur, Time};
use cwnd_udt::handshake::{MAX_FLOW_WINDOW, MIN_PACKET_SIZE};

/// TCP options of an acknowledgement in bytes: timestamps, and SACK with three blocks.
const ACK_OPTIONS: u32 = 40;
/// Samples of a series.
const MAX_SAMPLES: u64 = 1_000_000;
/// RFC 5681 section 4.2: an acknowledgement is delayed by less.
const MAX_ACK_DELAY: Dur = Dur::from_millis(500);

/// Why a [`Network`] cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The duration, the warm-up or the sampling interval is invalid.
    #[error("{0}")]
    Times(InvalidField),
    /// A link is invalid.
    #[error("link {link}: {invalid}")]
    Link {
        /// The link's name.
        link: String,
        /// Its invalid field.
        invalid: InvalidField,
    },
    /// A flow is invalid.
    #[error("flow {flow}: {invalid}")]
    Flow {
        /// The flow's name.
        flow: String,
        /// Its invalid field.
        invalid: InvalidField,
    },
}

impl Network {
    /// Checks that the network can be simulated, in time proportional to the links and the hops of
    /// the flows.
    ///
    /// # Errors
    /// Names the first link or flow with an invalid field.
    pub fn validate(&self) -> Result<(), NetworkError> {
        check_times(self.duration, self.warmup, self.sample).map_err(NetworkError::Times)?;
        for link in &self.links {
            link.validate()?;
            for (field, node) in [("from", link.from), ("to", link.to)] {
                if node >= self.nodes.len() {
                    let message = format!("there is no node {node}: {} nodes", self.nodes.len());
                    return Err(link.error(InvalidField { field, message }));
                }
            }
        }
        for flow in &self.flows {
            let error = |invalid| NetworkError::Flow { flow: flow.name.clone(), invalid };
            self.check_routes(flow).map_err(error)?;
            flow.check().map_err(error)?;
        }
        Ok(())
    }

    fn check_routes(&self, flow: &Flow) -> Checked {
        let [source, sink] = self.ends("path", &flow.path)?;
        let [from, to] = self.ends("back", &flow.back)?;
        if [from, to] != [sink, source] {
            let name = |node: usize| &self.nodes[node];
            return invalid(
                "back",
                format!(
                    "leads from \"{}\" to \"{}\", and the path from \"{}\" to \"{}\"",
                    name(from),
                    name(to),
                    name(source),
                    name(sink)
                ),
            );
        }
        Ok(())
    }

    /// Returns the first node and the last node of a route.
    fn ends(&self, field: &'static str, route: &[usize]) -> Checked<[usize; 2]> {
        let mut ends = None;
        for &index in route {
            let Some(link) = self.links.get(index) else {
                return invalid(
                    field,
                    format!("there is no link {index}: {} links", self.links.len()),
                );
            };
            let [first, last] = ends.unwrap_or([link.from; 2]);
            if link.from != last {
                return invalid(
                    field,
                    format!("link \"{}\" does not begin at \"{}\"", link.name, self.nodes[last]),
                );
            }
            ends = Some([first, link.to]);
        }
        ends.ok_or_else(|| InvalidField { field, message: "at least one link is needed".into() })
    }
}

/// Checks the duration of a run, the warm-up and the sampling interval.
pub(crate) fn check_times(duration: Dur, warmup: Dur, sample: Dur) -> Checked {
    if duration.is_zero() {
        return invalid("duration", "a duration must be above zero");
    }
    if warmup >= duration {
        let (warmup, duration) = (shown(warmup), shown(duration));
        return invalid("warmup", format!("{warmup} is not less than the duration of {duration}"));
    }
    if sample.is_zero() {
        return invalid("sample", "a sampling interval must be above zero");
    }
    let samples = duration.as_nanos() / sample.as_nanos();
    if samples > MAX_SAMPLES {
        let (sample, duration) = (shown(sample), shown(duration));
        return invalid(
            "sample",
            format!("{samples} samples, one every {sample} of {duration}; at most {MAX_SAMPLES}"),
        );
    }
    check_spans([("sample", sample)])
}

impl Link {
    /// Checks that the link can be simulated. Its nodes are not checked.
    ///
    /// # Errors
    /// Names the invalid field.
    pub fn validate(&self) -> Result<(), NetworkError> {
        self.check().map_err(|invalid| self.error(invalid))
    }

    fn error(&self, invalid: InvalidField) -> NetworkError {
        NetworkError::Link { link: self.name.clone(), invalid }
    }

    fn check(&self) -> Checked {
        self.rate.map_or(Ok(()), |rate| check_rate("rate", rate))?;
        check_spans([("delay", self.delay)])?;
        check_probability("loss", self.loss)?;
        self.check_impairments()?;
        self.queue.check()
    }
}

impl Flow {
    fn check(&self) -> Checked {
        if self.stop < self.start {
            let [start, stop] = [self.start, self.stop].map(|at| shown(at.since(Time::ZERO)));
            return invalid("stop", format!("stops at {stop}, before it starts at {start}"));
        }
        if self.bytes.is_some() || self.application.is_some() {
            let field = if self.bytes.is_some() { "bytes" } else { "application" };
            if matches!(*self.traffic, Traffic::Cbr { .. } | Traffic::Pareto { .. }) {
                return invalid(
                    field,
                    "a source without feedback has neither bytes nor an application",
                );
            }
            if let (Some(_), Traffic::Quic(Quic { streams: 2.., .. })) =
                (&self.application, &*self.traffic)
            {
                return invalid(field, "an application writes to one stream");
            }
            if self.bytes().is_some() && self.application.is_some() {
                return invalid(field, "an application determines the bytes of a flow");
            }
        }
        check_data(self.bytes)?;
        if let Some(application) = &self.application {
            application.check()?;
        }
        self.traffic.check()
    }
}

impl Traffic {
    /// Checks the parameters of a source.
    pub(crate) fn check(&self) -> Checked {
        match self {
            Traffic::Tcp(tcp) => tcp.check(),
            Traffic::Udt(udt) => udt.check(),
            Traffic::Quic(quic) => quic.check(),
            Traffic::Cbr { rate, packet, schedule, jitter } => {
                if let Some((on, off)) = *schedule {
                    check_positive([("on", on), ("off", off)])?;
                }
                check_source(*rate, *packet)?;
                check_probability("jitter", *jitter)
            }
            Traffic::Pareto { rate, packet, on, off, shape } => {
                check_positive([("on", *on), ("off", *off)])?;
                if !(*shape > 1.0 && *shape <= 100.0) {
                    return invalid(
                        "shape",
                        format!(
                            "{shape} is not above 1 (where the mean is finite) and at most 100"
                        ),
                    );
                }
                check_source(*rate, *packet)
            }
        }
    }
}

/// Checks the rate of a source without congestion control, and its packet size.
fn check_source(rate: f64, packet: u32) -> Checked {
    if !RATES.contains(&rate) {
        return invalid("rate", "a source's rate is finite: from 8 bit/s to 10 Tbit/s");
    }
    check_size("packet", packet)
}

/// Checks the sizes of a data packet: `least` to 65535 bytes of payload, and with the header a
/// packet that IP can carry.
fn check_packet(packet: u32, header: u32, least: u32) -> Checked {
    if !(least..=MAX_PACKET).contains(&packet) {
        return invalid("packet", format!("{packet} is not from {least} to {MAX_PACKET} bytes"));
    }
    if header > MAX_PACKET {
        return invalid("header", format!("{header} is not from 0 to {MAX_PACKET} bytes"));
    }
    if packet + header > MAX_PACKET {
        return invalid(
            "packet",
            format!("{packet} bytes and a header of {header} exceed {MAX_PACKET} on the wire"),
        );
    }
    Ok(())
}

impl Tcp {
    /// Checks the options of a TCP connection. The controller is not checked.
    pub(crate) fn check(&self) -> Checked {
        check_packet(self.packet, self.header, 1)?;
        self.check_packet_changes()?;
        if self.ack_delay > MAX_ACK_DELAY {
            let delay = shown(self.ack_delay);
            return invalid(
                "ack_delay",
                format!("{delay} is more than the 500ms that RFC 5681 allows"),
            );
        }
        if self.granularity.is_zero() {
            return invalid(
                "granularity",
                "a clock's granularity cannot be zero; write 1ns for an ideal clock",
            );
        }
        let (min_rto, max_rto) = (self.min_rto, self.max_rto);
        if max_rto.is_zero() || min_rto > max_rto {
            let (min_rto, max_rto) = (shown(min_rto), shown(max_rto));
            return invalid(
                "max_rto",
                format!("max_rto {max_rto} is less than min_rto {min_rto}, or zero"),
            );
        }
        if self.initial_rto.is_zero() || self.initial_rto > max_rto {
            let (initial_rto, max_rto) = (shown(self.initial_rto), shown(max_rto));
            return invalid(
                "initial_rto",
                format!(
                    "initial_rto {initial_rto} is not above zero and at most max_rto {max_rto}"
                ),
            );
        }
        check_data(self.bytes)?;
        let largest_ack = MAX_PACKET - ACK_OPTIONS;
        if !(1..=largest_ack).contains(&self.ack) {
            return invalid("ack", format!("{} is not from 1 to {largest_ack} bytes", self.ack));
        }
        for (field, packets) in [("initial_window", self.initial_window), ("window", self.window)] {
            if packets == 0 {
                return invalid(field, "a window is at least one packet");
            }
        }
        self.check_extensions()?;
        check_spans([
            ("timestamps", self.timestamps.unwrap_or_default()),
            ("granularity", self.granularity),
            ("max_rto", self.max_rto),
            ("overhead", self.overhead.unwrap_or_default()),
        ])
    }
}

impl Tcp {
    /// Whether the connection uses Linux's conventions or parts of later RFCs.
    pub(crate) fn is_extended(&self) -> bool {
        let TcpExtensions { rack, tlp, prr, dsack, frto, .. } = self.extensions;
        self.conventions == Conventions::Linux || rack || tlp || prr || dsack || frto
    }

    /// Checks the changes of the packet size.
    pub(crate) fn check_packet_changes(&self) -> Checked {
        PacketChange::check(&self.packet_changes, |packet| {
            check_packet(packet, self.header, 1).map_err(|InvalidField { message, .. }| {
                InvalidField { field: "packet_changes", message }
            })
        })
    }

    fn check_extensions(&self) -> Checked {
        let TcpExtensions { rack, tlp, prr, dsack, frto, .. } = self.extensions;
        if self.conventions == Conventions::Linux && self.recovery != Recovery::Sack {
            return invalid("recovery", "the conventions of Linux need sack");
        }
        let extensions =
            [("rack", rack), ("tlp", tlp), ("prr", prr), ("dsack", dsack), ("frto", frto)];
        // AccECN first: with SACK it has DSACK by default.
        for (field, on) in [("accecn", self.extensions.accecn)].into_iter().chain(extensions) {
            if on && self.conventions.is_ns2() {
                return invalid(field, "ns-2 has none; use the conventions rfc, rfc5681 or linux");
            }
        }
        for (field, on) in extensions {
            if on && self.recovery != Recovery::Sack {
                return invalid(field, "needs recovery = \"sack\"");
            }
        }
        if self.extensions.accecn && !self.ecn {
            return invalid("accecn", "needs ecn = true or \"l4s\"");
        }
        Ok(())
    }
}

impl Conventions {
    /// Whether these are the conventions of a version of ns-2.
    pub(crate) fn is_ns2(self) -> bool {
        matches!(self, Conventions::Ns2 | Conventions::Ns2001)
    }
}

impl Udt {
    /// Checks the options of a UDT connection. The controller is not checked.
    pub(crate) fn check(&self) -> Checked {
        if self.header < UDT_HEADERS {
            return invalid(
                "header",
                format!(
                    "{} is less than the {UDT_HEADERS} bytes of IP's, UDP's and UDT's headers",
                    self.header
                ),
            );
        }
        check_packet(self.packet, self.header, MIN_PACKET_SIZE - UDT_HEADERS)?;
        check_data(self.bytes)?;
        if !(2..=MAX_FLOW_WINDOW).contains(&self.window) {
            return invalid(
                "window",
                format!("UDT's window is from 2 to {MAX_FLOW_WINDOW} packets"),
            );
        }
        Ok(())
    }
}
