"""Section 5.2 of the SIMD paper: SIMD(1/16) and TCP on one bottleneck; SIMD compared with TFRC."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel, sweep
from cwnd._papers.grades import alike, at_most, fact, less
from cwnd._papers.simd import networks as net
from cwnd._papers.simd.measures import READ_SUDDEN, SCALES, SOME, Shares, Sudden, read_shares
from cwnd.model.friendliness import simd_alpha

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SMALL, LARGE = 15, 60
"""Rates of the bottlenecks in Mb/s."""
RTT, PACKET = 0.1, 1000
"""Round-trip time in seconds that the paper measured, and its packets' size in bytes."""

Runs = dict[tuple[int, int], list[Shares]]
"""Measurements by rate in Mb/s and n."""


def _run(lab: Lab, queue: str, *rates: int) -> Runs:
    """Run n SIMD and n TCP flows; the short runs of the slow link have more seeds."""
    warmup, measured = lab.pick((30, 60), (15, 25))
    counts = {SMALL: lab.pick((1, 2, 4, 8, 16, 32, 64), (2, 8, 64))}
    counts[LARGE] = lab.pick((1, 4, 16, 32), (8,))
    runs: Runs = {}
    for rate in rates:
        cases = {
            (rate, n): net.compatibility(rate, queue, n, warmup=warmup, measured=measured)
            for n in counts[rate]
        }
        seeds = lab.pick(3, 2) * lab.seeds if rate == SMALL else None
        runs |= lab.run(cases, read_shares, seeds=seeds)
    return runs


def _pooled(
    runs: Runs, keys: Iterable[tuple[int, int]], of: Callable[[Shares], float]
) -> list[float]:
    """Return the mean of a value over the numbers of flows at 15 Mb/s, for each seed."""
    found = [[of(run) for run in runs[key]] for key in keys if key[0] == SMALL]
    return [float(np.mean(values)) for values in zip(*found, strict=True)]


def _means(runs: Iterable[Shares], group: str) -> list[float]:
    """Return the mean throughput of a group in each run, divided by the fair share."""
    return [float(getattr(run, group).mean()) for run in runs]


def _near_tcp(lab: Lab, queue: str) -> Runs:
    """Run a queue, and add the claims of section 5.2 on all queues."""
    runs = _run(lab, queue, SMALL, LARGE)
    for (rate, n), shares in runs.items():
        mild = np.mean([run.loss + run.marks for run in shares]) < 0.1
        # Footnote 7 exempts fewer than 4 flows at 60 Mb/s.
        if mild and (rate, n) != (LARGE, 1):
            law, tcp = (_means(shares, group) for group in ("law", "tcp"))
            lab.claim("compatible", alike(law, tcp), rate=rate, n=n)
    most = runs[max(key for key in runs if key[0] == SMALL)]
    lab.claim("lower", less(_means(most, "law"), _means(most, "tcp")))
    lab.number("rtt", _pooled(runs, runs, lambda r: r.rtt))
    above: list[Panel] = []
    below: list[Panel] = []
    words = "dropped or marked, %" if queue.endswith("ECN") else "dropped, %"
    for rate in (SMALL, LARGE):
        mine = {n: shares for (r, n), shares in runs.items() if r == rate}
        lost = [[100 * (run.loss + run.marks) for run in s] for s in mine.values()]
        axes: dict[str, Any] = {"x_limits": (-0.5, len(mine) - 0.5)}
        axes |= {"title": f"{rate} Mb/s", "ticks": [f"{2 * n}" for n in mine]}
        groups = [*_group(0, "law", mine), *_group(1, "tcp", mine)]
        above.append(Panel("flows", "throughput / fair share", groups, **axes))
        losses = Curve.of_means("", range(len(lost)), lost, color=2)
        below.append(Panel("flows", words, [losses], **axes))
    lab.show(Figure(f"TCP competing with SIMD(1/16), {queue}", above + below))
    return runs


def _group(color: int, name: str, runs: dict[int, list[Shares]]) -> list[Curve]:
    """Return the curves of a group: each flow of the first run, and the mean over all runs."""
    label = {"law": "SIMD", "tcp": "TCP"}[name]
    first = [getattr(shares[0], name) for shares in runs.values()]
    x = np.concatenate([np.full(y.size, i + 0.16 * color - 0.08) for i, y in enumerate(first)])
    means = [_means(shares, name) for shares in runs.values()]
    return [
        Curve(f"{label}, each flow", x, np.concatenate(first), "points", color=color),
        Curve.of_means(f"{label}, mean", range(len(means)), means, color=color, dashed=True),
    ]


@exhibit("fig-6", cost=27, seeds=(6, 6))
def fig_6(lab: Lab) -> None:
    """SIMD and TCP share a RED queue with ECN."""
    _near_tcp(lab, "RED with ECN")


