"""Xu and Ansari: stability and fairness of rate estimation-based AIAD congestion control in TCP.

Two estimates of the rate that a loss falls back to: κ from when acknowledgements arrive (TCP
Westwood), φ from when packets arrive at the receiver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from cwnd.model import aiad as model
from cwnd.papers.aiad_networks import (
    BIN,
    BUSY,
    CBR,
    INFERRED,
    KAPPA,
    NAMES,
    PHI,
    RATE,
    RHO,
    Alone,
    Flow,
    Samples,
    Spread,
    alone,
    capture,
    cumulative,
    estimated,
    follow,
    letter,
    spread,
    steady_reverse,
)
from cwnd.papers.aiad_notes import (
    BUNCHES,
    CLUMPS,
    CROWD,
    DRAINED,
    EVENNESS,
    GRANULARITY,
    ROOM,
)
from cwnd.papers.aiad_stability import (
    DELAY,
    LOSS,
    PPS,
    RATIO,
    kappa_claim,
    lemma_claims,
    panels,
    settle,
    settling_claim,
    stability_grid,
    with_buffer,
)
from cwnd.papers.claims import alike, at_least, at_most, fact, formula, less
from cwnd.papers.exhibit import Findings, Lab, exhibit
from cwnd.papers.figure import Curve, Figure, Panel, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cwnd.papers.claims import Claim
    from cwnd.result import Result

LAWS = (KAPPA, PHI)
TICK = 1e-3
"""What a clock of 1 µs may add to a sample: 1 µs of a packet's 2.67 ms, rounded up."""
READINGS = {"κ": (KAPPA, "1us"), "φ": (PHI, "1us"), "φ by 100 ms": (PHI, "100ms")}
"""Laws with the granularity of their timestamps, which the letter does not say."""
PHIS = ("φ by 100 ms", "φ")
FIGURES: dict[str, Callable[[Spread], float]] = {
    "standard deviation of the throughput ratio": lambda run: run.deviation,
    "Jain's index": lambda run: run.jain,
}
Even: TypeAlias = dict[tuple[str, int], list[Spread]]
"""Evenness by case and number of flows, one a seed."""
REVERSE = (0.5e6, 1e6, 1.5e6, 2e6, 2.4e6, 2.8e6)
"""CBR rates on the way back, bit/s."""


@exhibit("eq-2-3", "Eq. 2 and 3: what φ and κ are samples of", cost=4.0)
def eq_2_3(lab: Lab) -> Findings:
    """Hold both estimators against their equations, sample by sample and filtered."""
    seeds = lab.seeds(8)
    duration = lab.pick(100.0, 75.0)
    lab.scenario = letter(KAPPA, duration=duration)
    # Everything from one kind of run: an acknowledgement shows all three times of its packet.
    one = [capture(lab.scenario, seed, 55.0, duration)[0] for seed in seeds]
    five = [_joined(capture(letter(PHI, 5, duration=duration), s, 55.0, duration)) for s in seeds]
    reverse = lab.run(
        {(law, u): steady_reverse(law, u, duration=duration) for law in LAWS for u in REVERSE},
        _estimate,
        seeds,
    )
    shared = lab.run({n: letter(PHI, n, duration=50.0) for n in (1, 5, 20)}, _against_eq_2, seeds)
    claims = [
        at_most(
            "largest sample of φ over C, five flows",
            1 + TICK,
            (s.receiving.max() / RATE for s in five),
            published="always upper bounded by the capacity of the forward bottleneck",
        ),
        alike(
            "median of φ over C x/y_f (Eq. 2), sample by sample, five flows",
            (float(np.median(s.receiving / (RATE * s.share))) for s in five),
            published="φ = C x/y_f",
        ),
        at_least(
            "largest sample of κ over C, one flow, way back busy",
            1.0,
            (s.acks.max() / RATE for s in one),
            published="could take a value much larger than the capacity of the forward link",
            why=BUNCHES,
        ),
        at_most(
            "largest sample of κ over the backward capacity divided by ACK over data size",
            1 + TICK,
            (s.acks.max() * RHO / RATE for s in one),
            published="limited above by the backward capacity and the ratio of sizes",
        ),
        *(
            alike(
                f"filtered φ over C x/y_f (Eq. 2), sums of {n} flow{'s' * (n > 1)}, way back idle",
                (ratio for ratio, _ in shared[n]),
                published="φ = C x/y_f",
                why=CLUMPS,
            )
            for n in shared
        ),
        *(
            at_most(
                f"largest filtered φ over C, {n} flow{'s' * (n > 1)}",
                1.0,
                (top for _, top in shared[n]),
                published="always upper bounded by the capacity of the forward bottleneck",
            )
            for n in shared
        ),
        *(
            alike(
                f"filtered κ over Cφ/y_b (Eq. 3), CBR of {u / 1e6:g} Mb/s on the way back in y_b",
                (rate / _eq_3(u) for rate in reverse[KAPPA, u]),
                published="κ = Cφ/y_b",
                why=DRAINED,
            )
            for u in (1e6, 2e6, 2.8e6)
        ),
        alike(
            "filtered κ over Cφ/y_b with acknowledgements alone in y_b, as printed, CBR of 2 Mb/s",
            (rate * RHO / RATE for rate in reverse[KAPPA, 2e6]),
            published="κ = Cφ/y_b, y_b of the ACK flows",
            why=DRAINED,
        ),
    ]
    figure = Figure(
        "eq-2-3",
        "Samples of one flow while the way back is busy, and the filtered estimates",
        [_samples_panel(one[0]), _reverse_panel(reverse)],
    )
    return Findings(
        claims,
        [figure],
        varied="number of flows (1, 5, 20), rate of the CBR flow, κ or φ",
        inferred=[
            *INFERRED,
            "Eq. 3's y_b is held both as printed (ACKs alone: 25 C always) and with the CBR flow.",
            "For the second panel the CBR flow is on all the time, its gaps spread by 10 %.",
        ],
    )


