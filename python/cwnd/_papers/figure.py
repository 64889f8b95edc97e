"""Figures and tables as data, without their layout."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from cwnd.stats import POSITIVE, Range, estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt
    from typing_extensions import Self

Kind: TypeAlias = Literal["line", "points", "steps", "published"]
X = TypeVar("X", int, float)


@dataclass(slots=True)
class Curve:
    """A series of a panel."""

    label: str
    """Label in the legend; empty for a curve that is not listed."""
    x: npt.ArrayLike
    """In a panel with ``ticks``, the index of a tick."""
    y: npt.ArrayLike
    kind: Kind = "line"
    """``published`` for values printed in a paper; ``steps`` for a step function."""
    low: npt.ArrayLike | None = None
    high: npt.ArrayLike | None = None
    """``low`` and ``high`` bound each point: a band around a line, error bars at points."""
    color: int | None = None
    """Index of the color; the next one by default."""
    dashed: bool = False

    @classmethod
    def of_means(
        cls,
        label: str,
        x: npt.ArrayLike,
        runs: Iterable[Iterable[float]],
        kind: Kind = "line",
        *,
        within: Range = POSITIVE,
        color: int | None = None,
        dashed: bool = False,
    ) -> Self:
        """Create a curve of means with 95 % intervals, from the values of all runs for each x."""
        found = [estimate(values, within) for values in runs]
        low, high = [e.low for e in found], [e.high for e in found]
        return cls(label, x, [e.mean for e in found], kind, low, high, color, dashed)


def sweep(
    runs: Mapping[tuple[str, X], Iterable[float]], within: Range = POSITIVE, kind: Kind = "line"
) -> list[Curve]:
    """Create a curve of means for each label, from values of runs by label and x."""
    curves = []
    for label in dict.fromkeys(label for label, _ in runs):
        x = [at for name, at in runs if name == label]
        found = [runs[label, at] for at in x]
        curves.append(Curve.of_means(label, x, found, kind, within=within))
    return curves


@dataclass(slots=True)
class Regions:
    """A map: an area, or a value, for each point."""

    x: npt.ArrayLike
    y: npt.ArrayLike
    """``x`` and ``y`` are the centers of the columns and of the rows."""
    z: npt.ArrayLike
    """One row for each y, one column for each x; NaN is left white."""
    names: Sequence[str] = ()
    """Names of the areas 0, 1, …; without them z is a value with a color scale."""
    numbers: bool = False
    """Whether to print the values in the cells."""
    limits: tuple[float, float] | None = None
    """Ends of the color scale; by default those of the values."""


@dataclass(slots=True)
class Panel:
    """One set of axes."""

    x_label: str
    y_label: str
    curves: list[Curve] = field(default_factory=list)
    title: str = ""
    regions: Regions | None = None
    """A map below the curves."""
    x_log: bool = False
    y_log: bool = False
    x_limits: tuple[float, float] | None = None
    y_limits: tuple[float, float] | None = None
    """The limits of both axes are those of the data by default."""
    ticks: Sequence[str] = ()
    y_ticks: Sequence[str] = ()
    """``ticks`` and ``y_ticks`` are labels of categorical axes."""


@dataclass(slots=True)
class Figure:
    """A figure of panels, ``columns`` side by side.

    ``name`` is appended to the exhibit's name in file names; unique within the exhibit.
    """

    title: str
    panels: list[Panel]
    columns: int = 2
    name: str = ""


@dataclass(slots=True)
class Table:
    """A table; ``name`` is as in `Figure`, numbers are shown with four significant digits."""

    name: str
    title: str
    columns: list[str]
    rows: Sequence[Sequence[str | float]]
