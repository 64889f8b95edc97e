//! Records of the events and answers of a controller: a run of any driver (a simulator, a socket,
//! the kernel) can be replayed through a controller and compared bit by bit.
//!
//! A record is text, one line for each event: the time in nanoseconds, the name of the event, its
//! fields in declared order, and after a bar the window, the pacing rate in packets per second and
//! the time of the next wake-up. `-` is none. A delivery-rate sample follows its acknowledgement
//! after the word `delivery`, and then the departure time of the next packet after the word
//! `departure`, where there is one. Numbers are the shortest that read back bit-equal.
//!
//! ```text
//! 50000000 acked 2 2 8 10 0 50000000 - 0 0 window | 12 - -
//! 61000000 lost 1 50000000 14 | 6 - -
//! ```

mod line;

pub use line::ParseError;

use crate::controller::{Controller, Cut, Needs};
use crate::event::{Event, Output};
use crate::units::{Rate, Time};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// An event and the answer to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// The time of the event.
    pub at: Time,
    /// The event.
    pub event: Event,
    /// The controller's answer after it.
    pub output: Output,
}

/// The events and answers of a controller, in order.
///
/// Its [`Display`](fmt::Display) is the text described [above](self), which parses back to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The entries in order of time.
    pub entries: Vec<Entry>,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.iter().try_for_each(|entry| writeln!(f, "{entry}"))
    }
}

impl FromStr for Record {
    type Err = ParseError;

    /// Reads the text of a record. Empty lines and lines that begin with `#` are skipped. A last
    /// line without a line feed is an error: it is cut, and its last number may lack digits.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let lines = text.lines().enumerate();
        let meant = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let entries = meant.map(|(n, line)| line::parse(line).map_err(|error| error.on(n + 1)));
        let entries = entries.collect::<Result<_, _>>()?;
        if !text.is_empty() && !text.ends_with('\n') {
            return Err(line::CUT.on(text.lines().count()));
        }
        Ok(Record { entries })
    }
}

/// A controller that records its events and answers.
#[derive(Clone, Debug)]
pub struct Recorder<C> {
    controller: C,
    record: Record,
}

impl<C: Controller> Recorder<C> {
    /// Records `controller` from here on.
    pub const fn new(controller: C) -> Self {
        Recorder { controller, record: Record { entries: Vec::new() } }
    }

    /// The controller.
    pub const fn controller(&self) -> &C {
        &self.controller
    }

    /// The record so far.
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// The controller and its record.
    pub fn into_parts(self) -> (C, Record) {
        (self.controller, self.record)
    }
}

impl<C: Controller + Clone> Controller for Recorder<C> {
    fn on(&mut self, now: Time, event: &Event) {
        self.controller.on(now, event);
        let output = self.controller.output();
        self.record.entries.push(Entry { at: now, event: *event, output });
    }

    fn output(&self) -> Output {
        self.controller.output()
    }

    fn needs(&self) -> Needs {
        self.controller.needs()
    }

    fn take_cut(&mut self) -> Option<Cut> {
        self.controller.take_cut()
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        self.controller.gauges(emit);
    }
}

/// The first answer of a replay that differs from its record.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// The position of the entry.
    pub position: usize,
    /// The answer on record.
    pub recorded: Output,
    /// The answer of the replay.
    pub replayed: Output,
}

impl core::error::Error for Mismatch {}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { position, recorded, replayed } = self;
        let (recorded, replayed) = (line::Answer(recorded), line::Answer(replayed));
        write!(f, "entry {position}: {recorded} on record, {replayed} in the replay")
    }
}

/// Replays the events of `record` to `controller` and compares the answers, bit by bit.
///
/// # Errors
/// The first answer that differs.
pub fn replay(mut controller: impl Controller, record: &Record) -> Result<(), Mismatch> {
    for (position, entry) in record.entries.iter().enumerate() {
        controller.on(entry.at, &entry.event);
        let (recorded, replayed) = (entry.output, controller.output());
        if bits(&recorded) != bits(&replayed) {
            return Err(Mismatch { position, recorded, replayed });
        }
    }
    Ok(())
}

/// An answer as bits, for which 0 and -0 differ and a NaN equals itself.
fn bits(output: &Output) -> (u64, Option<u64>, Option<Time>) {
    let Output { window, pace, wake } = *output;
    (window.get().to_bits(), pace.map(|rate: Rate| rate.as_per_sec().to_bits()), wake)
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        line::write(&mut text, self)?;
        f.write_str(&text)
    }
}
