//! A UDP relay that loses, delays, duplicates, replays and corrupts datagrams at random,
//! reproducibly by its seed. Each client has its own socket to the target, so that the target sees
//! different addresses.

use crate::common::Random;
use rustix::net::sockopt;
use std::collections::{BTreeMap, HashMap};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The interval at which waiting threads check whether the relay has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The number of datagrams that are remembered for [`Faults::replay`].
const REMEMBERED: usize = 512;
/// The receive buffer of a socket in bytes: several of UDT's windows.
const BUFFER: usize = 64 << 20;
/// The longest duration of [`Faults::heavy_loss`]: rate laws send a few packets per second when
/// half of the packets are lost, so that the phase would last for minutes.
const HEAVY_LOSS_DURATION: Duration = Duration::from_secs(1);

/// The impairments of one direction: probabilities for each datagram, and times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub loss: f64,
    /// Half of the datagrams with these numbers are lost, for at most [`HEAVY_LOSS_DURATION`].
    pub heavy_loss: (u64, u64),
    pub duplicate: f64,
    /// Delayed by up to [`Faults::reorder_delay`], so that later datagrams overtake it.
    pub reorder: f64,
    pub reorder_delay: Duration,
    /// Truncated to a random length.
    pub truncate: f64,
    /// One bit of the first 64 bytes is flipped.
    pub flip: f64,
    /// Followed by a copy of an earlier datagram.
    pub replay: f64,
    /// The delay of all datagrams.
    pub delay: Duration,
}

impl Faults {
    pub(crate) fn loss(loss: f64) -> Self {
        Faults { loss, ..Faults::default() }
    }
}

/// A datagram, the socket that sends it, and where to.
type Delayed = (Vec<u8>, Arc<UdpSocket>, SocketAddr);

/// The type of the function that [`Relay::observe`] calls.
type Observer = dyn Fn(bool, &[u8]) + Send + Sync;

/// The state of one direction of one client.
struct Direction {
    to_target: bool,
    faults: Faults,
    random: Random,
    count: u64,
    remembered: Vec<Vec<u8>>,
    /// When the phase of heavy loss ends, after it has begun.
    heavy_loss_end: Option<Instant>,
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    cut: AtomicBool,
    order: AtomicU64,
    lost: AtomicU64,
    forwarded: AtomicU64,
    /// Delayed datagrams by the time when they are due and their order.
    delayed: Mutex<BTreeMap<(Instant, u64), Delayed>>,
    more: Condvar,
    observer: Option<Box<Observer>>,
}

impl Shared {
    fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Sends a datagram after a delay.
    fn send(&self, after: Duration, bytes: &[u8], from: &Arc<UdpSocket>, to: SocketAddr) {
        if after.is_zero() {
            let _ = from.send_to(bytes, to);
            return;
        }
        let due = (Instant::now() + after, self.order.fetch_add(1, Ordering::Relaxed));
        self.delayed.lock().unwrap().insert(due, (bytes.to_vec(), Arc::clone(from), to));
        self.more.notify_one();
    }

    fn forward(
        &self,
        direction: &mut Direction,
        datagram: &[u8],
        from: &Arc<UdpSocket>,
        to: SocketAddr,
    ) {
        let Direction { to_target, faults, random, count, remembered, heavy_loss_end } = direction;
        if self.cut.load(Ordering::Relaxed) {
            return;
        }
        *count += 1;
        let heavy_loss = (faults.heavy_loss.0..faults.heavy_loss.1).contains(count)
            && Instant::now()
                < *heavy_loss_end.get_or_insert_with(|| Instant::now() + HEAVY_LOSS_DURATION)
            && random.chance(0.5);
        if heavy_loss || random.chance(faults.loss) {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.forwarded.fetch_add(1, Ordering::Relaxed);
        if let Some(observer) = &self.observer {
            observer(*to_target, datagram);
        }
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
            after += Duration::from_nanos(random.below(faults.reorder_delay.as_nanos() as u64));
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

    /// Sends delayed datagrams when they are due.
    fn send_delayed(&self) {
        let mut queue = self.delayed.lock().unwrap();
        while !self.over() {
            let now = Instant::now();
            let wait = match queue.first_entry() {
                Some(first) if first.key().0 <= now => {
                    let (bytes, from, to) = first.remove();
                    drop(queue);
                    let _ = from.send_to(&bytes, to);
                    queue = self.delayed.lock().unwrap();
                    continue;
                }
                Some(first) => POLL_INTERVAL.min(first.key().0 - now),
                None => POLL_INTERVAL,
            };
            queue = self.more.wait_timeout(queue, wait).unwrap().0;
        }
    }
}

/// A running relay. It ends on drop.
pub(crate) struct Relay {
    /// The address to which clients send.
    pub addr: SocketAddr,
    /// The source address of the first client's datagrams, which a target of a rendezvous needs in
    /// advance.
    pub back: SocketAddr,
    /// The socket that sends to clients.
    pub front: Arc<UdpSocket>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

fn socket() -> Arc<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(POLL_INTERVAL)).unwrap();
    // The relay must not lose other datagrams. Only a privileged process can exceed the system's
    // limit.
    if sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, BUFFER).unwrap();
    }
    Arc::new(socket)
}