def _joined(flows: Iterable[Samples]) -> Samples:
    """Put the samples of all flows together."""
    x, phi, kappa, share = (np.concatenate(part) for part in zip(*flows, strict=True))
    return Samples(x, phi, kappa, share)


def _estimate(result: Result) -> float:
    """Give the mean estimated rate of the first flow in bit/s, its first 20 s left out."""
    return float(estimated(result.measured_flows[0])[result.time >= 20.0].mean())


def _against_eq_2(result: Result) -> tuple[float, float]:
    """Give the filtered estimates over C x/y_f, all flows together, and the largest over C.

    Eq. 2 summed over the flows is C.
    """
    late = result.time >= 20.0
    rates = np.array([estimated(flow)[late] for flow in result.measured_flows])
    return float(rates.mean(axis=1).sum() / RATE), float(rates.max() / RATE)


def _eq_3(cbr: float) -> float:
    """Give Eq. 3 of one flow that fills the forward bottleneck, with cross traffic, in bit/s."""
    return RATE * RATE / (RHO * RATE + cbr)


def _samples_panel(samples: Samples) -> Panel:
    """Draw the distributions of the samples."""
    named = {"x, sent": samples.sending, "φ, received": samples.receiving, "κ, ACKs": samples.acks}
    curves = []
    for name, values in named.items():
        x, share = cumulative(values / 1e6)
        curves.append(Curve(name, x, share))
    for name, at in {"C": RATE, "C / 0.04": RATE / RHO}.items():
        curves.append(Curve(name, [at / 1e6] * 2, [0.0, 1.0], dashed=True))
    return Panel("sample, Mb/s", "fraction below", curves, "samples, N = 1", x_log=True)


def _reverse_panel(reverse: dict[tuple[str, float], list[float]]) -> Panel:
    """Draw the filtered estimates against the traffic on the way back."""
    x = np.array(REVERSE)
    curves = [
        Curve.of_means(NAMES[law], x / 1e6, [np.array(reverse[law, u]) / 1e6 for u in REVERSE])
        for law in LAWS
    ]
    curves.append(Curve("Eq. 3, CBR counted", x / 1e6, [_eq_3(u) / 1e6 for u in x], dashed=True))
    curves.append(Curve("C", x / 1e6, np.full(x.size, RATE / 1e6), dashed=True))
    return Panel("CBR on the way back, Mb/s", "mean estimate, Mb/s", curves, "filtered, N = 1")


