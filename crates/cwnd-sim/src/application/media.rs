//! Interactive video: the source of the tests of RFC 8867, as a statistical model of an encoder
//! (RFC 8593 section 5).
//!
//! The encoder adopts the rate of the congestion controller, within a minimum and a maximum, and
//! then no other one for its reaction latency (RFC 8593 section 5.1; RFC 8867 section 4.3 has 100
//! ms). It starts at the minimum. Sizes of frames and intervals between them deviate from their
//! means by a Laplace distribution (section 5.3). The burst of large frames after a change of the
//! rate (section 5.2) is left out, because this source follows a rate that changes all the time.

use super::{Figures, Generator, Writer};
use crate::cast::whole;
use crate::engine::schedule::NONE;
use crate::network::Media as Parameters;
use crate::rng::Rng;

/// Scale of the relative deviations of sizes and of intervals (`SCALE_B` and `SCALE_t` of RFC 8593
/// figure 2).
const SCALE: f64 = 0.15;
/// The encoder's reaction latency in seconds (`tau_v` of RFC 8593 figure 2).
const LATENCY: f64 = 0.2;

#[derive(Clone)]
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

/// Returns a number from the Laplace distribution with mean 0: the difference of two exponential
/// numbers.
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
            && let Some(rate) = writer.controller_rate.map(|rate| rate.clamp(min, max))
            && rate != self.rate
        {
            (self.rate, self.changed) = (rate, writer.now);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::Writer;
    use crate::clock::Clock;
    use cwnd::Dur;

    /// A frame: its time in seconds, its size in bytes, and the encoder's rate in bits per second.
    struct Frame {
        at: f64,
        size: f64,
        rate: f64,
    }

    /// Runs the encoder for this time in seconds, with the controller's rate as a function of time.
    fn frames(min: f64, max: f64, seconds: f64, rate: impl Fn(f64) -> Option<f64>) -> Vec<Frame> {
        let parameters = Parameters { fps: 30.0, min, max, deadline: Dur::from_millis(400) };
        let mut writer = Writer::new(Clock::widest(Dur::from_secs(seconds + 1.0)), [1000; 2], 1, 0);
        let mut media = Media::new(parameters);
        media.start(&mut writer);
        let mut frames = Vec::new();
        loop {
            writer.now = media.due();
            let at = writer.clock.seconds(writer.now);
            if at > seconds {
                return frames;
            }
            writer.controller_rate = rate(at);
            let before = writer.bytes;
            media.wake(&mut writer);
            frames.push(Frame { at, size: (writer.bytes - before) as f64, rate: media.rate });
        }
    }

    #[test]
    fn sizes_and_intervals_have_the_distributions_of_the_rfc() {
        // RFC 8593 figure 2: 1 Mb/s at 30 frames per second are frames of 4.17 KB every 33 ms; both
        // scales are 0.15.
        let frames = frames(1e6, 1e6, 2000.0, |_| None);
        let sizes: Vec<_> = frames.iter().map(|frame| frame.size / (1e6 / 240.0) - 1.0).collect();
        let gaps = frames.windows(2).map(|pair| (pair[1].at - pair[0].at) * 30.0 - 1.0).collect();
        for deviations in [sizes, gaps] {
            let count = deviations.len() as f64;
            let mean = deviations.iter().sum::<f64>() / count;
            // The mean absolute deviation of a Laplace distribution is its scale, its variance
            // twice the square of it.
            let absolute = deviations.iter().map(|x| x.abs()).sum::<f64>() / count;
            let variance = deviations.iter().map(|x| x * x).sum::<f64>() / count;
            assert!(mean.abs() < 0.004, "{mean}");
            assert!((absolute - 0.15).abs() < 0.003, "{absolute}");
            assert!((variance - 2.0 * 0.15 * 0.15).abs() < 0.0025, "{variance}");
        }
    }

    /// RFC 8593 section 5.1: requests are ignored for the latency after a transition, not after a
    /// request that changes nothing.
    #[test]
    fn the_latency_begins_with_a_transition() {
        // The encoder has this rate from 0.2 s on, until the controller changes it at 1.05 s.
        let frames = frames(150e3, 1.5e6, 2.0, |at| Some(if at < 1.05 { 5e5 } else { 1e6 }));
        let before = frames.iter().rev().find(|frame| frame.at < 1.05).unwrap();
        let next = frames.iter().find(|frame| frame.at >= 1.05).unwrap();
        assert_eq!((before.rate, next.rate), (5e5, 1e6));
    }

    #[test]
    fn changes_of_the_rate_are_at_least_the_latency_apart() {
        // The controller's rate rises by 1 kb/s each millisecond, to above the maximum.
        let frames = frames(150e3, 1.5e6, 3.0, |at| Some(1e6 * at));
        let changes: Vec<_> =
            frames.windows(2).filter(|pair| pair[0].rate != pair[1].rate).map(|p| &p[1]).collect();
        assert!(frames[0].rate == 150e3 && changes[0].at >= LATENCY);
        for pair in changes.windows(2) {
            assert!(pair[1].at - pair[0].at >= LATENCY, "{} {}", pair[0].at, pair[1].at);
            // The next frame after the latency follows the controller.
            assert!(pair[1].at - pair[0].at < LATENCY + 0.1, "{} {}", pair[0].at, pair[1].at);
        }
        assert!(changes.iter().all(|frame| frame.rate == (1e6 * frame.at).clamp(150e3, 1.5e6)));
        assert_eq!(frames.last().map(|frame| frame.rate), Some(1.5e6));
    }
}
