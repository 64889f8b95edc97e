//! Streams in memory, and transfers over them.
#![allow(dead_code, reason = "each test uses a part of it")]

use cwnd_transfer::event::{End, Event};
use cwnd_transfer::frame::{Decision, Frame, HEADER, Kind, Offer, Plan, Stamp, What};
use cwnd_transfer::send::{Control, SendOptions, send};
use cwnd_transfer::serve::{Listener, receive};
use cwnd_transfer::shared::{ReceiveOptions, Reserve};
use cwnd_transfer::stream::{PathStats, Stream};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What a test waits for happens before: a machine can be slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes in flight in one direction.
const ROOM: usize = 4 << 20;

#[derive(Default)]
struct Lane {
    bytes: VecDeque<u8>,
    closed: bool,
}

type Lanes<'a> = MutexGuard<'a, [Lane; 2]>;

#[derive(Default)]
struct Pipe {
    lanes: Mutex<[Lane; 2]>,
    changed: Condvar,
}

impl Pipe {
    fn wait<'a>(&self, lanes: Lanes<'a>, deadline: Instant) -> io::Result<Lanes<'a>> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(self.changed.wait_timeout(lanes, left).unwrap().0)
    }
}

/// A channel error: changes written bytes, or fails.
pub(crate) type Meddle = Box<dyn FnMut(&mut Vec<u8>) -> io::Result<()> + Send>;

/// An end of a stream in memory.
pub(crate) struct StreamEnd {
    pipe: Arc<Pipe>,
    side: usize,
    peer: SocketAddr,
    identity: Option<String>,
    channel_error: Mutex<Option<Meddle>>,
}

/// Creates a stream.
pub(crate) fn pair() -> (Arc<StreamEnd>, Arc<StreamEnd>) {
    pair_from(Ipv4Addr::LOCALHOST.into(), None)
}

pub(crate) fn pair_from(
    address: IpAddr,
    identity: Option<&str>,
) -> (Arc<StreamEnd>, Arc<StreamEnd>) {
    let pipe = Arc::new(Pipe::default());
    let end = |side| {
        let (peer, pipe) = (SocketAddr::new(address, 9), Arc::clone(&pipe));
        let identity = identity.map(str::to_owned);
        Arc::new(StreamEnd { pipe, side, peer, identity, channel_error: Mutex::new(None) })
    };
    (end(0), end(1))
}

impl StreamEnd {
    /// Sets the channel error of this end's writes.
    pub(crate) fn with_channel_error(
        self: Arc<Self>,
        error: impl FnMut(&mut Vec<u8>) -> io::Result<()> + Send + 'static,
    ) -> Arc<Self> {
        *self.channel_error.lock().unwrap() = Some(Box::new(error));
        self
    }

    /// Writes all bytes.
    pub(crate) fn write_all(&self, data: &[u8]) {
        let mut rest = data;
        while !rest.is_empty() {
            match self.write(rest, Instant::now() + PATIENCE) {
                Ok(count) => rest = &rest[count..],
                Err(_) => return,
            }
        }
    }

    /// Reads as many bytes as `out` has. Returns false if the stream ends before.
    pub(crate) fn read_exact(&self, out: &mut [u8], deadline: Instant) -> bool {
        let mut read = 0;
        while read < out.len() {
            match self.read(&mut out[read..], deadline) {
                Ok(count) if count > 0 => read += count,
                _ => return false,
            }
        }
        true
    }

    /// Returns whether the other end has closed the stream.
    fn is_closed(&self) -> bool {
        self.pipe.lanes.lock().unwrap()[1 - self.side].closed
    }

    /// Reads until the end of the stream, or for `limit`.
    pub(crate) fn read_all(&self, limit: Duration) -> Vec<u8> {
        let (mut heard, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        let until = Instant::now() + limit;
        while let Ok(count) = self.read(&mut buffer, until) {
            if count == 0 {
                break;
            }
            heard.extend(&buffer[..count]);
        }
        heard
    }
}

impl Stream for StreamEnd {
    fn read(&self, out: &mut [u8], deadline: Instant) -> io::Result<usize> {
        let mut lanes = self.pipe.lanes.lock().unwrap();
        loop {
            let lane = &mut lanes[1 - self.side];
            if !lane.bytes.is_empty() {
                let count = out.len().min(lane.bytes.len()).min(1 << 16);
                for (to, from) in out.iter_mut().zip(lane.bytes.drain(..count)) {
                    *to = from;
                }
                self.pipe.changed.notify_all();
                return Ok(count);
            }
            if lane.closed {
                return Ok(0);
            }
            lanes = self.pipe.wait(lanes, deadline)?;
        }
    }

