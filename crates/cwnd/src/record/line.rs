//! One line of a record, written and read.

use super::Entry;
use crate::delivery::{LossSample, RateSample};
use crate::event::{Acked, Event, Limit, Lost, Marked, Output, Report};
use crate::units::{Dur, Packets, Rate, Time};
use alloc::string::String;
use core::fmt::{self, Write};

/// Why a text is no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    line: usize,
    expected: &'static str,
}

impl ParseError {
    pub(super) fn on(self, line: usize) -> Self {
        ParseError { line, ..self }
    }

    /// The line, counted from 1.
    pub fn line(&self) -> usize {
        self.line
    }
}

impl core::error::Error for ParseError {}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected {}", self.line, self.expected)
    }
}

const fn expected(expected: &'static str) -> ParseError {
    ParseError { line: 1, expected }
}

/// The last line does not end as a line does.
pub(super) const CUT: ParseError = expected("a line feed at the end of the line, which is cut");

/// A value that may be missing.
struct Maybe<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Maybe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_char('-'),
        }
    }
}

/// An answer as a record writes it.
pub(super) struct Answer<'a>(pub(super) &'a Output);

impl fmt::Display for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Output { window, pace, wake } = *self.0;
        let (pace, wake) = (pace.map(Rate::as_per_sec), wake.map(Time::as_nanos));
        write!(f, "{} {} {}", window.get(), Maybe(pace), Maybe(wake))
    }
}

pub(super) fn write(text: &mut String, entry: &Entry) -> fmt::Result {
    write!(text, "{} ", entry.at.as_nanos())?;
    match &entry.event {
        Event::Acked(acked) => write_acked(text, acked)?,
        Event::Handshake { rtt } => write!(text, "handshake {}", rtt.as_nanos())?,
        Event::Lost(lost) => write_lost(text, "lost", lost)?,
        Event::Marked(Marked { packets, sent_at, sent }) => {
            write!(text, "marked {packets} {} {sent}", sent_at.as_nanos())?;
        }
        Event::Report(Report { packets, sent, arrival, capacity, rtt }) => {
            let (arrival, capacity) =
                (arrival.map(Rate::as_per_sec), capacity.map(Rate::as_per_sec));
            write!(text, "report {packets} {sent} {} {} ", Maybe(arrival), Maybe(capacity))?;
            write!(text, "{}", rtt.as_nanos())?;
        }
        Event::Recovered => text.write_str("recovered")?,
        Event::Timeout(lost) => write_lost(text, "timeout", lost)?,
        Event::PersistentCongestion => text.write_str("persistent-congestion")?,
        Event::Reduced { window, idle } => {
            write!(text, "reduced {}{}", window.get(), if *idle { " idle" } else { "" })?;
        }
        Event::Mtu { packet } => write!(text, "mtu {packet}")?,
        Event::Undo => text.write_str("undo")?,
        Event::Tick => text.write_str("tick")?,
    }
    write!(text, " | {}", Answer(&entry.output))
}

fn write_lost(text: &mut String, name: &str, lost: &Lost) -> fmt::Result {
    let Lost { packets, sent_at, sent, delivery } = *lost;
    write!(text, "{name} {packets} {} {sent}", sent_at.as_nanos())?;
    let Some(LossSample { lost, in_flight, application_limited }) = delivery else { return Ok(()) };
    write!(text, " delivery {lost} {in_flight} {}", u8::from(application_limited))
}

fn write_acked(text: &mut String, acked: &Acked) -> fmt::Result {
    let Acked { packets, credit, in_flight, sent, sent_at, rtt, received_at, .. } = *acked;
    let Acked { echo, marked, limit, delivery, departure, .. } = *acked;
    write!(text, "acked {packets} {credit} {in_flight} {sent} {} ", sent_at.as_nanos())?;
    let (rtt, received_at) = (rtt.map(Dur::as_nanos), received_at.map(Time::as_nanos));
    write!(text, "{} {} {} {marked} ", Maybe(rtt), Maybe(received_at), u8::from(echo))?;
    text.write_str(match limit {
        Limit::Window => "window",
        Limit::Pacing => "pacing",
        Limit::Receiver => "receiver",
        Limit::Application => "application",
    })?;
    if let Some(sample) = delivery {
        write_sample(text, sample)?;
    }
    let Some(departure) = departure else { return Ok(()) };
    write!(text, " departure {}", departure.as_nanos())
}

