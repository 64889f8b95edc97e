//! Applications and arrivals: rates, distributions, transfers, and windows of senders that the
//! application limits.

use crate::common::{self, ms, packets, pair, run, tcp};
use cwnd_sim::metrics::formula::mean;
use cwnd_sim::network::{
    Application, Conventions, Media, Network, Sizes, Tcp, Times, Traffic, Udt,
};
use cwnd_sim::record::FlowRecord;
use cwnd_sim::scenario::Scenario;
use std::sync::Arc;

/// Payload of a packet in bytes.
const PAYLOAD: f64 = 960.0;

/// The transports: TCP with both conventions, the paced sender, and UDT.
fn transports() -> [Traffic; 4] {
    use cwnd_sim::network::Conventions::Ns2;
    let ns2 = Tcp { conventions: Ns2, syn: true, ..tcp("reno") };
    let udt = Udt { packet: 960, ..common::udt("reno") };
    [Traffic::Tcp(tcp("cubic")), Traffic::Tcp(ns2), Traffic::Tcp(tcp("udt")), Traffic::Udt(udt)]
}

/// One flow with an application over a link of 10 Mb/s with a round-trip time of 40 ms.
fn alone(application: Application, traffic: Traffic, seconds: u64) -> Network {
    let mut network = pair(10e6, ms(20), packets(100), vec![traffic], ms(1000 * seconds));
    network.flows[0].application = Some(Arc::new(application));
    network
}

/// Mean rate of the delivered data in bits per second.
fn rate(flow: &FlowRecord, seconds: f64) -> f64 {
    flow.packets_delivered as f64 * PAYLOAD * 8.0 / seconds
}

#[test]
fn a_limited_application_sends_at_its_rate() {
    for traffic in transports() {
        let network = alone(Application::Limited { rate: 2e6 }, traffic.clone(), 20);
        let flow = &run(&network, 1).flows[0];
        let rate = rate(flow, 20.0);
        assert!((rate / 2e6 - 1.0).abs() < 0.02, "{traffic:?}: {rate}");
        assert_eq!(flow.packets_lost, 0);
        assert!(flow.limited.application > 15.0, "{traffic:?}: {:?}", flow.limited);
        let [transfer] = flow.transfers[..] else { panic!("{:?}", flow.transfers) };
        assert!(transfer.begin == 0.0 && transfer.end.is_nan());
        assert!((transfer.bytes as f64 * 8.0 / 20.0 / 2e6 - 1.0).abs() < 0.001);
    }
}

#[test]
fn an_application_faster_than_the_link_does_not_limit_the_sender() {
    for traffic in transports() {
        let network = alone(Application::Limited { rate: 30e6 }, traffic.clone(), 20);
        let limited = run(&network, 1);
        let endless = run(&pair(10e6, ms(20), packets(100), vec![traffic], ms(20_000)), 1);
        let ratio = rate(&limited.flows[0], 20.0) / rate(&endless.flows[0], 20.0);
        assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    }
}

/// RFC 7661 and RFC 9438 section 5.8: a window that the application does not use does not grow.
#[test]
fn the_window_of_an_application_limited_sender_does_not_grow() {
    for controller in ["reno", "cubic", "highspeed", "simd"] {
        let network = alone(Application::Limited { rate: 2e6 }, Traffic::Tcp(tcp(controller)), 20);
        let records = run(&network, 1);
        let window = &records.flows[0].series.window;
        // 2 Mb/s are 10.4 packets in a round-trip time.
        let (after_2s, last) = (window[2000], window[window.len() - 1]);
        assert!(last <= 25.0 && last == after_2s, "{controller}: {after_2s} and {last}");
    }
}