    fn write(&self, data: &[u8], deadline: Instant) -> io::Result<usize> {
        let mut data = data[..data.len().min(1 << 16)].to_vec();
        let count = data.len();
        if let Some(error) = &mut *self.channel_error.lock().unwrap() {
            // A failed connection delivers nothing more in either direction.
            error(&mut data).inspect_err(|_| self.abort())?;
        }
        let mut lanes = self.pipe.lanes.lock().unwrap();
        loop {
            if lanes.iter().any(|lane| lane.closed) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            if lanes[self.side].bytes.len() + count <= ROOM {
                lanes[self.side].bytes.extend(data);
                self.pipe.changed.notify_all();
                return Ok(count);
            }
            lanes = self.pipe.wait(lanes, deadline)?;
        }
    }

    fn close(&self, _: Instant) -> io::Result<()> {
        self.pipe.lanes.lock().unwrap()[self.side].closed = true;
        self.pipe.changed.notify_all();
        Ok(())
    }

    fn abort(&self) {
        self.pipe.lanes.lock().unwrap().iter_mut().for_each(|lane| lane.closed = true);
        self.pipe.changed.notify_all();
    }

    fn peer(&self) -> Option<SocketAddr> {
        Some(self.peer)
    }

    fn identity(&self) -> Option<String> {
        self.identity.clone()
    }

    fn path(&self) -> PathStats {
        PathStats::default()
    }
}

/// A listener for connections and failures of a test.
pub(crate) struct Hall {
    waiting: Mutex<mpsc::Receiver<io::Result<Arc<StreamEnd>>>>,
}

impl Listener for Hall {
    fn accept(&self, deadline: Instant) -> io::Result<Arc<dyn Stream>> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.waiting.lock().unwrap().recv_timeout(left) {
            Ok(accepted) => accepted.map(|end| end as Arc<dyn Stream>),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// A receiver with two listeners in a thread.
pub(crate) struct Server {
    pub out: PathBuf,
    doors: [mpsc::Sender<io::Result<Arc<StreamEnd>>>; 2],
    pub control: Arc<Control>,
    pub events: Arc<Mutex<Vec<Event>>>,
    thread: Option<std::thread::JoinHandle<io::Result<()>>>,
}

/// A file of three bytes: other offers are described by their differences from it.
pub(crate) const FILE: Offer<'static> = Offer {
    what: What::File,
    linked: false,
    mode: 0o644,
    size: 3,
    space: 3,
    mtime: Stamp { secs: 1, nanos: 0 },
    path: b"a",
    target: b"",
};

/// The end of a first file of three bytes.
pub(crate) const END: Frame<'static> = Frame::End { number: 0, size: 3, root: None };

/// A stream, whose size and time are unknown.
pub(crate) const STREAM: Offer<'static> = Offer {
    what: What::Stream,
    size: 0,
    space: 0,
    mtime: Stamp { secs: 0, nanos: 0 },
    path: b"stdin",
    ..FILE
};

/// A temporary directory with a receiver in `in`.
pub(crate) fn setup(options: ReceiveOptions) -> (TempDir, Server) {
    let dir = TempDir::new().unwrap();
    let server = Server::new(&dir.path().join("in"), options);
    (dir, server)
}

/// A receiver and a sender controlled by the test.
pub(crate) fn scripted(options: ReceiveOptions) -> (TempDir, Server, Script) {
    let (dir, server) = setup(options);
    let script = Script::new(&server);
    (dir, server, script)
}

/// Writes files into a new folder, and creates their parents.
pub(crate) fn write_files<T: AsRef<[u8]>>(folder: &Path, files: &[(&str, T)]) {
    std::fs::create_dir_all(folder).unwrap();
    for (name, data) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, data).unwrap();
    }
}

/// Options without limits.
pub(crate) fn open() -> ReceiveOptions {
    ReceiveOptions { reserve: Reserve::Bytes(0), ..ReceiveOptions::default() }
}

