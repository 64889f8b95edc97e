"""The numbers of documents are those of the data in validation/."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def data(name: str) -> list[dict[str, str]]:
    """Return the rows of a table in validation/."""
    with (ROOT / f"validation/{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def document(name: str) -> str:
    """Return a document with single spaces."""
    return " ".join((ROOT / f"docs/{name}.md").read_text("utf-8").split())


NS2, NS3, LINUX = map(data, ("ns2", "ns3/results", "linux/results"))
RUNS = json.loads((ROOT / "validation/linux/results.json").read_text("utf-8"))["runs"]
EXPERIMENTS = data("experiments") + data("udt")
VALIDATION = document("validation")


def differences(rows: list[dict[str, str]], table: str, quantity: str, cases: str) -> list[float]:
    """Return differences from the other simulator in %; quantity and cases are patterns."""
    found = []
    for row in rows:
        of, case, figure, other, own = row.values()
        if of == table and re.match(cases, case) and re.fullmatch(quantity, figure):
            same = other == own or float(other) == 0
            found.append(0.0 if same else 100 * abs(float(own) / float(other) - 1))
    return found


@pytest.mark.parametrize(
    ("phrase", "figures"),
    [
        ("goodput {} %; window at a cut", [("micro", "goodput.*", "")]),
        (
            "retransmissions {} %, cuts {} %, goodput {} %",
            [("aira_table1", name, "") for name in ("retransmissions", "cuts", "goodput")],
        ),
        (
            "retransmissions {} %, Jain's index {} %, goodput {} %",
            [("aira_tables34", name, "") for name in ("retransmissions", "Jain's.*", "goodput")],
        ),
        (
            "throughput {} % up to p = 0.05, {} % up to 0.2",
            [("simd_randloss", "packets/s sent", f"y2001:\\w+:{p}") for p in ("0.0", "")],
        ),
        (
            "RED's drop rate {} %, its mark rate with ECN {} %, shares {} %;",
            [
                ("simd_compat", "data dropped", "15Mbps:red:.*n=(?!1$)"),
                ("simd_compat", "data marked", "15Mbps:red_ecn:.*n=(?!1$)"),
                ("simd_compat", "share.*", "15Mbps:red.*n=(?!1$)"),
            ],
        ),
        (
            "DropTail's drop rate {} %, shares {} %",
            [
                ("simd_compat", name, "15Mbps:droptail.*n=(?!1$)")
                for name in ("data dropped", "share.*")
            ],
        ),
        ("times {} %, at most", [("simd_converge", "T[12], RTTs", "")]),
        (
            "cuts per packet {} %, throughput {} %",
            [
                ("gaimd_formula", name, "(droptail|red):")
                for name in (".*cuts per packet", ".*packets/s")
            ],
        ),
        (
            "rates {} %, from ties at a round-trip time of 1 s; {} % otherwise",
            [("daimd_table5", "Mb/s", cases) for cases in ("", "10flows:rtt=(1e|0)")],
        ),
    ],
)
def test_the_largest_differences_from_ns2(phrase, figures):
    found = [max(differences(NS2, *of)) for of in figures]
    assert phrase.format(*(f"{value:.1f}" for value in found)) in VALIDATION


def test_the_deterministic_cases_that_are_equal():
    equal = [differences(NS2, "micro", name, "").count(0) for name in ("cuts", "timeouts", "drops")]
    assert "cuts equal in {} cases, timeouts in {}, drops in {}".format(*equal) in VALIDATION


UNCHECKED = {
    "codel": [],
    "fq_codel": [("reno-8-10mbit", "delay")],
    "pie": [("reno-2-ecn", "marks")],
    "sack": [("droptail-1", "drops"), ("loss", "delay")],
    "prr": [("droptail-1", "drops"), ("loss", "delay")],
    "cubic": [("droptail-2", "drops"), ("loss", "delay")],
    "illinois": [("loss-0.3", ""), *(("", name) for name in ("Jain", "drops", "cuts", "delay"))],
    "hybla": [("loss", "delay")],
    "dctcp": [("", "cuts")],
    "bbr": [("loss", "delay")],
}
"""Figures that are not compared, by the beginning of the case and a part of the name."""


@pytest.mark.parametrize("table", UNCHECKED)
def test_the_largest_differences_from_ns3(table):
    rows = [
        row
        for row in NS3
        if not any(
            row["case"].startswith(case) and figure in row["quantity"]
            for case, figure in UNCHECKED[table]
        )
    ]
    cells = [str(len({row["case"] for row in rows if row["table"] == table}))]
    for name in (
        *("goodput", "mean window", "Jain's index", "drops.*", "marks.*", "cuts.*"),
        *("mean delay", "95 .*"),
    ):
        found = differences(rows, table, name, "")
        cells.append(f"{max(found):.1f}" if found else "")
    text = re.sub(r" +", " ", f" | {' | '.join(cells)} |")
    title = table.replace("_", "-")
    assert re.search(rf"\| {title}( recovery)?{re.escape(text)}", VALIDATION, re.IGNORECASE), text


def test_the_networks_that_agree_with_the_kernel():
    for name in {figure["table"] for figure in LINUX}:
        agrees: dict[str, list[bool]] = {}
        networks: dict[str, bool] = {}
        for figure in LINUX:
            if figure["table"] == name and figure["quantity"] not in {"used", "queue, p95"}:
                agrees.setdefault(figure["quantity"], []).append(figure["agrees"] == "yes")
                case = figure["case"]
                networks[case] = networks.get(case, True) and figure["agrees"] == "yes"
        columns = [agrees.get(of, []) for of in ("goodput", "share", "loss", "queue, mean")]
        counts = [f"{sum(of)} of {len(of)}" if of else "–" for of in (*columns, networks.values())]
        assert f"| {name} | {' | '.join(counts)} |" in VALIDATION


DELAYED, KEPT = "delayed acknowledgements", "laws that keep a quarter or three eighths"
AT_ONCE, OPPOSITE = "duplicates acknowledged at once", "ties in the opposite order"
ONE, LOSSY = "one bbr, 20 Mb/s, 20 ms, 2 BDP", "one bbr, 100 Mb/s, {} ms, 2 BDP, 1 % loss"
LATE = "one cubic, 20 Mb/s, 40 ms, 3 BDP, 2 % late by {} ms"
MIXED, BESIDE = "reno and cubic, 20 Mb/s, 20 ms, 0.5 BDP", "bbr and cubic, 20 Mb/s, {} ms, 0.5 BDP"
DELAY = ("network", "queue_delay_s")
SHORT = "two reno and two cubic, 17 Mb/s, 14 ms, 0.6 BDP"


@pytest.mark.parametrize(
    ("phrase", "cases"),
    [
        ("are equal in {} networks, and in {} with ties", [DELAYED, f"{DELAYED}, {OPPOSITE}"]),
        ("three eighths of the window in {} and {}", [KEPT, f"{KEPT}, {OPPOSITE}"]),
        ("at once, {} networks of the first set are equal", [f"{DELAYED}, {AT_ONCE}"]),
        ("its own cut everywhere, {} of the second", [f"{KEPT}, own cut everywhere, {AT_ONCE}"]),
        ("the shares are {} and {} if every second", ["every second packet"]),
        ("acknowledged, {} and {} if also packets with PSH", ["PSH, no processing time"]),
        ("PSH are, and {} and {} if hosts", ["PSH, up to 706 us"]),
        ("{} ms without jitter, {} ms with 0.1 ms, {} ms with 0.2 ms, and {} ms", [ONE]),
        ("it is {}, {} and {} ms with a jitter", [LOSSY.format(20)]),
        ("no effect ({}, {} and {} ms)", [LOSSY.format(80)]),
        ("simulated {}, {} and {} % with a jitter", ["one bbr, 20 Mb/s, 20 ms, 0.5 BDP"]),
        ("One Prague flow at 40 Mb/s and 40 ms has {} times", ["1 of each"]),
        ("each of 16 Prague flows at 640 Mb/s {} times", ["16 of each"]),
        ("an invented key takes {} µs", ["hello with another or an invented key"]),
        ("one with the key {} µs", ["hello with the key"]),
        ("an accepted hello of a pair {} µs", ["accepted hello of a pair"]),
        ("`ring`'s AES-256-GCM took {} to {} ns", ["ring 0.17, AES-256-GCM"]),
        ("`aws-lc-rs` {} to {} ns", ["aws-lc-rs 1, AES-256-GCM"]),
        ("RustCrypto {} ns", ["RustCrypto aes-gcm 0.10, AES-256-GCM"]),
        ("with a key has {}, {} and {} times", ["cubic with a key to quinn encrypted: rate"]),
        ("UDT4 receiver {}, {} and {} times", ["udt to a UDT4 receiver, to UDT4: rate"]),
        ("| UDT4 | {} | {} | {} |", ["UDT4"]),
        ("| cwnd cubic | {} | {} | {} |", ["cwnd cubic"]),
        ("| cwnd cubic with a key | {} | {} | {} |", ["cwnd cubic with a key"]),
        ("| quinn, encrypted | {} | {} | {} |", ["quinn, encrypted"]),
    ],
)
def test_the_figures_of_experiments(phrase, cases):
    """The numbers of a phrase are the first ones of each case."""
    each = phrase.count("{}") // len(cases)
    values = []
    for case in cases:
        values += [row["value"] for row in EXPERIMENTS if row["case"] == case][:each]
    assert phrase.format(*values) in " ".join(map(document, ("validation", "sockets", "udt")))


def kernel(case: str, figure: str, column: str = "kernel") -> float:
    """Return a mean; a delay in ms."""
    (row,) = (row for row in LINUX if (row["case"], row["quantity"]) == (case, figure))
    return float(row[column]) * (1e3 if figure.startswith("queue") else 1)


def test_the_means_beside_the_kernel():
    shares = [
        100 - 100 * kernel(of, "share") / kernel(of, "share", "cwnd")
        for of in map(BESIDE.format, (20, 80))
    ]
    late = [
        sorted(kernel(LATE.format(ms), "queue, mean", column) for ms in (5, 12, 30))
        for column in ("kernel", "cwnd")
    ]
    mixed = [kernel(MIXED, "share", column) for column in ("kernel", "cwnd")]
    for phrase, values in (
        ("on the kernel {:.2f} ms ([", [kernel(ONE, "queue, mean")]),
        ("(kernel: {:.2f} ms)", [kernel(LOSSY.format(20), "queue, mean")]),
        ("is {:.0f} % below the simulated one at 20 ms and {:.0f} % at 80 ms", shares),
        (
            "{:.0f} to {:.0f} ms instead of {:.0f} to {:.0f} ms",
            [of[i] for of in late for i in (0, 2)],
        ),
        ("is {:.2f} on the kernel, and {:.2f} in the mean of the simulated seeds", mixed),
    ):
        assert phrase.format(*values) in VALIDATION, phrase


@pytest.mark.parametrize(
    ("phrase", "case", "path", "scale"),
    [
        ("{:.0f}, {:.0f} and {:.0f} ms by seed", "two reno, 100 Mb/s, 80 ms, 4 BDP", DELAY, 1e3),
        ("are {:.1f}, {:.1f} and {:.1f} ms with the", ONE.replace("20 ms", "80 ms"), DELAY, 1e3),
        ("and {:.1f}, {:.1f} and {:.1f} ms with", "one bbr, 20 Mb/s, 80 ms, 8 BDP", DELAY, 1e3),
        ("(seeds {:.3f}, {:.3f} and {:.3f})", SHORT, ("cubic", "share"), 1),
    ],
)
def test_the_kernels_seeds(phrase, case, path, scale):
    of, figure = path
    runs = RUNS[case].values()
    values = [scale * run["figures"][of][figure] for run in runs]
    assert phrase.format(*values) in VALIDATION


def test_the_agreement_of_real_backends():
    rows = data("agreement")
    text = document("agreement")
    words = Counter(row["verdict"] for row in rows)
    counts = f"Of {len(rows)} figures {words['agrees']} agree, {words['undecided']} are undecided"
    assert f"{counts} with five seeds, and {words['differs']} differ" in text
    for row in rows:
        scenario, on, *cells, verdict, limited = row.values()
        assert limited == "0"
        line = f"| `{scenario}`, {on} | {' | '.join(cells)} |"
        assert (line in text) is (verdict == "differs"), line
    laws = ("aimd(0.2, 1/2)", "reno", "aimd(2, 1/2)")
    retransmissions = {
        row["law"]: row
        for row in rows
        if row["scenario"] == "agree-aira" and row["quantity"].startswith("retransmissions")
    }
    real, simulated = (
        ", ".join(f"{float(retransmissions[law][of]):.2g}" for law in laws)
        for of in ("real", "simulated")
    )
    assert f"({real} % for a of 0.2, 1, 2; simulated {simulated} %)" in text


def test_the_table_of_advnets_networks():
    rows = data("advnet/results")
    half = len(rows) // 2
    for pair in zip(rows[:half], rows[half:], strict=True):
        figures = [float(value) for row in pair for value in list(row.values())[3:6]]
        line = "| {:.3f} | {:.3f} | {:.2f} | {:.3f} | {:.3f} | {:.2f} |".format(*figures)
        assert line in VALIDATION, line
