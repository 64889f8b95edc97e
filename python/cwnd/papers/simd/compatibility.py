"""Section 5.2 of the SIMD paper: n SIMD(1/16) and n TCP flows on one bottleneck."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cwnd.papers.claims import alike, at_most, less, number
from cwnd.papers.figure import Curve, Figure, Panel, Table
from cwnd.papers.simd_networks import Shares, compatibility, read_shares

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd.papers.claims import Claim
    from cwnd.papers.exhibit import Lab

SMALL, LARGE = 15, 60
"""Mb/s of the bottlenecks."""

Runs = dict[tuple[int, int], list[Shares]]
"""For each rate in Mb/s and each n, what was found with each seed."""

INFERRED = [
    (
        "Delays are not given: 40 ms and four access delays drawn from 0 to 10 ms make 60 ms, and "
        "with the queues the 0.1 s that the paper measured."
    ),
    (
        "Table 2's window of 128 packets would hold a flow below 15 Mb/s, but footnote 7 tells of "
        "epochs of more than 40 s, which take windows of some 400 packets: here it is 1000."
    ),
    (
        "The numbers of flows were in the figure: at 15 Mb/s they are doubled until some 10 % is "
        "lost or marked; at 60 Mb/s there are 1, 4, 16 and 32 of each kind."
    ),
]

FEW = (
    "Few flows: a run holds few epochs, and the intervals are wide. Footnote 7 says so of the "
    "paper's own runs."
)
TIMEOUTS = (
    "Where windows are of about 4 packets a loss ends in a timeout, and laws that grow slowly at "
    "first come back from it late. ns-2's defaults of 2001 are without limited transmit (RFC "
    "3042). Tried with it: SIMD over TCP 0.93 at 32 + 32 flows (6.5 % loss) and 0.87 at 64 + 64 "
    "(11.6 %) with RED, 0.86 and 0.90 with DropTail: as claimed. The paper does not say which it "
    "had."
)
_SYNCHRONISED = (
    "DropTail has no dice: who loses when the queue is full stays the same for long, so single "
    "runs differ much, and a single n is not settled by these seeds."
)
_MARKS = (
    "Near 20 % of marks the windows are of about 2 packets, and ns-2 closes a window below two "
    "until a timer expires: TCP's halved ones are below it, SIMD's are not. Tried with the RFCs' "
    "answer to marks: SIMD gets 0.94 of TCP, slightly lower, as claimed."
)


def run(lab: Lab, queue: str) -> Runs:
    """Run n SIMD and n TCP flows at both rates.

    Parameters
    ----------
    lab
        Where they are run.
    queue
        One of `cwnd.papers.simd_networks.QUEUES`.
    """
    counts = lab.pick((1, 2, 4, 8, 16, 32, 64), (2, 8, 32))
    runs = _run(lab, queue, SMALL, counts, lab.seeds(6))
    return runs | _run(lab, queue, LARGE, lab.pick((1, 4, 16, 32), (8,)), lab.seeds(4))


def _run(lab: Lab, queue: str, rate: int, counts: Iterable[int], seeds: Iterable[int]) -> Runs:
    """Run n SIMD and n TCP flows at one rate."""
    warmup, measured = lab.pick((30, 60), (15, 25))
    cases = {
        (rate, n): compatibility(rate, queue, n, warmup=warmup, measured=measured) for n in counts
    }
    return lab.run(cases, read_shares, seeds)


def near_tcp(queue: str, runs: Runs) -> list[Claim]:
    """Claim what section 5.2 says of every queue.

    Parameters
    ----------
    queue
        Which it was.
    runs
        What `run` gave.
    """

    def why(rate: int, n: int) -> str:
        if n * SMALL <= 2 * rate:
            return FEW
        if rate == SMALL and n >= 32 and not queue.endswith("ECN"):
            return TIMEOUTS
        return _SYNCHRONISED if queue == "DropTail" else ""

    words = "very impressive TCP-compatibility where less than 10 % is lost"
    mild = {
        key: shares
        for key, shares in runs.items()
        if np.mean([run.loss + run.marks for run in shares]) < 0.1
    }
    claims = [
        alike(
            f"{rate} Mb/s, {n} + {n} flows: SIMD over TCP",
            [run.ratio for run in shares],
            published=words,
            why=why(rate, n),
        )
        for (rate, n), shares in mild.items()
    ]
    claims += [
        alike(
            f"{rate} Mb/s, geometric mean over the numbers of flows: SIMD over TCP",
            _pooled([shares for (r, _), shares in mild.items() if r == rate]),
            published=words,
            why=_SYNCHRONISED if queue == "DropTail" else FEW,
        )
        for rate in (SMALL, LARGE)
    ]
    most = runs[max(key for key in runs if key[0] == SMALL)]
    claims.append(
        less(
            f"{SMALL} Mb/s, most flows: SIMD's mean throughput against TCP's, of the fair share",
            [float(run.law.mean()) for run in most],
            [float(run.tcp.mean()) for run in most],
            published="slightly lower when the loss rate exceeds a certain level",
            why=_MARKS if queue.endswith("ECN") else "",
        )
    )
    rtts = np.mean([[r.rtt for r in s] for (rate, _), s in runs.items() if rate == SMALL], axis=0)
    claims.append(number("mean round-trip time at 15 Mb/s, s", "≈0.1", rtts.tolist()))
    return claims


def long_epochs(runs: Runs) -> list[Claim]:
    """Claim what footnote 7 says of few flows on the faster link; nothing where none were run.

    Parameters
    ----------
    runs
        What `run` gave.
    """
    if (LARGE, 1) not in runs:
        return []
    return [
        at_most(
            f"{LARGE} Mb/s, 1 + 1 flows: cuts of SIMD's window in 60 s",
            60 / 40,
            [run.cuts for run in runs[LARGE, 1]],
            published="congestion epochs of more than 40 seconds",
            why=(
                "An epoch lasts 0.9 w_max round-trip times (Eq. 4): 16 s at the 260 packets that a "
                "fair share takes here, where RED keeps the round-trip time at 0.07 s. Tried with "
                "0.09 s of propagation: 3.3 cuts. 40 s take 440 packets."
            ),
        )
    ]


def against_red(lab: Lab, runs: Runs) -> list[Claim]:
    """Claim how DropTail differs from RED.

    Parameters
    ----------
    lab
        Where RED is run.
    runs
        What `run` gave with DropTail.
    """
    red = _run(lab, "RED", SMALL, lab.pick((4, 8, 16), (8,)), lab.seeds(6))
    claims: list[Claim] = []
    for key, shares in red.items():
        who = f"{SMALL} Mb/s, {key[1]} + {key[1]} flows"
        claims += [
            less(
                f"{who}: deviation of flows within their group, RED against DropTail",
                [run.spread for run in shares],
                [run.spread for run in runs[key]],
                published="the variance becomes larger",
                why=_SYNCHRONISED,
            ),
            less(
                f"{who}: SIMD over TCP, DropTail against RED",
                [run.ratio for run in runs[key]],
                [run.ratio for run in shares],
                published="SIMD now gets less bandwidth than in the previous experiment",
                why=_SYNCHRONISED,
            ),
        ]
    claims += [
        less(
            "all these: deviation of flows within their group, RED against DropTail",
            np.mean([[r.spread for r in shares] for shares in red.values()], axis=0).tolist(),
            np.mean([[r.spread for r in runs[key]] for key in red], axis=0).tolist(),
            published="the variance becomes larger",
            why=_SYNCHRONISED,
        ),
        less(
            "all these: SIMD over TCP, DropTail against RED",
            _pooled([runs[key] for key in red]),
            _pooled(list(red.values())),
            published="SIMD now gets less bandwidth than in the previous experiment",
            why=_SYNCHRONISED,
        ),
    ]
    return claims


def _pooled(found: list[list[Shares]]) -> list[float]:
    """Give the geometric mean over cases of SIMD's throughput over TCP's, for each seed."""
    logs = [[np.log(run.ratio) for run in shares] for shares in found]
    return list(np.exp(np.mean(logs, axis=0)))


def draw(name: str, queue: str, runs: Runs) -> tuple[Figure, Table]:
    """Draw each flow of the first run and the means of the groups, what was lost below.

    Parameters
    ----------
    name
        Of the figure.
    queue
        Which it was.
    runs
        What `run` gave.
    """
    above, below = [], []
    what = "dropped or marked, %" if queue.endswith("ECN") else "dropped, %"
    for rate in (SMALL, LARGE):
        mine = {n: shares for (r, n), shares in runs.items() if r == rate}
        ticks = [f"{2 * n}" for n in mine]
        curves = [
            *_group(0, "SIMD", [[run.law for run in shares] for shares in mine.values()]),
            *_group(1, "TCP", [[run.tcp for run in shares] for shares in mine.values()]),
        ]
        lost = [[100 * (run.loss + run.marks) for run in s] for s in mine.values()]
        title = f"{rate} Mb/s"
        limits = (-0.5, len(mine) - 0.5)
        above.append(
            Panel("flows", "throughput / fair share", curves, title, x_limits=limits, ticks=ticks)
        )
        curve = Curve.of_means("", range(len(lost)), lost, color=2)
        below.append(Panel("flows", what, [curve], title, x_limits=limits, ticks=ticks))
    columns = ["Mb/s", "flows", "SIMD / fair", "TCP / fair", "SIMD / TCP", "deviation in a group"]
    rows: list[list[str | float]] = []
    for (rate, n), shares in runs.items():
        figures = [
            [
                float(r.law.mean()),
                float(r.tcp.mean()),
                r.ratio,
                r.spread,
                100 * r.loss,
                100 * r.marks,
                r.rtt,
            ]
            for r in shares
        ]
        rows.append([f"{rate}", f"{n} + {n}", *np.mean(figures, axis=0).tolist()])
    return (
        Figure(name, f"TCP competing with SIMD(1/16), {queue}", above + below),
        Table(
            name,
            f"TCP and SIMD(1/16), {queue}: means over the seeds",
            [*columns, "dropped, %", "marked, %", "RTT, s"],
            rows,
        ),
    )


def _group(color: int, name: str, found: list[list[np.ndarray]]) -> list[Curve]:
    """Draw a group: each flow of the first run, and the mean over all runs."""
    first = [runs[0] for runs in found]
    aside = 0.16 * color - 0.08
    x = np.concatenate([np.full(flows.size, i + aside) for i, flows in enumerate(first)])
    means = [[float(flows.mean()) for flows in runs] for runs in found]
    return [
        Curve(f"{name}, each flow", x, np.concatenate(first), "points", color=color),
        Curve.of_means(f"{name}, mean", range(len(means)), means, color=color, dashed=True),
    ]