impl Server {
    pub(crate) fn new(out: &Path, options: ReceiveOptions) -> Self {
        std::fs::create_dir_all(out).unwrap();
        let [(first, one), (second, other)] = [mpsc::channel(), mpsc::channel()];
        let (control, events) = (Arc::<Control>::default(), Arc::<Mutex<Vec<Event>>>::default());
        let thread = std::thread::spawn({
            let (out, control, events) =
                (out.to_owned(), Arc::clone(&control), Arc::clone(&events));
            move || {
                let halls = [one, other].map(|waiting| Hall { waiting: Mutex::new(waiting) });
                let observe = move |event| events.lock().unwrap().push(event);
                receive(&[&halls[0], &halls[1]], &out, options, &observe, &control)
            }
        });
        Server { out: out.into(), doors: [first, second], control, events, thread: Some(thread) }
    }

    fn connect_over(&self, door: usize, pair: (Arc<StreamEnd>, Arc<StreamEnd>)) -> Arc<StreamEnd> {
        let _ = self.doors[door].send(Ok(pair.1));
        pair.0
    }

    /// Connects to the receiver.
    pub(crate) fn connect(&self) -> Arc<StreamEnd> {
        self.connect_over(0, pair())
    }

    /// Connects to the second listener.
    pub(crate) fn connect_to_second(&self) -> Arc<StreamEnd> {
        self.connect_over(1, pair())
    }

    pub(crate) fn connect_from(&self, address: IpAddr) -> Arc<StreamEnd> {
        self.connect_over(0, pair_from(address, None))
    }

    /// Connects to the receiver as a peer with a public key.
    pub(crate) fn connect_as(&self, identity: &str) -> Arc<StreamEnd> {
        self.connect_over(0, pair_from(Ipv4Addr::LOCALHOST.into(), Some(identity)))
    }

    /// Makes the listener fail, as after wrong guesses of a one-time code.
    pub(crate) fn fail_accept(&self) {
        let _ = self.doors[0].send(Err(io::ErrorKind::PermissionDenied.into()));
    }

    /// Sends with `options`; returns the end and all events.
    pub(crate) fn send_with(&self, sources: &[&Path], options: SendOptions) -> (End, Vec<Event>) {
        self.send_over(sources, options, |_| self.connect())
    }

    /// Sends over connections from `connect`, which gets the number of the attempt.
    pub(crate) fn send_over(
        &self,
        sources: &[&Path],
        options: SendOptions,
        mut connect: impl FnMut(u32) -> Arc<StreamEnd>,
    ) -> (End, Vec<Event>) {
        let sources: Vec<_> = sources.iter().map(|path| path.to_path_buf()).collect();
        let events = Mutex::new(Vec::new());
        let observe = |event| events.lock().unwrap().push(event);
        let mut attempt = 0;
        let mut connect = || {
            attempt += 1;
            Ok(connect(attempt) as Arc<dyn Stream>)
        };
        let end = send(&sources, options, &mut connect, &observe, &Control::default()).unwrap();
        (end, events.into_inner().unwrap())
    }

    pub(crate) fn send(&self, source: &Path) -> End {
        self.send_with(&[source], SendOptions::default()).0
    }

