"""Yang and Lam: General AIMD congestion control.

What is left of the text ends in section 2.4: its figures are not known. The paper's β is the
fraction of the window that is KEPT (7/8), and so it is in the names here; the models take the
fraction given up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cwnd.model.friendliness import aimd_alpha, aimd_alpha_timeouts
from cwnd.model.throughput import (
    gaimd,
    gaimd_td,
    gaimd_timeout_probability,
    gaimd_to,
    pftk,
    square_root,
)
from cwnd.papers import gaimd_networks as net
from cwnd.papers.claims import Claim, alike, at_least, fact, formula, less, number
from cwnd.papers.exhibit import Findings, Lab, exhibit
from cwnd.papers.figure import Curve, Figure, Panel, Regions, Table
from cwnd.papers.gaimd_networks import Group
from cwnd.stats import estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd.result import Result

TCP, SMOOTH = (1.0, 0.5), (0.31, 0.875)
"""The pairs of α and β (kept) that are looked at: TCP's, and the paper's choice."""

NS2 = {
    ("DropTail", TCP): {10: 1.16, 30: 1.22, 50: 1.26, 70: 1.31},
    ("DropTail", SMOOTH): {10: 1.73, 30: 1.83, 50: 1.96, 70: 1.97},
    ("RED", TCP): {10: 1.14, 30: 1.18, 50: 1.18, 70: 1.26},
    ("RED", SMOOTH): {10: 1.54, 30: 1.64, 50: 1.74, 70: 1.91},
    ("RED, 0.1 s clock", TCP): {10: 0.92, 30: 1.03, 50: 1.14, 70: 1.31},
    ("RED, 0.1 s clock", SMOOTH): {10: 1.18, 30: 1.29, 50: 1.62, 70: 1.90},
}
"""Rate by the formula over the rate measured, by ns-2 2.35 on the networks of section 2.4."""

Runs: TypeAlias = dict[tuple[str, tuple[float, float], int], list[tuple[Group, Group]]]
"""GAIMD's and Reno's flows, one pair a seed, by network, α and β, and number of sources."""

WHY = {
    "lossy": "At 20 % a flow waits for its timer most of the time, and few packets decide.",
    "10": "ns-2 2.35 has 1.4 to 1.7 % on these networks; how long the queue is is not in the text.",
    "70": (
        "ns-2 2.35 has 5 to 7 % on these networks. 70 sources send 11.7 of the link's 15 Mb/s on "
        "average and the other flows yield: the queue drops 9 % of the packets, and p counts only "
        "window reductions. 30 % is out of reach of what the text says."
    ),
    "q": (
        "More losses end in a timeout than Q has it, since Reno mostly waits for its timer when a "
        "window has lost several packets. At 30 sources on DropTail, where Q is 0.26, it is 0.43 "
        "of the reductions with Reno, 0.30 with NewReno and 0.13 with SACK."
    ),
    "accuracy": (
        "ns-2 2.35 finds the same ratios. The cause is thought to be timeouts: there are more of "
        "them than Q has, and after each the window grows back by α a round-trip time from half of "
        "what it was, whatever β (RFC 5681, and ns-2), which Eq. 2 does not know. For (0.31, 7/8) "
        "and 30 sources on DropTail it is 1.82 with Reno, 1.52 with NewReno, 1.30 with SACK."
    ),
    "clock": (
        "With the 0.1 s clock a flow's own round-trip time is 0.04 s too long, which takes a fifth "
        "off the formula. With the true times it is an upper bound there as well, 1.25."
    ),
    "reno": (
        "ns-2 2.35 has 0.87 to 0.90 on DropTail and 0.84 to 0.93 on RED, with more sources. With "
        "Reno there are more timeouts than Q has, and after each of them (0.31, 7/8) grows back "
        "from half of its window at 0.31 a round-trip time."
    ),
    "sack": (
        "α = 0.31 equals the timeout terms of Eq. 2. SACK repairs losses without timeouts, only "
        "the other term counts, and by it (0.31, 7/8) gets up to 1.25 times TCP's rate: 0.2 would "
        "be friendly there. Why DropTail gives it still more is not known."
    ),
}
"""Why claims do not hold, by what they are about."""


@exhibit("eq-2", "Equations 2 to 4: the sending rate", cost=0.1)
def eq_2(lab: Lab) -> Findings:  # noqa: ARG001
    """Reduce the sending rate to two known formulas."""
    p = np.logspace(-4, np.log10(0.5), 200)
    rtt, rto = 0.1, 0.4
    worst = {
        "square": max(
            float(np.max(np.abs(1 / gaimd_td(p, rtt, b) / square_root(p, rtt, b) - 1)))
            for b in (1, 2)
        ),
        "pftk": max(
            float(np.max(np.abs(gaimd(p, rtt, rto, b) / pftk(p, rtt, rto, b) - 1))) for b in (1, 2)
        ),
    }
    betas, alphas = np.linspace(0.05, 0.95, 19), np.array([0.1, 0.31, 1.0, 2.0])
    # Rates where β (kept) rises along the first axis and α along the second.
    rates = gaimd(0.02, rtt, rto, alpha=alphas[None, :], beta=1 - betas[:, None])
    rises = bool(np.all(np.diff(rates, axis=0) > 0) and np.all(np.diff(rates, axis=1) > 0))
    small = np.array([1e-7, 1e-6])
    powers = [
        float(np.diff(np.log10(term))[0]) for term in (gaimd_td(small, rtt), gaimd_to(small, rto))
    ]
    rule = (
        "holds if the largest relative difference for p from 0.0001 to 0.5 and b = 1, 2 is < 1e-12"
    )
    claims = [
        fact(
            "Eq. 2 without TO, at (1, 1/2), is √(3/(2bp))/RTT",
            f"largest relative difference {worst['square']:.1g}",
            rule,
            holds=worst["square"] < 1e-12,
            published="the formula derived in [16, 17]",
        ),
        fact(
            "Eq. 2 at (1, 1/2) is the formula of Padhye et al.",
            f"largest relative difference {worst['pftk']:.1g}",
            rule,
            holds=worst["pftk"] < 1e-12,
            published="the formula derived in [19]",
        ),
        formula("TD grows with this power of p when p is small", "0.5", powers[0]),
        formula("TO grows with this power of p when p is small", "1.5", powers[1]),
        fact(
            "a larger α or a larger β (kept) gives a higher rate",
            "it does everywhere" if rises else "not everywhere",
            "holds if Eq. 2 rises along every step of a grid, p = 2 %, RTT 0.1 s, T₀ 0.4 s",
            holds=rises,
            published="leading to a higher sending rate",
        ),
    ]
    pairs = {"α 1, β 1/2": (1.0, 0.5), "α 0.31, β 7/8": (0.31, 0.125)}
    loss = "loss rate p"
    parts = Panel(loss, "seconds per packet", title="TD and TO", x_log=True, y_log=True)
    rate = Panel(loss, "packets/s", title="Eq. 2, RTT 0.1 s, T₀ 0.4 s", x_log=True, y_log=True)
    chance = Panel(loss, "Q", title="Q, the probability of a timeout", x_log=True)
    for color, (label, (alpha, beta)) in enumerate(pairs.items()):
        given = {"alpha": alpha, "beta": beta}
        parts.curves += [
            Curve(f"TD, {label}", p, gaimd_td(p, rtt, **given), color=color),
            Curve(f"TO, {label}", p, gaimd_to(p, rto, **given), color=color, dashed=True),
        ]
        rate.curves.append(Curve(label, p, gaimd(p, rtt, rto, **given)))
        chance.curves.append(Curve(label, p, gaimd_timeout_probability(p, **given)))
    return Findings(
        claims, [Figure("eq-2", "The sending rate and its parts", [rate, parts, chance], columns=3)]
    )


@exhibit("alpha-beta", "The abstract's TCP-friendly curve", cost=1)
def alpha_beta(lab: Lab) -> Findings:
    """Relate α and β so that the rate is TCP's, by the formula and by simulation."""
    kept = np.linspace(0.02, 0.98, 97)
    alpha = aimd_alpha_timeouts(1 - kept)
    p, rtt, rto = np.logspace(-3, np.log10(0.2), 60), 0.1, 0.4
    timeouts = np.max(
        np.abs(gaimd_to(0.05, rto, alpha=alpha, beta=1 - kept) / gaimd_to(0.05, rto) - 1)
    )
    by_formula = np.asarray(gaimd(p, rtt, rto, alpha=0.31, beta=1 / 8)) / pftk(p, rtt, rto)
    low, high = float(by_formula.min()), float(by_formula.max())
    losses = lab.pick((0.005, 0.01, 0.02, 0.05, 0.1, 0.2), (0.01, 0.05, 0.2))
    duration = lab.pick(400.0, 150.0)
    laws = {"GAIMD": "gaimd(0.31, 7/8)", "TCP": "reno"}
    cases = {(name, x): net.lossy(law, x, duration) for x in losses for name, law in laws.items()}

    def measure(result: Result) -> float:
        return float(result.measured_flows[0]["packets_sent"])

    sent = lab.run(cases, measure, lab.seeds(8, 4))
    ratios = [np.divide(sent["GAIMD", x], sent["TCP", x]) for x in losses]
    claims = [
        formula("α at β = 7/8", "0.31", float(aimd_alpha_timeouts(1 / 8))),
        formula("α at β = 1/2, TCP's", "1", float(aimd_alpha_timeouts(1 / 2))),
        fact(
            "with α = 4(1 - β²)/3 as much time goes to timeouts as with TCP, whatever β",
            f"largest relative difference of TO {timeouts:.1g}",
            "holds if it is below 1e-12 for β from 0.02 to 0.98",
            holds=float(timeouts) < 1e-12,
            published="α = 4(1 - β²)/3",
        ),
        fact(
            "the rate of (0.31, 7/8) by Eq. 2 over TCP's, p from 0.1 to 20 %",
            f"{low:.3f} to {high:.3f}",
            "holds if it is between 4/5 and 5/4, RTT 0.1 s and T₀ 0.4 s",
            holds=low >= 4 / 5 and high <= 5 / 4,
            published="approximately the same sending rate",
        ),
        *(
            alike(
                f"packets of (0.31, 7/8) over TCP's at random loss of {x:.1%}, each alone",
                ratio,
                published="approximately the same sending rate as a TCP flow under the same path "
                "conditions",
                why=WHY["lossy"],
            )
            for x, ratio in zip(losses, ratios, strict=True)
        ),
    ]
    relation = Panel(
        "β, the fraction kept",
        "α, packets",
        [
            Curve("4(1 - β²)/3, with timeouts", kept, alpha),
            Curve("3(1 - β)/(1 + β), without", kept, aimd_alpha(1 - kept), dashed=True),
            Curve("published", [7 / 8], [0.31], "published"),
        ],
        "TCP-friendly α",
    )
    rate = Panel(
        "loss rate p",
        "rate of (0.31, 7/8) over TCP's",
        [Curve("Eq. 2", p, by_formula), Curve.of_means("simulated", losses, ratios, color=1)],
        "Is it friendly?",
        x_log=True,
        y_limits=(0, 1.6),
    )
    return Findings(
        claims,
        [Figure("alpha-beta", "The TCP-friendly curve", [relation, rate])],
        varied="The law and the loss rate.",
        inferred=[
            (
                "The derivation (section 3) is lost; the relation makes the timeout term of Eq. 2 "
                "TCP's. Of the other term it would be 3(1 - β)/(1 + β), 0.2 at 7/8."
            ),
            "The simulation is ours: one Reno flow on a path of 100 ms with random loss.",
        ],
    )


