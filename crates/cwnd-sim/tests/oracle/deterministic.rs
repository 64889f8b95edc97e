//! Deterministic cases: one flow over 1.5 Mb/s and 50 ms for 60 s, and two and four flows with
//! fixed start times over 1 Mb/s.

use super::compare::{Allowed, Case, Measured, Row, Run, cases, each, run};
use cwnd::Signal;
use cwnd_sim::record::LinkRecord;
use serde_json::Value;

/// Time in seconds from which reductions are compared as the steady state.
const STEADY: f64 = 10.0;

/// Returns the specification of a law of ns-2.
pub(crate) fn controller(cc: &str) -> String {
    match cc {
        "tcp" => "reno".into(),
        "aimd5_8" => "aimd(1/5, 1/8)".into(),
        "aimd10_16" => "aimd(1/10, 1/16)".into(),
        "iiad" => "iiad".into(),
        // The reduction is 1/3: the factor 2/3 is the remaining fraction of the window.
        "iiad_d2_3" => "binomial(k=1, l=0, alpha=1, beta=1/3)".into(),
        _ => match cc.split(':').collect::<Vec<_>>()[..] {
            ["gaimd", alpha, kept] => format!("gaimd({alpha}, {kept})"),
            _ => panic!("no law is called {cc}"),
        },
    }
}

/// Returns the conventions of ns-2 that an experiment uses.
pub(crate) fn conventions(case: &Case) -> &'static str {
    match case.text("profile").as_deref() {
        Some("y2001") => "ns2-2001",
        _ => "ns2",
    }
}

fn one_flow(case: &Case) -> String {
    let number = |key, default| case.number(key, default);
    let limit = number("buf", 10.0);
    // A DropTail queue of ns-2 holds one packet less than its limit.
    let (queue, back) = match case.text("aqm").as_deref() {
        None => (format!("\"{}p\"", limit - 1.0), limit - 1.0),
        Some(kind) => (
            format!(
                "{{ kind = \"red\", limit = \"{limit}p\", min = \"5p\", max = \"5p\", \
                 weight = {}, gentle = false, max_p = 1, ecn = {} }}",
                number("wq", 1.0),
                kind == "red_ecn"
            ),
            99.0,
        ),
    };
    let access = match case.text("topo").as_deref() {
        Some("access") => "[access]\nrate = \"100mbit\"\ndelay = \"1ms\"",
        _ => "",
    };
    format!(
        r#"
        duration = "60s"

        [[link]]
        from = "r1"
        to = "r2"
        rate = {}
        delay = {}
        queue = {queue}
        back = {{ queue = "{back}p" }}

        {access}

        [tcp]
        conventions = "{}"
        recovery = "{}"
        packet = {}
        delayed_acks = {}
        limited_transmit = {}
        initial_window = {}
        window = {}
        ecn = {}

        [[flow]]
        controller = "{}"
        from = "r1"
        to = "r2"
        "#,
        number("bw", 1.5e6),
        number("delay", 0.050),
        conventions(case),
        case.text("type").expect("a kind of TCP"),
        number("pkt", 1000.0),
        number("delack", 0.0) == 1.0,
        number("limited", 1.0) == 1.0,
        number("init", 2.0),
        number("window", 10_000.0),
        case.text("aqm").as_deref() == Some("red_ecn"),
        controller(&case.text("cc").unwrap_or("tcp".into())),
    )
}

/// Returns the runs of a case. With several flows they differ by the random offsets of the senders'
/// clocks.
fn simulate(case: &Case) -> Vec<Run> {
    let seeds = 1..=case.seeds();
    if case.text("n").is_some() {
        seeds.map(|seed| run(&super::aira::scenario(case, seed), seed)).collect()
    } else {
        seeds.map(|seed| run(&one_flow(case), seed)).collect()
    }
}

/// Returns the comparison of all quantities.
pub(crate) fn rows() -> Vec<Row> {
    let cases = cases(include_str!("micro.json"));
    let runs = each(&cases, simulate);
    cases.iter().zip(&runs).flat_map(|(case, runs)| case_rows(case, runs)).collect()
}

fn case_rows(case: &Case, runs: &[Run]) -> Vec<Row> {
    let packet = case.number("pkt", 1000.0);
    let of = |quantity: &dyn Fn(&Run) -> f64| Measured::of(runs.iter().map(quantity).collect());
    let row = |what, key, quantity: &dyn Fn(&Run) -> f64, allowed| {
        Row::new(case, what, key, of(quantity), allowed)
    };
    // A difference of one for each flow.
    let count = Allowed::Absolute(case.number("n", 1.0));
    // 3 % of fewer than 34 drops are less than one drop.
    let drops = Allowed::ShareOr(0.03, 1.0);
    let mut rows = vec![
        row("cuts", "cuts", &|run| run.sum(|flow| flow.cuts.len() as f64), count),
        row("timeouts", "timeouts", &|run| run.sum(|flow| flow.timeouts as f64), count),
        row("ECN cuts", "ecn_cuts", &|run| run.sum(|flow| flow.ecn_cuts as f64), count),
        row("drops", "drops", &|run| bottleneck(run).drops as f64, drops),
        row("marks", "marks", &|run| bottleneck(run).marks as f64, drops),
        row(
            "retransmissions",
            "retransmissions",
            &|run| run.sum(|flow| flow.retransmissions as f64),
            Allowed::Any,
        ),
        row(
            "goodput, B/s",
            "goodput",
            &|run| run.sum(|flow| flow.packets_delivered as f64) * packet / run.seconds(),
            Allowed::Share(0.01),
        ),
        row("mean queue", "mean_queue", &|run| bottleneck(run).mean_queue, Allowed::Share(0.03)),
    ];
    if case.has("window_at_cut") {
        let near = Allowed::Share(0.01);
        rows.push(row("window at a cut", "window_at_cut", &|run| steady(run).0, near));
        rows.push(row("s between cuts", "time_between_cuts", &|run| steady(run).1, near));
    }
    check_each_cut(case, &runs[0]);
    rows
}

