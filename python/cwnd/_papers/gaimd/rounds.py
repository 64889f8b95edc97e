"""Section 2.2 of the GAIMD paper: its assumptions in a Monte Carlo, and the formula beside it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel
from cwnd._papers.gaimd import networks as net
from cwnd._papers.grades import alike, at_least, at_most
from cwnd.model.throughput import gaimd_td, gaimd_to

if TYPE_CHECKING:
    from cwnd._papers.gaimd.networks import Pair
    from cwnd.model.checks import Array

RUNS, FLOWS, ROUNDS = 8, 40, 1500
"""Independent runs, flows of each, and rounds of a flow, the first quarter of which is omitted."""

MAX_DOUBLINGS = 6
"""Doublings of the timeout: up to 64 T₀."""


class Totals(NamedTuple):
    """Totals over the flows, by case and run."""

    sent: Array  # packets
    lost: Array
    cuts: Array  # window reductions: one for each timeout
    rounds: Array
    waits: Array  # time in timeouts, in T₀

    def rate(self, rtt: float, rto: float) -> Array:
        """Return packets per second."""
        return self.sent / (self.rounds * rtt + self.waits * rto)


@cache
def play(
    cases: tuple[tuple[Pair, float], ...],
    *,
    slow_start: bool = False,
    timeouts: bool = True,
    seed: int = 1,
) -> Totals:
    """Simulate flows of each law and loss rate p under the assumptions of section 2.2.

    A round sends the window, a fraction of a packet with its probability. Each packet is lost with
    probability p until the first loss, and then the rest of the round is lost. The packets before
    the loss release as many in a last round, with losses of its own. Fewer than three of these that
    arrive are a timeout, after which a packet is sent until one arrives. Either way the window is
    then β of its size, and at least one packet: there is no slow start. With ``slow_start`` the
    window after a timeout is one packet, and doubles in each round up to half of its former size.
    Without ``timeouts`` three duplicate acknowledgements always indicate the loss.
    """
    random = np.random.default_rng(seed)
    shape = (len(cases), RUNS, FLOWS)
    alpha, kept, p = (
        np.array(of)[:, None, None] for of in zip(*((*law, p) for law, p in cases), strict=True)
    )
    window = np.maximum(np.sqrt(alpha * (1 + kept) / (2 * (1 - kept) * p)), 1) * np.ones(shape)
    threshold = np.zeros(shape)
    totals = np.zeros((5, *shape))
    for step in range(ROUNDS):
        size = np.floor(window + random.random(shape))
        before = np.minimum(random.geometric(p, shape) - 1, size)
        loss = before < size
        arrived = np.minimum(random.geometric(p, shape) - 1, before)
        expired = loss & (arrived < 3) & timeouts
        tries = np.where(expired, random.geometric(1 - p, shape), 0)
        doubled = np.minimum(tries, MAX_DOUBLINGS + 1)
        waits = 2.0**doubled - 1 + 2.0**MAX_DOUBLINGS * (tries - doubled)
        if step >= ROUNDS // 4:
            totals += (
                size + loss * before + tries,
                loss * (size - arrived) + np.maximum(tries - 1, 0),
                np.where(expired, tries, loss),
                1 + loss,
                waits,
            )
        if slow_start:
            threshold = np.where(loss, np.where(expired, window / 2, 0), threshold)
        grown = np.where(window < threshold, np.minimum(2 * window, threshold), window + alpha)
        after = np.where(slow_start & expired, 1, np.maximum(kept * window, 1))
        window = np.where(loss, after, grown)
    return Totals(*totals.sum(axis=-1))


def back_offs(p: Array) -> Array:
    """Mean time of a timeout with its back-offs, in T₀: Eq. 2 has 1 + 32p² for it (Padhye et al.).

    Examples
    --------
    >>> back_offs(np.array([0.1, 0.2])).round(2).tolist()
    [1.25, 1.66]
    """
    return (1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6) / (1 - p)


@exhibit("section-2.2", cost=0.5, new=True)
def section_2_2(lab: Lab) -> None:
    """Compare Eq. 2 with a Monte Carlo of its own assumptions."""
    rtt, rto = 0.2, 0.5
    losses = (0.01, 0.02, 0.05, 0.1, 0.2)
    exact = lab.option("back-offs", "1 + 32p²") == "exact"
    laws: dict[str, Pair] = {"GAIMD": net.SMOOTH, "Reno": net.TCP}
    cases = [(law, p) for law in laws for p in losses]
    start = lab.option("start", "none") == "slow"
    played = tuple((laws[law], p) for law, p in cases)
    found = play(played, slow_start=start)
    only = play(played, timeouts=False).rate(rtt, rto)
    panels = []
    for law, pair in laws.items():
        here = [at for at, case in enumerate(cases) if case[0] == law]
        seen = Totals(*(total[here] for total in found))
        rate, given = seen.rate(rtt, rto), {"alpha": pair[0], "beta": 1 - pair[1]}
        true = np.array(losses)[:, None]
        counted, lost = seen.cuts / seen.sent, seen.lost / seen.sent
        over = {}
        for name, each in {"true": true, "counted": counted, "lost": lost}.items():
            shorter = back_offs(each) / (1 + 32 * each**2) if exact else 1
            time = gaimd_td(each, rtt, **given) + gaimd_to(each, rto, **given) * shorter
            over[name] = 1 / time / rate
        for name in ("true", "counted"):
            for p, ratio in zip(losses, over[name], strict=True):
                lab.claim(name, alike(ratio, 1), law=law, loss=f"{p:.0%}")
        for p, rates in zip(losses, only[here], strict=True):
            by_td = 1 / np.asarray(gaimd_td(p, rtt, **given))
            lab.claim("td-only", alike(by_td / rates, 1), law=law, loss=f"{p:.0%}")
        lab.claim("lower", at_most(1, (counted / true).max(axis=0)), law=law)
        lab.claim("upper", at_least(1, over["counted"].min(axis=0)), law=law)
        lab.claim("lost", at_most(1, over["lost"].max(axis=0)), law=law)
        panels.append(
            Panel(
                "loss rate p",
                "Eq. 2 over the rate",
                [
                    Curve.of_means(label, losses, over[name])
                    for name, label in (
                        ("true", "p of the model"),
                        ("counted", "window reductions"),
                        ("lost", "packets lost"),
                    )
                ],
                law,
                x_log=True,
                y_limits=(0, 2),
            )
        )
    lab.show(Figure("Eq. 2 and its own assumptions", panels))