@exhibit("section-2.4", "Section 2.4: the formula against simulation", cost=25)
def section_2_4(lab: Lab) -> Findings:
    """Hold the formula against 16 + 16 flows among ON/OFF sources."""
    counts = lab.pick((10, 20, 30, 40, 50, 60, 70), (10, 70))
    duration, seeds = lab.pick(120.0, 40.0), lab.seeds(3)
    found: Runs = {}
    for network, (_, conventions) in net.QUEUES.items():
        for pair in (TCP, SMOOTH):
            cases = {m: net.validation(*pair, m, network, duration) for m in counts}
            for m, seen in lab.run(cases, net.see_both, seeds).items():
                found[network, pair, m] = net.both(seen, pair, net.CLOCK[conventions])
    claims: list[Claim] = []
    rates, ratios = [], []
    cells: list[list[str | float]] = []
    for network in net.QUEUES:
        claims += _range_claims(network, found, counts)
        for pair in (TCP, SMOOTH):
            groups = {m: [g for g, _ in found[network, pair, m]] for m in counts}
            claims += _formula_claims(network, pair, groups)
            cells += _formula_rows(network, pair, groups)
        rates.append(_rates_panel(network, found, counts))
        ratios.append(_ratios_panel(network, found, counts))
    heads = ["network", "α, β", "ON/OFF sources", "p, %", "packets/s", "formula, packets/s"]
    heads += ["formula/measured", "ns-2 2.35"]
    grid, claim = _grid(lab, duration, seeds)
    return Findings(
        [*claims, claim],
        [Figure("section-2-4", "Formula and simulation", [*rates, *ratios], columns=3), grid],
        [Table("section-2-4-rows", "GAIMD flows", heads, cells)],
        varied="The number of ON/OFF sources, α and β, the queue and the clock of the flows.",
        inferred=[
            (
                "The queue is in the part of the text that is lost: DropTail with room for 100 "
                "packets, as ns-2 counts them, and RED for 250 with its defaults."
            ),
            (
                "In 2000 ns-2's clock ticked every 0.1 s, which makes timeouts 0.5 s: the third "
                "network has that, with ns-2's other defaults of those years."
            ),
            (
                "The formula is given the round-trip time and the timeout that each flow's own "
                "timer has, as ns-2 prints them. Access links have 0 to 10 ms, flows start within "
                "10 s."
            ),
            *([f"{duration:g} s instead of 120, to be quick."] if lab.quick else []),
        ],
    )