fn write_sample(text: &mut String, sample: RateSample) -> fmt::Result {
    let RateSample { delivered, prior_delivered, send_elapsed, ack_elapsed, .. } = sample;
    let RateSample { lost, in_flight, application_limited, reliable, .. } = sample;
    let (send, ack) = (send_elapsed.as_nanos(), ack_elapsed.as_nanos());
    let (limited, reliable) = (u8::from(application_limited), u8::from(reliable));
    write!(
        text,
        " delivery {delivered} {prior_delivered} {send} {ack} {lost} {in_flight} {limited} {reliable}"
    )
}

/// The fields of a line, one after the other.
struct Fields<'a>(core::iter::Peekable<core::str::SplitAsciiWhitespace<'a>>);

impl Fields<'_> {
    fn take<T: core::str::FromStr>(&mut self, what: &'static str) -> Result<T, ParseError> {
        self.0.next().and_then(|field| field.parse().ok()).ok_or(expected(what))
    }

    fn maybe<T: core::str::FromStr>(
        &mut self,
        what: &'static str,
    ) -> Result<Option<T>, ParseError> {
        match self.0.next() {
            Some("-") => Ok(None),
            Some(field) => field.parse().map(Some).map_err(|_| expected(what)),
            None => Err(expected(what)),
        }
    }

    fn flag(&mut self, what: &'static str) -> Result<bool, ParseError> {
        match self.0.next() {
            Some("0") => Ok(false),
            Some("1") => Ok(true),
            _ => Err(expected(what)),
        }
    }

    fn time(&mut self, what: &'static str) -> Result<Time, ParseError> {
        self.take(what).map(Time::from_nanos)
    }

    fn rate(&mut self, what: &'static str) -> Result<Option<Rate>, ParseError> {
        Ok(self.maybe(what)?.map(Rate::per_sec))
    }
}

pub(super) fn parse(line: &str) -> Result<Entry, ParseError> {
    let mut fields = Fields(line.split_ascii_whitespace().peekable());
    let at = fields.time("the time in nanoseconds")?;
    let event = event(&mut fields)?;
    if fields.0.next() != Some("|") {
        return Err(expected("| between the event and the answer"));
    }
    let window = Packets::new(fields.take("the window in packets")?);
    let pace = fields.rate("the pacing rate in packets per second, or -")?;
    let wake = fields.maybe("the time of the next wake in nanoseconds, or -")?;
    let output = Output { window, pace, wake: wake.map(Time::from_nanos) };
    match fields.0.next() {
        None => Ok(Entry { at, event, output }),
        Some(_) => Err(expected("nothing after the answer")),
    }
}

const PACKETS: &str = "a number of packets";
const SENT_AT: &str = "the time of sending in nanoseconds";
const SENT: &str = "the number of packets sent";

fn acked(fields: &mut Fields<'_>) -> Result<Acked, ParseError> {
    let mut acked = Acked::new(fields.take(PACKETS)?, Time::ZERO);
    acked.credit = fields.take("the packets to grow for")?;
    acked.in_flight = fields.take("the packets in flight")?;
    acked.sent = fields.take(SENT)?;
    acked.sent_at = fields.time(SENT_AT)?;
    acked.rtt = fields.maybe("the round-trip time in nanoseconds, or -")?.map(Dur::from_nanos);
    acked.received_at = fields.maybe("the receiver's time, or -")?.map(Time::from_nanos);
    acked.echo = fields.flag("0 or 1 for the echo of a mark")?;
    acked.marked = fields.take("the number of marked packets")?;
    acked.limit = match fields.0.next() {
        Some("window") => Limit::Window,
        Some("pacing") => Limit::Pacing,
        Some("receiver") => Limit::Receiver,
        Some("application") => Limit::Application,
        _ => return Err(expected("window, pacing, receiver or application")),
    };
    if fields.0.next_if_eq(&"delivery").is_some() {
        acked.delivery = Some(sample(fields)?);
    }
    if fields.0.next_if_eq(&"departure").is_some() {
        acked.departure = Some(fields.time("the time of the next departure in nanoseconds")?);
    }
    Ok(acked)
}