@exhibit("eq-4-7", "Eq. 4 to 7 and Lemma 1: the delayed system and when it is stable", cost=3.0)
def eq_4_7(lab: Lab) -> Findings:
    """Hold the linear conditions against roots, and against the nonlinear system."""
    counts = np.array([1, 2, 5, 20, 50, 100, 200])
    room = RATIO / np.asarray(model.estimate_bound(counts, PPS, LOSS, 2 * LOSS / PPS)) - 1
    moved = {
        (n, s, held): settle(n, s, held=held)
        for n in lab.pick((1, 5), (5,))
        for s in lab.pick((2.0, 20.0, 60.0), (2.0, 60.0))
        for held in (True, False)
    }
    filled = {"κ": with_buffer(RATIO), "φ": with_buffer(1.0)}
    claims = [
        *lemma_claims(stability_grid()),
        formula(
            "buffer over Cd that AIAD_κ needs with many flows",
            "24",
            float(model.buffer_bound(PPS, DELAY, RATIO)) / (PPS * DELAY),
        ),
        fact(
            "the buffer that Eq. 7 asks for grows with the number of flows",
            f"{room[0]:.3g} Cd for one flow, {room[2]:.3g} for 5, {room[-1]:.4g} for 200",
            "holds if it grows at every step of N = 1, 2, 5, 20, 50, 100, 200",
            holds=bool(np.all(np.diff(room) > 0)),
            published="as the number of flows increases, the network has to increase its buffer",
        ),
        *(settling_claim(moved, held=held) for held in (True, False)),
        kappa_claim(filled),
    ]
    return Findings(
        claims,
        [
            Figure(
                "eq-4-7", "Linear stability of AIAD_φ, and Eq. 4 integrated", panels(moved, filled)
            )
        ],
        varied="no simulation: Eq. 4 to 7 as functions",
        inferred=[
            "The letter leaves p(y) open: p₀(y/C)^s here, with its slope at C as the sharpness s.",
            f"Where no grid is said: C = 375 packets/s, p₀ = {LOSS:g}, d = {DELAY * 1e3:.0f} ms.",
            "Kicked by 5 %, the system is back if its total stays within 0.5 % of C from 18 s on.",
        ],
    )


@exhibit("fig-2", "Fig. 2: rate estimate and throughput of one flow", cost=2.0)
def fig_2(lab: Lab) -> Findings:
    """Run one flow against a CBR flow on and off on the way back."""
    duration = lab.pick(500.0, 250.0)
    found = lab.run({law: letter(law, duration=duration) for law in LAWS}, _both, lab.seeds(12, 6))
    of = {law: [numbers for numbers, _ in runs] for law, runs in found.items()}
    claims = _fig_2_claims(of[KAPPA], of[PHI])
    flows = {law: runs[0][1] for law, runs in found.items()}
    top = max(float(flow.estimate.max()) for flow in flows.values()) / 1e6
    figure = Figure(
        "fig-2",
        "Rate estimation and throughput, one flow",
        [_fig_2_panel(NAMES[law], flow, 1.05 * top) for law, flow in flows.items()],
    )
    table = Table(
        "fig-2-means",
        "One flow",
        ["", "estimate / C, busy", "estimate / C, idle", "CoV of throughput, busy", "drops"],
        [[NAMES[law], *np.mean(of[law], axis=0).tolist()] for law in LAWS],
    )
    return Findings(
        claims, [figure], [table], "κ (left) or φ (right) as the estimate", list(INFERRED)
    )


def _both(result: Result) -> tuple[Alone, Flow]:
    """Give a run's numbers and its course."""
    return alone(result), follow(result)


def _fig_2_claims(kappa: Sequence[Alone], phi: Sequence[Alone]) -> list[Claim]:
    """Hold what section IV says of one flow."""
    return [
        at_least(
            "κ's estimate over C while the way back is busy",
            1.0,
            (run.on for run in kappa),
            published="significant over estimation",
        ),
        less(
            "κ's estimate is larger while the way back is busy: idle against busy, over C",
            (run.off for run in kappa),
            (run.on for run in kappa),
            published="during the periods when the backward bottleneck is congested",
        ),
        alike(
            "φ's estimate over C while the way back is busy",
            (run.on for run in phi),
            published="a more accurate estimate of the achievable rate",
        ),
        less(
            f"variation of the throughput over {BIN:g} s while the way back is busy, φ against κ",
            (run.cov for run in phi),
            (run.cov for run in kappa),
            published="a more stable throughput",
        ),
        less(
            "packets dropped by the forward bottleneck, φ against κ",
            (run.drops for run in phi),
            (run.drops for run in kappa),
            published="over estimation induces more packet losses",
        ),
    ]


def _fig_2_panel(name: str, flow: Flow, top: float) -> Panel:
    """Draw the course of one flow."""
    end = flow.time[-1]
    edges = np.arange(0.0, end + 1, BUSY)
    cbr = np.where(np.arange(edges.size) % 2 == 1, CBR, 0.0)
    curves = [
        Curve("rate estimate", flow.time, flow.estimate / 1e6),
        Curve("throughput", flow.bins, flow.throughput / 1e6, "steps"),
        Curve("CBR on the way back", edges, cbr / 1e6, "steps", dashed=True),
    ]
    return Panel("time, s", "Mb/s", curves, name, y_limits=(0.0, top))


