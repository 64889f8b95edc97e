//! Data during on periods, at a constant rate or without limit.

use super::{Generator, Writer};
use crate::cast::whole;
use crate::engine::schedule::NONE;
use crate::network::Times;

/// Writes during on periods.
#[derive(Clone)]
pub(super) struct OnOff {
    /// The distributions of on and off periods; `None` for an endless on period.
    periods: Option<(Times, Times)>,
    /// Rate in bits per second; `None` for no limit.
    rate: Option<f64>,
    on: bool,
    /// End of the period; [`NONE`] for an endless one.
    period_end: u64,
    /// Time of the next write, with a fraction of a tick; infinite without one.
    next_write: f64,
}

impl OnOff {
    pub(super) fn new(periods: Option<(Times, Times)>, rate: Option<f64>) -> Self {
        OnOff { periods, rate, on: false, period_end: NONE, next_write: f64::INFINITY }
    }

    fn turn_on(&mut self, writer: &mut Writer) {
        self.on = true;
        self.period_end = match &self.periods {
            Some((on, _)) => writer.now.saturating_add(writer.draw(on).max(1)),
            None => NONE,
        };
        writer.begin_transfer();
        if self.rate.is_some() {
            self.next_write = writer.now as f64;
        } else {
            writer.write_endlessly();
        }
    }

    fn turn_off(&mut self, writer: &mut Writer) {
        self.on = false;
        self.next_write = f64::INFINITY;
        if self.rate.is_some() {
            writer.finish_transfer();
        } else {
            writer.withdraw();
        }
        let off = self.periods.map_or(NONE, |(_, off)| writer.draw(&off).max(1));
        self.period_end = writer.now.saturating_add(off);
    }
}

impl Generator for OnOff {
    fn start(&mut self, writer: &mut Writer) {
        self.turn_on(writer);
    }

    fn due(&self) -> u64 {
        self.period_end.min(whole(self.next_write.ceil()))
    }

    fn wake(&mut self, writer: &mut Writer) {
        if writer.now >= self.period_end {
            if self.on {
                self.turn_off(writer)
            } else {
                self.turn_on(writer)
            }
            return;
        }
        // One packet at a time: what is written at once would leave as a burst.
        let payload = u64::from(writer.payload);
        writer.write(payload);
        let gap = self
            .rate
            .map_or(f64::INFINITY, |rate| payload as f64 * writer.clock.ticks_in(8.0) / rate);
        self.next_write += gap;
    }

    fn stop(&mut self, _: &mut Writer) {
        (self.on, self.period_end, self.next_write) = (false, NONE, f64::INFINITY);
    }
}
