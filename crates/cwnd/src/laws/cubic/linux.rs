//! CUBIC in whole packets, as in Linux 6.18 (net/ipv4/tcp_cubic.c) with `CONFIG_HZ=250`.

use crate::law::Signal;
use crate::units::{Dur, Time};
use crate::whole::Credit;
use libm::{cbrt, floor, round};

/// The kernel's clock has steps of a jiffy.
const HZ: u64 = 250;
const JIFFY_NANOS: u64 = 1_000_000_000 / HZ;
/// Between two computations of `cnt` at the same window.
const UPDATE_JIFFIES: u64 = HZ / 32;
/// Units of `beta`, and of the time in the cubic function (`BICTCP_HZ`).
const UNIT: u64 = 1024;
/// `cnt` without a cubic growth, in windows.
const NO_GROWTH: u32 = 100;
/// The most packets for a growth by one as long as there is no window of a loss.
const MAX_CNT_PROBING: u32 = 20;
/// The least.
const MIN_CNT: u32 = 2;
/// The least slow-start threshold.
const MIN_THRESHOLD: u32 = 2;

/// The state of CUBIC (`struct bictcp`). Windows are in packets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Linux {
    /// `cube_rtt_scale`: C in units of 1 / 1024.
    scale: u64,
    /// The window after a loss over that before it, in units of 1 / 1024.
    beta: u32,
    /// `beta_scale`: the window of Reno grows by one packet for each `friendly` / 8 windows.
    friendly: u32,
    fast: bool,
    credit: Credit,
    since_timeout: Epochs,
    /// When everything was acknowledged: the sending time of the last packet.
    idle: Option<Time>,
}

/// State that a timeout resets.
#[derive(Clone, Debug, Default, PartialEq)]
struct Epochs {
    /// Packets acknowledged for a growth by one packet.
    cnt: u32,
    /// The window before the last loss, or less with fast convergence; 0 without one.
    last_max: u32,
    /// Window and time in jiffies of the last computation of `cnt`.
    updated: (u32, u64),
    /// Since the last loss or the end of slow start, in jiffies.
    start: Option<u64>,
    /// The window at `k`.
    origin: u32,
    /// In 1 / 1024 s after `start`.
    k: u64,
    /// The smallest round-trip time in microseconds; 0 without one.
    delay_min: u64,
    /// Packets acknowledged that the window of Reno has not grown for yet.
    ack_cnt: u32,
    /// The window of Reno.
    tcp: u32,
}

impl Linux {
    pub(super) fn new(c: f64, kept: f64, fast: bool) -> Self {
        let unit = UNIT as f64;
        let beta = (round(kept * unit) as u32).min(UNIT as u32 - 1);
        Linux {
            // The kernel's parameter is for a tenth of a second.
            scale: 10 * round(c * unit / 10.0).max(1.0) as u64,
            beta,
            friendly: 8 * (UNIT as u32 + beta) / 3 / (UNIT as u32 - beta),
            fast,
            credit: Credit::default(),
            since_timeout: Epochs::default(),
            idle: None,
        }
    }

    /// The window at the last loss, and that of Reno.
    pub(super) fn windows(&self) -> (f64, f64) {
        (f64::from(self.since_timeout.last_max), f64::from(self.since_timeout.tcp))
    }

    /// `cubictcp_cong_avoid`.
    pub(super) fn grow(&mut self, w: f64, acked: f64, now: Time) -> f64 {
        let (w, acked) = (w as u32, acked as u32);
        self.update(w, acked, jiffies(now));
        f64::from(self.credit.grow(w, acked, self.since_timeout.cnt))
    }

    /// `bictcp_update`.
    fn update(&mut self, w: u32, acked: u32, now: u64) {
        let epochs = &mut self.since_timeout;
        epochs.ack_cnt = epochs.ack_cnt.saturating_add(acked);
        let (at_window, at) = epochs.updated;
        if at_window == w && now.saturating_sub(at) <= UPDATE_JIFFIES {
            return;
        }
        if epochs.start.is_none() || now != at {
            epochs.updated = (w, now);
            epochs.cnt = epochs.cubic(w, acked, now, self.scale);
        }
        epochs.be_friendly(w, self.friendly);
        epochs.cnt = epochs.cnt.max(MIN_CNT);
    }

    /// `cubictcp_recalc_ssthresh`, and the reset when a timeout begins (`cubictcp_state`).
    pub(super) fn cut(&mut self, w: f64, why: Signal) -> f64 {
        let w = w as u32;
        self.credit = Credit::default();
        if why.restarts() {
            self.restart();
        } else {
            let epochs = &mut self.since_timeout;
            epochs.start = None;
            epochs.last_max = if self.fast && w < epochs.last_max {
                share(w, UNIT as u32 + self.beta, 2 * UNIT as u32)
            } else {
                w
            };
        }
        f64::from(share(w, self.beta, UNIT as u32).max(MIN_THRESHOLD))
    }

