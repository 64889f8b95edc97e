//! Video in chunks over one connection: a player with a playback buffer.
//!
//! The player requests the next chunk when its buffer has room for one. The bitrate of a chunk
//! follows from the buffer (BBA-0: Huang, Johari, McKeown, Trunnell, Watson, "A buffer-based
//! approach to rate adaptation", SIGCOMM 2014): the lowest one up to the reservoir, the highest one
//! above the upper reservoir, and linear between them. The bitrate changes only when this map
//! reaches the next higher or the next lower one.
//!
//! Playback starts with the first chunk. While the buffer is empty it stalls until the next chunk
//! is complete.

use super::{Figures, Generator, Writer};
use crate::cast::whole;
use crate::clock::Clock;
use crate::engine::schedule::NONE;
use cwnd::Dur;
use std::sync::Arc;

/// The reservoir and the beginning of the upper reservoir as fractions of the buffer. BBA-0 has a
/// reservoir of 90 s in a buffer of 240 s, for chunks whose sizes vary; here the chunks of a
/// bitrate have the same size. In a short buffer the reservoir is a chunk, and the upper one begins
/// where the buffer still has room for one: a request never finds it fuller.
const RESERVOIRS: [f64; 2] = [0.1, 0.9];

#[derive(Clone)]
pub(super) struct Video {
    /// Duration of a chunk in seconds.
    chunk: f64,
    /// Bitrates in bits per second, ascending.
    rates: Arc<[f64]>,
    /// The largest buffer in seconds.
    buffer: f64,
    /// Index of the current bitrate.
    choice: usize,
    /// Arrival of the next request.
    next: u64,
    player: Player,
    started: u64,
    /// Sum of the bitrates of the complete chunks, and their number.
    complete: (f64, f64),
}

/// The state of the playback at a time.
#[derive(Clone, Copy, Default)]
struct Player {
    at: u64,
    /// Seconds of video in the buffer.
    level: f64,
    /// Time of the first playback; [`NONE`] before it.
    playing_since: u64,
    /// Seconds for which the playback has stalled.
    stalled: f64,
    /// Number of stalls.
    stalls: f64,
    ended: bool,
}

impl Player {
    /// Plays until `now`.
    fn advance(&mut self, now: u64, clock: Clock) {
        if self.playing_since != NONE && !self.ended {
            let elapsed = clock.seconds(now - self.at);
            if elapsed > self.level {
                // A stall that goes on was counted before.
                let begins = self.level > 0.0;
                self.stalls += f64::from(u8::from(begins));
                self.stalled += elapsed - self.level;
            }
            self.level = (self.level - elapsed).max(0.0);
        }
        self.at = now;
    }
}

impl Video {
    pub(super) fn new(chunk: Dur, rates: &Arc<[f64]>, buffer: Dur) -> Self {
        Video {
            chunk: chunk.as_secs(),
            rates: rates.clone(),
            buffer: buffer.as_secs(),
            choice: 0,
            next: NONE,
            player: Player { playing_since: NONE, ..Player::default() },
            started: 0,
            complete: (0.0, 0.0),
        }
    }

    /// Chooses the bitrate of the next chunk by the level of the buffer.
    fn choose(&mut self) {
        let highest = self.rates.len() - 1;
        let [low, high] = RESERVOIRS.map(|fraction| fraction * self.buffer);
        let high = high.min(self.buffer - self.chunk);
        let low = low.max(self.chunk).min(high);
        let position = match self.player.level {
            level if level <= low => 0.0,
            level => ((level - low) / (high - low)).min(1.0),
        };
        let [least, most] = [self.rates[0], self.rates[highest]];
        let mapped = least + position * (most - least);
        let higher = self.rates[(self.choice + 1).min(highest)];
        let lower = self.rates[self.choice.saturating_sub(1)];
        self.choice = if position <= 0.0 {
            0
        } else if position >= 1.0 {
            highest
        } else if mapped >= higher {
            self.rates.partition_point(|&rate| rate < mapped).saturating_sub(1).max(self.choice)
        } else if mapped <= lower {
            self.rates.partition_point(|&rate| rate <= mapped).min(self.choice)
        } else {
            self.choice
        };
    }
}

