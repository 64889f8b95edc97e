//! CPU time of idle connections. Its own process, because the CPU time of all threads is measured.

#![cfg(all(target_os = "linux", feature = "net"))]

use cwnd::Spec;
use cwnd_udt::{Config, UdtListener, UdtStream};
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// CPU time of this process, also of threads that have ended.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

#[test]
fn an_idle_connection_uses_less_than_one_percent_of_a_core() {
    for law in ["udt", "cubic"] {
        let config = Config::new(Spec::parse(law).unwrap());
        let listener = UdtListener::bind("127.0.0.1:0", &config).unwrap();
        let mut client = UdtStream::connect(listener.local_addr(), &config).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        for _ in 0..100 {
            client.write_all(&[1; 10_000]).unwrap();
            server.read_exact(&mut [0; 10_000]).unwrap();
        }
        sleep(Duration::from_millis(300));
        let (before, start) = (cpu_time(), Instant::now());
        sleep(Duration::from_secs(1));
        let (used, span) = (cpu_time() - before, start.elapsed());
        // Both ends are in this process.
        assert!(used < span / 50, "{law}: {used:?} in {span:?}");
    }
}
