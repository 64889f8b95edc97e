//! HyStart as in Linux 6.18 (`hystart_update` in net/ipv4/tcp_cubic.c).

use super::slow_start::{Growth, SlowStartLaw};
use crate::event::Acked;
use crate::law::Context;
use crate::units::{Dur, Time};

/// `hystart_low_window`: below this window in packets slow start does not end.
const LOW_WINDOW: f64 = 16.0;
/// `hystart_ack_delta_us`: the longest gap between two acknowledgements of a train.
const ACK_DELTA: Dur = Dur::from_millis(2);
/// `HYSTART_MIN_SAMPLES`: the round-trip time samples of a round before its minimum counts.
const MIN_SAMPLES: u32 = 8;
/// `HYSTART_DELAY_MIN` and `HYSTART_DELAY_MAX`: limits of the rise of the round-trip time that ends
/// slow start.
const DELAY_MIN: Dur = Dur::from_millis(4);
const DELAY_MAX: Dur = Dur::from_millis(16);
/// `hystart_ack_delay`: a train is allowed the time of four largest segments (64 KiB each) at the
/// pacing rate, at most 1 ms.
const SEGMENTS: f64 = 4.0 * 65536.0;
const MAX_ACK_DELAY: f64 = 0.001;
/// The pacing rate of slow start over window / smoothed round-trip time (`tcp_pacing_ss_ratio`).
const PACING: f64 = 2.0;

/// HyStart of Linux. A round ends when a packet sent since its beginning is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStartLinux {
    round_start: Time,
    last_ack: Time,
    /// The smallest round-trip time of the connection.
    delay_min: Dur,
    /// The smallest round-trip time of the round.
    curr_rtt: Dur,
    samples: u32,
    paced: bool,
    /// Slow start ended; there is no detection until a timeout.
    found: bool,
}

impl HyStartLinux {
    /// `paced`: whether the sender is paced, which keeps a train from being as short as half a
    /// round-trip time.
    pub(super) fn new(paced: bool) -> Self {
        HyStartLinux {
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            delay_min: Dur::MAX,
            curr_rtt: Dur::MAX,
            samples: 0,
            paced,
            found: false,
        }
    }

    /// Begins anew after a timeout (`cubictcp_state`).
    pub(super) fn restart(&mut self, now: Time) {
        *self = HyStartLinux { round_start: now, last_ack: now, ..HyStartLinux::new(self.paced) };
    }

    /// Whether the train of acknowledgements is long enough.
    fn train(&mut self, w: f64, cx: &Context) -> bool {
        if cx.now.since(self.last_ack) > ACK_DELTA {
            return false;
        }
        self.last_ack = cx.now;
        let smoothed = cx.rtt.map_or(0.0, |rtt| rtt.smoothed.as_secs());
        let rate = PACING * w * f64::from(cx.packet) / smoothed;
        let ack_delay = (SEGMENTS / rate).min(MAX_ACK_DELAY);
        let whole = self.delay_min.as_secs() + ack_delay;
        let threshold = if self.paced { whole } else { whole / 2.0 };
        cx.now.since(self.round_start).as_secs() > threshold
    }

    /// Whether the round-trip time has risen.
    fn delayed(&mut self, delay: Dur) -> bool {
        self.curr_rtt = self.curr_rtt.min(delay);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let eighth = Dur::from_nanos(self.delay_min.as_nanos() / 8);
        self.curr_rtt > self.delay_min + eighth.clamp(DELAY_MIN, DELAY_MAX)
    }
}