impl Generator for Video {
    fn start(&mut self, writer: &mut Writer) {
        (self.started, self.next, self.player.at) = (writer.now, writer.now, writer.now);
    }

    fn due(&self) -> u64 {
        self.next
    }

    fn wake(&mut self, writer: &mut Writer) {
        self.next = NONE;
        self.player.advance(writer.now, writer.clock);
        self.choose();
        let bytes = self.rates[self.choice] * self.chunk / 8.0;
        writer.write_transfer(whole(bytes).max(1));
    }

    fn completed(&mut self, writer: &mut Writer) {
        self.player.advance(writer.now, writer.clock);
        if self.player.playing_since == NONE {
            self.player.playing_since = writer.now;
        }
        self.player.level += self.chunk;
        self.complete = (self.complete.0 + self.rates[self.choice], self.complete.1 + 1.0);
        let wait = (self.player.level + self.chunk - self.buffer).max(0.0);
        self.next = writer.now.saturating_add(whole(writer.clock.ticks_in(wait)));
    }

    fn stop(&mut self, writer: &mut Writer) {
        self.player.advance(writer.now, writer.clock);
        self.player.ended = true;
        self.next = NONE;
    }

    fn figures(&self, writer: &Writer, end: u64) -> Figures {
        let mut player = self.player;
        player.advance(end, writer.clock);
        let startup = match player.playing_since {
            NONE => f64::NAN,
            since => writer.clock.seconds(since - self.started),
        };
        let (sum, count) = self.complete;
        vec![
            ("startup_s", startup),
            ("rebuffering_s", player.stalled),
            ("stalls", player.stalls),
            ("mean_bitrate_bps", sum / count),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bitrate_follows_from_the_level_of_the_buffer() {
        // The map is 1 Mb/s up to 10 s and 4 Mb/s from 90 s on.
        let rates: Arc<[f64]> = Arc::new([1e6, 2e6, 3e6, 4e6]);
        let chosen = |choice: usize, mapped: f64| {
            let mut video = Video::new(Dur::from_secs(4.0), &rates, Dur::from_secs(100.0));
            (video.choice, video.player.level) = (choice, 10.0 + (mapped - 1.0) * 80.0 / 3.0);
            video.choose();
            video.choice
        };
        // Up: the highest bitrate below the map, once the map reaches the next higher one.
        assert_eq!([1.9, 2.01, 2.99, 3.01, 3.99].map(|mapped| chosen(0, mapped)), [0, 1, 1, 2, 2]);
        // Down: the lowest bitrate above the map, once the map reaches the next lower one.
        assert_eq!([3.01, 2.99, 2.01, 1.99, 1.01].map(|mapped| chosen(3, mapped)), [3, 2, 2, 1, 1]);
        // Between its neighbours a bitrate stays.
        assert_eq!([1.01, 1.5, 2.0, 2.5, 2.99].map(|mapped| chosen(1, mapped)), [1; 5]);
        // In a buffer of 30 s the map is between 4 and 26 s, less and more than a chunk.
        let chosen_at = |choice: usize, level: f64| {
            let mut video = Video::new(Dur::from_secs(4.0), &rates, Dur::from_secs(30.0));
            (video.choice, video.player.level) = (choice, level);
            video.choose();
            video.choice
        };
        assert_eq!(
            [(3, 4.0), (0, 26.0), (2, 4.1), (2, 25.9)].map(|(c, l)| chosen_at(c, l)),
            [0, 3, 1, 2]
        );
        // In the reservoirs.
        assert_eq!([0.7, 1.0, 4.0, 4.3].map(|mapped| chosen(2, mapped)), [0, 0, 3, 3]);
    }
}