@exhibit("friendliness", "The abstract: GAIMD beside TCP", cost=10)
def friendliness(lab: Lab) -> Findings:
    """Let (0.31, 7/8) share DropTail and RED links with Reno and with SACK."""
    sizes = lab.pick((2, 4, 8, 16, 32), (4, 16))
    duration, seeds = lab.pick(120.0, 60.0), lab.seeds(6, 5)
    networks = [(queue, tcp) for tcp in ("Reno", "SACK") for queue in ("DropTail", "RED")]
    cases = {
        (queue, tcp, n): net.sharing(n, queue, tcp.lower(), duration)
        for queue, tcp in networks
        for n in sizes
    }
    found = lab.run(cases, net.shares, seeds)
    claims, ratios, spreads = [], [], []
    for queue, tcp in networks:
        name = f"{tcp}, {queue}"
        by_size = np.array([[run.ratio for run in found[queue, tcp, n]] for n in sizes])
        gaimd_cov, tcp_cov = (
            np.array([[getattr(run, kind) for run in found[queue, tcp, n]] for n in sizes])
            for kind in ("gaimd", "tcp")
        )
        far = int(np.argmax(np.abs(np.log(by_size.mean(axis=1)))))
        published = "highly TCP-friendly"
        claims += [
            alike(
                f"{name}: throughput of GAIMD over TCP, mean of the numbers of flows",
                by_size.mean(axis=0),
                published=published,
                why=WHY[tcp.lower()],
            ),
            alike(
                f"{name}: the same with {sizes[far]} flows of each, the farthest from 1",
                by_size[far],
                published=published,
                why=WHY[tcp.lower()],
            ),
            less(
                f"{name}: coefficient of variation of a flow's throughput over 10 round-trip "
                "times, mean of the numbers of flows: GAIMD against TCP",
                gaimd_cov.mean(axis=0),
                tcp_cov.mean(axis=0),
                published="reduced rate fluctuations compared to TCP flows",
            ),
        ]
        ratios.append(Curve.of_means(name, sizes, by_size))
        curves = [Curve.of_means("GAIMD", sizes, gaimd_cov), Curve.of_means("TCP", sizes, tcp_cov)]
        label = "coefficient of variation"
        spreads.append(Panel("flows of each", label, curves, name, y_limits=(0, 1.0)))
    share = Panel("flows of each", "throughput, GAIMD over TCP", ratios, "share", y_limits=(0, 1.6))
    return Findings(
        claims,
        [
            Figure("friendliness", "Throughput of GAIMD(0.31, 7/8) over TCP", [share]),
            Figure("fluctuation", "Fluctuation over ten round-trip times", spreads),
        ],
        varied="The queue, TCP's loss recovery (which GAIMD has as well), and the number of flows.",
        inferred=[
            (
                "The network of these runs is lost with section 4: 15 Mb/s, 50 ms and the queues "
                "of section 2.4 here, with 10 of its ON/OFF sources. Without them a few flows on "
                "DropTail lock each other out: 0.2 to 9 times TCP's throughput, as the seed has it."
            ),
            "GAIMD recovers losses as the TCP beside it. The first sixth of a run is not counted.",
            *([f"{duration:g} s instead of 120, to be quick."] if lab.quick else []),
        ],
    )


