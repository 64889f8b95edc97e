"""The exhibits of the SIMD paper: Jin, Guo, Matta and Bestavros, BU-CS-2001-006.

``beta`` is the fraction of the window given up. Networks and readings are in `simd_networks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cwnd.model import synchronous
from cwnd.model.friendliness import simd_alpha
from cwnd.model.synchronous import simd_fairer
from cwnd.model.throughput import simd_eq8
from cwnd.papers import simd_compatibility as compatibility
from cwnd.papers import simd_convergence as convergence
from cwnd.papers import simd_tfrc
from cwnd.papers.claims import alike, at_least, at_most, between, fact, less, number
from cwnd.papers.exhibit import Findings, exhibit
from cwnd.papers.figure import Curve, Figure, Panel, Regions
from cwnd.papers.simd_networks import Growth, growth, random_loss, read_growth

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cwnd.papers.claims import Claim
    from cwnd.papers.exhibit import Lab
    from cwnd.records import Series
    from cwnd.result import Result

SIMD = "simd(beta=1/16)"
AIMD = "aimd(0.1, 1/16)"
GROWTH = {"SIMD(1/16)": 1 / 16, "SIMD(1/8)": 1 / 8, "SIMD(1/4)": 1 / 4}


def eq4(beta: float, g: Growth) -> Series:
    """Give SIMD's window after a loss by Eq. 4, in packets, at the times of a run."""
    alpha = float(simd_alpha(beta, g.largest))
    return np.asarray(g.smallest + alpha**2 / 4 * g.rtts**2)


_LAG = (
    "Always below, by 1 to 2 %: Eq. 9 divides by the window of now, but acknowledgements come at "
    "the pace of the window one round-trip time ago, and of whole packets. The faster the growth "
    "the more; the exponent stays 2."
)


@exhibit("fig-1", "Window after a loss: square for SIMD, linear for AIMD", cost=0.6)
def fig_1(lab: Lab) -> Findings:
    """Hold windows after their last loss against Eq. 4."""
    cases = {name: growth(f"simd(beta={beta})") for name, beta in GROWTH.items()}
    cases |= {
        "AIMD(1/10, 1/16)": growth(AIMD),
        "IIAD": growth("iiad"),
        "SIMD(1/16), small window": growth(SIMD, "8.5mbit"),
    }
    runs = lab.run(cases, read_growth, lab.seeds(5))

    def error(g: Growth, beta: float) -> float:
        return float(np.max(np.abs(g.window / eq4(beta, g) - 1)))

    exponents = {name: [g.exponent() for g in runs[name]] for name in cases}
    claims: list[Claim] = []
    for name, beta in GROWTH.items():
        claims += [
            at_most(
                f"{name}: largest distance of the window from Eq. 4, of the window",
                0.02,
                [error(g, beta) for g in runs[name]],
                published="w(t) = w₀ + 9β t²/(8 (1 - 2β/3)² w_max)",
                why=_LAG,
            ),
            at_most(
                f"{name}: α in the run, distance from Eq. 3",
                1e-9,
                [abs(g.alpha / float(simd_alpha(beta, g.largest)) - 1) for g in runs[name]],
                published="α = 3√β/((1 - 2β/3)√(2 w_max))",
            ),
            between(
                f"{name}: exponent k of the growth, w - w₀ ∝ tᵏ",
                1.95,
                2.05,
                exponents[name],
                published="in proportion to the square of the time",
            ),
        ]
    small, large = (runs[name] for name in ("SIMD(1/16), small window", "SIMD(1/16)"))
    claims += [
        between(
            "AIMD: exponent of the growth",
            0.95,
            1.05,
            exponents["AIMD(1/10, 1/16)"],
            published="linear",
        ),
        less(
            "IIAD: exponent of the growth, against AIMD's",
            exponents["IIAD"],
            exponents["AIMD(1/10, 1/16)"],
            published="sub-linear",
        ),
        less(
            "of two SIMD flows the one with the smaller window grows faster (packets in 50 RTT)",
            [_grown(g, 50) for g in large],
            [_grown(g, 50) for g in small],
            published="the flow with smaller window size is more aggressive",
        ),
    ]

    def panel(title: str, names: Iterable[str], *, model: bool) -> Panel:
        curves = []
        for color, name in enumerate(names):
            g = runs[name][0]
            curves.append(Curve(name, g.rtts, g.window, color=color))
            if model:
                y = eq4(GROWTH[name], g)
                curves.append(Curve(f"{name}, Eq. 4", g.rtts, y, color=color, dashed=True))
        return Panel("round-trip times since the loss", "window, packets", curves, title)

    figure = Figure(
        "fig-1",
        "Different increase patterns of the congestion window",
        [
            panel("Super-linear: SIMD", GROWTH, model=True),
            panel("Linear and below: AIMD, IIAD", ("AIMD(1/10, 1/16)", "IIAD"), model=False),
        ],
    )
    return Findings(
        claims,
        [figure],
        varied="the law; 8.5 Mb/s of other traffic for the small window",
        inferred=[
            "The figure is a sketch without a network.",
            "One flow has about a quarter of 10 Mb/s until CBR traffic beside it ends at 30 s.",
            "Its window is followed from its last loss until a queue would build up (115 packets).",
            "Each packet is acknowledged, as Appendix B assumes.",
        ],
    )


