//! The driver of a connection: from the callbacks of a stack to a controller's events, and from its
//! answer to bytes.

use crate::flight::Flight;
use crate::recording::Recorder;
use cwnd::record::Entry;
use cwnd::{
    Acked, AnyController, Controller, Dur, Event, Limit, Lost, Marked, Rate, Report, Settings, Time,
};

/// The least window in packets (RFC 9002 section 7.2), whatever a controller answers: with less, a
/// stack that sends nothing gets no acknowledgement that would raise the window.
const LEAST_WINDOW: u64 = 2;

/// The number of packets of `packet` bytes that `bytes` are, the last of which may not be full.
fn in_packets(bytes: u64, packet: u32) -> u32 {
    u32::try_from(bytes.div_ceil(u64::from(packet))).unwrap_or(u32::MAX)
}

/// The time between two reports.
const REPORT_INTERVAL: Dur = Dur::from_millis(10);

/// Packets of which a stack has said that they arrived, until it says that the acknowledgement is
/// over.
#[derive(Clone, Copy, Debug, Default)]
struct Newly {
    packets: u32,
    bytes: u64,
    newest: Newest,
}

/// The most recently sent packet of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    sent_at: Time,
    number: Option<u64>,
}

/// The last packets that were acknowledged, by which stacks without packet numbers are served.
#[derive(Clone, Copy, Debug, Default)]
struct Largest {
    number: Option<u64>,
    sent_at: Time,
}

/// What reports need beyond acknowledgements.
#[derive(Clone, Copy, Debug)]
struct Reports {
    last: Option<Time>,
    /// The last report with packets.
    last_with_packets: Option<Time>,
    packets: u32,
}

/// A controller on a connection.
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
    /// The time of the last callback that has one.
    now: Time,
    packet: u32,
    sent: u64,
    newly: Newly,
    /// Bytes acknowledged that are less than a packet.
    remainder: u64,
    largest: Largest,
    rtt: Option<Dur>,
    min_rtt: Dur,
    window_limits: bool,
    lost: u32,
    /// An undo and a packet size that the stack reported without a time.
    undo: bool,
    mtu: Option<u32>,
    flight: Option<Box<Flight>>,
    reports: Option<Box<Reports>>,
    recorder: Option<Recorder>,
}

impl Connection {
    pub(crate) fn new(
        controller: AnyController,
        settings: &Settings,
        recorder: Option<Recorder>,
    ) -> Self {
        let needs = controller.needs();
        let reports = Reports { last: None, last_with_packets: None, packets: 0 };
        let mut connection = Connection {
            controller,
            window: 0,
            pace: None,
            tick: Time::NEVER,
            ticked: None,
            now: Time::ZERO,
            packet: settings.packet,
            sent: 0,
            newly: Newly::default(),
            remainder: 0,
            largest: Largest::default(),
            rtt: None,
            min_rtt: Dur::MAX,
            window_limits: false,
            lost: 0,
            undo: false,
            mtu: None,
            flight: needs.delivery_rate.then(Box::default),
            reports: needs.reports.then(|| Box::new(reports)),
            recorder,
        };
        connection.answer();
        connection
    }

    pub(crate) fn controller(&self) -> &AnyController {
        &self.controller
    }

    /// The window in bytes.
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// The pacing rate in bytes per second.
    pub(crate) fn pace(&self) -> Option<u64> {
        self.pace
    }

