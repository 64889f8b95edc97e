//! Interactive video: the source of the tests of RFC 8867, as a statistical model of an encoder (RFC 8593 section 5).
//!
//! The encoder follows the rate of the congestion controller between a minimum and a maximum, and ignores changes within its
//! reaction latency after the last one. Sizes of frames and intervals between them deviate from their means by a Laplace
//! distribution. The model is that of the steady state: the burst of large frames after a change of the rate is left out,
//! because this source follows a rate that changes all the time.

use super::{Figures, Generator, Writer};
use crate::cast::whole;
use crate::engine::schedule::NONE;
use crate::network::Media as Parameters;
use crate::rng::Rng;

/// Scale of the relative deviations of sizes and of intervals.
const SCALE: f64 = 0.15;
/// The encoder's reaction latency in seconds.
const LATENCY: f64 = 0.2;

pub(super) struct Media {
    parameters: Parameters,
    /// The encoder's rate in bits per second.
    rate: f64,
    /// Time of the last change of the rate.
    changed: u64,
    next: u64,
    /// Sum of the rates at each frame, and the number of frames.
    rates: (f64, f64),
}

impl Media {
    pub(super) fn new(parameters: Parameters) -> Self {
        Media { rate: parameters.min, parameters, changed: 0, next: NONE, rates: (0.0, 0.0) }
    }
}

/// Returns a number from the Laplace distribution with mean 0: the difference of two exponential numbers.
fn laplace(rng: &mut Rng) -> f64 {
    rng.exponential(SCALE) - rng.exponential(SCALE)
}

impl Generator for Media {
    fn start(&mut self, writer: &mut Writer) {
        (self.next, self.changed) = (writer.now, writer.now);
    }

    fn due(&self) -> u64 {
        self.next
    }

    fn wake(&mut self, writer: &mut Writer) {
        let Parameters { fps, min, max, .. } = self.parameters;
        let latency = whole(writer.clock.ticks_in(LATENCY));
        if writer.now - self.changed >= latency
            && let Some(rate) = writer.controller_rate
        {
            (self.rate, self.changed) = (rate.clamp(min, max), writer.now);
        }
        self.rates = (self.rates.0 + self.rate, self.rates.1 + 1.0);
        let size = self.rate / (8.0 * fps) * (1.0 + laplace(&mut writer.rng));
        writer.write_frame(whole(size).max(1));
        let interval = (1.0 + laplace(&mut writer.rng)) / fps;
        self.next = writer.now + whole(writer.clock.ticks_in(interval)).max(1);
    }

    fn stop(&mut self, _: &mut Writer) {
        self.next = NONE;
    }

    fn figures(&self, writer: &Writer, end: u64) -> Figures {
        let deadline = writer.clock.ticks(self.parameters.deadline.as_nanos());
        let (sum, count) = self.rates;
        vec![
            ("frames", count),
            ("frames_late", writer.transfers.late(deadline, end) as f64),
            ("mean_bitrate_bps", sum / count),
        ]
    }
}
