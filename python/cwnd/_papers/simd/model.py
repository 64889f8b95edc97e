"""Section 4 of the SIMD paper: closed forms compared with the laws in the synchronous model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cwnd._papers.exhibit import Lab, exhibit
from cwnd._papers.figure import Curve, Figure, Panel, Regions
from cwnd._papers.grades import fact
from cwnd._papers.simd.networks import LAWS
from cwnd.model import synchronous
from cwnd.model.synchronous import (
    BETAS,
    contraction,
    epoch_length,
    epoch_sum,
    fairness_epochs,
    simd_fairer,
    table1,
)

if TYPE_CHECKING:
    from cwnd.model.synchronous import Name

NAMES: dict[str, Name] = {"TCP": "tcp", "AIMD": "aimd", "IIAD": "iiad", "SIMD": "simd"}
"""Names of the laws in `cwnd.model.synchronous`, by the paper's names."""

SYNCHRONOUS = {**LAWS, "AIMD": "friendly(beta=1/16)"}
"""The laws of Table 1: AIMD with α = 3β/(2 - β)."""

POINTS = ((5.0, 15.0), (10.0, 30.0), (5.0, 60.0), (20.0, 30.0), (10.0, 70.0), (30.0, 60.0))
"""Starting points (W₁, W₂) in packets, for W = 100."""

W, NEAR = 100.0, 1.0
"""The paper's W and ε of Figure 4c, in packets."""


@exhibit("fig-3", cost=0.1)
def fig_3(lab: Lab) -> None:
    """Follow the fairness index of two flows in increases and decreases."""
    panels = []
    for law in ("AIMD", "SIMD"):
        improved, kept, curves = [], [], []
        for point in POINTS:
            run = synchronous.trajectory(SYNCHRONOUS[law], point, W, 1000)
            before = _index(run.windows[run.losses])
            after = _index(run.after[run.losses])
            began = np.concatenate([_index(run.windows[:1]), after[:-1]])
            improved.append(before < began)
            kept.append(np.abs(after / before - 1) < 1e-9)
            curves.append(Curve("", *run.windows.T))
        for key, found in (("increase", improved), ("decrease", kept)):
            good = np.concatenate(found)
            words = f"in {np.count_nonzero(good)} of {good.size} epochs"
            lab.claim(key, fact(words, holds=bool(good.all())), law=law)
        curves.append(Curve("efficiency line", [0.0, W], [W, 0.0], dashed=True))
        axes = ("window of flow 1, packets", "window of flow 2, packets")
        panels.append(Panel(*axes, curves, law))
    lab.show(Figure("Windows at the ends of rounds", panels))


def _index(windows: np.ndarray) -> np.ndarray:
    """Return section 4.1's fairness index of two flows for each row."""
    return np.asarray(windows.max(axis=1) / windows.min(axis=1))


@exhibit("fig-4a", cost=2)
def fig_4a(lab: Lab) -> None:
    """Compare the intersections with the efficiency line, from section 4.2 and from the laws."""
    step = lab.pick(0.005, 0.02)
    x1, x2 = _below(np.arange(step / 2, 1, step), 1)
    expected = x1 + x2 > 1 / 3
    w = 1000.0
    delta = {
        law: np.asarray(
            synchronous.convergence(SYNCHRONOUS[law], w * x1, w * x2, w, w, per="round").delta
        )
        for law in ("SIMD", "AIMD")
    }
    # Rounds are discrete: near the line x1 + x2 = 1/3 the laws may be on either side.
    clear = np.abs(x1 + x2 - 1 / 3) > 0.02
    fairer = {"section 4.2": simd_fairer(x1, x2), "laws iterated": delta["SIMD"] < delta["AIMD"]}
    panels = []
    line, third = np.array([0.0, 1.0]), np.linspace(0, 1 / 3, 9)
    for way, mask in fairer.items():
        counted = clear if way == "laws iterated" else np.full(clear.shape, fill_value=True)
        wrong = np.count_nonzero((mask != expected)[counted])
        words = f"{wrong} of {np.count_nonzero(counted)} points differ"
        lab.claim("fairer", fact(words, holds=wrong == 0), way=way)
        curves = [
            Curve("efficiency line", line, 1 - line),
            Curve("x₁ + x₂ = 1/3", third, third[::-1], "published"),
        ]
        regions = _map(x1, x2, mask, ("AIMD fairer", "SIMD fairer"))
        panels.append(Panel("x₁", "x₂", curves, way, regions))
    area = float(expected.mean())
    lab.claim("area", fact(f"{area / (1 - area):.3g} times", holds=area > 2 * (1 - area)))
    lab.show(Figure("Where SIMD reaches the efficiency line at a fairer point", panels))


