"""TCP-friendly curve of the GAIMD paper, and GAIMD flows sharing links with TCP flows."""

from __future__ import annotations

import numpy as np

from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel
from cwnd._papers.gaimd import networks as net
from cwnd._papers.gaimd.formula import LAWS
from cwnd._papers.gaimd.measures import group, growth, see, see_acks, shares
from cwnd._papers.grades import alike, fact, less
from cwnd.model.friendliness import aimd_alpha, aimd_alpha_timeouts
from cwnd.model.throughput import gaimd, gaimd_to, pftk


@exhibit("alpha-beta", cost=7, seeds=(20, 40), quick=(10, 10))
def alpha_beta(lab: Lab) -> None:
    """Check the α and β of TCP-friendly rates, with the formula and by simulation."""
    lab.number("alpha-smooth", float(aimd_alpha_timeouts(1 / 8)))
    lab.number("alpha-tcp", float(aimd_alpha_timeouts(1 / 2)))
    kept = np.linspace(0.02, 0.98, 97)
    alpha = aimd_alpha_timeouts(1 - kept)
    p, rtt, rto = np.logspace(-3, np.log10(0.2), 60), 0.1, 0.4
    off = np.max(np.abs(gaimd_to(0.05, rto, alpha=alpha, beta=1 - kept) / gaimd_to(0.05, rto) - 1))
    words = f"largest relative difference of TO {off:.1g}"
    lab.claim("timeout-term", fact(words, holds=bool(off < 1e-12)))
    formula = np.asarray(gaimd(p, rtt, rto, alpha=0.31, beta=1 / 8)) / pftk(p, rtt, rto)
    low, high = float(formula.min()), float(formula.max())
    lab.claim("formula", fact(f"{low:.3f} to {high:.3f}", holds=low >= 4 / 5 and high <= 5 / 4))
    losses = lab.pick((0.005, 0.01, 0.02, 0.05, 0.1, 0.2), (0.01, 0.05, 0.2))
    cases = {(law, x): net.lossy(pair, x) for x in losses for law, pair in LAWS.items()}
    runs = lab.run(cases, see)
    alone = {(law, x): group(seen, LAWS[law], net.CLOCK["ns2"]) for (law, x), seen in runs.items()}
    rates = {case: [float(g.rate.mean()) for g in found] for case, found in alone.items()}
    for x in losses:
        lab.claim("random", alike(rates["GAIMD", x], rates["Reno", x]), loss=f"{x:.1%}")
        for law in LAWS:
            eq_2 = [float(g.by_lost.mean()) for g in alone[law, x]]
            lab.claim("eq-2", alike(eq_2, rates[law, x]), law=law, loss=f"{x:.1%}")
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
    ratios = [np.divide(rates["GAIMD", x], rates["Reno", x]) for x in losses]
    rate = Panel(
        "loss rate p",
        "rate of (0.31, 7/8) over TCP's",
        [Curve("Eq. 2", p, formula), Curve.of_means("simulated", losses, ratios, color=1)],
        "The rate under random loss",
        x_log=True,
        y_limits=(0, 1.6),
    )
    lab.show(Figure("The TCP-friendly curve", [relation, rate]))


@exhibit("delayed-acks", cost=7, seeds=(20, 40), quick=(5, 5))
def delayed_acks(lab: Lab) -> None:
    """Compare Eq. 2 with b = 2 and flows whose receivers delay their acknowledgements."""
    losses = lab.pick((0.005, 0.01, 0.02, 0.05, 0.1), (0.01, 0.05))
    cases = {
        (law, x): net.lossy(pair, x, delayed=True) for law, pair in LAWS.items() for x in losses
    }
    clock = net.CLOCK["ns2"]
    mean, rows = lab.option("b", "2") == "mean", {}
    for (law, x), runs in lab.run(cases, see_acks).items():
        b = float(np.mean([per_ack for _, per_ack in runs])) if mean else 2
        found = group([seen for seen, _ in runs], LAWS[law], clock, b=b, by_lost=True)
        lab.claim("eq-2", alike([g.ratio for g in found], 1), law=law, loss=f"{x:.1%}")
        rows[law, x] = [[g.ratio] for g in found]
    lab.means(["", "loss", "Eq. 2 over measured"], rows)
    grown = lab.run(
        {law: net.lossy(pair, 0.001, delayed=True) for law, pair in LAWS.items()}, growth
    )
    for law, each in grown.items():
        lab.number("growth", np.divide(each, LAWS[law][0]), law=law)


@exhibit("friendliness", cost=57, seeds=(8, 16), quick=(6, 6))
def friendliness(lab: Lab) -> None:
    """Run (0.31, 7/8) with Reno and with SACK on DropTail and RED links."""
    sizes = lab.pick((2, 4, 8, 16, 32), (4, 16))
    networks = [(queue, tcp) for tcp in ("Reno", "SACK") for queue in ("DropTail", "RED")]
    sources = int(lab.option("sources", "10"))
    cases = {
        (queue, tcp, n): net.sharing(n, queue, tcp.lower(), sources)
        for queue, tcp in networks
        for n in sizes
    }
    runs = lab.run(cases, shares)
    loads = {
        (queue, tcp, m): net.sharing(16, queue, tcp.lower(), m)
        for queue, tcp in networks
        for m in lab.pick((30, 50, 70), ())
    }
    for (queue, tcp, m), loaded in lab.run(loads, shares).items():
        ratios = [run.ratio for run in loaded]
        lab.claim("load", alike(ratios, 1), queue=queue, tcp=tcp, sources=m)
    share = Panel("flows of each", "sending rate, GAIMD over TCP", y_limits=(0, 1.6))
    spreads = []
    for queue, tcp in networks:
        found = {n: runs[queue, tcp, n] for n in sizes}
        of = {"queue": queue, "tcp": tcp}
        for n in sizes:
            ratios = [run.ratio for run in found[n]]
            lab.claim("rate", alike(ratios, 1), **of, flows=n)
        smooth, rough = (
            {n: [getattr(run, kind) for run in found[n]] for n in sizes}
            for kind in ("gaimd", "tcp")
        )
        means = [np.mean(list(each.values()), axis=0) for each in (smooth, rough)]
        lab.claim("smoother", less(*means), **of)
        name = f"{tcp}, {queue}"
        ratio_runs = [[run.ratio for run in found[n]] for n in sizes]
        share.curves.append(Curve.of_means(name, sizes, ratio_runs))
        curves = [
            Curve.of_means("GAIMD", sizes, smooth.values()),
            Curve.of_means(tcp, sizes, rough.values()),
        ]
        spreads.append(
            Panel("flows of each", "coefficient of variation", curves, name, y_limits=(0, 1.0))
        )
    lab.show(
        Figure("Sending rate of GAIMD(0.31, 7/8) over TCP's", [share]),
        Figure("Fluctuation over ten round-trip times", spreads, name="fluctuation"),
    )