@exhibit("fig-7", cost=29, seeds=(6, 6))
def fig_7(lab: Lab) -> None:
    """SIMD and TCP share a RED queue without ECN."""
    runs = _near_tcp(lab, "RED")
    # Eq. 4: w_max is reached again after 2 sqrt(beta w_max) / alpha round-trip times.
    fair = LARGE * 1e6 / 2 * RTT / (8 * PACKET)
    epoch = RTT * 2 * math.sqrt(fair / 16) / float(simd_alpha(1 / 16, fair))
    lab.claim("eq-4", fact(f"{epoch:.3g} s at {fair:.3g} packets", holds=epoch < 40))
    if (LARGE, 1) in runs:
        lab.claim("epochs", at_most(60 / 40, [run.cuts for run in runs[LARGE, 1]]))
        alone, *others = ([run.distance for run in runs[key]] for key in runs if key[0] == LARGE)
        lab.claim("few-vary", less(np.mean(others, axis=0).tolist(), alone))


@exhibit("fig-8", cost=60, seeds=(6, 12), beside="fig-7")
def fig_8(lab: Lab) -> None:
    """SIMD and TCP share a DropTail queue, compared with RED."""
    runs, red = _near_tcp(lab, "DropTail"), _run(lab, "RED", SMALL)
    spread = [_pooled(found, red, lambda r: r.spread) for found in (red, runs)]
    lab.claim("variance", less(*spread))
    ratio = [
        _pooled(x, red, lambda r: float(np.log(r.law.mean() / r.tcp.mean()))) for x in (runs, red)
    ]
    lab.claim("less", less(*ratio))
    burst = (_pooled(found, red, lambda r: r.burst) for found in (red, runs))
    lab.claim("bursts", less(*burst))


LAWS = {"SIMD": net.SIMD, "TFRC": "tfrc", "AIMD": net.LAWS["AIMD"], "TCP": "reno"}
SECOND = SCALES.index(1.0)
MIDDLE = 8
"""Number of flows of each kind in the figure of smoothness."""


@exhibit("tfrc", cost=8, seeds=(7, 7), new=True)
def tfrc(lab: Lab) -> None:
    """Compare smoothness, fairness with TCP and responses to sudden changes."""
    warmup, measured = lab.pick((30, 60), (15, 25))
    counts = lab.pick((2, MIDDLE, 32), (MIDDLE,))
    cases = {
        (name, n): net.compatibility(
            SMALL, "RED", n, controller=spec, warmup=warmup, measured=measured, sample="100ms"
        )
        for name, spec in LAWS.items()
        for n in counts
    }
    shared = lab.run(cases, read_shares)
    begin, duration = lab.pick((60, 200), (30, 110))
    changed: dict[tuple[str, int], list[Sudden]] = {}
    for other, read in READ_SUDDEN.items():
        changes = {
            (name, other): net.sudden(spec, other, begin, duration) for name, spec in LAWS.items()
        }
        changed |= lab.run(changes, read)
    rough = {name: [r.variation[SECOND] for r in shared[name, MIDDLE]] for name in LAWS}
    lab.claim("smooth-tfrc", less(rough["TFRC"], rough["AIMD"]))
    lab.claim("smooth-simd", less(rough["SIMD"], rough["TCP"]))
    lab.claim("smoother", less(rough["TFRC"], rough["SIMD"]))
    up = {key: [r.up_s for r in found] for key, found in changed.items()}
    for other in READ_SUDDEN:
        for key, fast, slow in (
            ("limited", "SIMD", "TFRC"),
            ("aggressive", "SIMD", "AIMD"),
            ("fastest", "TCP", "SIMD"),
        ):
            lab.claim(key, less(up[fast, other], up[slow, other]), other=other)
        lab.claim("transient", alike(up["TFRC", other], up["AIMD", other]), other=other)
    simd, equation = changed["SIMD", SOME], changed["TFRC", SOME]
    lab.claim("down", less([r.down_s for r in simd], [r.down_s for r in equation]))
    lab.claim("lost", less([r.lost for r in simd], [r.lost for r in equation]))
    for (name, n), found in shared.items():
        # The share of SIMD beside TCP is claimed in fig-7.
        if name in ("TFRC", "AIMD"):
            lab.claim("beside", alike(_means(found, "law"), _means(found, "tcp")), law=name, n=n)
    smooth = {
        (name, i): [run.variation[i] for run in shared[name, MIDDLE]]
        for name in LAWS
        for i in range(len(SCALES))
    }
    share = {
        (name, i): [float(run.law.mean() / run.tcp.mean()) for run in shared[name, n]]
        for name in LAWS
        for i, n in enumerate(counts)
    }
    title, ticks = f"smoothness, {MIDDLE} + {MIDDLE} flows", [f"{scale:g}" for scale in SCALES]
    panels = [
        Panel("averaged over, s", "coefficient of variation", sweep(smooth), title, ticks=ticks)
    ]
    title, ticks = "beside as many TCP flows", [f"{2 * n}" for n in counts]
    panels.append(Panel("flows", "throughput over TCP's", sweep(share), title, ticks=ticks))
    for other in READ_SUDDEN:
        first = {name: changed[name, other][0] for name in LAWS}
        curves = [Curve(name, run.time, run.rate) for name, run in first.items()]
        title, limits = f"{other} of 15 Mb/s come and go", (begin / 2, 3 * begin)
        axes = ("time, s", "rate of both flows, Mb/s")
        panels.append(Panel(*axes, curves, title, x_limits=limits, y_limits=(0.0, 20.0)))
    lab.show(Figure("SIMD, TFRC, AIMD and TCP", panels))
