//! A UDP relay that loses, holds back, repeats and damages datagrams as its seed says. Each client gets
//! a socket of its own towards the target, so that the target can tell them apart.

use crate::common::Random;
use rustix::net::sockopt;
use std::collections::{BinaryHeap, HashMap};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a thread that waits for datagrams looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// Datagrams that are remembered for [`Faults::replay`].
const REMEMBERED: usize = 512;
/// Bytes that wait in a socket: UDT's windows on their way through.
const BUFFER: usize = 64 << 20;
/// A storm passes, even if hardly anything is sent in it: rate laws send a few packets a second where half
/// of all are lost, and would be in it for minutes.
const STORM: Duration = Duration::from_secs(1);

/// What happens to the datagrams of one direction: probabilities for each of them, and times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub loss: f64,
    /// Half of the datagrams between these are lost, counted from the first, but for no longer than [`STORM`].
    pub storm: (u64, u64),
    pub duplicate: f64,
    /// Held back for up to [`Faults::held`], while later ones pass.
    pub reorder: f64,
    pub held: Duration,
    /// Cut to a random length.
    pub truncate: f64,
    /// One bit of the first 64 bytes changed.
    pub flip: f64,
    /// Followed by one that passed before.
    pub replay: f64,
    /// Every datagram takes so long.
    pub delay: Duration,
}

impl Faults {
    pub(crate) fn loss(loss: f64) -> Self {
        Faults { loss, ..Faults::default() }
    }
}

/// A datagram that waits until it is due.
struct Held {
    due: Instant,
    order: u64,
    bytes: Vec<u8>,
    from: Arc<UdpSocket>,
    to: SocketAddr,
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.due, other.order).cmp(&(self.due, self.order))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Held {}

/// One direction of one client.
struct Way {
    faults: Faults,
    random: Random,
    count: u64,
    remembered: Vec<Vec<u8>>,
    /// When the storm is over, once it has begun.
    calm: Option<Instant>,
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    order: AtomicU64,
    lost: AtomicU64,
    passed: AtomicU64,
    held: Mutex<BinaryHeap<Held>>,
    more: Condvar,
}

impl Shared {
    fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Sends now, or later.
    fn send(&self, after: Duration, bytes: &[u8], from: &Arc<UdpSocket>, to: SocketAddr) {
        if after.is_zero() {
            let _ = from.send_to(bytes, to);
            return;
        }
        let held = Held {
            due: Instant::now() + after,
            order: self.order.fetch_add(1, Ordering::Relaxed),
            bytes: bytes.to_vec(),
            from: Arc::clone(from),
            to,
        };
        self.held.lock().unwrap().push(held);
        self.more.notify_one();
    }