def _name(pair: tuple[float, float]) -> str:
    """Write α and β (kept)."""
    return f"({pair[0]:g}, {'7/8' if pair[1] == 0.875 else '1/2' if pair[1] == 0.5 else pair[1]})"


def _range_claims(network: str, found: Runs, counts: Sequence[int]) -> list[Claim]:
    """Claim the range of loss rates, and that Q is how often a timeout finds a loss."""
    claims = []
    for m, printed in ((10, "≈1"), (70, "≈30")):
        loss = [100 * float(reno.loss.mean()) for _, reno in found[network, TCP, m]]
        text = f"{network}: loss rate p with {m} ON/OFF sources, %"
        claims.append(number(text, printed, loss, why=WHY[str(m)]))
    every = [found[network, pair, m] for pair in (TCP, SMOOTH) for m in counts]
    over_q = [[float(g.expiries.mean() / g.likely.mean()) for g, _ in runs] for runs in every]
    claims.append(
        alike(
            f"{network}: timeouts over window reductions, over Q",
            np.mean(over_q, axis=0),
            published="Q approximates the probability of a loss being a timeout",
            why=WHY["q"],
        )
    )
    return claims


def _formula_claims(
    network: str, pair: tuple[float, float], groups: dict[int, list[Group]]
) -> list[Claim]:
    """Claim what section 2.4 says of the formula for one pair on one network."""
    name = f"{network}, {_name(pair)}"
    ratios = np.array([[g.ratio for g in groups[m]] for m in groups])
    claims = [
        alike(
            f"{name}: rate by Eq. 2 over rate measured, mean of the numbers of sources",
            ratios.mean(axis=0),
            published="quite accurate for a loss rate of up to 20%",
            why=WHY["accuracy"],
        ),
        at_least(
            f"{name}: the same, at the number of sources where it is least",
            1.0,
            ratios[int(np.argmin(ratios.mean(axis=1)))],
            published="an upper bound of the sending rate",
            why=WHY["clock"] if "clock" in network else "",
        ),
    ]
    known = NS2[network, pair]
    ours = [
        np.mean([groups[m][k].ratio / known[m] for m in groups if m in known])
        for k in range(ratios.shape[1])
    ]
    text = f"{name}: the same over ns-2 2.35's own"
    printed = "ns-2 2.35: " + ", ".join(f"{known[m]:.2f}" for m in groups if m in known)
    claims.append(alike(text, [float(x) for x in ours], published=printed))
    return claims


