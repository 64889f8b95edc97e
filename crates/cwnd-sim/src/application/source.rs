//! What the application of a flow writes, and its transfers, apart from the sender.

use super::media::Media;
use super::on_off::OnOff;
use super::request::Request;
use super::video::Video;
use super::{Figures, Generator, Writer};
use crate::clock::Clock;
use crate::network::Application;
use crate::record::Transfer;
use cwnd::{Dur, Time};

/// The data of an application. A sender outside the simulator passes the time and the acknowledged
/// packets.
#[derive(Clone)]
pub struct DataSource {
    writer: Writer,
    generator: Box<dyn Generator>,
    /// Units available to the sender.
    available: u64,
    stopped: bool,
}

impl DataSource {
    /// Returns the data of `application` in packets of `payload` bytes, for flow number `flow` of a
    /// run of this duration.
    #[must_use]
    pub fn new(
        application: &Application,
        payload: u32,
        duration: Dur,
        seed: u64,
        flow: u32,
    ) -> Self {
        Self::with_clock(application, [payload; 2], Clock::widest(duration), seed, flow)
    }

    /// `sizes` are those of a packet's payload and of the unit in which the sender counts its data.
    pub(super) fn with_clock(
        application: &Application,
        sizes: [u32; 2],
        clock: Clock,
        seed: u64,
        flow: u32,
    ) -> Self {
        let generator: Box<dyn Generator> = match application {
            Application::Limited { rate } => Box::new(OnOff::new(None, Some(*rate))),
            Application::OnOff { on, off, rate } => Box::new(OnOff::new(Some((*on, *off)), *rate)),
            Application::Request { sizes, think } => Box::new(Request::new(sizes.clone(), *think)),
            Application::Video { chunk, rates, buffer } => {
                Box::new(Video::new(*chunk, rates, *buffer))
            }
            Application::Media(media) => Box::new(Media::new(*media)),
        };
        let writer = Writer::new(clock, sizes, seed, flow);
        DataSource { writer, generator, available: 0, stopped: false }
    }

    /// Starts the application.
    pub fn start(&mut self, now: Time) {
        self.start_at(self.ticks(now));
    }

    /// Lets the application act at `now`, after the acknowledgement of all packets below
    /// `acknowledged`; `written` packets cannot be withdrawn any more. Returns the packets
    /// available from the start of the flow, [`u64::MAX`] for no end.
    pub fn advance(&mut self, now: Time, acknowledged: u64, written: u64) -> u64 {
        self.begin(self.ticks(now));
        while let Some(units) = self.act(acknowledged, || None) {
            self.made_available(units.max(written));
        }
        self.available
    }

    /// Time of the application's next action.
    #[must_use]
    pub fn due(&self) -> Time {
        self.writer.clock.time(self.due_at())
    }

    /// Ends the data.
    pub fn stop(&mut self, now: Time) {
        self.stop_at(self.ticks(now));
    }

    /// The records of the transfers and the application's own figures at `now`, after the
    /// acknowledgement of all packets below `acknowledged`.
    #[must_use]
    pub fn results(&self, now: Time, acknowledged: u64) -> (Vec<Transfer>, Figures) {
        self.results_at(self.ticks(now), acknowledged)
    }

    fn ticks(&self, at: Time) -> u64 {
        self.writer.clock.ticks(at.as_nanos())
    }

    pub(super) fn start_at(&mut self, now: u64) {
        self.writer.now = now;
        self.generator.start(&mut self.writer);
    }

    pub(super) fn begin(&mut self, now: u64) {
        self.writer.now = now;
    }

    /// Acts after the acknowledgement of all units below `acknowledged`. `rate` is the rate that the
    /// controller allows. Returns the units to make available if they have changed.
    pub(super) fn act(&mut self, acknowledged: u64, rate: impl Fn() -> Option<f64>) -> Option<u64> {
        let writer = &mut self.writer;
        let completed = writer.transfers.acknowledge(writer.now, acknowledged);
        if completed && !self.stopped {
            self.generator.completed(writer);
        }
        while self.generator.due() <= writer.now {
            writer.controller_rate = rate();
            self.generator.wake(writer);
        }
        (writer.units != self.available).then_some(writer.units)
    }

    pub(super) fn made_available(&mut self, units: u64) {
        self.available = units;
        self.writer.made_available(units);
    }

    pub(super) fn due_at(&self) -> u64 {
        self.generator.due()
    }

    pub(super) fn stop_at(&mut self, now: u64) {
        self.writer.now = now;
        self.generator.stop(&mut self.writer);
        self.stopped = true;
        self.writer.withdraw();
    }

    pub(super) fn payload(&self) -> u32 {
        self.writer.payload
    }

    pub(super) fn results_at(&self, end: u64, acknowledged: u64) -> (Vec<Transfer>, Figures) {
        let endless = self.available == u64::MAX;
        let acknowledged = acknowledged * u64::from(self.writer.unit);
        let bytes = if endless { acknowledged } else { self.writer.bytes };
        let transfers = self.writer.transfers.records(self.writer.clock, bytes);
        (transfers, self.generator.figures(&self.writer, end))
    }
}