    fn pass(&self, way: &mut Way, datagram: &[u8], from: &Arc<UdpSocket>, to: SocketAddr) {
        let Way { faults, random, count, remembered, calm } = way;
        *count += 1;
        let storm = (faults.storm.0..faults.storm.1).contains(count)
            && Instant::now() < *calm.get_or_insert_with(|| Instant::now() + STORM)
            && random.chance(0.5);
        if storm || random.chance(faults.loss) {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.passed.fetch_add(1, Ordering::Relaxed);
        let mut bytes = datagram.to_vec();
        if random.chance(faults.truncate) {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        if random.chance(faults.flip) && !bytes.is_empty() {
            let place = random.below(bytes.len().min(64) as u64) as usize;
            bytes[place] ^= 1 << random.below(8);
        }
        let mut after = faults.delay;
        if random.chance(faults.reorder) {
            after += Duration::from_nanos(random.below(faults.held.as_nanos() as u64));
        }
        self.send(after, &bytes, from, to);
        if random.chance(faults.duplicate) {
            self.send(after, &bytes, from, to);
        }
        if faults.replay > 0.0 {
            if random.chance(faults.replay) && !remembered.is_empty() {
                let which = random.below(remembered.len() as u64) as usize;
                self.send(faults.delay, &remembered[which], from, to);
            }
            if remembered.len() < REMEMBERED {
                remembered.push(bytes);
            } else {
                remembered[random.below(REMEMBERED as u64) as usize] = bytes;
            }
        }
    }

    /// Sends what was held back when it is due.
    fn release(&self) {
        let mut held = self.held.lock().unwrap();
        while !self.over() {
            let now = Instant::now();
            let wait = held.peek().map_or(LOOK, |first| first.due.saturating_duration_since(now));
            if wait.is_zero() {
                let Some(Held { bytes, from, to, .. }) = held.pop() else { continue };
                drop(held);
                let _ = from.send_to(&bytes, to);
                held = self.held.lock().unwrap();
            } else {
                held = self.more.wait_timeout(held, wait.min(LOOK)).unwrap().0;
            }
        }
    }
}

/// A running relay; it ends when it is dropped.
pub(crate) struct Relay {
    /// Where clients send to.
    pub addr: SocketAddr,
    /// Where the first client's datagrams come from, for a target that has to know before (rendezvous).
    pub back: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

fn socket() -> Arc<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(LOOK)).unwrap();
    // What the relay loses is to be what it was told to lose. Only the administrator may have this much.
    if sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, BUFFER).unwrap();
    }
    Arc::new(socket)
}

impl Relay {
    /// Starts a relay to `target`, with the faults of datagrams there and back.
    pub(crate) fn start(target: SocketAddr, [there, back]: [Faults; 2], seed: u64) -> Self {
        let (front, first) = (socket(), socket());
        let shared = Arc::new(Shared::default());
        let mut relay = Relay {
            addr: front.local_addr().unwrap(),
            back: first.local_addr().unwrap(),
            shared: Arc::clone(&shared),
            threads: Vec::new(),
        };
        let releasing = Arc::clone(&shared);
        relay.threads.push(std::thread::spawn(move || releasing.release()));
        let mut random = Random(seed);
        let mut spare = Some(first);
        let mut clients: HashMap<SocketAddr, (Arc<UdpSocket>, Way)> = HashMap::new();
        relay.threads.push(std::thread::spawn(move || {
            let mut threads = Vec::new();
            let mut buffer = [0; 1 << 16];
            while !shared.over() {
                let Ok((length, client)) = front.recv_from(&mut buffer) else { continue };
                let mut way = |faults| Way {
                    faults,
                    random: Random(random.next()),
                    count: 0,
                    remembered: Vec::new(),
                    calm: None,
                };
                let (upstream, outward) = clients.entry(client).or_insert_with(|| {
                    let upstream = spare.take().unwrap_or_else(socket);
                    let (shared, front) = (Arc::clone(&shared), Arc::clone(&front));
                    let (from, homeward) = (Arc::clone(&upstream), way(back));
                    threads.push(std::thread::spawn(move || {
                        carry_back(&shared, (&from, target), (&front, client), homeward);
                    }));
                    (upstream, way(there))
                });
                shared.pass(outward, &buffer[..length], upstream, target);
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }));
        relay
    }

    /// Datagrams that were lost and that were passed on, in both directions.
    pub(crate) fn counts(&self) -> [u64; 2] {
        [&self.shared.lost, &self.shared.passed].map(|count| count.load(Ordering::Relaxed))
    }
}

fn carry_back(
    shared: &Shared,
    (from, target): (&UdpSocket, SocketAddr),
    (front, client): (&Arc<UdpSocket>, SocketAddr),
    mut way: Way,
) {
    let mut buffer = [0; 1 << 16];
    while !shared.over() {
        match from.recv_from(&mut buffer) {
            Ok((length, sender)) if sender == target => {
                shared.pass(&mut way, &buffer[..length], front, client);
            }
            _ => {}
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        self.shared.more.notify_one();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