def _formula_rows(
    network: str, pair: tuple[float, float], groups: dict[int, list[Group]]
) -> list[list[str | float]]:
    """Put what was found for one pair on one network into a table."""
    rows: list[list[str | float]] = []
    for m, found in groups.items():
        means = [
            float(np.mean([getattr(g, part).mean() for g in found]))
            for part in ("loss", "rate", "formula")
        ]
        ratio = estimate(g.ratio for g in found)
        known = NS2[network, pair].get(m)
        rows.append(
            [
                network,
                _name(pair),
                str(m),
                100 * means[0],
                *means[1:],
                f"{ratio.mean:.2f} ± {ratio.half_width:.2f}",
                "" if known is None else f"{known:.2f}",
            ]
        )
    return rows


def _rates_panel(network: str, found: Runs, counts: Sequence[int]) -> Panel:
    """Draw each flow's rate against its loss rate, and the formula's means."""
    first = [found[network, SMOOTH, m][0] for m in counts]
    loss, rate = (np.concatenate([getattr(g, part) for g, _ in first]) for part in ("loss", "rate"))
    reno = [np.concatenate([getattr(r, part) for _, r in first]) for part in ("loss", "rate")]
    every = [[g for g, _ in found[network, SMOOTH, m]] for m in counts]
    p, predicted = (
        [float(np.mean([getattr(g, part).mean() for g in groups])) for groups in every]
        for part in ("loss", "formula")
    )
    curves = [
        Curve("GAIMD(0.31, 7/8)", 100 * loss, rate, "points", color=0),
        Curve("Reno", 100 * reno[0], reno[1], "points", color=1),
        Curve("GAIMD by Eq. 2", 100 * np.array(p), predicted, color=0, dashed=True),
    ]
    return Panel("p, %", "packets/s", curves, network, y_limits=(0, 110))