/// RFC 5681 section 4.1: after an idle period longer than the retransmission timeout the window is
/// at most the initial one.
#[test]
fn a_long_idle_period_restarts_the_window() {
    let think = |time| Application::Request {
        sizes: Sizes::Constant(100_000),
        think: Times::Constant(time),
    };
    let tcp = Tcp { initial_window: 10, min_rto: ms(200), ..tcp("reno") };
    let window_at_second_request = |time| {
        let flow = &run(&alone(think(time), Traffic::Tcp(tcp.clone()), 10), 1).flows[0];
        let begin = flow.transfers[1].begin;
        let sample = (begin * 1000.0).ceil() as usize;
        (flow.series.window[sample - 1], flow.series.window[sample])
    };
    let (before, after) = window_at_second_request(ms(100));
    assert!(before > 20.0 && after >= before, "{before} and {after}");
    let (before, after) = window_at_second_request(ms(2000));
    assert!(before > 20.0 && after == 10.0, "{before} and {after}");
}

/// `tcp_slow_start_after_idle_check` and `tcp_cwnd_restart` of Linux 6.18: each retransmission
/// timeout of an idle period halves the window, down to the initial one, except for a controller
/// with `cong_control`.
#[test]
fn an_idle_period_halves_the_window_in_linux() {
    let windows = |controller: &str, time| {
        let sizes = Sizes::Constant(200_000);
        let request = Application::Request { sizes, think: Times::Constant(time) };
        let tcp = Tcp {
            conventions: Conventions::Linux,
            initial_window: 10,
            min_rto: ms(200),
            ..tcp(controller)
        };
        let flow = &run(&alone(request, Traffic::Tcp(tcp), 12), 1).flows[0];
        let sample = (flow.transfers[1].begin * 1000.0).ceil() as usize;
        (flow.series.window[sample - 1], flow.series.window[sample])
    };
    let (before, after) = windows("reno", ms(150));
    assert!(before > 40.0 && after == before, "{before} and {after}");
    // The timeout is 200 ms more than the round-trip time.
    let (before, after) = windows("reno", ms(300));
    assert_eq!(after, (before / 2.0).floor(), "{before}");
    let (before, after) = windows("reno", ms(5000));
    assert!(before > 40.0 && after == 10.0, "{before} and {after}");
    let (before, after) = windows("bbr", ms(5000));
    assert_eq!(before, after);
}

#[test]
fn on_periods_are_transfers() {
    for traffic in transports() {
        for rate in [None, Some(5e6)] {
            let (on, off) = (Times::Constant(ms(700)), Times::Constant(ms(300)));
            let network = alone(Application::OnOff { on, off, rate }, traffic.clone(), 10);
            let flow = &run(&network, 1).flows[0];
            assert_eq!(flow.transfers.len(), 10, "{traffic:?} {rate:?}");
            let (mut bytes, mut last) = (0, 0.0);
            for (number, transfer) in flow.transfers.iter().enumerate() {
                assert_eq!(transfer.begin, number as f64);
                let duration = transfer.end - transfer.begin;
                // Without a rate the end of a period leaves losses to repair.
                let longest = if rate.is_some() { 1.2 } else { 2.0 };
                let case = format!("{traffic:?} {rate:?} {number}: {duration}");
                assert!(duration > 0.7 && duration < longest, "{case}");
                assert!(transfer.end >= last);
                last = transfer.end;
                bytes += transfer.bytes;
            }
            assert_eq!(bytes, flow.packets_delivered * 960, "{traffic:?} {rate:?}");
            if rate.is_some() {
                // A packet every 1.536 ms from the beginning of a period.
                let expected = (700.0f64 / 1.536).ceil() as u64 * 960;
                assert!(flow.transfers.iter().all(|transfer| transfer.bytes == expected));
            }
        }
    }
}

