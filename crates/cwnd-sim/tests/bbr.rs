//! BBR version 1 in the simulator, with the conventions of Linux.

use crate::common::{loss, simulate};
use cwnd_sim::record::Records;

/// Runs flows of BBR for 60 s, the first 10 s excluded; `link` has further keys of the dumbbell.
fn flows(count: u32, rtt_ms: u32, queue: &str, link: &str, seed: u64) -> Records {
    let delay = f64::from(rtt_ms) / 2.0;
    let text = format!(
        "duration = \"60s\"\nwarmup = \"10s\"\nsample = \"10ms\"\n\
         [dumbbell]\nrate = \"20mbit\"\ndelay = \"{delay}ms\"\nqueue = \"{queue}\"\n{link}\n\
         [tcp]\nconventions = \"linux\"\n\
         [[flow]]\ncontroller = \"bbr\"\ncount = {count}\nstart = \"0s..500ms\"\n"
    );
    simulate(&text, seed)
}

fn utilization(records: &Records) -> f64 {
    records.links[0].utilization
}

#[test]
fn a_flow_alone_fills_the_link_with_a_short_queue() {
    for rtt in [20, 80] {
        let records = flows(1, rtt, "2bdp", "", 1);
        assert!(utilization(&records) > 0.93, "{rtt} ms: {}", utilization(&records));
        assert!(loss(&records) < 0.001);
        let delay = records.links[0].delay.mean;
        assert!(delay < 0.25 * f64::from(rtt) / 1000.0, "{rtt} ms: {delay}");
    }
}

/// Segments of two packets, and the departure time of the next one (`bbr_packets_in_net_at_edt`),
/// make the queue longer: 3.55 ms without them, 4.15 to 4.76 ms in Linux (`docs/validation.md`).
/// Ten seconds and the start are not measured.
#[test]
fn segments_make_the_queue_longer() {
    let delay = flows(1, 20, "2bdp", "", 1).links[0].delay.mean;
    assert!((0.0037..0.0047).contains(&delay), "{delay}");
}

/// The known failure: losses do not reduce the estimates.
#[test]
fn several_flows_in_a_short_buffer_lose_packets_all_the_time() {
    for seed in 1..=3 {
        let records = flows(4, 40, "0.5bdp", "", seed);
        assert!(utilization(&records) > 0.97);
        assert!((0.05..0.2).contains(&loss(&records)), "{}", loss(&records));
    }
    // A buffer for twice the product in flight loses little.
    assert!(loss(&flows(4, 40, "4bdp", "", 1)) < 0.005);
}

#[test]
fn random_loss_of_one_percent_does_not_reduce_the_rate() {
    for rtt in [20, 80] {
        let records = flows(1, rtt, "2bdp", "loss = 0.01", 1);
        assert!(utilization(&records) > 0.9, "{rtt} ms: {}", utilization(&records));
    }
}

/// The window is four packets for 200 ms every ten seconds.
#[test]
fn probe_rtt_is_visible_every_ten_seconds() {
    let records = flows(1, 80, "2bdp", "", 1);
    let window = &records.flows[0].series.window;
    let mut starts = Vec::new();
    for (at, pair) in records.time.iter().zip(window.windows(2)) {
        if pair[0] > 4.0 && pair[1] <= 4.0 {
            starts.push(*at);
        }
    }
    assert!((4..=6).contains(&starts.len()), "{starts:?}");
    for pair in starts.windows(2) {
        assert!((10.0..11.0).contains(&(pair[1] - pair[0])), "{starts:?}");
    }
    let low = window.iter().filter(|&&window| window <= 4.0).count() as f64 * 0.01;
    assert!((0.2..0.6).contains(&(low / starts.len() as f64)), "{low}");
}