def _grown(g: Growth, rtts: float) -> float:
    """Give by how many packets a window has grown after some round-trip times."""
    return float(np.interp(rtts, g.rtts, g.window)) - g.smallest


@exhibit("fig-4a", "Where SIMD crosses the efficiency line at a fairer point than AIMD", cost=2)
def fig_4a(lab: Lab) -> Findings:
    """Compare the two crossings over the plane, by section 4.2 and by the laws themselves."""
    step = lab.pick(0.005, 0.02)
    x1, x2 = _plane(np.arange(step / 2, 1, step), 1)
    fairer = simd_fairer(x1, x2)
    expected = x1 + x2 > 1 / 3
    area = float(expected.mean())
    capacity = 1000.0
    found = {
        law: np.asarray(
            synchronous.convergence(
                spec, capacity * x1, capacity * x2, capacity, capacity, per="round"
            ).delta
        )
        for law, spec in (("SIMD", SIMD), ("AIMD", "friendly(beta=1/16)"))
    }
    iterated = found["SIMD"] < found["AIMD"]
    near = np.abs(x1 + x2 - 1 / 3) < 0.02
    claims = [
        fact(
            "SIMD's crossing is the fairer one exactly where x₁ + x₂ > 1/3",
            f"{np.count_nonzero(fairer != expected)} of {fairer.size} points differ",
            "holds if the fairness indices of section 4.2 say so at every point of the grid",
            holds=bool((fairer == expected).all()),
            published="x₁ + x₂ > 1/3",
        ),
        fact(
            "the laws themselves, iterated with 1000 packets, cross so",
            f"{np.count_nonzero((iterated != expected) & ~near)} of {np.count_nonzero(~near)} "
            "points differ",
            "holds if they do at every point more than 0.02 from x₁ + x₂ = 1/3: rounds are whole",
            holds=bool((iterated == expected)[~near].all()),
            published="x₁ + x₂ > 1/3",
        ),
        fact(
            "area (1), where SIMD is fairer, against area (2)",
            f"{area / (1 - area):.3g} times",
            "holds if it is more than twice as large",
            holds=area > 2 * (1 - area),
            published="much larger",
        ),
    ]
    line, third = np.array([0.0, 1.0]), np.linspace(0, 1 / 3, 9)
    figure = Figure(
        "fig-4a",
        "Where SIMD reaches the efficiency line at a fairer point than AIMD",
        [
            Panel(
                "x₁",
                "x₂",
                [
                    Curve("efficiency line", line, 1 - line),
                    Curve("x₁ + x₂ = 1/3", third, third[::-1], "published"),
                ],
                title,
                regions=_map(x1, x2, mask, ("AIMD fairer", "SIMD fairer")),
                x_limits=(0.0, 1.0),
                y_limits=(0.0, 1.0),
            )
            for title, mask in (("section 4.2", fairer), ("laws iterated, W = 1000", iterated))
        ],
    )
    return Findings(
        claims, [figure], inferred=["The starting points are those with x₁ ≠ x₂, x₁ + x₂ < 1."]
    )


@exhibit("table-1", "Closed forms of convergence against the synchronous model", cost=1.2)
def table_1(lab: Lab) -> Findings:
    """Hold T₁, Δ and T₂ of Table 1 against the laws, iterated with synchronous losses."""
    claims, figure, table = convergence.closed_forms(lab.pick(45, 15))
    return Findings(claims, [figure], [table], inferred=convergence.INFERRED_FORMS)