#[test]
fn exponential_and_pareto_periods_have_their_means() {
    let exponential = Times::Exponential(ms(50));
    let pareto = Times::Pareto { mean: ms(50), shape: 3.0 };
    for on in [exponential, pareto] {
        let off = Times::Exponential(ms(150));
        let network =
            alone(Application::OnOff { on, off, rate: Some(2e6) }, Traffic::Tcp(tcp("reno")), 400);
        let flow = &run(&Network { sample: ms(1000), ..network }, 3).flows[0];
        // 2000 periods: four standard deviations of the mean of an exponential distribution are 9
        // %.
        let count = flow.transfers.len() as f64;
        assert!((count / 2000.0 - 1.0).abs() < 0.09, "{on:?}: {count}");
        let share = rate(flow, 400.0) / 2e6;
        // A period begins with a packet, so that there is half a packet (1.9 ms) more in each.
        assert!((share / 0.25 - 1.04).abs() < 0.09, "{on:?}: {share}");
    }
}

#[test]
fn a_response_takes_a_round_trip_and_the_next_request_follows() {
    for traffic in transports() {
        let application =
            Application::Request { sizes: Sizes::Constant(960), think: Times::Constant(ms(100)) };
        let records = run(&alone(application, traffic.clone(), 10), 1);
        let transfers = &records.flows[0].transfers;
        for both in transfers[1..].windows(2) {
            let [one, next] = both else { unreachable!() };
            let time = one.end - one.begin;
            // UDT and the paced receiver report every 10 ms.
            assert!((0.040_799..0.0512).contains(&time), "{traffic:?}: {one:?}");
            assert!((next.begin - one.end - 0.1).abs() < 1e-9, "{traffic:?}: {one:?} {next:?}");
            assert_eq!(one.bytes, 960);
        }
        assert!(transfers.len() > 60, "{traffic:?}: {}", transfers.len());
    }
}

#[test]
fn a_stopped_application_completes_what_was_sent() {
    for traffic in transports() {
        for application in [
            Application::Limited { rate: 4e6 },
            Application::OnOff {
                on: Times::Constant(ms(900)),
                off: Times::Constant(ms(400)),
                rate: None,
            },
            Application::Request {
                sizes: Sizes::Constant(50_000),
                think: Times::Constant(ms(700)),
            },
        ] {
            let mut network = alone(application.clone(), traffic.clone(), 10);
            network.flows[0].stop = common::at_ms(5000);
            let flow = &run(&network, 1).flows[0];
            assert!(
                (5.0..6.0).contains(&flow.acknowledged),
                "{traffic:?} {application:?}: {}",
                flow.acknowledged
            );
            assert!(flow.transfers.iter().all(|transfer| transfer.begin < 5.0));
            let complete = flow.transfers.iter().filter(|transfer| !transfer.end.is_nan());
            assert!(complete.count() >= flow.transfers.len() - 1);
        }
    }
}

fn web(keys: &str) -> Network {
    let text = format!(
        r#"
        duration = "100s"
        dumbbell = {{ rate = "20mbit", delay = "10ms" }}
        tcp = {{ packet = 1000, header = 40 }}
        [[flow]]
        controller = "reno"
        name = "web"
        {keys}
        "#
    );
    common::scenario(&text, 5)
}

fn sizes_and_starts(network: &Network) -> (Vec<f64>, Vec<f64>) {
    let flows = network.flows.iter();
    flows.map(|flow| (flow.bytes.unwrap() as f64, flow.start.as_secs())).unzip()
}

