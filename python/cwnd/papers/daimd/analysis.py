"""Claims and figures of the DAIMD paper's analysis, and of its tables of formulas."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cwnd.model import daimd as model
from cwnd.model import daimd_sharing as shared
from cwnd.model.throughput import RESPONSES, udt_response
from cwnd.papers import daimd_measures as read
from cwnd.papers.claims import alike, at_least, at_most, fact, formula, less, number
from cwnd.papers.daimd_networks import STAGES
from cwnd.papers.daimd_notes import why
from cwnd.papers.figure import Curve, Figure, Panel, Table
from cwnd.stats import estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cwnd.papers.claims import Claim
    from cwnd.papers.daimd_measures import Response


def stages() -> list[Claim]:
    """Check Eq. 5 and 10 to 14."""
    losses, capacities = np.logspace(-7, -2, 51), np.logspace(6, 10, 41)
    p, capacity = (grid.ravel() for grid in np.meshgrid(losses, capacities))
    exact = np.asarray(model.equilibrium(p, capacity))
    relative = float(np.max(np.asarray(udt_response(p, capacity))[p <= 1e-3] / exact[p <= 1e-3]))
    bits = np.asarray(model.equilibrium_bps(p, capacity, printed=True))
    ratio = bits / (np.asarray(udt_response(p, capacity)) * model.BITS_PER_SYN)
    wrong = np.mean(
        np.asarray(model.stable_stage(p, capacity, printed=True))
        != np.asarray(model.stable_stage(p, capacity))
    )
    x = np.linspace(0, 1e9 / model.BITS_PER_SYN, 50_001)[1:-1]
    marginal = np.asarray(model.marginal_utility(x, 1e9))
    alpha = np.asarray(model.increase_per_syn(x, 1e9))
    falls = int(np.sum(np.diff(x * alpha + model.BETA * x**2) < 0))
    spans = [
        float(
            (np.asarray(model.stage_end(k, c)) - np.asarray(model.stage_end(k - 1, c)))
            / np.asarray(model.stage_increase(k, c))
        )
        for k in range(1, 6)
        for c in (2e7, 1e8, 3e8, 1e9)
    ]
    return [
        fact(
            "Eq. 5: U' falls strictly, so U is concave",
            f"{np.sum(np.diff(marginal) >= 0)} rises in {x.size} rates on 1 Gb/s",
            "holds if U' falls from each of these rates to the next",
            holds=bool(np.all(np.diff(marginal) < 0)),
        ),
        fact(
            "Footnote 1: xα(x) + βx² rises beyond some rate",
            f"falls {falls} times, at the end of every stage up to the capacity",
            "holds if it rises from each of 49,999 rates on 1 Gb/s to the next beyond the first end"
            " of a stage",
            holds=falls <= 1,
            published="there exists a c such that k'(x) > 0 for x > c",
            why="At the end of a stage α falls to a tenth at once, and xα with it. Stages crowd "
            "towards the capacity: no c below it will do.",
        ),
        fact(
            "Eq. 10: √(α/(βp)) is the equilibrium where α is small beside 1/p",
            f"at most {100 * (relative - 1):.1f} % too high up to p = 10⁻³",
            "holds if the two are within 10 % for p up to 10⁻³ and L from 1 Mb/s to 10 Gb/s",
            holds=relative < 1.1,
            published="approximately",
            why="What has to be small is √(αp/4β), not αp: 15 % at 10 Gb/s and p = 10⁻³. Up to 1 "
            "Gb/s it is 5 %.",
        ),
        fact(
            "Eq. 13 is Eq. 12 in bit/s",
            f"{ratio.mean():.4g} times Eq. 12",
            "holds if they agree to the digits printed",
            holds=bool(np.allclose(ratio, 1, rtol=0.02)),
            published="3.6/SYN · p^-0.5 · 10^((e-k+1)/2)",
            why="3·1500·8/SYN · 10^((e-k-9)/2) = 3.6/SYN · 10^((e-k-1)/2): the sign of the last 1 "
            "is wrong, and the printed rate is ten times too high.",
        ),
        fact(
            "Eq. 14 is the first stage that holds the rate of Eq. 12",
            f"another stage in {100 * wrong:.0f} % of {p.size} pairs of p and L",
            "holds if it is the same stage at every p from 10⁻⁷ to 10⁻² and L from 1 Mb/s to "
            "10 Gb/s",
            holds=bool(wrong == 0),
            published="d = 18/(SYN √p)",
            why="It follows from the inequality above it, which carries the slip of Eq. 13; from "
            "Eq. 12 follows d = 1.8/(SYN √p).",
        ),
        fact(
            "Every stage but the first lasts as long, whatever the capacity",
            f"{min(spans):.6g} to {max(spans):.6g} SYN",
            "holds if stages 1 to 5 last equally long on 20, 100, 300 and 1000 Mb/s",
            holds=bool(np.allclose(spans, spans[0])),
        ),
        formula("Decrease of the rate when the period grows by 1/8", "0.111", 1 - 1 / (1 + 1 / 8)),
    ]


def filling() -> list[Claim]:
    """Check the times to 90 % and those of TCP by their formulas."""
    claims = [
        formula(
            f"s from 0 to 90 % of {mbps:g} Mb/s, by Eq. 15",
            "7.5",
            float(model.time_to_fraction(0.9, mbps * 1e6)),
        )
        for mbps in (1, 10, 25, 100, 200, 622, 1000, 10_000)
    ]
    minutes = [float(model.tcp_recovery_time(rate, 0.2)) / 60 for rate in (1e9, 1e10)]
    return [
        *claims,
        formula("TCP, 200 ms: min to recover to 1 Gb/s", "28", minutes[0]),
        formula("TCP, 200 ms: min to recover to 10 Gb/s (4 h 43 min)", "283", minutes[1]),
    ]


def increases() -> Figure:
    """Draw figures 1 and 2."""
    w = np.geomspace(1, 832, 400)
    big = w[w >= 38]
    curves = [
        Curve("Scalable TCP, as printed", w, read.printed_increase("scalable", w)),
        Curve("HighSpeed TCP", big, read.printed_increase("highspeed", big)),
        Curve("DAIMD on 1 Gb/s", w, model.increase_per_syn(w, 1e9), "steps"),
        Curve("TCP Reno", w, read.printed_increase("reno", w), dashed=True),
    ]
    x = np.linspace(0, 832.5, 2000)
    piecewise = [
        Curve(f"{mbps} Mb/s", rate, model.increase_per_syn(rate, mbps * 1e6), "steps")
        for mbps in (1000, 500, 100)
        for rate in [x[x * model.BITS_PER_SYN < mbps * 1e6]]
    ]
    label = "rate, packets per RTT = SYN = 10 ms"
    step = "increase, packets per RTT"
    return Figure(
        "fig-1",
        "Increases of DAIMD and of TCPs (Fig. 1); UDT's piecewise α(x) (Fig. 2)",
        [
            Panel(label, step, curves, "Figure 1", x_log=True, y_log=True),
            Panel(label, step, piecewise, "Figure 2", y_log=True, y_limits=(1e-5, 3)),
        ],
    )


def climbing(climbs: Mapping[float, read.Climb]) -> Figure:
    """Draw figure 3, the model beside the simulation."""
    t = np.arange(1301) * model.SYN
    curves = []
    for color, (mbps, climbed) in enumerate(climbs.items()):
        x = model.trajectory(t.size - 1, mbps * 1e6) * model.BITS_PER_SYN / 1e6
        curves += [
            Curve(f"{mbps:g} Mb/s", climbed.time, climbed.rates / mbps, color=color),
            Curve("", t, x / mbps, color=color, dashed=True),
        ]
    curves.append(Curve("90 % after 7.5 s", [7.5], [0.9], "published"))
    return Figure(
        "fig-3",
        "Rate of single flows, rate control alone, at 10 ms; dashed: Eq. 15 (Fig. 3)",
        [Panel("time, s", "rate over capacity", curves)],
    )


def friendly() -> list[Claim]:
    """Check Eq. 20 and what section V says of the increase."""
    rtts, capacities = np.logspace(-5, 0, 101), np.logspace(5, 10, 101)
    rtt, capacity = (grid.ravel() for grid in np.meshgrid(rtts, capacities))
    inside = np.asarray(shared.friendly_margin(rtt, capacity)) >= 1
    most = float(np.asarray(shared.friendliness_ratio(rtt, capacity))[inside].max())
    below, above = (float(model.increase_per_syn(0.0, rate)) for rate in (1e8, 1.01e8))
    return [
        fact(
            "Where Eq. 20 holds, UDT gets no more than TCP by Eq. 19",
            f"at most {most:.3f} times TCP's rate",
            "holds if Eq. 19 with k = 0 is at most 1 wherever Eq. 20 holds, from 10 µs to 1 s and "
            "from 100 kb/s to 10 Gb/s",
            holds=most <= 1 + 1e-9,
        ),
        fact(
            "With SYN = RTT it increases by a packet per RTT only above 100 Mb/s",
            f"{below:g} packets at 100 Mb/s, {above:g} at 101 Mb/s",
            "holds if α₀ is below 1 at 100 Mb/s and not at 101 Mb/s",
            holds=below < 1 <= above,
        ),
    ]


def stage_claims(
    law: str, row: str, texts: Sequence[str], found: Sequence[Sequence[float]]
) -> list[Claim]:
    """Hold a row of Table 1 against what a rule did in each stage."""
    claims = []
    for n, (text, values) in enumerate(zip(texts, found, strict=True)):
        name = f"{law}: {row}, {STAGES[n]} s"
        reason = why("table-1", law, "alone" if n in {0, 6} else row)
        if row == "loss" and text == "0":
            # What is printed as 0 is less than the smallest loss printed.
            claims.append(at_most(name, 5e-7, values, published="0", why=reason))
        elif text:
            claims.append(number(name, text, values, why=reason))
    return claims


def worst_stage_claims(law: str, runs: Sequence[Sequence[read.Stage]]) -> list[Claim]:
    """Hold the worst stage of a rule against what the text says of all of Table 1."""
    return [
        at_least(
            f"{law}: FI of the least fair stage",
            0.998,
            [min(s.fi for s in run) for run in runs],
            published="≥ .998: very close to 1",
            why=why("table-1", law, "FI"),
        ),
        at_least(
            f"{law}: EI of the least efficient stage, Mb/s",
            830,
            [min(s.ei for s in run) for run in runs],
            published="≥ 830: all stages achieve good bandwidth utilization",
            why=why("table-1", law, "EI, Mb/s"),
        ),
        at_most(
            f"{law}: RTT of the slowest stage, ms",
            107,
            [max(s.rtt_ms for s in run) for run in runs],
            published="≤ 107: little increase in the RTT",
            why=why("table-1", law, "RTT, ms"),
        ),
        at_most(
            f"{law}: loss of the worst stage",
            1e-3,
            [max(s.loss for s in run) for run in runs],
            published="≤ 10⁻³: a very small loss rate",
            why=why("table-1", law, "loss"),
        ),
    ]


def beside_claims(
    law: str, ratios: Mapping[tuple[str, float, float], Sequence[float]]
) -> list[Claim]:
    """Hold a rule's rate over TCP's against what is said of Fig. 14.

    Parameters
    ----------
    law
        The rule.
    ratios
        By rule, capacity in Mb/s and round-trip time in seconds, one for each run.
    """
    mine = {case[1:]: found for case, found in ratios.items() if case[0] == law}
    capacities, rtts = (list(dict.fromkeys(case[n] for case in mine)) for n in (0, 1))
    five = number(
        f"{law}: rate over TCP's, 1 Gb/s, 100 ms",
        "≈5",
        mine[1000.0, 0.1],
        why=why("fig-14", law, "five"),
    )
    return [
        five,
        *(
            less(
                f"{law}: ratio at {mbps:g} Mb/s, {1e3 * near:g} ms against {1e3 * far:g} ms",
                mine[mbps, near],
                mine[mbps, far],
                published="as the RTT increases, UDT obtains more bandwidth",
                why=why("fig-14", law, "slow" if mbps <= 10 else "fast"),
            )
            for mbps in capacities
            for near, far in pairwise(rtts)
        ),
        *(
            at_most(
                f"{law}: rate over TCP's at {mbps:g} Mb/s, {1e3 * rtt:g} ms, where Eq. 20 holds",
                1.0,
                found,
                published="friendly",
                why=why("fig-14", law, "slow"),
            )
            for (mbps, rtt), found in mine.items()
            if float(shared.friendly_margin(rtt, mbps * 1e6)) >= 1
        ),
        *(
            less(
                f"{law}: ratio at 10 Mb/s against 1 Mb/s, {1e3 * rtt:g} ms",
                mine[10.0, rtt],
                mine[1.0, rtt],
                published="at very low link capacity UDT may take more than at high",
                why=why("fig-14", law, "very slow"),
            )
            for rtt in rtts
        ),
    ]


RESPONSE_TEXTS = {
    "reno": ("1.22 p^-0.5", "-0.5"),
    "scalable": ("0.8 p^-1", "-1.0"),
    "highspeed": ("0.12 p^-0.835", "-0.835"),
    "bic": ("24.65 p^-0.5", "-0.5"),
}
"""Rows of Table 6: the response function and its exponent."""


def tcp_claims(name: str, row: str, runs: Mapping[float, Sequence[Response]]) -> list[Claim]:
    """Hold a TCP's response, increase and decrease against its row of Table 6."""
    printed = {p: float(np.asarray(RESPONSES[row](p))) for p in runs}
    text, exponent = RESPONSE_TEXTS[row]
    reason = why("table-6", "kelly" if name.endswith("published") else row)
    rarest = runs[min(runs)]
    exponents = [slope(runs, seed) for seed in range(len(rarest))]
    if row == "bic":
        largest = [run.largest for run in rarest]
        increase = number(f"{name}: largest increase per RTT, packets", "32", largest)
    else:
        increase = alike(
            f"{name}: increase per RTT over the printed one",
            [run.increase for run in rarest],
            published="the column Increase",
            why=reason,
        )
    return [
        *(
            alike(
                f"{name}: mean window over the printed one at p = {p:g}",
                [run.window / printed[p] for run in found],
                published=text,
                why=reason,
            )
            for p, found in runs.items()
        ),
        number(f"{name}: exponent of p", exponent, exponents, why=reason),
        increase,
        alike(
            f"{name}: decrease over the printed one",
            [run.decrease for run in rarest],
            published="the column Decrease",
        ),
    ]