@exhibit("fig-4c", "Where SIMD(1/16) converges faster than AIMD(1/16)", cost=2.2)
def fig_4c(lab: Lab) -> Findings:
    """Compare T₁ + T₂ over the plane, by Table 1 and by the laws themselves."""
    w1, w2 = _plane(np.arange(1.0, 100.0, lab.pick(1, 3)), 100)
    claims, panels = [], []
    for title, exact in (("Table 1", False), ("laws iterated", True)):
        found = synchronous.plane(w1, w2, exact=exact)
        share = float(np.mean(found.simd_faster))
        slowest = float(np.mean(found.iiad_slowest))
        claims += [
            fact(
                f"{title}: SIMD converges faster than AIMD, share of the starting points",
                f"{100 * share:.1f} %",
                "holds if it does from more than half of them",
                holds=share > 0.5,
                published="in most cases",
            ),
            fact(
                f"{title}: IIAD is slower than both, share of the starting points",
                f"{100 * slowest:.1f} %",
                "holds if it is from all of them",
                holds=slowest == 1.0,
                published="much slower than AIMD and SIMD in all cases",
                why=(
                    "Not from two small windows, both at most 12 packets: on their long way to the "
                    "line IIAD's differ by less than ε already, and T₂ is 0, while AIMD and SIMD "
                    "still have T₂ to come. From everywhere else it is the slowest."
                ),
            ),
        ]
        panels.append(
            Panel(
                "W₁, packets",
                "W₂, packets",
                title=title,
                regions=_map(w1, w2, found.simd_faster, ("AIMD faster", "SIMD faster")),
                x_limits=(0.0, 100.0),
                y_limits=(0.0, 100.0),
            )
        )
    figure = Figure("fig-4c", "SIMD(1/16) against AIMD(1/16), ε = 1, W = 100", panels)
    return Findings(
        claims,
        [figure],
        inferred=["AIMD is the TCP-friendly one without timeouts, α = 3β/(2 - β), as in Table 1."],
    )


def _plane(axis: np.ndarray, most: float) -> tuple[np.ndarray, np.ndarray]:
    """Give the points of a grid below the efficiency line and off the fairness line."""
    x, y = (side.ravel() for side in np.meshgrid(axis, axis))
    inside = (x + y < most * (1 - 1e-9)) & (x != y)
    return x[inside], y[inside]


def _map(x: np.ndarray, y: np.ndarray, mask: np.ndarray, names: tuple[str, str]) -> Regions:
    """Lay out points of a grid as a map of two areas."""
    columns, at_x = np.unique(x, return_inverse=True)
    rows, at_y = np.unique(y, return_inverse=True)
    z = np.full((rows.size, columns.size), np.nan)
    z[at_y, at_x] = mask
    return Regions(columns, rows, z, names)


LOSSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
CURVES = {
    "SIMD(1/16)": SIMD,
    "SIMD(1/8)": "simd(beta=1/8)",
    "SIMD(1/4)": "simd(beta=1/4)",
    "SIMD(1/2)": "simd(beta=1/2)",
    "AIMD(1/5, 1/8)": "aimd(0.2, 1/8)",
}

_NO_DIP = (
    "By Eq. 8 the dip comes from timeouts, which a law has the more of, the less it gives up. SIMD "
    "that gives up as much as TCP has no more of them than TCP. Which β the paper's curves have is "
    "lost: 1/2 may not be among them."
)
_DIP = (
    "Place and depth of the dip hang on the timers. ns-2's defaults of 2001 are without limited "
    "transmit (RFC 3042); tried with it: 0.85 at 10 and at 15 %, the worst; with all of ns-2.35's "
    "defaults 0.79 at 20 %. With NewReno 0.69 at 10 %, with delayed acknowledgements 0.72 at 5 %. "
    "ns-2's own AIMD(1/5, 1/8) is worst at 10 % without it too."
)


def _throughput(result: Result) -> float:
    """Give the packets a second of the only flow, retransmissions included."""
    return result.record["flows"][0]["packets_sent"] / result.duration_s


