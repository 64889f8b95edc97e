"""The SIMD paper's future work: SIMD against an equation-based scheme, TFRC (RFC 5348)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cwnd.metrics import binned_rate, smoothness
from cwnd.papers.claims import Claim, alike, less
from cwnd.papers.figure import Curve, Figure, Panel, Table
from cwnd.papers.simd_compatibility import FEW, TIMEOUTS
from cwnd.papers.simd_networks import compatibility, read_shares
from cwnd.scenario import Scenario

if TYPE_CHECKING:
    from cwnd.papers.exhibit import Lab
    from cwnd.records import Series
    from cwnd.result import Result

LAWS = {"SIMD": "simd(beta=1/16)", "TFRC": "tfrc", "AIMD": "aimd(0.1, 1/16)", "TCP": "reno"}

SCALES = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds over which a rate is averaged before its variation is taken."""

SOME, MOST = 10, 13
"""Mb/s of the 15 that other traffic takes away and gives back."""

ONE_SECOND = SCALES.index(1.0)
MIDDLE = 8
"""Flows of each kind where the smoothness is shown."""

INFERRED = [
    (
        "The paper leaves this comparison to future work. Smoothness and fairness are taken on its "
        "section 5.2's network (15 Mb/s, RED), of n flows beside n of TCP."
    ),
    (
        "For sudden changes two flows of a law have that network to themselves; CBR traffic "
        "of 10 and of 13 of its 15 Mb/s comes and goes."
    ),
]


def sudden(controller: str, other: int, begin: int, end: int, duration: int) -> Scenario:
    """Take a part of a link away from two flows at once, and give it back at once.

    Parameters
    ----------
    controller
        The law of both.
    other
        What is taken, in Mb/s of 15.
    begin, end
        When the other traffic begins and ends, in seconds.
    duration
        Length of the run in seconds.
    """
    return Scenario.from_toml(f"""
name = "simd-sudden"
title = "Bandwidth comes and goes"
duration = {duration}
sample = "50ms"

[dumbbell]
rate = "15mbit"
delay = "20ms"
bdp_rtt = "60ms"
queue = "red"

[access]
rate = "150mbit"
delay = "0ms..10ms"

[tcp]
conventions = "ns2-2001"
packet = 1000
window = 1000

[[flow]]
controller = "{controller}"
count = 2
start = "0s..5s"

[[cbr]]
rate = "{other}mbit"
start = {begin}
stop = {end}
""")


@dataclass(frozen=True, slots=True)
class Beside:
    """Flows of a law beside as many of TCP.

    Attributes
    ----------
    ratio
        Mean throughput of the law over that of TCP.
    variation
        Mean coefficient of variation of the law's flows at each of `SCALES`.
    """

    ratio: float
    variation: Series


def read_beside(result: Result) -> Beside:
    """Read the share and the smoothness of a law.

    Parameters
    ----------
    result
        A run of `cwnd.papers.simd_networks.compatibility`.
    """
    found = [
        list(smoothness(result.time, flow["sent"], SCALES, result.warmup_s).values())
        for flow in result.measured_flows
        if flow["name"].startswith("law")
    ]
    return Beside(read_shares(result).ratio, np.mean(found, axis=0))


@dataclass(frozen=True, slots=True)
class Sudden:
    """What two flows made of a sudden change.

    Attributes
    ----------
    time, rate
        Where intervals of 0.2 s begin, in seconds, and the rate of both flows in each, in Mb/s.
    down_s
        Seconds from the arrival of the other traffic until the rate was 5/4 of what is left.
    up_s
        Seconds from its end until the rate was 4/5 of the link's.
    lost
        Percent of the packets that the link dropped in the first 5 s of the other traffic.
    """

    time: Series
    rate: Series
    down_s: float
    up_s: float
    lost: float