fn bottleneck(run: &Run) -> &LinkRecord {
    let names = ["r1-r2", "left-right"];
    let at = run.network.links.iter().position(|link| names.contains(&&link.name[..]));
    &run.records.links[at.expect("a bottleneck")]
}

/// Returns the mean window at fast retransmits in the steady state, and the mean time between them.
fn steady(run: &Run) -> (f64, f64) {
    let cuts = run.records.flows[0].cuts.iter();
    let late: Vec<_> = cuts
        .filter(|cut| cut.cut.why == Signal::Loss && cut.at.as_secs() > STEADY)
        .map(|cut| (cut.at.as_secs(), cut.cut.before()))
        .collect();
    let n = late.len() as f64;
    let window = late.iter().map(|cut| cut.1).sum::<f64>() / n;
    (window, (late[late.len() - 1].0 - late[0].0) / (n - 1.0))
}

/// Checks that the windows before and after each reduction agree within 1 % if the numbers of
/// reductions are equal. The first reduction of `ns2-2001` is two packets earlier, because ns-2
/// rounds simultaneous events differently.
fn check_each_cut(case: &Case, run: &Run) {
    let number = |value: &Value| value.as_f64().expect("a number");
    let recorded = case.list("events").iter().filter(|event| event[1] != "initial_window");
    let recorded: Vec<_> = recorded.map(|event| (number(&event[2]), number(&event[3]))).collect();
    let cuts = &run.records.flows[0].cuts;
    if recorded.is_empty() || recorded.len() != cuts.len() || conventions(case) == "ns2-2001" {
        return;
    }
    for (&(before, after), cut) in recorded.iter().zip(cuts) {
        let near = |cwnd: f64, ns2: f64| (cwnd - ns2).abs() <= 0.01 * ns2;
        let both = near(cut.cut.before(), before) && near(cut.cut.after(), after);
        assert!(both, "{}: {cut:?} is {before} -> {after} in ns-2", case.name);
    }
}

/// The counters of both simulators in a case of `counters.json`: packets sent, retransmissions,
/// timeouts and window reductions.
struct Counted {
    ns2: [f64; 4],
    cwnd: [f64; 4],
}

/// Runs the cases of `counters.json` whose names begin with `prefix`.
fn counted(prefix: &str) -> Vec<Counted> {
    let mut cases = cases(include_str!("counters.json"));
    cases.retain(|case| case.name.starts_with(prefix));
    each(&cases, |case| {
        let run = run(&one_flow(case), 1);
        let flow = &run.records.flows[0];
        let sent = flow.packets_sent as f64;
        let cuts = flow.cuts.len() as f64;
        Counted {
            ns2: ["sent", "retransmissions", "timeouts", "cuts"].map(|key| case.result(key).0),
            cwnd: [sent, flow.retransmissions as f64, flow.timeouts as f64, cuts],
        }
    })
}

/// Returns the number of cases with four equal counters.
fn equal(cases: &[Counted]) -> usize {
    cases.iter().filter(|case| case.ns2 == case.cwnd).count()
}

fn total(cases: &[Counted], of: fn(&Counted) -> f64) -> f64 {
    cases.iter().map(of).sum()
}

/// Delayed acknowledgements and many timeouts, after which the receiver gets duplicates of its
/// newest packet. The cases with differences have arrivals at the queue at the time of a departure.
#[test]
fn delayed_acknowledgements_are_equal_in_all_counters() {
    let cases = counted("delayed");
    assert!(equal(&cases) >= 51, "{} of {} are equal", equal(&cases), cases.len());
    assert_eq!(total(&cases, |case| case.cwnd[2]), total(&cases, |case| case.ns2[2]));
}

/// Laws that reduce the window to a quarter or three eighths. The first reduction and those in slow
/// start are to half.
#[test]
fn laws_that_keep_less_than_half_agree() {
    let cases = counted("less");
    assert!(equal(&cases) >= 28, "{} of {} are equal", equal(&cases), cases.len());
    let retransmissions = total(&cases, |it| it.cwnd[1]) / total(&cases, |it| it.ns2[1]);
    let timeouts = total(&cases, |it| it.cwnd[2]) / total(&cases, |it| it.ns2[2]);
    assert!((retransmissions - 1.0).abs() < 0.02, "retransmissions {retransmissions}");
    assert!((timeouts - 1.0).abs() < 0.1, "timeouts {timeouts}");
}
