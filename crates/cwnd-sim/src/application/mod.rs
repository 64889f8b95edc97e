//! Flows with an application: the data of a sender becomes available in the course of the run.
//!
//! The application runs at the sender, which is a server where there is a client. It acts at the
//! times of its own timer, the flow's `LIFE` timer, and when an acknowledgement completes a
//! transfer. It therefore needs nothing from the other end, and the lookahead of the sender, which
//! ends at the `LIFE` timer, needs no other rule.
//!
//! A transfer ends when the sender receives the acknowledgement of its last byte. What a client
//! does in response, such as the next request, reaches the server with this acknowledgement, so
//! that it takes the time of the return path including its queues. From the arrival of a request to
//! the acknowledgement of the response passes one path and one return path, as passes for the
//! client from sending the request to the end of the response.

mod flow;
mod media;
mod on_off;
mod request;
mod source;
mod transfers;
mod video;

pub(crate) use flow::with_application;
pub use source::DataSource;

use crate::clock::Clock;
use crate::network::Times;
use crate::rng::Rng;
use dyn_clone::DynClone;
use transfers::Transfers;

/// Figures of an application by name.
type Figures = Vec<(&'static str, f64)>;

/// What an application does next.
trait Generator: DynClone + Send {
    /// Starts the application.
    fn start(&mut self, writer: &mut Writer);

    /// Time of the application's next action; [`NONE`] without one.
    fn due(&self) -> u64;

    /// Acts at the time [`due`](Self::due).
    fn wake(&mut self, writer: &mut Writer);

    /// Transfers were completed: the one of which a client waits for the end, or some of several.
    fn completed(&mut self, _: &mut Writer) {}

    /// Ends the data: there are no further actions.
    fn stop(&mut self, writer: &mut Writer);

    /// The application's own figures at the end of the run.
    fn figures(&self, _: &Writer, _: u64) -> Figures {
        Figures::new()
    }
}

dyn_clone::clone_trait_object!(Generator);

/// The application's view of the sender, and its transfers.
#[derive(Clone)]
struct Writer {
    now: u64,
    clock: Clock,
    rng: Rng,
    /// Payload of a packet in bytes.
    payload: u32,
    /// Bytes in which the sender counts its data: a packet, or a byte of a stream.
    unit: u32,
    /// Bytes written. Data that is withdrawn does not count.
    bytes: u64,
    /// Units to make available.
    units: u64,
    /// The rate that the controller allows in bits per second of data; `None` before the first
    /// round-trip time sample.
    controller_rate: Option<f64>,
    transfers: Transfers,
}

impl Writer {
    /// Draws a time in ticks.
    fn draw(&mut self, times: &Times) -> u64 {
        let clock = self.clock;
        times.draw(&mut self.rng, |dur| clock.ticks(dur.as_nanos()))
    }

    /// Begins a transfer, to which data is written until it is [finished](Self::finish_transfer).
    fn begin_transfer(&mut self) {
        self.transfers.open(self.now, self.bytes);
    }

    /// Ends the data of the transfer.
    fn finish_transfer(&mut self) {
        self.transfers.close(self.bytes, self.units);
    }

    /// Writes `bytes` bytes. They begin in the last unit if that has room: over time no byte is
    /// padding.
    fn write(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.units = self.bytes.div_ceil(u64::from(self.unit));
    }

    /// Writes a transfer that has units of its own.
    fn write_transfer(&mut self, bytes: u64) {
        self.units += bytes.div_ceil(u64::from(self.unit));
        self.bytes = self.units * u64::from(self.unit);
        self.transfers.add(self.now, bytes, self.units);
    }

    /// Writes a transfer that begins in the last unit if that has room, and needs one more unit at
    /// least.
    fn write_frame(&mut self, bytes: u64) {
        let units = self.units + 1;
        self.write(bytes);
        self.units = self.units.max(units);
        self.transfers.add(self.now, bytes, self.units);
    }

    fn new(clock: Clock, [payload, unit]: [u32; 2], seed: u64, flow: u32) -> Self {
        Writer {
            now: 0,
            clock,
            rng: Rng::new(seed, "application", u64::from(flow)),
            payload,
            unit,
            bytes: 0,
            units: 0,
            controller_rate: None,
            transfers: Transfers::default(),
        }
    }

    /// Writes without limit.
    fn write_endlessly(&mut self) {
        self.units = u64::MAX;
    }

    /// Withdraws the data that has not been sent.
    fn withdraw(&mut self) {
        self.units = 0;
    }

    /// The sender has made `units` units available. If data was withdrawn, the transfer ends with
    /// what has been sent.
    fn made_available(&mut self, units: u64) {
        if units > self.units {
            self.bytes = units * u64::from(self.unit);
            if self.transfers.is_open() {
                self.transfers.close(self.bytes, units);
            }
        }
        self.units = units;
    }
}