def read_sudden(result: Result, other: float, begin: float, end: float) -> Sudden:
    """Read how two flows gave way and took up.

    Parameters
    ----------
    result
        A run of `sudden`.
    other
        Mb/s of the other traffic.
    begin, end
        When the other traffic began and ended, in seconds.
    """
    flows = result.measured_flows
    binned = [binned_rate(result.time, f["sent"], f["packet_bytes"], 0.2) for f in flows]
    time, rate = binned[0][0], np.sum([rates for _, rates in binned], axis=0)
    link = result.bottleneck
    low = np.flatnonzero((time >= begin) & (rate <= 1.25 * (link["rate_bps"] - 1e6 * other)))
    high = np.flatnonzero((time >= end) & (rate >= 0.8 * link["rate_bps"]))
    drops = np.interp([begin, begin + 5], result.time, link["drops_series"])
    sent = sum(
        np.diff(np.interp([begin, begin + 5], result.time, f["sent"]))[0]
        for f in result.record["flows"]
    )
    return Sudden(
        time,
        rate / 1e6,
        float(time[low[0]]) - begin if low.size else np.nan,
        float(time[high[0]]) - end if high.size else np.nan,
        100 * float((drops[1] - drops[0]) / sent),
    )


def findings(lab: Lab) -> tuple[list[Claim], Figure, Table]:
    """Hold SIMD, TFRC, AIMD and TCP against each other.

    Parameters
    ----------
    lab
        Where they are run.
    """
    warmup, measured = lab.pick((30, 60), (15, 25))
    counts = lab.pick((2, MIDDLE, 32), (2, MIDDLE))
    shared = lab.run(
        {
            (law, n): compatibility(
                15,
                "RED",
                n,
                controller=spec,
                warmup=warmup,
                measured=measured,
                sample="100ms",
            )
            for law, spec in LAWS.items()
            for n in counts
        },
        read_beside,
        lab.seeds(5),
    )
    begin, end, duration = lab.pick((60, 120, 200), (30, 60, 110))
    changed: Changed = {}
    for other in (SOME, MOST):
        changed |= lab.run(
            {(law, other): sudden(spec, other, begin, end, duration) for law, spec in LAWS.items()},
            partial(read_sudden, other=other, begin=begin, end=end),
            lab.seeds(5),
        )
    return (
        _claims(shared, changed),
        _figure(shared, changed, counts),
        _table(shared, changed, counts),
    )


_ALIKE = (
    "Over 1 s the two are about as smooth, over 0.2 s TFRC is the smoother one (see the figure). "
    "Tried with AIMD(1/5, 1/8) of the comparisons cited: 0.219 against TFRC's 0.201."
)
_SQUARE = (
    "The room to grow into counts by its square root for SIMD, in proportion for TFRC and AIMD: "
    "SIMD's advantage shows with large changes."
)
_DISCOUNT = (
    "RFC 5348 discounts the loss history while there is no loss (section 5.5), and TFRC then grows "
    "by more than the tenth of a packet a round-trip time of AIMD(1/10, 1/16). Tried with "
    "AIMD(1/5, 1/8) of the comparisons cited: 0.73 with 10 Mb/s, 0.62 with 13."
)

Shared = dict[tuple[str, int], list[Beside]]
Changed = dict[tuple[str, int], list[Sudden]]