    /// Waits until the receiver has reported `count` ends, and returns them.
    pub(crate) fn ends(&self, count: usize) -> Vec<End> {
        let until = Instant::now() + PATIENCE;
        loop {
            let events = self.events.lock().unwrap().clone();
            let ends: Vec<_> = events
                .into_iter()
                .filter_map(|event| match event {
                    Event::End(end) => Some(end),
                    _ => None,
                })
                .collect();
            if ends.len() >= count || Instant::now() > until {
                return ends;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the receiver ends.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.control.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Pseudorandom bytes.
pub(crate) fn noise(size: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut data: Vec<u8> =
        std::iter::repeat_with(&mut next).take(size.div_ceil(8)).flatten().collect();
    data.truncate(size);
    data
}

/// Entries of a directory: path, mode, time and contents (or target of a link).
pub(crate) fn tree(root: &Path) -> Vec<(PathBuf, u32, i64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(path) = waiting.pop() {
        for entry in std::fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            let status = path.symlink_metadata().unwrap();
            let data = if status.is_dir() {
                waiting.push(path.clone());
                Vec::new()
            } else if status.is_symlink() {
                std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                std::fs::read(&path).unwrap()
            };
            let short = path.strip_prefix(root).unwrap().to_owned();
            found.push((short, status.mode(), status.mtime_nsec(), data));
        }
    }
    found.sort();
    found
}

/// Waits until `condition` holds.
pub(crate) fn wait_until(condition: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "it does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The size of a file in bytes, 0 if there is none.
pub(crate) fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |status| status.len())
}

/// The names in a directory.
pub(crate) fn list(root: &Path) -> Vec<String> {
    let names = std::fs::read_dir(root).unwrap();
    let mut names: Vec<_> =
        names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The reasons of errors, by path.
pub(crate) fn errors(events: &[Event]) -> Vec<(String, String)> {
    let error = |event: &Event| match event {
        Event::Error { path, reason, .. } => {
            Some((path.clone().unwrap_or_default(), reason.clone()))
        }
        _ => None,
    };
    events.iter().filter_map(error).collect()
}

/// The reasons of notes.
pub(crate) fn notes(events: &[Event]) -> Vec<String> {
    let note = |event: &Event| match event {
        Event::Note { reason, .. } => Some(reason.clone()),
        _ => None,
    };
    events.iter().filter_map(note).collect()
}

/// A sender controlled by a test.
pub(crate) struct Script {
    pub end: Arc<StreamEnd>,
}

impl Drop for Script {
    fn drop(&mut self) {
        self.end.abort();
    }
}

impl Script {
    pub(crate) fn new(server: &Server) -> Self {
        Script::over(server.connect())
    }

    pub(crate) fn over(end: Arc<StreamEnd>) -> Self {
        let script = Script { end };
        script.end.write_all(b"cwndxfr\x03");
        script.write_all(&Frame::Plan(Plan::default()));
        script
    }

    pub(crate) fn write_all(&self, frame: &Frame<'_>) {
        let mut out = Vec::new();
        frame.encode(&mut out);
        self.end.write_all(&out);
    }

    pub(crate) fn offer(&self, path: &[u8], size: u64, secs: i64) {
        let mtime = Stamp { secs, nanos: 0 };
        self.write_all(&Frame::Offer(Offer { size, space: size, mtime, path, ..FILE }));
    }

    /// Sends the data and the end of the first file, of three bytes.
    pub(crate) fn data(&self) {
        self.block(0, 0, b"abc");
        self.write_all(&END);
    }

    pub(crate) fn block(&self, number: u64, index: u64, data: &[u8]) {
        let value = cwnd_transfer::hash::block_value(index, data);
        self.block_of(number, index, value, data);
    }

    /// Sends a block with any value.
    pub(crate) fn block_of(&self, number: u64, index: u64, value: [u8; 32], data: &[u8]) {
        let mut out = vec![Kind::Block as u8];
        out.extend((54 + data.len() as u32).to_be_bytes());
        out.extend(number.to_be_bytes());
        out.extend(index.to_be_bytes());
        out.extend(value);
        out.extend((data.len() as u32).to_be_bytes());
        out.extend([0; 2]);
        out.extend(data);
        self.end.write_all(&out);
    }

    /// Waits until the receiver has answered PLAN: the transfer is counted.
    pub(crate) fn heard_plan(&self) {
        assert!(self.end.read_exact(&mut [0; 8 + HEADER + 1], Instant::now() + PATIENCE));
    }

    /// The next `count` decisions and reasons. There are fewer if the connection ends.
    pub(crate) fn answers(&self, count: usize) -> Vec<(Option<Decision>, String)> {
        let until = Instant::now() + PATIENCE;
        let mut answers = Vec::new();
        let mut header = [0; HEADER];
        while answers.len() < count && self.end.read_exact(&mut header, until) {
            if header == b"cwndxfr\x03"[..HEADER] {
                self.end.read_exact(&mut [0; 8 - HEADER], until);
                continue;
            }
            let (kind, length) = Frame::header(&header).unwrap();
            let mut body = vec![0; length];
            assert!(self.end.read_exact(&mut body, until), "a frame is incomplete");
            match Frame::decode(kind, &body).unwrap() {
                Frame::Answer { decision, reason, .. } => {
                    answers.push((Some(decision), String::from_utf8_lossy(reason).into()));
                }
                Frame::Stop { reason, .. } => {
                    answers.push((None, String::from_utf8_lossy(reason).into()));
                }
                _ => {}
            }
        }
        answers
    }

    /// All decisions and reasons until the receiver closes the connection.
    pub(crate) fn all_answers(&self) -> Vec<(Option<Decision>, String)> {
        let answers = self.answers(usize::MAX);
        assert!(self.end.is_closed(), "the connection is open after {answers:?}");
        answers
    }
}