@exhibit("fig-5", "Throughput under random loss, over that of TCP", cost=6)
def fig_5(lab: Lab) -> Findings:
    """Hold the throughput of SIMD and AIMD(1/5, 1/8) against TCP's at each loss rate."""
    losses = lab.pick(LOSSES, (0.001, 0.01, 0.02, 0.05, 0.1, 0.15, 0.3))
    cases = {
        (law, p): random_loss(spec, p)
        for law, spec in (*CURVES.items(), ("TCP", "reno"))
        for p in losses
    }
    runs = lab.run(cases, _throughput, lab.seeds(16, 5))
    over = {
        law: {
            p: [x / tcp for x, tcp in zip(runs[law, p], runs["TCP", p], strict=True)]
            for p in losses
        }
        for law in CURVES
    }
    lowest, highest = losses[0], losses[-1]
    claims: list[Claim] = []
    for law, ratios in over.items():
        dip = min(losses[1:-1], key=lambda p: float(np.mean(ratios[p])))
        rows = ((f"p = {lowest:g}", lowest), (f"p = {highest:g}", highest))
        claims += [
            less(
                f"{law}: the dip (lowest at p = {dip:g}) is below {name}",
                ratios[dip],
                ratios[p],
                published="all the curves have a dip when the loss rate is moderate",
                why=_NO_DIP if law in ("SIMD(1/2)", "SIMD(1/4)") else "",
            )
            for name, p in rows
        ]
        claims += [
            alike(
                f"{law} over TCP at {name}",
                ratios[p],
                published="comparable throughput for very high and low loss rates",
            )
            for name, p in rows
        ]
    simd, aimd = over["SIMD(1/16)"], over["AIMD(1/5, 1/8)"]
    worst = min(losses, key=lambda p: float(np.mean(simd[p])))
    seeds = range(len(simd[lowest]))
    claims += [
        at_least(
            f"SIMD(1/16) over TCP at {name}",
            0.75,
            simd[p],
            published="in the worst case (loss rate around 15 %) at least 75 %",
            why=_DIP,
        )
        for name, p in (("p = 0.15", 0.15), (f"its worst, p = {worst:g}", worst))
    ]
    claims.append(
        number(
            "loss rate at which SIMD(1/16) is worst",
            "≈0.15",
            [min(losses, key=lambda p: simd[p][seed]) for seed in seeds],
        )
    )
    claims += [
        less(
            f"SIMD(1/16) is worse than {law} at p = 0.15",
            simd[0.15],
            over[law][0.15],
            published="the worst among all the SIMD algorithms considered",
        )
        for law in ("SIMD(1/8)", "SIMD(1/4)", "SIMD(1/2)")
    ]
    claims += [
        less(
            f"AIMD(1/5, 1/8) is below SIMD(1/16) at {name}",
            aimd[p],
            simd[p],
            published="SIMD(1/16) performs much closer to standard TCP than AIMD(1/5, 1/8)",
        )
        for name, p in (("p = 0.15", 0.15), (f"SIMD's worst, p = {worst:g}", worst))
    ]
    claims.append(
        less(
            "mean distance from TCP over all loss rates: SIMD(1/16) against AIMD(1/5, 1/8)",
            [float(np.mean([abs(simd[p][seed] - 1) for p in losses])) for seed in seeds],
            [float(np.mean([abs(aimd[p][seed] - 1) for p in losses])) for seed in seeds],
            published="SIMD(1/16) performs much closer to standard TCP than AIMD(1/5, 1/8)",
        )
    )
    claims += [
        alike(
            f"SIMD(1/16) over TCP at p = {p:g}",
            simd[p],
            published="TCP-friendly where the loss rate is less than 5 %",
        )
        for p in losses
        if lowest < p < 0.05
    ]
    grid = np.geomspace(lowest, highest, 121)
    by_formula = {
        rto: np.asarray(simd_eq8(grid, 0.1, rto, 1 / 5, 1 / 8, 128))
        / np.asarray(simd_eq8(grid, 0.1, rto, max_window=128))
        for rto in (0.2, 0.4)
    }
    dips = {rto: float(grid[np.argmin(y)]) for rto, y in by_formula.items()}
    claims.append(
        fact(
            "Eq. 8 for AIMD(1/5, 1/8) over Eq. 8 for TCP has a dip between the ends",
            "; ".join(
                f"T₀ = {rto:g} s: {y.min():.2f} at p = {dips[rto]:.2g}"
                for rto, y in by_formula.items()
            ),
            "holds if the lowest value lies inside of 0.001 to 0.3 and below both ends",
            holds=all(0 < np.argmin(y) < grid.size - 1 for y in by_formula.values()),
            published="the TCP-friendly equation can reveal one possible explanation",
        )
    )
    curves = [
        Curve.of_means(law, losses, [ratios[p] for p in losses]) for law, ratios in over.items()
    ]
    curves += [
        Curve(f"Eq. 8, AIMD(1/5, 1/8), T₀ = {rto:g} s", grid, y, color=4 + i, dashed=True)
        for i, (rto, y) in enumerate(by_formula.items())
    ]
    curves.append(Curve("SIMD(1/16): at least", [0.15], [0.75], kind="published"))
    figure = Figure(
        "fig-5",
        "TCP-friendliness",
        [
            Panel(
                "packet loss rate p",
                "throughput over TCP's",
                curves,
                x_log=True,
                y_limits=(0.0, 1.4),
            )
        ],
        columns=1,
    )
    return Findings(
        claims,
        [figure],
        varied="the law, the loss rate p",
        inferred=[
            (
                "The round-trip time is not given: 0.1 s as in section 5.2. The β of the SIMD "
                "curves other than 1/16 are lost: 1/8, 1/4 and 1/2 are drawn."
            ),
        ],
    )