@exhibit("fig-3", "Fig. 3: evenness of the throughputs against the number of flows", cost=14.0)
def fig_3(lab: Lab) -> Findings:
    """Let 5 to 200 flows share the bottleneck."""
    counts = lab.pick((5, 10, 20, 50, 100, 150, 200), (5, 50, 200))
    found = _even(lab, counts, {name: (*reading, 20) for name, reading in READINGS.items()})
    claims = [
        *(claim for name in PHIS for claim in _fig_3_claims(found, counts, name)),
        less(
            "standard deviation of the throughput ratio of κ, 5 flows against 200",
            (run.deviation for run in found["κ", 5]),
            (run.deviation for run in found["κ", 200]),
            published="unfair when N increases",
        ),
    ]
    panels = _spread_panels(found, counts)
    caption = "Standard deviation of the throughput ratio, and Jain's fairness index"
    return Findings(
        claims,
        [Figure("fig-3", caption, panels)],
        [_spread_table("fig-3-values", found)],
        "number of flows; κ or φ; granularity of φ's timestamps",
        [*INFERRED, *EVENNESS],
    )


def _fig_3_claims(found: Even, counts: Sequence[int], name: str) -> list[Claim]:
    """Hold what section IV says of many flows, with one reading of φ."""
    return [
        *(
            less(
                f"standard deviation of the throughput ratio, {n} flows, {name} against κ",
                (run.deviation for run in found[name, n]),
                (run.deviation for run in found["κ", n]),
                published="κ leads to a much more diverse throughput distribution",
                why=CLUMPS,
            )
            for n in counts
            if n >= 20
        ),
        less(
            f"Jain's index, 200 flows, κ against {name}",
            (run.jain for run in found["κ", 200]),
            (run.jain for run in found[name, 200]),
            published="κ becomes unstable and unfair when N increases",
            why=CLUMPS,
        ),
        alike(
            f"Jain's index of {name}, 200 flows over 5",
            _ratios(found[name, 200], found[name, 5], lambda run: run.jain),
            published="φ maintains its stability and fairness as the number of flows increases",
            why=CROWD,
        ),
    ]


def _even(lab: Lab, counts: Sequence[int], cases: Mapping[str, tuple[str, str, int]]) -> Even:
    """Measure evenness for laws with their clocks and buffers, and numbers of flows."""
    duration = lab.pick(500.0, 250.0)
    return lab.run(
        {
            # Nobody reads the series, and of hundreds of flows and links they would be long.
            (name, n): letter(law, n, queue=size, duration=duration, clock=clock, sample="10s")
            for name, (law, clock, size) in cases.items()
            for n in counts
        },
        spread,
        lab.seeds(5),
    )


def _ratios(
    above: Iterable[Spread], below: Iterable[Spread], figure: Callable[[Spread], float]
) -> list[float]:
    """Divide a figure by another, seed by seed."""
    return [figure(a) / figure(b) for a, b in zip(above, below, strict=True)]


def _spread_panels(found: Even, counts: Sequence[int]) -> list[Panel]:
    """Draw both figures of all cases against the number of flows."""
    names = list(dict.fromkeys(name for name, _ in found))
    return [
        Panel(
            "number of flows N",
            label,
            [
                Curve.of_means(
                    f"AIAD_{name}", counts, [[run[i] for run in found[name, n]] for n in counts]
                )
                for name in names
            ],
        )
        for i, label in enumerate(("standard deviation", "Jain's index"))
    ]


def _spread_table(name: str, found: Even) -> Table:
    """List evenness by case."""
    rows: list[list[str | float]] = [
        [n, f"AIAD_{case}", *np.mean(runs, axis=0).tolist()] for (case, n), runs in found.items()
    ]
    columns = ["N", "", "standard deviation of the throughput ratio", "Jain's index"]
    return Table(name, "Evenness of the throughputs, means over the seeds", columns, rows)


@exhibit("buffers", "Text: κ with buffers of 200 packets and φ with 20", cost=4.0, beside="fig-3")
def buffers(lab: Lab) -> Findings:
    """Give κ ten times the buffer of φ."""
    counts = lab.pick((5, 20, 50, 100, 200), (5, 50, 200))
    roomy, small = "κ, 200 packets", {name: f"{name}, 20 packets" for name in PHIS}
    cases = {roomy: (KAPPA, "1us", 200)}
    cases |= {small[name]: (*READINGS[name], 20) for name in PHIS}
    found = _even(lab, counts, cases)
    claims = [
        alike(
            f"{what}, {n} flows, {roomy} over {small[name]}",
            _ratios(found[roomy, n], found[small[name], n], figure),
            published="becomes close",
            why=ROOM,
        )
        for name in PHIS
        for what, figure in FIGURES.items()
        for n in counts
    ]
    return Findings(
        claims,
        [Figure("buffers", "κ with ten times the buffer, and φ", _spread_panels(found, counts))],
        [_spread_table("buffers-values", found)],
        "number of flows; κ with 200 packets of buffer in each direction, φ with 20",
        [
            *INFERRED,
            *EVENNESS,
            "How many flows there were is not said: several numbers are run.",
            "Which figures became close is not said: both of Fig. 3 are compared.",
        ],
    )


