//! The driver of a controller: its events, and its answer in bytes. What the stacks have in common.

use crate::recording::Recorder;
use cwnd::delivery::LossSample;
use cwnd::record::Entry;
use cwnd::{
    Acked, AnyController, Controller, Dur, Event, Lost, Marked, Needs, Rate, Report, Settings, Time,
};

/// The least window in packets (RFC 9002 section 7.2), whatever a controller answers: with less, a
/// stack that sends nothing gets no acknowledgement that would raise the window.
const LEAST_WINDOW: u64 = 2;

/// The time between two reports.
const REPORT_INTERVAL: Dur = Dur::from_millis(10);

/// The last report, and what the next one contains.
#[derive(Clone, Copy, Debug, Default)]
struct Reports {
    last: Option<Time>,
    /// Packets since.
    packets: u32,
}

/// A controller on a connection.
///
/// All methods but [`at`](Self::at), [`spurious`](Self::spurious) and [`mtu`](Self::mtu) report at
/// the time of the last [`at`](Self::at).
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    controller: AnyController,
    /// The controller's window in bytes.
    window: u64,
    /// Its pacing rate in bytes per second.
    pace: Option<u64>,
    /// When the next Tick is due.
    tick: Time,
    ticked: Option<Time>,
    now: Time,
    packet: u32,
    /// Packets sent.
    sent: u64,
    /// Bytes acknowledged that are less than a packet.
    remainder: u64,
    rtt: Option<Dur>,
    min_rtt: Dur,
    /// An undo and a packet size that the stack reported without a time.
    undo: bool,
    mtu: Option<u32>,
    reports: Option<Box<Reports>>,
    recorder: Option<Recorder>,
}

impl Connection {
    pub(crate) fn new(
        controller: AnyController,
        settings: &Settings,
        recorder: Option<Recorder>,
    ) -> Self {
        let reports = controller.needs().reports.then(Box::default);
        let mut connection = Connection {
            controller,
            window: 0,
            pace: None,
            tick: Time::NEVER,
            ticked: None,
            now: Time::ZERO,
            packet: settings.packet,
            sent: 0,
            remainder: 0,
            rtt: None,
            min_rtt: Dur::MAX,
            undo: false,
            mtu: None,
            reports,
            recorder,
        };
        connection.answer();
        connection
    }

    pub(crate) fn controller(&self) -> &AnyController {
        &self.controller
    }

    pub(crate) fn needs(&self) -> Needs {
        self.controller.needs()
    }

    /// The window in bytes.
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// The pacing rate in bytes per second.
    pub(crate) fn pace(&self) -> Option<u64> {
        self.pace
    }

    /// The latest time.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// The size of a packet in bytes.
    pub(crate) fn packet(&self) -> u32 {
        self.packet
    }

    /// The smallest round-trip time.
    pub(crate) fn min_rtt(&self) -> Dur {
        self.min_rtt
    }

    /// The number of packets that `bytes` are, the last of which may not be full.
    pub(crate) fn packets(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(u64::from(self.packet))).unwrap_or(u32::MAX)
    }

    fn report(&mut self, event: Event) {
        self.controller.on(self.now, &event);
        if let Some(recorder) = &self.recorder {
            let output = self.controller.output();
            recorder.push(Entry { at: self.now, event, output });
        }
    }

    /// Reads the controller's answer.
    fn answer(&mut self) {
        let output = self.controller.output();
        let packet = self.packet;
        self.window = output.window.as_bytes(packet).max(LEAST_WINDOW * u64::from(packet));
        self.pace = output.pace.map(|pace| pace.as_bytes(packet) as u64);
        self.tick = output.next_tick(self.ticked).unwrap_or(Time::NEVER);
    }

    /// The time is `now`, or later if it was later before: reports what was waiting for it.
    pub(crate) fn at(&mut self, now: Time) {
        self.now = self.now.max(now);
        if self.undo || self.mtu.is_some() || self.tick <= self.now {
            self.catch_up();
        }
    }

    #[cold]
    fn catch_up(&mut self) {
        if std::mem::take(&mut self.undo) {
            self.report(Event::Undo);
        }
        if let Some(packet) = self.mtu.take()
            && packet != self.packet
        {
            self.packet = packet;
            self.report(Event::Mtu { packet });
        }
        if self.tick <= self.now {
            self.report(Event::Tick);
            self.ticked = Some(self.now);
        }
        self.answer();
    }

    /// The losses behind the last reduction were spurious.
    #[cfg(feature = "noq")]
    pub(crate) fn spurious(&mut self) {
        self.undo = true;
    }

    /// Packets have at most `packet` bytes from now on.
    pub(crate) fn mtu(&mut self, packet: u16) {
        self.mtu = Some(u32::from(packet));
    }

    /// `packets` packets are sent.
    pub(crate) fn sent(&mut self, packets: u32) {
        self.sent += u64::from(packets);
    }

    /// Notes a sample of the round-trip time.
    pub(crate) fn rtt(&mut self, sample: Option<Dur>) {
        if let Some(sample) = sample {
            self.rtt = Some(sample);
            self.min_rtt = self.min_rtt.min(sample);
        }
    }

    /// Reports an acknowledgement of `bytes` bytes, or counts its packets for a controller that
    /// needs reports. `credit` and `sent` are filled in.
    pub(crate) fn acknowledged(&mut self, mut acked: Acked, bytes: u64) {
        if self.reports.is_some() {
            self.report_arrivals(acked.packets);
        } else {
            acked.credit = self.credit(acked.packets, bytes);
            acked.sent = self.sent;
            self.report(Event::Acked(acked));
        }
        self.answer();
    }

    /// The packets that the window may grow for: the bytes acknowledged (RFC 9002 section 7.3),
    /// whose remainder counts with the next acknowledgement.
    fn credit(&mut self, packets: u32, bytes: u64) -> u32 {
        let (bytes, packet) = (self.remainder + bytes, u64::from(self.packet));
        self.remainder = bytes % packet;
        // After a decrease of the packet size, packets have more bytes.
        u32::try_from(bytes / packet).unwrap_or(u32::MAX).min(packets)
    }

    fn report_arrivals(&mut self, packets: u32) {
        let (now, sent) = (self.now, self.sent);
        let (Some(reports), Some(rtt)) = (&mut self.reports, self.rtt) else { return };
        reports.packets += packets;
        if reports.last.is_some_and(|last| now < last + REPORT_INTERVAL) {
            return;
        }
        let mut report = Report::new(reports.packets, sent, rtt);
        report.arrival =
            reports.last.map(|last| Rate::over(f64::from(reports.packets), now.since(last)));
        **reports = Reports { last: Some(now), packets: 0 };
        self.report(Event::Report(report));
    }

    /// `packets` packets are lost, the most recently sent of them sent at `sent_at` in the state
    /// `delivery`.
    pub(crate) fn lost(
        &mut self,
        packets: u32,
        sent_at: Time,
        delivery: Option<LossSample>,
        persistent: bool,
    ) {
        let mut lost = Lost::new(packets, sent_at, self.sent);
        lost.delivery = delivery;
        self.report(Event::Lost(lost));
        if persistent {
            self.report(Event::PersistentCongestion);
        }
        self.answer();
    }

    /// `packets` packets were marked, the most recently sent of them at `sent_at` or earlier.
    pub(crate) fn marked(&mut self, packets: u32, sent_at: Time) {
        self.report(Event::Marked(Marked::new(packets, sent_at, self.sent)));
        self.answer();
    }
}