    /// The reset when a timeout begins, also one that leaves the threshold (`cubictcp_state`).
    pub(super) fn restart(&mut self) {
        self.credit = Credit::default();
        self.since_timeout = Epochs::default();
    }

    /// `cubictcp_acked`, and `cubictcp_cwnd_event` where nothing was in flight. `rtt`, `in_flight`
    /// and `sent_at` are those of the acknowledgement: a reference to it would force every
    /// acknowledgement out of registers.
    #[inline(never)]
    pub(super) fn observe(&mut self, now: Time, rtt: Option<Dur>, in_flight: u32, sent_at: Time) {
        let jiffy = jiffies(now);
        let epochs = &mut self.since_timeout;
        if let (Some(start), Some(last)) = (&mut epochs.start, self.idle)
            && sent_at > last
        {
            *start = (*start + jiffies(sent_at) - jiffies(last)).min(jiffy);
        }
        self.idle = (in_flight == 0).then_some(sent_at);
        let settled = epochs.start.is_none_or(|start| jiffy >= start + HZ);
        if let Some(rtt) = rtt
            && settled
        {
            let micros = (rtt.as_nanos() / 1000).max(1);
            epochs.delay_min = match epochs.delay_min {
                0 => micros,
                least => least.min(micros),
            };
        }
    }

    /// Converts the windows to packets of another size.
    pub(super) fn rescale(&mut self, factor: f64) {
        let scaled = |w: u32| floor(f64::from(w) * factor) as u32;
        let epochs = &mut self.since_timeout;
        epochs.last_max = scaled(epochs.last_max);
        epochs.origin = scaled(epochs.origin);
        epochs.tcp = scaled(epochs.tcp);
        epochs.k = floor(epochs.k as f64 * cbrt(factor)) as u64;
    }
}

impl Epochs {
    /// Packets acknowledged for a growth by one packet on the cubic function, which is evaluated a
    /// round-trip time from now.
    fn cubic(&mut self, w: u32, acked: u32, now: u64, scale: u64) -> u32 {
        let start = *self.start.get_or_insert_with(|| {
            (self.ack_cnt, self.tcp) = (acked, w);
            self.origin = self.last_max.max(w);
            // The kernel's cubic_root is a table with a mean error of 0.2 %.
            let cube = u64::from(self.origin - w) << 40;
            self.k = cbrt((cube / scale) as f64) as u64;
            now
        });
        let delay = (self.delay_min * 1000).div_ceil(JIFFY_NANOS);
        let t = (now.saturating_sub(start) + delay) * UNIT / HZ;
        let offset = t.abs_diff(self.k);
        let cube = offset.saturating_mul(offset).saturating_mul(offset);
        let delta = u32::try_from(cube.saturating_mul(scale) >> 40).unwrap_or(u32::MAX);
        let target = if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        };
        let cnt = if target > w { w / (target - w) } else { w.saturating_mul(NO_GROWTH) };
        if self.last_max == 0 { cnt.min(MAX_CNT_PROBING) } else { cnt }
    }

    /// At least the growth of Reno with the same reduction.
    fn be_friendly(&mut self, w: u32, friendly: u32) {
        let each = share(w, friendly, 8).max(1);
        let grown = self.ack_cnt.saturating_sub(1) / each;
        self.ack_cnt -= grown * each;
        self.tcp = self.tcp.saturating_add(grown);
        if self.tcp > w {
            self.cnt = self.cnt.min(w / (self.tcp - w));
        }
    }
}

fn jiffies(at: Time) -> u64 {
    at.as_nanos() / JIFFY_NANOS
}

/// w a / b, rounded down.
fn share(w: u32, a: u32, b: u32) -> u32 {
    u32::try_from(u64::from(w) * u64::from(a) / u64::from(b)).unwrap_or(u32::MAX)
}

