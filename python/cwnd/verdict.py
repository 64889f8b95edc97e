"""From figures to words, by one stated rule."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from cwnd.units import format_time

if TYPE_CHECKING:
    from cwnd.records import JsonObject
    from cwnd.stats import Estimate

ALIKE = 5 / 4
"""Two figures are alike when their ratio is between 4/5 and 5/4."""

ROUGHLY = 2.0
"""RFC 5348, section 1: reasonably fair is "generally within a factor of two"."""

RULE = (
    "Two figures count as alike when their ratio is between 4/5 and 5/4. Fair: a flow of the "
    "controller and a flow of the reference that share the network get alike goodput; roughly "
    "fair: within a factor of two (RFC 5348, section 1). Smoother or less smooth: the coefficient "
    "of variation of a flow's throughput, each controller alone, over intervals of about ten "
    "round-trip times. Queue: the mean queueing delay, each controller alone. The word "
    "“probably” says that the 95 % interval over the repeats reaches across a bound."
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison says of one controller.

    Attributes
    ----------
    controller
        Its specification.
    fairness
        ``fair``, ``roughly fair``, ``takes more``, ``yields`` or ``unknown``.
    smoothness
        ``smoother``, ``as smooth``, ``less smooth`` or ``unknown``.
    queue
        ``less queue``, ``as much queue``, ``more queue`` or ``unknown``.
    sentence
        All of it, with the figures.
    """

    controller: str
    fairness: str
    smoothness: str
    queue: str
    sentence: str

    def to_json(self) -> JsonObject:
        """Give the verdict as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a verdict rests on.

    Attributes
    ----------
    share
        Share of a flow against one of the reference on the same network: 1/2 is equal.
    roughness
        Coefficient of variation over that of the reference, each alone.
    queue
        Queueing delay over that of the reference, each alone.
    delay_s
        Mean queueing delay alone, in seconds.
    fill
        That delay as a fraction of the longest possible one.
    limits
        Fraction of the time in which something else than the window kept flows from sending.
    """

    share: Estimate
    roughness: Estimate
    queue: Estimate
    delay_s: Estimate
    fill: float
    limits: dict[str, float]


def judge(controller: str, reference: str, figures: Figures) -> Verdict:
    """Say in words how a controller compares with the reference.

    Parameters
    ----------
    controller, reference
        Their specifications.
    figures
        What was measured.

    Returns
    -------
    Verdict
        By the rule that ``RULE`` states.
    """
    fairness, fair_text = _fairness(reference, figures.share)
    smooth, smooth_sure = _alike(figures.roughness, "smoother", "as smooth", "less smooth")
    queue, queue_sure = _alike(figures.queue, "less queue", "as much queue", "more queue")
    parts = [fair_text]
    if controller == reference:
        parts = [f"the reference against itself: {fair_text}"]
    else:
        if smooth != "unknown":
            parts.append(
                f"{smooth_sure}{smooth} (its rate varies {figures.roughness.mean:.2f} times as "
                "much)"
            )
        if queue != "unknown":
            parts.append(f"{queue_sure}{queue} ({figures.queue.mean:.2f} times the delay)")
    if math.isfinite(figures.delay_s.mean):
        full = (
            f", {100 * figures.fill:.0f} % of a full queue" if math.isfinite(figures.fill) else ""
        )
        parts.append(f"alone it keeps {format_time(figures.delay_s.mean, 3)} of queue{full}")
    sentence = "; ".join(parts) + "."
    for cause, fraction in figures.limits.items():
        sentence += f" Limited by {cause} and not by its window {100 * fraction:.0f} % of the time."
    return Verdict(controller, fairness, smooth, queue, sentence)


def _fairness(reference: str, share: Estimate) -> tuple[str, str]:
    """Judge the share of a controller against the reference."""
    if not math.isfinite(share.mean):
        return "unknown", "its share against the reference is not known"
    alike, roughly = _shares(ALIKE), _shares(ROUGHLY)
    sure = "" if _certain(share, (*alike, *roughly)) else "probably "
    figure = f"share {share.mean:.2f}"
    if share.known:
        figure += f", 95 % interval {max(share.low, 0):.2f} to {min(share.high, 1):.2f}"
    ratio = share.mean / (1 - share.mean) if share.mean < 1 else math.inf
    if alike[0] <= share.mean <= alike[1]:
        return "fair", f"{sure}fair to {reference} ({figure})"
    if roughly[0] <= share.mean <= roughly[1]:
        side = "above" if share.mean > 0.5 else "below"
        return "roughly fair", f"{sure}roughly fair to {reference}, {side} it ({figure})"
    digits = 0 if ratio >= 10 else 2 if ratio < 1 else 1
    got = (
        f"{ratio:.{digits}f} times what {reference} gets" if math.isfinite(ratio) else "everything"
    )
    if share.mean > 0.5:
        return "takes more", f"{sure}not fair to {reference}: it takes {got} ({figure})"
    return "yields", f"{sure}yields to {reference}: it gets {got} ({figure})"


def _alike(ratio: Estimate, less: str, same: str, more: str) -> tuple[str, str]:
    """Put a ratio to the reference into a word, and say whether that is certain."""
    if not math.isfinite(ratio.mean):
        return "unknown", ""
    sure = "" if _certain(ratio, (1 / ALIKE, ALIKE)) else "probably "
    if ratio.mean < 1 / ALIKE:
        return less, sure
    return (more if ratio.mean > ALIKE else same), sure


def _shares(factor: float) -> tuple[float, float]:
    """Give the shares at which one flow gets ``factor`` times what the other gets."""
    return 1 / (1 + factor), factor / (1 + factor)


def _certain(value: Estimate, bounds: tuple[float, ...]) -> bool:
    """Tell whether the whole interval is on one side of each bound."""
    return value.known and all((value.low > b) == (value.high > b) for b in bounds)
