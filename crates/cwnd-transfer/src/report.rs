//! Measurement of a transfer: progress, rates, and the limits of the rate.

use crate::event::{End, Event, FileOutcome, Observe, Outcome, Progress, Shares};
use crate::names::printable;
use crate::stream::{Limits, PathStats, Stream};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Interval of progress events.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Number of progress events over which the rate is measured.
const RATE_SAMPLES: usize = 10;
/// Maximum number of events about single files in a receiver's transfer, so that senders cannot
/// fill a log.
const MAX_FILE_EVENTS: u64 = 1000;

/// Current activity of the thread that runs a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Reads or writes files and folders.
    Disk,
    /// Hashes.
    Processor,
    /// Waits for the peer, or for standard input.
    Waiting,
    /// Waits for space in the send buffer.
    Writing,
}

/// Time by activity, and progress, of a transfer.
pub(crate) struct Meter<'a> {
    observe: Observe<'a>,
    /// Whether this is the sender, which knows the limits of the connection.
    sending: bool,
    spent: [Duration; 4],
    now: Activity,
    since: Instant,
    started: Instant,
    due: Instant,
    /// Time and bytes across the network at the last progress events.
    shown: VecDeque<(Instant, u64)>,
    /// Limits and retransmissions of earlier connections.
    earlier: (Limits, u64),
    file_events: u64,
    pub progress: Progress,
    /// Sizes of complete files, in bytes.
    pub bytes: u64,
    /// Bytes of complete files that were already at the receiver.
    pub present: u64,
    pub not_sent: u64,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(transfer: u64, sending: bool, observe: Observe<'a>) -> Self {
        let now = Instant::now();
        Meter {
            observe,
            sending,
            spent: [Duration::ZERO; 4],
            now: Activity::Waiting,
            since: now,
            started: now,
            due: now + PROGRESS_INTERVAL,
            shown: VecDeque::from([(now, 0)]),
            earlier: Default::default(),
            file_events: 0,
            progress: Progress { transfer, ..Progress::default() },
            bytes: 0,
            present: 0,
            not_sent: 0,
        }
    }

    pub(crate) fn emit(&self, event: Event) {
        (self.observe)(event);
    }

    pub(crate) fn transfer(&self) -> u64 {
        self.progress.transfer
    }

    /// Reports a new connection.
    pub(crate) fn connected(&self, stream: &dyn Stream, attempt: u32) {
        let (transfer, identity) = (self.transfer(), stream.identity());
        self.emit(Event::Connected { transfer, peer: peer_of(stream), identity, attempt });
    }

    /// Starts an activity; returns the previous one.
    pub(crate) fn enter(&mut self, activity: Activity) -> Activity {
        let now = Instant::now();
        self.spent[self.now as usize] += now - self.since;
        self.since = now;
        std::mem::replace(&mut self.now, activity)
    }

    /// Runs `work` as `activity`.
    pub(crate) fn during<T>(&mut self, activity: Activity, work: impl FnOnce() -> T) -> T {
        let before = self.enter(activity);
        let result = work();
        self.enter(before);
        result
    }

    /// Adds the counters of a connection that has ended.
    pub(crate) fn keep(&mut self, path: &PathStats) {
        self.earlier = self.combined(path);
    }

    fn combined(&self, path: &PathStats) -> (Limits, u64) {
        let (a, b) = (self.earlier.0, path.limited);
        let limits = Limits {
            window: a.window + b.window,
            pacing: a.pacing + b.pacing,
            receiver: a.receiver + b.receiver,
            application: a.application + b.application,
            processor: a.processor + b.processor,
        };
        (limits, self.earlier.1 + path.retransmissions)
    }

    fn shares(&self, path: &PathStats) -> Shares {
        let [disk, processor, waiting, writing] = self.spent.map(|spent| spent.as_secs_f64());
        if !self.sending {
            return Shares::new([
                ("disk", disk),
                ("processor", processor),
                ("sender", waiting + writing),
            ]);
        }
        let limits = self.combined(path).0;
        let seconds = |us: u64| us as f64 / 1e6;
        // The activities show why the connection had no data to send.
        let idle = (disk + processor + waiting).max(1e-9);
        let known = limits != Limits::default();
        let application = if known { seconds(limits.application) } else { idle + writing };
        Shares::new([
            ("window", seconds(limits.window)),
            ("pacing", seconds(limits.pacing)),
            ("receiver", seconds(limits.receiver)),
            ("disk", application * disk / idle),
            ("processor", seconds(limits.processor) + application * processor / idle),
            ("application", application * waiting / idle),
        ])
    }

    /// Whether a progress event is due.
    pub(crate) fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// Reports the progress if it is due.
    pub(crate) fn show(&mut self, stream: &dyn Stream) {
        let now = Instant::now();
        if now < self.due {
            return;
        }
        self.due = now + PROGRESS_INTERVAL;
        self.enter(self.now);
        let path = stream.path();
        // Data in the send buffer have not crossed the network.
        let mut progress = self.progress.clone();
        progress.moved_bytes = progress.moved_bytes.saturating_sub(path.pending);
        progress.done_bytes = progress.done_bytes.saturating_sub(path.pending);
        if self.shown.len() == RATE_SAMPLES {
            self.shown.pop_front();
        }
        if let Some(&(at, moved)) = self.shown.front() {
            let seconds = (now - at).as_secs_f64().max(1e-3);
            progress.rate_bps = 8.0 * progress.moved_bytes.saturating_sub(moved) as f64 / seconds;
        }
        self.shown.push_back((now, progress.moved_bytes));
        progress.rtt_s = path.rtt_s;
        progress.loss_rate = path.loss_rate;
        progress.retransmissions = self.combined(&path).1;
        progress.limited = self.shares(&path);
        self.emit(Event::Progress(progress));
    }

    /// Counts an event about a single file; returns whether it is reported.
    fn count_file_event(&mut self) -> bool {
        self.file_events += 1;
        if self.file_events == MAX_FILE_EVENTS + 1 && !self.sending {
            let reason = format!(
                "more than {MAX_FILE_EVENTS} events about single files: further ones are omitted"
            );
            self.emit(Event::Note { transfer: self.transfer(), path: None, reason });
        }
        self.sending || self.file_events <= MAX_FILE_EVENTS
    }

    /// Reports a complete file.
    pub(crate) fn file(&mut self, path: &[u8], outcome: FileOutcome, bytes: u64, moved_bytes: u64) {
        self.progress.files += 1;
        self.bytes += bytes;
        self.present += match outcome {
            FileOutcome::Present => bytes,
            FileOutcome::Resumed => bytes.saturating_sub(moved_bytes),
            FileOutcome::Sent => 0,
        };
        if self.count_file_event() {
            let (transfer, path) = (self.transfer(), printable(path));
            self.emit(Event::File { transfer, path, outcome, bytes, moved_bytes });
        }
    }

    /// Reports an entry that is not sent.
    pub(crate) fn error(&mut self, path: Option<&[u8]>, reason: &str) {
        self.not_sent += 1;
        if self.count_file_event() {
            let path = path.map(printable);
            self.emit(Event::Error { transfer: self.transfer(), path, reason: reason.into() });
        }
    }

    /// Reports a note on a file.
    pub(crate) fn note(&mut self, path: &[u8], reason: &str) {
        if self.count_file_event() {
            let path = Some(printable(path));
            self.emit(Event::Note { transfer: self.transfer(), path, reason: reason.into() });
        }
    }

    /// Reports the end of the transfer, and returns it.
    pub(crate) fn end(&mut self, peer: String, path: &PathStats, reason: Option<String>) -> End {
        self.enter(self.now);
        let seconds = self.started.elapsed().as_secs_f64();
        let outcome = match (&reason, self.not_sent) {
            (Some(_), _) => Outcome::Failed,
            (None, 0) => Outcome::Complete,
            (None, _) => Outcome::Incomplete,
        };
        let limited = self.shares(path);
        let end = End {
            transfer: self.transfer(),
            peer,
            outcome,
            files: self.progress.files,
            bytes: self.bytes,
            present_bytes: self.present,
            moved_bytes: self.progress.moved_bytes,
            seconds,
            rate_bps: 8.0 * self.progress.moved_bytes as f64 / seconds.max(1e-9),
            not_sent: self.not_sent,
            retransmissions: self.combined(path).1,
            rtt_s: path.rtt_s,
            limited,
            reason,
        };
        self.emit(Event::End(end.clone()));
        end
    }
}

/// Returns the text of the peer's address; empty without addresses.
pub(crate) fn peer_of(stream: &dyn Stream) -> String {
    stream.peer().map_or_else(String::new, |peer| peer.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn shares_sum_to_one() {
        let shares = Shares::new([("window", 3.0), ("disk", 1.0)]);
        assert_eq!(shares.0, BTreeMap::from([("window", 0.75), ("disk", 0.25)]));
        assert_eq!(Shares::new([("window", 0.0)]), Shares::default());
    }

    #[test]
    fn idle_time_of_the_connection_is_divided_by_activity() {
        let mut meter = Meter::new(1, true, &|_| ());
        meter.spent = [3, 1, 0, 5].map(Duration::from_secs);
        let limited = Limits { window: 4_000_000, application: 4_000_000, ..Limits::default() };
        let shares = meter.shares(&PathStats { limited, ..PathStats::default() }).0;
        assert_eq!((shares["window"], shares["disk"], shares["processor"]), (0.5, 0.375, 0.125));
        assert_eq!(shares["application"], 0.0);
    }
}