/// Values of the kernel's integer arithmetic for C = 0.4 and a reduction to 0.7.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, ms};

    fn law() -> Linux {
        Linux::new(0.4, 0.7, true)
    }

    /// An acknowledgement `now` milliseconds after the start.
    fn observe(law: &mut Linux, now: u64, rtt: u64, sent_at: u64, in_flight: u32) {
        law.observe(at_ms(now), Some(ms(rtt)), in_flight, at_ms(sent_at));
    }

    #[test]
    fn parameters_are_multiples_of_a_1024th() {
        let law = law();
        assert_eq!((law.scale, law.beta, law.friendly), (410, 717, 15));
    }

    /// 717 / 1024 of the window, rounded down and at least two packets. A second loss at a smaller
    /// window leaves (1024 + 717) / 2048 of it.
    #[test]
    fn a_loss_multiplies_the_window() {
        let mut law = law();
        assert_eq!(law.cut(100.0, Signal::Loss), 70.0);
        assert_eq!(law.since_timeout.last_max, 100);
        assert_eq!(law.cut(80.0, Signal::Loss), 56.0);
        assert_eq!(law.since_timeout.last_max, 68);
        assert_eq!(law.cut(2.0, Signal::Loss), 2.0);
        assert_eq!(law.cut(70.0, Signal::Timeout), 49.0);
        assert_eq!(law.since_timeout, Epochs::default());
    }

    /// K = cbrt(300 2^40 / 410) = 9300 / 1024 s. The function has the window of the loss there, and
    /// 410 / 1024 s^3 of it after each second cubed.
    #[test]
    fn the_cubic_function_passes_through_the_window_of_the_loss() {
        let mut law = law();
        let w = law.cut(1000.0, Signal::Loss) as u32;
        law.update(w, 1, jiffies(at_ms(0)));
        assert_eq!((w, law.since_timeout.k, law.since_timeout.origin), (700, 9300, 1000));
        // 5 s after K: 1000 + 0.4 5^3 = 1050.
        let t = 9300 * 1000 / 1024 + 5000;
        assert_eq!(law.since_timeout.cubic(1000, 0, jiffies(at_ms(t)), law.scale), 1000 / 49);
        // At the window of the loss: one packet for each 100 windows.
        assert_eq!(law.since_timeout.cubic(1000, 0, jiffies(at_ms(9080)), law.scale), 100_000);
    }

    /// The function is evaluated a round-trip time ahead, in whole jiffies.
    #[test]
    fn the_smallest_round_trip_time_is_added_to_the_time() {
        let mut law = law();
        observe(&mut law, 21, 21, 0, 1);
        observe(&mut law, 1033, 33, 1000, 1);
        assert_eq!(law.since_timeout.delay_min, 21_000);
        law.since_timeout.last_max = 1000;
        let mut ahead = law.since_timeout.clone();
        let mut now = law.since_timeout.clone();
        now.delay_min = 0;
        let late = jiffies(at_ms(14_000));
        for epochs in [&mut ahead, &mut now] {
            epochs.cubic(700, 0, 0, 410);
        }
        assert_eq!(ahead.cubic(1000, 0, late, 410), now.cubic(1000, 0, late + 6, 410));
        // Samples within a second of the loss do not count.
        law.cut(1000.0, Signal::Loss);
        law.update(700, 1, jiffies(at_ms(2000)));
        observe(&mut law, 2990, 10, 2980, 1);
        assert_eq!(law.since_timeout.delay_min, 21_000);
        observe(&mut law, 3000, 10, 2990, 1);
        assert_eq!(law.since_timeout.delay_min, 10_000);
    }

    /// `cnt` is at most 20 before a loss, at least 2, and computed again after more than 7 jiffies
    /// at the same window.
    #[test]
    fn without_a_loss_the_window_grows_by_a_twentieth() {
        let mut law = law();
        assert_eq!(law.grow(100.0, 19.0, at_ms(0)), 100.0);
        assert_eq!(law.since_timeout.cnt, 20);
        assert_eq!(law.grow(100.0, 1.0, at_ms(1)), 101.0);
        law.since_timeout.origin = 1000;
        assert_eq!(law.grow(100.0, 1.0, at_ms(28)), 100.0);
        assert_eq!(law.since_timeout.cnt, 20);
        law.grow(100.0, 0.0, at_ms(32));
        assert_eq!(law.since_timeout.cnt, MIN_CNT);
    }

    /// The window of Reno grows by one packet for 15 / 8 windows: 37 packets at a window of 20.
    #[test]
    fn small_windows_grow_like_reno() {
        let mut law = law();
        let w = f64::from(law.cut(29.0, Signal::Loss) as u32);
        assert_eq!(w, 20.0);
        // At the window of the loss the cubic function does not grow.
        law.since_timeout.last_max = 20;
        assert_eq!(law.grow(w, 37.0, at_ms(0)), 20.0);
        assert_eq!(law.since_timeout.tcp, 20);
        // After 38 packets the window of Reno is 21, and `cnt` 20.
        assert_eq!(law.grow(w, 1.0, at_ms(32)), 21.0);
        assert_eq!((law.since_timeout.tcp, law.since_timeout.cnt), (21, 20));
    }

    /// Time without packets in flight is not part of the epoch (`CA_EVENT_TX_START`).
    #[test]
    fn the_epoch_excludes_idle_time() {
        let mut law = law();
        law.update(10, 1, jiffies(at_ms(0)));
        observe(&mut law, 120, 20, 100, 0);
        observe(&mut law, 520, 20, 500, 1);
        assert_eq!(law.since_timeout.start, Some(jiffies(at_ms(400))));
    }
}