@exhibit("table-1", cost=1.2)
def table_1(lab: Lab) -> None:
    """Compare T₁, Δ and T₂ of Table 1 with the laws, iterated with synchronous losses."""
    w1, w2 = (np.array(side) for side in zip(*POINTS, strict=True))
    total = {}
    for law, spec in SYNCHRONOUS.items():
        name = NAMES[law]
        form = table1(name, w1, w2, W, NEAR)
        found = synchronous.convergence(spec, w1, w2, W, NEAR)
        t1, delta, t2 = (np.asarray(x) for x in (form.t1, form.delta, form.t2))
        soon, apart, late = (np.asarray(x) for x in (found.t1, found.delta, found.t2))
        total[law] = soon + late
        kept = W / 2 - BETAS[name] if law == "IIAD" else (1 - BETAS[name]) * W / 2
        epoch = float(epoch_length(name, kept, kept))
        summed = np.asarray(epoch_sum(name, (W - delta) / 2, (W + delta) / 2, NEAR))
        # Per claim: the form, the iterated value, and the excess over the tolerance.
        claims = [
            ("t1", t1, soon, np.abs(soon - t1) - 1 - 0.02 * t1),
            ("delta", delta, apart, np.abs(apart - delta) - 2),
        ]
        if law in ("TCP", "AIMD"):
            claims.append(("t2", t2, late, np.abs(late - t2) - epoch - 0.02 * t2))
        else:
            excess = late - t2 - epoch if law == "SIMD" else t2 - late
            claims.append(("upper" if law == "SIMD" else "lower", t2, late, excess))
            claims.append(("sum", summed, late, np.abs(late - summed) - epoch - 0.05 * summed))
        # An epoch is counted as a whole.
        count, needed = np.asarray(found.epochs), np.asarray(fairness_epochs(name, delta, W, NEAR))
        if law == "IIAD":
            claims.append(("least-epochs", needed, count, needed - 1 - count))
        else:
            excess = np.abs(count - needed) - 1 - 0.02 * needed
            claims.append(("epochs", needed, count, excess))
        _appendix(lab, law, spec)
        for key, closed, iterated, excess in claims:
            worst = int(np.argmax(np.where(closed > 0, excess, -np.inf)))
            words = f"at worst {iterated[worst]:.4g} against {closed[worst]:.4g}"
            lab.claim(key, fact(words, holds=bool(excess[worst] <= 0)), law=law)
    share = lab.option("sqrt", "2/3")
    # The geometric mean of what AIMD and IIAD give up of a window of W/2.
    given_up = math.sqrt(BETAS["aimd"] * BETAS["iiad"] / (W / 2))
    beta = BETAS["iiad"] if share == "2/3" else given_up * math.sqrt(W / 2)
    spec = f"binomial(k=0.5, l=0.5, alpha={1.5 * beta:.6g}, beta={beta:.6g})"
    found = synchronous.convergence(spec, w1, w2, W, NEAR)
    root = np.asarray(found.t1) + np.asarray(found.t2)
    low, high = (pick(total["AIMD"], total["IIAD"]) for pick in (np.minimum, np.maximum))
    between = (low <= root) & (root <= high)
    words = f"from {np.count_nonzero(between)} of {between.size} starting points"
    lab.claim("sqrt", fact(words, holds=bool(between.all())))
    lab.show(_draw_forms(lab.pick(45, 15)))