def slope(runs: Mapping[float, Sequence[Response]], seed: int) -> float:
    """Fit the exponent of p to the mean windows of a seed."""
    windows = [np.log(runs[p][seed].window) for p in runs]
    return float(np.polyfit(np.log(list(runs)), windows, 1)[0])


Paced: TypeAlias = "Mapping[tuple[str, float, float], Sequence[Response]]"
"""Runs by rule, capacity in Mb/s and loss rate."""


def stage_rate(capacity_mbps: float, p: float) -> float:
    """Give the printed response in packets per SYN, in the stage that Eq. 12 and 14 have."""
    stage = model.stable_stage(p, capacity_mbps * 1e6)
    return float(np.asarray(udt_response(p, capacity_mbps * 1e6, stage)))


def paced_claims(law: str, runs: Paced) -> list[Claim]:
    """Hold a rule's response, increase and decrease against UDT's row of Table 6."""
    mine = {case[1:]: run for case, run in runs.items() if case[0] == law}
    claims = [
        alike(
            f"{law}: mean rate over the printed one, {mbps:g} Mb/s, p = {p:g}, "
            f"stage {model.stable_stage(p, mbps * 1e6)}",
            [run.window / stage_rate(mbps, p) for run in found],
            published="3·10^((-k+⌈log L⌉-9)/2) p^-0.5",
            why=why("table-6", "udt", "boundary"),
        )
        for (mbps, p), found in mine.items()
    ]
    middle = mine[100.0, 1e-3]
    return [
        *claims,
        alike(
            f"{law}: increase per SYN over the printed one, 100 Mb/s, p = 0.001",
            [run.increase for run in middle],
            published="10^(⌈log(L - C(x))⌉ - 9)",
        ),
        number(f"{law}: decrease", "0.111", [run.decrease for run in middle]),
    ]