impl SlowStartLaw for HyStartLinux {
    fn grow(&mut self, w: f64, credit: f64, acked: &Acked, cx: &Context) -> Growth {
        if let Some(delay) = acked.rtt
            && !self.found
        {
            self.delay_min = self.delay_min.min(delay);
            if acked.sent_at >= self.round_start {
                (self.round_start, self.last_ack) = (cx.now, cx.now);
                (self.curr_rtt, self.samples) = (Dur::MAX, 0);
            }
            if w >= LOW_WINDOW {
                let train = self.train(w, cx);
                if self.delayed(delay) || train {
                    self.found = true;
                    return Growth { window: w, done: true };
                }
            }
        }
        Growth { window: w + credit, done: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtt::Rtt;
    use crate::testing::{at_ms, ms, sampled};

    /// Acknowledges at `at` a packet sent at `sent_at`, both in milliseconds, at window `w`;
    /// whether slow start is over.
    fn ack(law: &mut HyStartLinux, w: f64, sent_at: u64, at: u64) -> bool {
        let cx = Context::new(at_ms(at), Some(Rtt::first(ms(100))));
        let growth = law.grow(w, 1.0, &sampled(1, cx.now, ms(at - sent_at)), &cx);
        assert_eq!(growth.window, if growth.done { w } else { w + 1.0 });
        growth.done
    }

    /// The train has to last for half of 100 ms and half of 1 ms.
    #[test]
    fn a_train_of_half_a_round_trip_time_ends_slow_start() {
        let mut law = HyStartLinux::new(false);
        assert!(!ack(&mut law, 20.0, 1000, 1100));
        let ended = (1..100).find(|&n| ack(&mut law, 20.0, 1000 + n, 1100 + n));
        assert_eq!(ended, Some(51));
        // A gap of 3 ms breaks the train for the rest of the round.
        let mut law = HyStartLinux::new(false);
        ack(&mut law, 20.0, 1000, 1100);
        assert_eq!(
            (1..100).find(|&n| n != 20 && n != 21 && ack(&mut law, 20.0, 1000 + n, 1100 + n)),
            None
        );
        // A paced train has to last for a whole round-trip time.
        let mut law = HyStartLinux::new(true);
        ack(&mut law, 20.0, 1000, 1100);
        assert_eq!((1..100).find(|&n| ack(&mut law, 20.0, 1000 + n, 1100 + n)), None);
    }

    /// The ninth sample of a round decides: a rise of more than an eighth of 100 ms.
    #[test]
    fn a_rise_of_the_round_trip_time_ends_slow_start() {
        for (rise, expected) in [(12, None), (13, Some(8))] {
            let mut law = HyStartLinux::new(false);
            ack(&mut law, 20.0, 1000, 1100);
            let ended = (0..9).find(|&n| ack(&mut law, 20.0, 1200 + 3 * n, 1300 + rise + 3 * n));
            assert_eq!(ended, expected);
        }
    }

    /// A round begins below 16 packets too: the train of this round was broken before it counted.
    #[test]
    fn a_round_begins_below_the_low_window() {
        let mut law = HyStartLinux::new(false);
        assert!(!ack(&mut law, 10.0, 1000, 1100));
        assert_eq!((3..100).find(|&n| ack(&mut law, 20.0, 1000 + n, 1100 + n)), None);
        // Its samples count from 16 packets on.
        assert_eq!((law.round_start, law.samples), (at_ms(1100), 8));
    }

    /// Detection ends once, and begins anew after a timeout.
    #[test]
    fn a_timeout_begins_detection_anew() {
        let mut law = HyStartLinux::new(false);
        ack(&mut law, 20.0, 1000, 1100);
        assert!((1..100).any(|n| ack(&mut law, 20.0, 1000 + n, 1100 + n)));
        assert!(!(1..100).any(|n| ack(&mut law, 20.0, 1200 + n, 1300 + n)));
        law.restart(at_ms(2000));
        assert_eq!(law.delay_min, Dur::MAX);
        ack(&mut law, 20.0, 2000, 2100);
        assert!((1..100).any(|n| ack(&mut law, 20.0, 2000 + n, 2100 + n)));
    }

    /// Below 16 packets slow start continues.
    #[test]
    fn a_small_window_stays_in_slow_start() {
        let mut law = HyStartLinux::new(false);
        ack(&mut law, 15.0, 1000, 1100);
        assert_eq!((1..100).find(|&n| ack(&mut law, 15.0, 1000 + n, 1100 + n)), None);
    }
}