impl Relay {
    /// Starts a relay to `target` with the faults of both directions.
    pub(crate) fn start(target: SocketAddr, faults: [Faults; 2], seed: u64) -> Self {
        Relay::run(target, faults, seed, Shared::default())
    }

    /// Starts a relay to `target` without faults. `observer` is called with whether a datagram goes
    /// to the target, and its contents.
    pub(crate) fn observe(
        target: SocketAddr,
        observer: impl Fn(bool, &[u8]) + Send + Sync + 'static,
    ) -> Self {
        let shared = Shared { observer: Some(Box::new(observer)), ..Shared::default() };
        Relay::run(target, [Faults::default(); 2], 0, shared)
    }

    fn run(target: SocketAddr, [there, back]: [Faults; 2], seed: u64, shared: Shared) -> Self {
        let (front, first) = (socket(), socket());
        let shared = Arc::new(shared);
        let mut relay = Relay {
            addr: front.local_addr().unwrap(),
            back: first.local_addr().unwrap(),
            front: Arc::clone(&front),
            shared: Arc::clone(&shared),
            threads: Vec::new(),
        };
        let sender = Arc::clone(&shared);
        relay.threads.push(std::thread::spawn(move || sender.send_delayed()));
        let mut random = Random(seed);
        let mut spare = Some(first);
        let mut clients: HashMap<SocketAddr, (Arc<UdpSocket>, Direction)> = HashMap::new();
        relay.threads.push(std::thread::spawn(move || {
            let mut threads = Vec::new();
            let mut buffer = [0; 1 << 16];
            while !shared.over() {
                let Ok((length, client)) = front.recv_from(&mut buffer) else { continue };
                let mut direction = |to_target, faults| Direction {
                    to_target,
                    faults,
                    random: Random(random.next()),
                    count: 0,
                    remembered: Vec::new(),
                    heavy_loss_end: None,
                };
                let (upstream, to_target) = clients.entry(client).or_insert_with(|| {
                    let upstream = spare.take().unwrap_or_else(socket);
                    let (shared, front) = (Arc::clone(&shared), Arc::clone(&front));
                    let (from, to_client) = (Arc::clone(&upstream), direction(false, back));
                    threads.push(std::thread::spawn(move || {
                        relay_back(&shared, (&from, target), (&front, client), to_client);
                    }));
                    (upstream, direction(true, there))
                });
                shared.forward(to_target, &buffer[..length], upstream, target);
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }));
        relay
    }

    /// Forwards nothing more, like a pulled cable. Its ports stay its own: another socket at one of
    /// them would answer with a reset.
    pub(crate) fn cut(&self) {
        self.shared.cut.store(true, Ordering::Relaxed);
    }

    /// The numbers of lost and of forwarded datagrams in both directions.
    pub(crate) fn counts(&self) -> [u64; 2] {
        [&self.shared.lost, &self.shared.forwarded].map(|count| count.load(Ordering::Relaxed))
    }
}

fn relay_back(
    shared: &Shared,
    (from, target): (&UdpSocket, SocketAddr),
    (front, client): (&Arc<UdpSocket>, SocketAddr),
    mut direction: Direction,
) {
    let mut buffer = [0; 1 << 16];
    while !shared.over() {
        match from.recv_from(&mut buffer) {
            Ok((length, sender)) if sender == target => {
                shared.forward(&mut direction, &buffer[..length], front, client);
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