def responses(tcps: Mapping[str, Mapping[float, Sequence[Response]]], paced: Paced) -> Figure:
    """Draw the response functions, as printed and as simulated."""
    p = np.logspace(-5.2, -2.8, 50)
    rows = list(RESPONSE_TEXTS)
    left = [Curve("", p, RESPONSES[row](p), color=n) for n, row in enumerate(rows)]
    for name, runs in tcps.items():
        row = "scalable" if "Scalable" in name else name.removeprefix("TCP ").split()[0].lower()
        color = len(rows) if name.endswith("published") else rows.index(row)
        means = [estimate(r.window for r in runs[loss]).mean for loss in runs]
        left.append(Curve(name, list(runs), means, "points", color=color))
    right = []
    q = np.logspace(-4.2, -2.3, 200)
    for color, mbps in enumerate((100.0, 1000.0)):
        x = np.array([stage_rate(mbps, loss) for loss in q])
        right.append(Curve(f"{mbps:g} Mb/s, printed", q, x, color=color, dashed=True))
    laws = list(dict.fromkeys(law for law, _, _ in paced))
    for color, law in enumerate(laws, 2):
        losses = [loss for name, _, loss in paced if name == law]
        means = [
            estimate(r.window for r in run).mean for case, run in paced.items() if case[0] == law
        ]
        right.append(Curve(law, losses, means, "points", color=color))
    return Figure(
        "table-6",
        "Response functions of Table 6, printed and simulated",
        [
            Panel(
                "loss rate p",
                "mean window, packets",
                left,
                "lines: as printed",
                x_log=True,
                y_log=True,
                y_limits=(0.3, 2e5),
            ),
            Panel("loss rate p", "mean rate, packets per SYN", right, x_log=True, y_log=True),
        ],
    )