    /// The number of packets that `bytes` are, the last of which may not be full.
    pub(crate) fn packets(&self, bytes: u64) -> u32 {
        in_packets(bytes, self.packet)
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

    /// The time is `now`: reports what was waiting for it.
    fn at(&mut self, now: Time) {
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

    /// `packets` packets with `bytes` bytes in all are sent; `number` is that of a single one.
    pub(crate) fn sent(&mut self, now: Time, packets: u32, bytes: u64, number: Option<u64>) {
        self.at(now);
        self.sent += u64::from(packets);
        self.window_limits = false;
        let packet = self.packet;
        if let Some(flight) = &mut self.flight {
            let in_flight = in_packets(flight.bytes(), packet);
            flight.sent(self.now, packets, bytes, number, in_flight);
            // Pure acknowledgements, which some stacks report too, are never acknowledged here.
            let probes = 16 * u64::from(self.packet);
            flight.limit(self.window.min(u64::from(u32::MAX)) + probes);
        }
    }

    /// The window keeps the stack from sending.
    pub(crate) fn window_limits(&mut self) {
        self.window_limits = true;
    }

    /// An acknowledgement covers a packet of `bytes` bytes; `number` is its number, if the stack
    /// says it.
    pub(crate) fn acked(&mut self, now: Time, sent_at: Time, bytes: u64, number: Option<u64>) {
        let newly = &mut self.newly;
        newly.packets += 1;
        newly.bytes += bytes;
        if sent_at >= newly.newest.sent_at {
            newly.newest = Newest { sent_at, number };
        }
        if let Some(flight) = &mut self.flight {
            flight.acked(now.max(self.now), sent_at, bytes, number);
        }
    }

    /// The acknowledgement is over: `in_flight` bytes are in flight, and `largest` is the largest
    /// number of an acknowledged packet of its number space.
    pub(crate) fn acks_end(
        &mut self,
        now: Time,
        in_flight: u64,
        application_limited: bool,
        largest: Option<u64>,
    ) {
        self.at(now);
        let newly = std::mem::take(&mut self.newly);
        if let Some(flight) = &mut self.flight {
            flight.limit(in_flight);
        }
        if newly.packets == 0 {
            return;
        }
        let rtt = self.rtt_sample(newly.newest, largest);
        if let Some(sample) = rtt {
            self.rtt = rtt;
            self.min_rtt = self.min_rtt.min(sample);
        }
        let packets_in_flight = self.packets(in_flight);
        let delivery = self.flight.as_mut().and_then(|flight| {
            if application_limited {
                flight.application_limited(packets_in_flight);
            }
            flight.sample(self.min_rtt)
        });
        if self.reports.is_some() {
            self.report_arrivals(newly.packets);
        } else {
            let mut acked = Acked::new(newly.packets, newly.newest.sent_at);
            acked.credit = self.credit(newly);
            acked.in_flight = packets_in_flight;
            acked.sent = self.sent;
            acked.rtt = rtt;
            acked.limit = match (application_limited, self.window_limits) {
                (true, _) => Limit::Application,
                (false, true) => Limit::Window,
                (false, false) => Limit::Pacing,
            };
            acked.delivery = delivery;
            self.report(Event::Acked(acked));
        }
        self.answer();
    }

    /// The packets that the window may grow for: the bytes acknowledged (RFC 9002 section 7.3),
    /// whose remainder counts with the next acknowledgement.
    fn credit(&mut self, newly: Newly) -> u32 {
        let (bytes, packet) = (self.remainder + newly.bytes, u64::from(self.packet));
        self.remainder = bytes % packet;
        // After a decrease of the packet size, packets have more bytes.
        u32::try_from(bytes / packet).unwrap_or(u32::MAX).min(newly.packets)
    }

    /// The time since `newest` was sent, if it is the largest packet acknowledged so far and its
    /// acknowledgement is new (RFC 9002 section 5.1).
    fn rtt_sample(&mut self, newest: Newest, largest: Option<u64>) -> Option<Dur> {
        let before = self.largest;
        self.largest = Largest { number: largest, sent_at: before.sent_at.max(newest.sent_at) };
        let is_largest = match newest.number {
            Some(_) => newest.number == largest,
            // Numbers rise with the times of sending, except among packets of one instant, and are
            // compared only there: they do not name their number space.
            None => {
                newest.sent_at > before.sent_at
                    || newest.sent_at == before.sent_at && largest > before.number
            }
        };
        is_largest.then(|| self.now.since(newest.sent_at))
    }

    /// Counts packets for a controller that needs reports, and reports when it is time.
    fn report_arrivals(&mut self, packets: u32) {
        let (now, sent) = (self.now, self.sent);
        let (Some(reports), Some(rtt)) = (&mut self.reports, self.rtt) else { return };
        reports.packets += packets;
        if reports.last.is_some_and(|last| now < last + REPORT_INTERVAL) {
            return;
        }
        let mut report = Report::new(reports.packets, sent, rtt);
        let since = reports.last_with_packets.map(|last| now.since(last));
        report.arrival = since
            .filter(|since| !since.is_zero())
            .map(|since| Rate::over(f64::from(reports.packets), since));
        **reports = Reports { last: Some(now), last_with_packets: Some(now), packets: 0 };
        self.report(Event::Report(report));
    }

    /// A packet of `bytes` bytes is lost; 0 for one that does not count, such as a pure
    /// acknowledgement.
    pub(crate) fn packet_lost(&mut self, now: Time, bytes: u64, number: u64) {
        if now > self.now {
            // The stack did not count the losses of an earlier time.
            self.lost = 0;
            self.at(now);
        }
        if bytes > 0 {
            self.lost += 1;
            if let Some(flight) = &mut self.flight {
                flight.lost(number, bytes);
            }
        }
    }

    /// The losses that `packet_lost` has counted are complete; the most recently sent of the lost
    /// packets was sent at `sent_at`.
    pub(crate) fn losses_end(&mut self, now: Time, sent_at: Time, persistent: bool) {
        self.at(now);
        let packets = std::mem::take(&mut self.lost);
        self.report_lost(packets, sent_at, persistent);
    }

    /// `bytes` bytes are lost; the most recently sent of the lost packets was sent at `sent_at`.
    pub(crate) fn bytes_lost(&mut self, now: Time, sent_at: Time, bytes: u64, persistent: bool) {
        self.at(now);
        if let Some(flight) = &mut self.flight {
            flight.oldest_lost(bytes, sent_at);
        }
        self.report_lost(self.packets(bytes), sent_at, persistent);
    }

    fn report_lost(&mut self, packets: u32, sent_at: Time, persistent: bool) {
        let mut lost = Lost::new(packets, sent_at, self.sent);
        if let Some(flight) = &mut self.flight {
            lost.delivery = flight.losses_end(packets, sent_at);
        }
        self.report(Event::Lost(lost));
        if persistent {
            self.report(Event::PersistentCongestion);
        }
        self.answer();
    }

    /// `packets` packets were marked, the most recently sent of them at `sent_at` or earlier.
    pub(crate) fn marked(&mut self, now: Time, sent_at: Time, packets: u32) {
        self.at(now);
        self.report(Event::Marked(Marked::new(packets, sent_at, self.sent)));
        self.answer();
    }

    /// The losses behind the last reduction were spurious; reported with the next callback that has
    /// a time.
    pub(crate) fn spurious(&mut self) {
        self.undo = true;
    }

    /// Packets have at most `packet` bytes from now on; reported with the next callback that has a
    /// time.
    pub(crate) fn mtu(&mut self, packet: u16) {
        self.mtu = Some(u32::from(packet));
    }
}

#[cfg(test)]
mod tests;