#[test]
fn arrivals_are_a_poisson_process() {
    let network = web(r#"arrivals = { rate = 100, sizes = "10kb" }"#);
    let (sizes, starts) = sizes_and_starts(&network);
    assert!(sizes.iter().all(|&bytes| bytes == 10_240.0));
    assert_eq!(network.flows[1].name, "web-2");
    // The number in 100 s has a standard deviation of 100.
    assert!((starts.len() as f64 - 10_000.0).abs() < 400.0, "{}", starts.len());
    // Counts in intervals of 0.1 s against the Poisson distribution with mean 10.
    let mut counts = vec![0usize; 1000];
    starts.iter().for_each(|at| counts[(at * 10.0) as usize] += 1);
    let mut probability = (-10.0f64).exp();
    let (mut classes, mut lower) = (Vec::new(), 0.0);
    for count in 0..40 {
        lower += probability;
        if lower > 0.05 {
            classes.push((count, lower));
            lower = 0.0;
        }
        probability *= 10.0 / f64::from(count + 1);
    }
    let (mut chi, mut from) = (0.0, 0);
    for &(to, probability) in &classes {
        let observed =
            counts.iter().filter(|&&count| count >= from && count <= to as usize).count();
        let expected = 1000.0 * probability;
        chi += (observed as f64 - expected).powi(2) / expected;
        from = to as usize + 1;
    }
    // 99.9 % quantile of chi-square with 10 degrees of freedom.
    assert!(classes.len() <= 11 && chi < 29.6, "{chi} in {} classes", classes.len());
}

#[test]
fn sizes_follow_their_distributions() {
    for (keys, expected, tolerance) in [
        (r#"{ kind = "pareto", mean = 12000, shape = 2.5 }"#, 12_000.0, 0.08),
        (r#"{ kind = "pareto", mean = 12000, shape = 1.1, max = 1000000 }"#, 12_000.0, 0.12),
        (r#"{ kind = "pareto", mean = 12000, shape = 0.7, max = 200000 }"#, 12_000.0, 0.08),
        (r#"{ kind = "pareto", mean = 12000, shape = 1, max = 200000 }"#, 12_000.0, 0.08),
        (r#"{ kind = "lognormal", mean = 12000, sigma = 1 }"#, 12_000.0, 0.06),
        (
            r#"{ kind = "lognormal", median = 12000, sigma = 0.5 }"#,
            12_000.0 * (0.125f64).exp(),
            0.03,
        ),
        (
            r#"{ kind = "cdf", points = [[1000, 0.2], [3000, 0.6], [11000, 1]] }"#,
            200.0 + 800.0 + 2800.0,
            0.04,
        ),
        (r#"{ kind = "list", bytes = [1000, 2000, 6000] }"#, 3000.0, 0.03),
    ] {
        let network = web(&format!("arrivals = {{ rate = 100, sizes = {keys} }}"));
        let (sizes, _) = sizes_and_starts(&network);
        let mean = mean(&sizes);
        assert!((mean / expected - 1.0).abs() < tolerance, "{keys}: {mean}");
    }
}

/// Kolmogorov and Smirnov's distance of the bounded Pareto distribution.
#[test]
fn bounded_pareto_sizes_have_the_bounded_distribution() {
    let network = web(
        r#"arrivals = { rate = 100, sizes = { kind = "pareto", mean = 20000, shape = 1.2, max = 500000 } }"#,
    );
    let (mut sizes, _) = sizes_and_starts(&network);
    sizes.sort_by(f64::total_cmp);
    assert!(sizes[sizes.len() - 1] <= 500_000.0);
    let min = sizes[0] - 0.5;
    let mass = 1.0 - (min / 500_000.0).powf(1.2);
    let count = sizes.len() as f64;
    let distance = sizes.iter().enumerate().map(|(at, size)| {
        let probability = (1.0 - (min / size).powf(1.2)) / mass;
        (probability - at as f64 / count).abs()
    });
    let distance = distance.fold(0.0, f64::max);
    // 99.9 % quantile: 1.95 divided by the root of the number.
    assert!(distance < 1.95 / count.sqrt(), "{distance}");
}

#[test]
fn arrivals_offer_their_load() {
    let network = web(
        r#"arrivals = { load = 0.6, sizes = { kind = "lognormal", mean = "30kb", sigma = 1 } }"#,
    );
    let (sizes, _) = sizes_and_starts(&network);
    let offered = sizes.iter().sum::<f64>() * 1.04 * 8.0 / 100.0;
    assert!((offered / 12e6 - 1.0).abs() < 0.06, "{offered}");
    let records = run(&network, 5);
    // All but the transfers of the last second are complete, and the link carries the load.
    let incomplete = records.flows.iter().filter(|flow| flow.completed.is_nan()).count();
    assert!(incomplete < 60, "{incomplete} of {}", records.flows.len());
    let utilization = records.links[0].utilization;
    assert!((utilization / 0.6 - 1.0).abs() < 0.08, "{utilization}");
    assert!(records.flows.iter().all(|flow| flow.transfers.is_empty()));
}

/// A seed may draw no arrival within the duration.
#[test]
fn a_network_without_arrivals_runs_without_flows() {
    let network = web(r#"arrivals = { rate = 1e-9, sizes = "10kb" }"#);
    assert!(network.flows.is_empty());
    let records = run(&network, 5);
    assert!(records.flows.is_empty());
    assert_eq!(records.links[0].utilization, 0.0);
}

#[test]
fn arrivals_of_one_group_do_not_depend_on_its_sizes() {
    let starts =
        |sizes| sizes_and_starts(&web(&format!("arrivals = {{ rate = 20, sizes = {sizes} }}"))).1;
    assert_eq!(starts("1000"), starts(r#"{ kind = "lognormal", mean = "30kb", sigma = 1 }"#));
}

#[test]
fn invalid_applications_are_refused() {
    for (keys, expected) in [
        (r#"source = { kind = "limited" }"#, "flow[0].source: missing `rate`"),
        (
            r#"source = { kind = "limited", rate = "infinite" }"#,
            "flow[0].source.rate: an application's rate is finite",
        ),
        (
            r#"source = { kind = "on_off", on = "0s", off = "1s" }"#,
            "flow[0].source.on: must be above zero",
        ),
        (r#"source = { kind = "other" }"#, "unknown value \"other\"; allowed: limited"),
        (
            r#"source = { kind = "limited", rate = "1mbit" }
            bytes = 1000"#,
            "give one of `bytes`, `source` and `arrivals`",
        ),
        (r#"arrivals = { sizes = 1000 }"#, "give either `rate`, arrivals per second, or `load`"),
        (
            r#"arrivals = { load = 0.5, link = "x", sizes = 1000 }"#,
            "flow[0].arrivals.link: x is not on the path: left-right",
        ),
        (r#"arrivals = { load = -1, sizes = 1000 }"#, "flow[0].arrivals.load: -1 is not above 0"),
        (
            r#"arrivals = { rate = 1e6, sizes = 1000 }"#,
            "flow[0].arrivals: more than 1000000 arrivals",
        ),
        (
            r#"arrivals = { rate = 1, sizes = "web.txt" }"#,
            "flow[0].arrivals.sizes: \"web.txt\" is not an amount of data",
        ),
        (
            r#"arrivals = { rate = 1, sizes = { kind = "pareto", mean = 1000, shape = 1 } }"#,
            "is not above 1",
        ),
        (
            r#"arrivals = { rate = 1, sizes = { kind = "pareto", mean = 1000, shape = 2, max = 500 } }"#,
            "less than `max`",
        ),
        (
            r#"arrivals = { rate = 1, sizes = { kind = "lognormal", sigma = 1 } }"#,
            "give either the mean or the median",
        ),
        (
            r#"arrivals = { rate = 1, sizes = { kind = "cdf", points = [[10, 0.5], [5, 1]] } }"#,
            "do not decrease",
        ),
        (
            r#"arrivals = { rate = 1, sizes = 1000 }
            count = 2"#,
            "flow[0].count: arrivals determine",
        ),
    ] {
        let text = format!(
            "duration = \"10s\"\ndumbbell = {{ rate = \"20mbit\", delay = \"10ms\" }}\n[[flow]]\ncontroller = \"reno\"\n{keys}\n"
        );
        let error = Scenario::from_toml(&text, "").and_then(|read| read.network(1)).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{keys}: {error}");
    }
}

#[test]
fn the_clock_of_the_application_does_not_drift() {
    let application = Application::Limited { rate: 1e6 / 3.0 };
    let records =
        run(&Network { sample: ms(100), ..alone(application, Traffic::Tcp(tcp("reno")), 300) }, 1);
    let [transfer] = records.flows[0].transfers[..] else { panic!() };
    let expected: f64 = 300.0 / (960.0 * 8.0 * 3.0 / 1e6);
    assert_eq!(transfer.bytes, expected.ceil() as u64 * 960);
}

fn figure(flow: &FlowRecord, name: &str) -> f64 {
    flow.application.iter().find(|(known, _)| *known == name).unwrap().1
}

fn video(rates: &[f64], traffic: Traffic) -> Network {
    let rates = rates.into();
    let (chunk, buffer) = (ms(2000), ms(20_000));
    alone(Application::Video { chunk, rates, buffer }, traffic, 120)
}

#[test]
fn a_player_fills_its_buffer_and_then_follows_the_playback() {
    for traffic in transports() {
        let flow = &run(&video(&[1e6, 2e6, 4e6], traffic.clone()), 1).flows[0];
        assert_eq!(figure(flow, "rebuffering_s"), 0.0, "{traffic:?}");
        assert_eq!(figure(flow, "stalls"), 0.0);
        // The first chunk has the lowest bitrate, the last ones the highest.
        assert_eq!(flow.transfers[0].bytes, 250_000);
        assert_eq!(flow.transfers[flow.transfers.len() - 1].bytes, 1_000_000);
        let startup = figure(flow, "startup_s");
        assert_eq!(startup, flow.transfers[0].end);
        // At the end the playback has taken the time since the startup, and the buffer holds 18 to
        // 20 s.
        let complete = flow.transfers.iter().filter(|transfer| !transfer.end.is_nan()).count();
        let buffered = 2.0 * complete as f64 - (120.0 - startup);
        assert!((16.0..=20.0).contains(&buffered), "{traffic:?}: {buffered}");
    }
}

#[test]
fn a_link_below_the_lowest_bitrate_stalls_the_player() {
    let flow = &run(&video(&[20e6], Traffic::Tcp(tcp("reno"))), 1).flows[0];
    // The player plays what has arrived; the rest of the time it stalls.
    let complete: Vec<_> =
        flow.transfers.iter().filter(|transfer| !transfer.end.is_nan()).collect();
    let last = complete[complete.len() - 1].end;
    let played = 2.0 * complete.len() as f64 - (last + 2.0 - 120.0).max(0.0);
    let stalled = 120.0 - figure(flow, "startup_s") - played;
    assert!((figure(flow, "rebuffering_s") - stalled).abs() < 0.01);
    assert!(stalled > 50.0 && figure(flow, "stalls") > 20.0, "{stalled}");
    assert_eq!(figure(flow, "mean_bitrate_bps"), 20e6);
}

#[test]
fn media_follows_the_rate_of_the_controller() {
    let media = |max| Application::Media(Media { fps: 30.0, min: 150e3, max, deadline: ms(200) });
    for traffic in transports() {
        let flow = &run(&alone(media(1.5e6), traffic.clone(), 60), 1).flows[0];
        // The frames fit into the window: the encoder reaches its highest rate, and no frame is
        // late.
        let frames = figure(flow, "frames");
        assert!((frames / 1800.0 - 1.0).abs() < 0.02, "{traffic:?}: {frames}");
        let mean = figure(flow, "mean_bitrate_bps");
        assert!(mean > 1.2e6 && mean <= 1.5e6, "{traffic:?}: {mean}");
        let rate = rate(flow, 60.0);
        assert!((rate / mean - 1.0).abs() < 0.03, "{traffic:?}: {rate} and {mean}");
        assert_eq!(figure(flow, "frames_late"), 0.0, "{traffic:?}");
        assert_eq!(flow.transfers.len() as f64, frames);
    }
}

#[test]
fn frames_that_wait_in_a_queue_are_late() {
    let media = Media { fps: 30.0, min: 20e6, max: 20e6, deadline: ms(200) };
    let flow = &run(&alone(Application::Media(media), Traffic::Tcp(tcp("reno")), 20), 1).flows[0];
    let late = figure(flow, "frames_late") / figure(flow, "frames");
    assert!(late > 0.9, "{late}");
}
