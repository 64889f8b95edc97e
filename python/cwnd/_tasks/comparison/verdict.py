"""Verdicts on a controller in a comparison, by one stated rule."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from cwnd.units import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._base.records import JsonObject
    from cwnd.stats import Estimate

ALIKE = 5 / 4
"""Two figures are alike if their ratio is between 4/5 and 5/4."""

ROUGHLY = 2.0
"""RFC 5348, section 1: reasonably fair is "generally within a factor of two"."""

RULE = (
    "A verdict is reached when the whole 95 % interval of a figure lies within one verdict's "
    "bounds; otherwise it is undecided, and more repeats may decide it. Fair: a flow of the "
    "controller and a flow of the reference that share the network get goodputs whose ratio is "
    "between 4/5 and 5/4; roughly fair: within a factor of two (RFC 5348, section 1). Smoother or "
    "less smooth: the coefficient of variation of a flow's throughput over intervals of about ten "
    "round-trip times, each controller alone, differs from the reference's by more than that 4/5 "
    "or 5/4. Less or more queue: the same for the mean queueing delay, each controller alone."
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdicts on one controller in a comparison.

    Each word is ``undecided`` if the interval lies within no verdict's bounds, and ``unknown``
    without data.
    """

    controller: str
    fairness: str
    """``fair``, ``roughly fair``, ``takes more``, ``yields``, ``undecided`` or ``unknown``."""
    smoothness: str
    """``smoother``, ``as smooth``, ``less smooth``, ``undecided`` or ``unknown``."""
    queue: str
    """``less queue``, ``as much queue``, ``more queue``, ``undecided`` or ``unknown``."""
    sentence: str
    """The three verdicts as a sentence, with the figures."""

    def to_json(self) -> JsonObject:
        """Return the verdict as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures that the verdicts on one controller depend on."""

    share: Estimate
    """Share of one flow against one flow of the reference on the same network; 1/2 is equal."""
    roughness: Estimate
    """Coefficient of variation divided by the reference's, each alone."""
    queue: Estimate
    """Queueing delay divided by the reference's, each alone."""
    delay_s: Estimate
    """Mean queueing delay alone."""
    fill: float
    """``delay_s`` divided by the largest possible queueing delay."""
    limits: dict[str, float]
    """Fraction of the time for which a limit other than the window applied, by cause."""


def judge(controller: str, reference: str, figures: Figures) -> Verdict:
    """Compare a controller with the reference in words, by `RULE`."""
    fairness, fair_text = _judge_share(reference, figures.share)
    smoothness, smooth_text = _judge_ratio(
        figures.roughness,
        ("smoother", "as smooth", "less smooth"),
        "its rate varies {} times as much",
    )
    queue, queue_text = _judge_ratio(
        figures.queue, ("less queue", "as much queue", "more queue"), "{} times the delay"
    )
    if controller == reference:
        parts = [f"the reference against itself: {fair_text}"]
    else:
        parts = [text for text in (fair_text, smooth_text, queue_text) if text]
    if math.isfinite(figures.delay_s.mean):
        full = (
            f", {100 * figures.fill:.0f} % of a full queue" if math.isfinite(figures.fill) else ""
        )
        parts.append(
            f"alone its mean queueing delay is {format_time(figures.delay_s.mean, 3)}{full}"
        )
    sentence = "; ".join(parts) + "."
    for cause, fraction in figures.limits.items():
        sentence += f" Limited by {cause} and not by its window {100 * fraction:.0f} % of the time."
    return Verdict(controller, fairness, smoothness, queue, sentence)


def _judge_share(reference: str, share: Estimate) -> tuple[str, str]:
    """Judge the share of a controller against the reference."""
    if not math.isfinite(share.mean):
        return "unknown", "its share against the reference is unknown"
    words = ("yields", "roughly fair", "fair", "roughly fair", "takes more")
    bounds = sorted((*_shares(ALIKE), *_shares(ROUGHLY)))
    found = _overlapped_words(share, words, bounds)
    if len(found) != 1:
        figure = f"share {share.mean:.2f} against {reference}{_interval(share)}"
        return "undecided", f"{_undecided(found)} ({figure})"
    figure = f"share {share.mean:.2f}{_interval(share)}"
    word = found[0]
    if word == "fair":
        return word, f"fair to {reference} ({figure})"
    if word == "roughly fair":
        side = "above" if share.mean > 0.5 else "below"
        return word, f"roughly fair to {reference}, {side} it ({figure})"
    ratio = share.mean / (1 - share.mean) if share.mean < 1 else math.inf
    digits = 0 if ratio >= 10 else 2 if ratio < 1 else 1
    got = (
        f"{ratio:.{digits}f} times what {reference} gets" if math.isfinite(ratio) else "everything"
    )
    if word == "takes more":
        return word, f"not fair to {reference}: it takes {got} ({figure})"
    return word, f"yields to {reference}: it gets {got} ({figure})"


def _judge_ratio(ratio: Estimate, words: tuple[str, str, str], figure: str) -> tuple[str, str]:
    """Judge a ratio to the reference: less, alike or more."""
    if not math.isfinite(ratio.mean):
        return "unknown", ""
    found = _overlapped_words(ratio, words, [1 / ALIKE, ALIKE])
    mean = figure.format(f"{ratio.mean:.2f}")
    if len(found) == 1:
        return found[0], f"{found[0]} ({mean})"
    return "undecided", f"{_undecided(found)} ({mean}{_interval(ratio)})"


def _overlapped_words(value: Estimate, words: Sequence[str], bounds: Sequence[float]) -> list[str]:
    """Return the words whose bounds the interval overlaps; none without an interval.

    Word ``i`` covers values from bound ``i - 1`` to bound ``i``, both included.
    """
    if not value.known:
        return []
    spans = list(zip(words, (-math.inf, *bounds), (*bounds, math.inf), strict=True))
    for word, low, high in spans:
        if low <= value.low and value.high <= high:
            return [word]
    return list(dict.fromkeys(w for w, low, high in spans if low < value.high and value.low < high))


def _undecided(words: Sequence[str]) -> str:
    """Name the verdicts that the interval leaves open."""
    if not words:
        return "undecided with one run"
    *others, last = words
    return f"undecided between {', '.join(others)} and {last}"


def _interval(value: Estimate) -> str:
    """Format the interval of a figure, to follow its mean."""
    return f", 95 % interval {value.low:.2f} to {value.high:.2f}" if value.known else ""


def _shares(factor: float) -> tuple[float, float]:
    """Return the shares at which one flow gets ``factor`` times what the other gets."""
    return 1 / (1 + factor), factor / (1 + factor)