@exhibit("fig-6", "SIMD against TCP, RED with ECN", cost=13.5)
def fig_6(lab: Lab) -> Findings:
    """Share a RED queue that marks."""
    queue = "RED with ECN"
    runs = compatibility.run(lab, queue)
    figure, table = compatibility.draw("fig-6", queue, runs)
    return Findings(
        compatibility.near_tcp(queue, runs),
        [figure],
        [table],
        varied="the rate, the number of flows",
        inferred=compatibility.INFERRED,
    )


@exhibit("fig-7", "SIMD against TCP, RED without ECN", cost=14)
def fig_7(lab: Lab) -> Findings:
    """Share a RED queue that drops."""
    queue = "RED"
    runs = compatibility.run(lab, queue)
    figure, table = compatibility.draw("fig-7", queue, runs)
    return Findings(
        compatibility.near_tcp(queue, runs) + compatibility.long_epochs(runs),
        [figure],
        [table],
        varied="the rate, the number of flows",
        inferred=compatibility.INFERRED,
    )


@exhibit("fig-8", "SIMD against TCP, DropTail", cost=13, beside="fig-7")
def fig_8(lab: Lab) -> Findings:
    """Share a DropTail queue, and hold it against RED."""
    queue = "DropTail"
    runs = compatibility.run(lab, queue)
    figure, table = compatibility.draw("fig-8", queue, runs)
    return Findings(
        compatibility.near_tcp(queue, runs) + compatibility.against_red(lab, runs),
        [figure],
        [table],
        varied="the rate, the number of flows",
        inferred=compatibility.INFERRED,
    )


@exhibit("fig-10", "Convergence to fairness, with Table 3, experiment 1", cost=21)
def fig_10(lab: Lab) -> Findings:
    """Let two flows share a link that was one's alone."""
    runs = convergence.run(lab, 1)
    figure, table = convergence.compare(1, runs)
    return Findings(
        convergence.fairness_claims(runs),
        [
            convergence.draw("fig-10", "Two flows converge to fair share of bandwidth", runs),
            figure,
        ],
        [table],
        varied="the law of all flows",
        inferred=convergence.INFERRED,
    )


@exhibit("fig-11", "Convergence to efficiency, with Table 3, experiment 2", cost=19.5)
def fig_11(lab: Lab) -> Findings:
    """Let two flows fill a link that was shared by others."""
    runs = convergence.run(lab, 2)
    figure, table = convergence.compare(2, runs)
    return Findings(
        convergence.efficiency_claims(runs),
        [
            convergence.draw("fig-11", "Two flows converge to efficient use of bandwidth", runs),
            figure,
        ],
        [table],
        varied="the law of all flows",
        inferred=convergence.INFERRED,
    )


@exhibit("tfrc", "SIMD against an equation-based scheme, TFRC", cost=15, new=True)
def tfrc(lab: Lab) -> Findings:
    """Compare smoothness, fairness with TCP and answers to sudden changes."""
    claims, figure, table = simd_tfrc.findings(lab)
    return Findings(
        claims,
        [figure],
        [table],
        varied="the law, the number of flows; the network of the sudden change",
        inferred=simd_tfrc.INFERRED,
    )