fn sample(fields: &mut Fields<'_>) -> Result<RateSample, ParseError> {
    let mut sample = RateSample::new();
    sample.delivered = fields.take("the packets delivered")?;
    sample.prior_delivered = fields.take("the packets delivered before")?;
    sample.send_elapsed = Dur::from_nanos(fields.take("the sending time in nanoseconds")?);
    sample.ack_elapsed = Dur::from_nanos(fields.take("the acknowledgement time in nanoseconds")?);
    sample.lost = fields.take("the packets lost")?;
    sample.in_flight = fields.take("the packets in flight")?;
    sample.application_limited = fields.flag("0 or 1 for an application-limited sample")?;
    sample.reliable = fields.flag("0 or 1 for a reliable sample")?;
    Ok(sample)
}

fn loss_sample(fields: &mut Fields<'_>) -> Result<LossSample, ParseError> {
    let mut sample = LossSample::new();
    sample.lost = fields.take("the packets lost since the transmission")?;
    sample.in_flight = fields.take("the packets in flight")?;
    sample.application_limited = fields.flag("0 or 1 for an application-limited packet")?;
    Ok(sample)
}

fn lost(fields: &mut Fields<'_>) -> Result<Lost, ParseError> {
    let (packets, sent_at) = (fields.take(PACKETS)?, fields.time(SENT_AT)?);
    let mut lost = Lost::new(packets, sent_at, fields.take(SENT)?);
    if fields.0.next_if_eq(&"delivery").is_some() {
        lost.delivery = Some(loss_sample(fields)?);
    }
    Ok(lost)
}

fn event(fields: &mut Fields<'_>) -> Result<Event, ParseError> {
    Ok(match fields.0.next() {
        Some("acked") => Event::Acked(acked(fields)?),
        Some("handshake") => {
            let rtt = fields.take("the round-trip time in nanoseconds")?;
            Event::Handshake { rtt: Dur::from_nanos(rtt) }
        }
        Some("lost") => Event::Lost(lost(fields)?),
        Some("marked") => {
            let (packets, sent_at) = (fields.take(PACKETS)?, fields.time(SENT_AT)?);
            Event::Marked(Marked::new(packets, sent_at, fields.take(SENT)?))
        }
        Some("report") => {
            let (packets, sent) = (fields.take(PACKETS)?, fields.take(SENT)?);
            let mut report = Report::new(packets, sent, Dur::ZERO);
            report.arrival = fields.rate("the arrival rate in packets per second, or -")?;
            report.capacity = fields.rate("the capacity in packets per second, or -")?;
            report.rtt = Dur::from_nanos(fields.take("the round-trip time in nanoseconds")?);
            Event::Report(report)
        }
        Some("recovered") => Event::Recovered,
        Some("timeout") => Event::Timeout(lost(fields)?),
        Some("persistent-congestion") => Event::PersistentCongestion,
        Some("reduced") => {
            let window = Packets::new(fields.take("the window in packets")?);
            Event::Reduced { window, idle: fields.0.next_if_eq(&"idle").is_some() }
        }
        Some("mtu") => Event::Mtu { packet: fields.take("the packet size in bytes")? },
        Some("undo") => Event::Undo,
        Some("tick") => Event::Tick,
        _ => return Err(expected("the name of an event")),
    })
}