def _claims(shared: Shared, changed: Changed) -> list[Claim]:
    """Claim what the paper says of equation-based schemes, and what is found beside."""
    rough = {law: [r.variation[ONE_SECOND] for r in shared[law, MIDDLE]] for law in LAWS}
    up = {key: [r.up_s for r in found] for key, found in changed.items()}
    claims = [
        less(
            f"variation of the rate over 1 s: {smooth} against {other}",
            rough[smooth],
            rough[other],
            published=words,
            why=_ALIKE,
        )
        for smooth, other, words in (
            ("TFRC", "AIMD", "equation-based schemes provide higher smoothness than AIMD"),
            ("SIMD", "TCP", "SIMD can have high smoothness in steady state"),
            ("TFRC", "SIMD", "TFRC is the smoother one (not in the paper)"),
        )
    ]
    claims += [
        less(
            f"seconds until {other} of 15 Mb/s set free are used: {fast} against {slow}",
            up[fast, other],
            up[slow, other],
            published=words,
            why=_SQUARE,
        )
        for other in (SOME, MOST)
        for fast, slow, words in (
            ("SIMD", "TFRC", "the aggressiveness of equation-based schemes is limited"),
            ("SIMD", "AIMD", "high aggressiveness when there is a sudden increase of bandwidth"),
            ("TCP", "SIMD", "TCP is still the fastest responding protocol"),
        )
    ]
    claims += [
        alike(
            f"seconds until {other} of 15 Mb/s set free are used: TFRC over AIMD",
            [a / b for a, b in zip(up["TFRC", other], up["AIMD", other], strict=True)],
            published="equation-based schemes and AIMD share similar transient behaviors",
            why=_DISCOUNT,
        )
        for other in (SOME, MOST)
    ]
    claims += [
        less(
            f"{what}: SIMD against TFRC",
            [getattr(r, name) for r in changed["SIMD", SOME]],
            [getattr(r, name) for r in changed["TFRC", SOME]],
            published="rate-based control lacks a self-clocked mechanism for overload protection",
        )
        for what, name in (
            ("seconds until the flows have given way to other traffic", "down_s"),
            ("packets dropped in the first 5 s of it, %", "lost"),
        )
    ]
    claims += [
        alike(
            f"{n} + {n} flows: {law} over TCP",
            [r.ratio for r in found],
            published="friendly to TCP (not in the paper)" if law != "SIMD" else "TCP-compatible",
            why=FEW if n == 2 else TIMEOUTS,
        )
        for (law, n), found in shared.items()
        if law != "TCP"
    ]
    return claims


def _figure(shared: Shared, changed: Changed, counts: tuple[int, ...]) -> Figure:
    """Draw smoothness, shares and the sudden change."""
    smooth, share = [], []
    rate: tuple[list[Curve], ...] = ([], [])
    end = float(changed["SIMD", SOME][0].time[-1])
    for color, law in enumerate(LAWS):
        found = np.array([r.variation for r in shared[law, MIDDLE]])
        smooth.append(Curve.of_means(law, range(len(SCALES)), found.T, color=color))
        ratios = [[r.ratio for r in shared[law, n]] for n in counts]
        share.append(Curve.of_means(law, range(len(counts)), ratios, color=color))
        for curves, other in zip(rate, (SOME, MOST), strict=True):
            run = changed[law, other][0]
            curves.append(Curve(law, run.time, run.rate, color=color))
    return Figure(
        "tfrc",
        "SIMD, TFRC, AIMD and TCP",
        [
            Panel(
                "averaged over, s",
                "coefficient of variation",
                smooth,
                f"Smoothness, {MIDDLE} + {MIDDLE} flows",
                ticks=[f"{scale:g}" for scale in SCALES],
            ),
            Panel(
                "flows",
                "throughput over TCP's",
                share,
                "Beside as many TCP flows",
                ticks=[f"{2 * n}" for n in counts],
            ),
            *(
                Panel(
                    "time, s",
                    "rate of both flows, Mb/s",
                    curves,
                    f"{other} of 15 Mb/s come and go",
                    x_limits=(0.25 * end, 0.85 * end),
                    y_limits=(0.0, 20.0),
                )
                for curves, other in zip(rate, (SOME, MOST), strict=True)
            ),
        ],
    )


def _table(shared: Shared, changed: Changed, counts: tuple[int, ...]) -> Table:
    """Put the means of all figures side by side."""
    rows: list[list[str | float]] = []
    for law in LAWS:
        rough = [float(r.variation[ONE_SECOND]) for r in shared[law, MIDDLE]]
        some, most = changed[law, SOME], changed[law, MOST]
        rows.append(
            [
                law,
                float(np.mean(rough)),
                *(float(np.mean([r.ratio for r in shared[law, n]])) for n in counts),
                float(np.mean([r.down_s for r in some])),
                float(np.mean([r.up_s for r in some])),
                float(np.mean([r.up_s for r in most])),
                float(np.mean([r.lost for r in some])),
            ]
        )
    heads = ["law", "variation over 1 s", *(f"over TCP, {n} + {n}" for n in counts)]
    heads += [
        "gave way after, s",
        "10 Mb/s used after, s",
        "13 Mb/s used after, s",
        "dropped at first, %",
    ]
    return Table("tfrc", "Smoothness, fairness with TCP, sudden changes: means", heads, rows)