def _ratios_panel(network: str, found: Runs, counts: Sequence[int]) -> Panel:
    """Draw the formula's rate over the rate measured, beside ns-2's."""
    curves = []
    for color, pair in enumerate((TCP, SMOOTH)):
        ratios = [[g.ratio for g, _ in found[network, pair, m]] for m in counts]
        known = NS2[network, pair]
        curves.append(Curve.of_means(_name(pair), counts, ratios, color=color))
        label = f"{_name(pair)}, ns-2 2.35"
        curves.append(Curve(label, list(known), list(known.values()), "points", color=color))
    return Panel("ON/OFF sources", "Eq. 2 over measured", curves, network, y_limits=(0, 2.5))


def _grid(lab: Lab, duration: float, seeds: Sequence[int]) -> tuple[Figure, Claim]:
    """Vary α and β widely, with 30 ON/OFF sources and the clock of 2000."""
    network = "RED, 0.1 s clock"
    alphas, kept = lab.pick((0.2, 0.31, 1.0, 2.0), (0.31, 1.0)), (0.5, 0.75, 0.875)
    clock = net.CLOCK[net.QUEUES[network][1]]
    ratios = {}
    for beta in kept:
        for alpha in alphas:
            case = {0: net.validation(alpha, beta, 30, network, duration)}
            seen = [gaimd for gaimd, _ in lab.run(case, net.see_both, seeds)[0]]
            ratios[beta, alpha] = [g.ratio for g in net.group(seen, (alpha, beta), clock)]
    means = {pair: float(np.mean(found)) for pair, found in ratios.items()}
    beta, alpha = max(means, key=lambda pair: abs(np.log(means[pair])))
    claim = alike(
        f"{network}, 30 ON/OFF sources: rate by Eq. 2 over rate measured, for the worst of "
        f"{len(means)} pairs, ({alpha:g}, {beta:g})",
        ratios[beta, alpha],
        published="accurate over a wide range of α and β values",
        why=WHY["accuracy"],
    )
    z = [[means[b, a] for a in alphas] for b in kept]
    x, y = np.arange(len(alphas)), np.arange(len(kept))
    panel = Panel(
        "α, packets",
        "β, the fraction kept",
        title="Eq. 2 over measured",
        regions=Regions(x, y, z, numbers=True),
        ticks=[f"{a:g}" for a in alphas],
        y_ticks=[f"{b:g}" for b in kept],
    )
    return Figure("section-2-4-grid", "A wide range of α and β", [panel]), claim