def _appendix(lab: Lab, law: str, spec: str) -> None:
    """Compare an epoch after a loss at (30, 70) and at (40, 60) with appendix A.2."""
    name = NAMES[law]
    shrunk, lasted = [], []
    for small in (30.0, 40.0):
        at = np.array([small, W - small])
        kept = at - BETAS[name] if law == "IIAD" else (1 - BETAS[name]) * at
        run = synchronous.trajectory(spec, [*kept], W, 500)
        first, fourth = run.losses[[0, 3]]
        parts = [np.ptp(run.after[loss]) / np.ptp(kept) for loss in (first, fourth)]
        # Per epoch; rounds are whole, so that single epochs vary.
        shrunk.append((1 - parts[1] ** (1 / 4)) / (1 - float(contraction(name, W))))
        lasted.append(first / float(epoch_length(name, *kept)))
    for key, ratios in (("contraction", shrunk), ("length", lasted)):
        lab.number(key, max(ratios, key=lambda ratio: abs(ratio - 1)), law=law)


def _draw_forms(points: int) -> Figure:
    """Draw T₁ over the sum of the windows, and T₂ over their distance on the line."""
    total, apart = np.linspace(8, W - 4, points), np.linspace(2, 90, points)
    starts = {
        "t1": (total, (total / 4, 3 * total / 4)),
        "t2": (apart, ((W - apart) / 2, (W + apart) / 2)),
    }
    curves: dict[str, list[Curve]] = {key: [] for key in starts}
    for color, (law, spec) in enumerate(SYNCHRONOUS.items()):
        for key, (x, start) in starts.items():
            found = getattr(synchronous.convergence(spec, *start, W, NEAR), key)
            form = getattr(table1(NAMES[law], *start, W, NEAR), key)
            curves[key].append(Curve(law, x, found, color=color))
            curves[key].append(Curve("", x, form, color=color, dashed=True))
    panels = [
        Panel("W₁ + W₂, packets (W₂ = 3 W₁)", "T₁, RTT", curves["t1"], y_log=True),
        Panel("Δ on the efficiency line, packets", "T₂, RTT", curves["t2"], y_log=True),
    ]
    return Figure("Laws iterated (solid) and Table 1 (dashed), W = 100, ε = 1", panels)


SMALL = 12.0
"""Larger window in packets up to which IIAD can arrive at the line with about equal windows."""


@exhibit("fig-4c", cost=2.2)
def fig_4c(lab: Lab) -> None:
    """Compare T₁ + T₂ over the plane, from Table 1 and from the laws."""
    w1, w2 = _below(np.arange(1.0, W, lab.pick(1, 3)), W)
    panels = []
    for way, exact in (("Table 1", False), ("laws iterated", True)):
        found = synchronous.plane(w1, w2, exact=exact)
        faster, slowest = (float(np.mean(x)) for x in (found.simd_faster, found.iiad_slowest))
        lab.claim("faster", fact(f"{100 * faster:.1f} %", holds=faster > 0.5), way=way)
        lab.claim("slowest", fact(f"{100 * slowest:.1f} %", holds=slowest == 1.0), way=way)
        apart = found.iiad_slowest[np.maximum(w1, w2) > SMALL]
        words = f"{np.count_nonzero(apart)} of {apart.size} points"
        lab.claim("apart", fact(words, holds=bool(apart.all())), way=way)
        regions = _map(w1, w2, found.simd_faster, ("AIMD faster", "SIMD faster"))
        panels.append(Panel("W₁, packets", "W₂, packets", title=way, regions=regions))
    lab.show(Figure("SIMD(1/16) against AIMD(1/16), ε = 1, W = 100", panels))


def _below(axis: np.ndarray, most: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the grid points below the efficiency line and away from the fairness line."""
    x, y = (side.ravel() for side in np.meshgrid(axis, axis))
    inside = (x + y < most * (1 - 1e-9)) & (x != y)
    return x[inside], y[inside]


def _map(x: np.ndarray, y: np.ndarray, mask: np.ndarray, names: tuple[str, str]) -> Regions:
    """Arrange grid points as a map of two areas."""
    columns, at_x = np.unique(x, return_inverse=True)
    rows, at_y = np.unique(y, return_inverse=True)
    z = np.full((rows.size, columns.size), np.nan)
    z[at_y, at_x] = mask
    return Regions(columns, rows, z, names)
