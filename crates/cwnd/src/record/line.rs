//! One line of a record, written and read.

use super::Entry;
use crate::event::{Acked, Event, Limit, Lost, Marked, Output, Report};
use crate::units::{Dur, Rate, Time};
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
        write!(f, "{window} {} {}", Maybe(pace), Maybe(wake))
    }
}

pub(super) fn write(text: &mut String, entry: &Entry) -> fmt::Result {
    write!(text, "{} ", entry.at.as_nanos())?;
    match &entry.event {
        Event::Acked(acked) => write_acked(text, acked)?,
        Event::Lost(Lost { packets, sent_at, sent }) => {
            write!(text, "lost {packets} {} {sent}", sent_at.as_nanos())?;
        }
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
        Event::Timeout { sent } => write!(text, "timeout {sent}")?,
        Event::Deflated { packets } => write!(text, "deflated {packets}")?,
        Event::Undo => text.write_str("undo")?,
        Event::Tick => text.write_str("tick")?,
    }
    write!(text, " | {}", Answer(&entry.output))
}

fn write_acked(text: &mut String, acked: &Acked) -> fmt::Result {
    let Acked { packets, credit, in_flight, sent, sent_at, rtt, received_at, echo, limit } = *acked;
    write!(text, "acked {packets} {credit} {in_flight} {sent} {} ", sent_at.as_nanos())?;
    let (rtt, received_at) = (rtt.map(Dur::as_nanos), received_at.map(Time::as_nanos));
    write!(text, "{} {} {} ", Maybe(rtt), Maybe(received_at), u8::from(echo))?;
    text.write_str(match limit {
        Limit::Window => "window",
        Limit::Pacing => "pacing",
        Limit::Receiver => "receiver",
        Limit::Application => "application",
    })
}

/// The fields of a line, one after the other.
struct Fields<'a>(core::str::SplitAsciiWhitespace<'a>);

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

    fn time(&mut self, what: &'static str) -> Result<Time, ParseError> {
        self.take(what).map(Time::from_nanos)
    }

    fn rate(&mut self, what: &'static str) -> Result<Option<Rate>, ParseError> {
        Ok(self.maybe(what)?.map(Rate::per_sec))
    }
}

pub(super) fn parse(line: &str) -> Result<Entry, ParseError> {
    let mut fields = Fields(line.split_ascii_whitespace());
    let at = fields.time("the time in nanoseconds")?;
    let event = event(&mut fields)?;
    if fields.0.next() != Some("|") {
        return Err(expected("| between the event and the answer"));
    }
    let window = fields.take("the window in packets")?;
    let pace = fields.rate("the pacing rate in packets per second, or -")?;
    let wake = fields.maybe("the time of the next wake in nanoseconds, or -")?;
    let output = Output { window, pace, wake: wake.map(Time::from_nanos) };
    match fields.0.next() {
        None => Ok(Entry { at, event, output }),
        Some(_) => Err(expected("nothing after the answer")),
    }
}

fn event(fields: &mut Fields<'_>) -> Result<Event, ParseError> {
    const PACKETS: &str = "a number of packets";
    const SENT_AT: &str = "the time of sending in nanoseconds";
    const SENT: &str = "the number of packets sent";
    Ok(match fields.0.next() {
        Some("acked") => Event::Acked(Acked {
            packets: fields.take(PACKETS)?,
            credit: fields.take("the packets to grow for")?,
            in_flight: fields.take("the packets in flight")?,
            sent: fields.take(SENT)?,
            sent_at: fields.time(SENT_AT)?,
            rtt: fields.maybe("the round-trip time in nanoseconds, or -")?.map(Dur::from_nanos),
            received_at: fields.maybe("the receiver's time, or -")?.map(Time::from_nanos),
            echo: match fields.0.next() {
                Some("0") => false,
                Some("1") => true,
                _ => return Err(expected("0 or 1 for the echo of a mark")),
            },
            limit: match fields.0.next() {
                Some("window") => Limit::Window,
                Some("pacing") => Limit::Pacing,
                Some("receiver") => Limit::Receiver,
                Some("application") => Limit::Application,
                _ => return Err(expected("window, pacing, receiver or application")),
            },
        }),
        Some("lost") => Event::Lost(Lost {
            packets: fields.take(PACKETS)?,
            sent_at: fields.time(SENT_AT)?,
            sent: fields.take(SENT)?,
        }),
        Some("marked") => Event::Marked(Marked {
            packets: fields.take(PACKETS)?,
            sent_at: fields.time(SENT_AT)?,
            sent: fields.take(SENT)?,
        }),
        Some("report") => Event::Report(Report {
            packets: fields.take(PACKETS)?,
            sent: fields.take(SENT)?,
            arrival: fields.rate("the arrival rate in packets per second, or -")?,
            capacity: fields.rate("the capacity in packets per second, or -")?,
            rtt: Dur::from_nanos(fields.take("the round-trip time in nanoseconds")?),
        }),
        Some("recovered") => Event::Recovered,
        Some("timeout") => Event::Timeout { sent: fields.take(SENT)? },
        Some("deflated") => Event::Deflated { packets: fields.take(PACKETS)? },
        Some("undo") => Event::Undo,
        Some("tick") => Event::Tick,
        _ => return Err(expected("the name of an event")),
    })
}