def response_table(tcps: Mapping[str, Mapping[float, Sequence[Response]]], paced: Paced) -> Table:
    """List the responses."""
    rows: list[list[str | float]] = []
    for name, runs in tcps.items():
        row = name.split()[0].lower() if not name.startswith("TCP") else "reno"
        for p, found in runs.items():
            printed = float(np.asarray(RESPONSES[row](p)))
            rows.append([name, "", p, printed, estimate(r.window for r in found).mean])
    for (law, mbps, p), found in paced.items():
        simulated = estimate(r.window for r in found).mean
        rows.append([law, mbps, p, stage_rate(mbps, p), simulated])
    heads = ["controller", "capacity, Mb/s", "p", "printed", "simulated"]
    return Table("table-6", "Packets per RTT, or per SYN, at a loss rate", heads, rows)


def misjudgement(ratios: Mapping[float, Sequence[float]]) -> tuple[list[Claim], Figure, Table]:
    """Hold the bounds of section VII against Eq. 4 and against runs.

    Parameters
    ----------
    ratios
        By the relative error ε of the second flow, its rate over the first one's in each run.
    """
    claims = []
    rows: list[list[str | float]] = []
    for error, found in ratios.items():
        bound = float(shared.estimate_error_ratio(error))
        modelled = read.sharing(100.0, 100.0 * (1 + error))
        # An underestimate makes the other flow the faster one.
        larger = found if error > 0 else [1 / ratio for ratio in found]
        solved = modelled if error > 0 else 1 / modelled
        rows.append([error, bound, solved, estimate(larger).mean])
        part = "over" if error > 0 else "under"
        claims.append(
            fact(
                f"Eq. 4: larger rate over the smaller, ε = {error:g}",
                f"{solved:.3f}",
                "holds if it is at most 1 % above the bound",
                holds=solved <= 1.01 * bound,
                published=f"≤ {bound:.4g}",
                why=why("section-7", "model", part),
            )
        )
        text = f"daimd: faster flow's rate over the other's, ε = {error:g}"
        if -0.5 < error < 0:
            claims.append(alike(text, larger, published="≤ 1", why=why("section-7", "daimd", part)))
        else:
            reason = why("section-7", "daimd", part)
            claims.append(at_most(text, bound, larger, published=f"≤ {bound:.4g}", why=reason))
    e = np.concatenate([np.linspace(-0.85, -0.01, 85), np.geomspace(0.01, 8.9, 85)])
    fine = [read.sharing(100.0, 100.0 * (1 + error)) for error in e]
    grown = [m if error > 0 else 1 / m for error, m in zip(e, fine, strict=True)]
    larger_first = [f if error > 0 else [1 / r for r in f] for error, f in ratios.items()]
    curves = [
        Curve("bound, printed", 1 + e, shared.estimate_error_ratio(e), dashed=True),
        Curve("Eq. 4", 1 + e, grown),
        Curve.of_means("daimd", [1 + error for error in ratios], larger_first, "points"),
    ]
    panel = Panel(
        "capacity believed over capacity, 1 + ε",
        "larger rate over the smaller",
        curves,
        x_log=True,
        y_log=True,
    )
    return (
        claims,
        Figure("section-7", "Two flows, one of which misjudges the capacity", [panel]),
        Table("section-7", "Larger rate over the smaller", ["ε", "bound", "Eq. 4", "daimd"], rows),
    )