CLOCKS = ("1us", "1ms", "10ms", "100ms", "1s")
PLACES = {"one flow": (1, 1.0), "20 flows": (20, 1.0), "one flow at 30 Mb/s": (1, 10.0)}
"""Flows, and what the letter's rates (and buffer) are multiplied by."""


@exhibit("granularity", "New: φ by timestamps of 1 µs to 1 s", cost=18.0, new=True)
def granularity(lab: Lab) -> Findings:
    """Coarsen the receiver's clock until φ is no better than κ."""
    duration = lab.pick(250.0, 100.0)
    laws = {"κ": (KAPPA, "1us")} | {f"φ, {clock}": (PHI, clock) for clock in CLOCKS}
    found = lab.run(
        {
            (place, name): letter(
                law, n, queue=int(20 * scale), duration=duration, clock=clock, scale=scale
            )
            for place, (n, scale) in PLACES.items()
            for name, (law, clock) in laws.items()
        },
        _quality,
        lab.seeds(8, 4),
    )
    claims = [
        less(
            f"mean error of the estimate, {place}: φ with a clock of {clock} against κ",
            (run.error for run in found[place, f"φ, {clock}"]),
            (run.error for run in found[place, "κ"]),
            published="(own question) better than κ",
            why=GRANULARITY,
        )
        for place in PLACES
        for clock in CLOCKS
    ]
    claims += [
        less(
            f"standard deviation of the throughput ratio, 20 flows: φ with a clock of {clock}, κ",
            (run.deviation for run in found["20 flows", f"φ, {clock}"]),
            (run.deviation for run in found["20 flows", "κ"]),
            published="(own question) better than κ",
            why=GRANULARITY,
        )
        for clock in CLOCKS
    ]
    panels = [
        Panel("receiver's clock", label, _by_clock(found, i), "dashed: κ", ticks=CLOCKS, y_log=True)
        for i, label in enumerate(
            ("mean error of the estimate / fair share", "drops, % of arrivals")
        )
    ]
    return Findings(
        claims,
        [Figure("granularity", "κ, and φ by ever coarser timestamps", panels)],
        varied="granularity of the timestamps; flows; all rates and the buffer times ten",
        inferred=[
            *INFERRED,
            "The error is the mean of |estimate / (C/N) - 1| over flows and samples from 20 s on.",
            "1 s is the coarsest clock that RFC 7323 allows.",
            "The law counts the packets of one tick together: a coarse clock never divides by 0.",
        ],
    )


def _by_clock(found: Mapping[tuple[str, str], Sequence[Quality]], figure: int) -> list[Curve]:
    """Draw one figure of φ by its clock, and of κ, which has none, as a level."""
    curves = []
    for color, place in enumerate(PLACES):
        clocks = [[run[figure] for run in found[place, f"φ, {clock}"]] for clock in CLOCKS]
        level = float(np.mean([run[figure] for run in found[place, "κ"]]))
        phi = Curve.of_means(f"φ, {place}", range(len(CLOCKS)), clocks)
        phi.color = color
        ends = [0, len(CLOCKS) - 1]
        curves += [phi, Curve("", ends, [level] * 2, color=color, dashed=True)]
    return curves


class Quality(NamedTuple):
    """How good an estimate is, and what it does to the network.

    Attributes
    ----------
    error
        Mean of |estimate / (C/N) - 1| over flows and samples.
    drops
        Packets dropped on the way forward, in percent of those that arrived.
    deviation
        Standard deviation of the throughput ratio.
    """

    error: float
    drops: float
    deviation: float


def _quality(result: Result) -> Quality:
    """Measure a run of the granularity exhibit."""
    late = result.time >= 20.0
    link = next(link for link in result.record["links"] if link["name"] == "left-right")
    fair = link["rate_bps"] / len(result.measured_flows)
    rates = np.array([estimated(flow)[late] for flow in result.measured_flows])
    return Quality(
        float(np.abs(rates / fair - 1).mean()),
        100.0 * link["drops"] / link["arrivals"],
        spread(result).deviation,
    )
