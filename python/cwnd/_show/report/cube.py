"""The runs of a sweep as arrays, and their means over seeds and axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from cwnd._runs.goodput_limit import range_within
from cwnd._show.sheets import SWEEP_COLUMNS
from cwnd._sweeps.dataset import GOODPUT_LIMIT
from cwnd.stats import estimate
from cwnd.units import parse_rate, parse_size, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt
    import pandas as pd

    from cwnd._base.records import JsonObject
    from cwnd.metrics.catalog import Figure

MAX_NUMBERS = 500_000
"""Largest number of means and bounds on a page: about a megabyte, compressed."""

MAX_POINTS = 2_000
"""Number of grid points on a page that cannot contain all."""

_UNITS = ((parse_rate, "bit/s"), (parse_time, "s"), (parse_size, "B"))


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a sweep."""

    name: str
    """Its path, as in the plan."""
    dimension: int
    """Dimension in the arrays; the axes of a Latin hypercube share one."""
    labels: list[str]
    """Value at each index of the dimension."""
    places: list[float] | None
    """Values as numbers in ``unit``; None if they are not quantities."""
    unit: str
    """``bit/s``, ``s``, ``B`` or empty."""

    def to_json(self) -> JsonObject:
        """Return the axis as plain data."""
        return {
            "name": self.name,
            "dimension": self.dimension,
            "labels": self.labels,
            "places": self.places,
            "unit": self.unit,
        }


class Cube:
    """Metrics of a sweep's runs, by controller, dimensions and seed.

    A dimension is an axis of listed values, or the common one of all axes of a Latin hypercube. The
    attributes ``runs`` and ``failed`` are numbers of runs, of shape (controllers, *shape).
    """

    def __init__(
        self,
        runs: pd.DataFrame,
        axes: Sequence[str],
        sampled: Sequence[str],
        controllers: Sequence[str],
        values: Callable[[str], npt.NDArray[np.float64] | None],
    ) -> None:
        order = np.argsort(runs["point"].to_numpy(), kind="stable")
        listed = [name for name in axes if name not in sampled]
        groups = [[name] for name in listed] + ([list(sampled)] if sampled else [])
        places = []
        self.axes: list[Axis] = []
        for dimension, names in enumerate(groups):
            codes, distinct = _distinct(runs[names], order)
            places.append(codes)
            self.axes += [_axis(name, dimension, distinct[name].tolist()) for name in names]
        self.axes.sort(key=lambda axis: list(axes).index(axis.name))
        self.shape = tuple(int(codes.max()) + 1 for codes in places)
        self.sampled = len(listed) if sampled else None
        self.controllers = list(controllers)
        known = {name: at for at, name in enumerate(self.controllers)}
        at = (runs["controller"].fillna("").map(known).to_numpy(int), *places)
        seeds = np.unique(runs["seed"].to_numpy(), return_inverse=True)[1]
        cells = (len(self.controllers), *self.shape)
        self.runs = np.zeros(cells, int)
        self.failed = np.zeros(cells, int)
        np.add.at(self.runs, at, 1)
        np.add.at(self.failed, at, runs["error"].notna().to_numpy(int))
        self.repeated = bool(seeds.max())
        self._cube = (*cells, int(seeds.max()) + 1)
        self._at = np.ravel_multi_index((*at, seeds), self._cube)
        self._read = values
        self.columns: list[Figure] = [
            column
            for column in SWEEP_COLUMNS
            if (found := values(column.name)) is not None and not np.isnan(found).all()
        ]

    def levels(self) -> tuple[JsonObject, npt.NDArray[np.intp]]:
        """Average over every choice of dimensions, as far as the page has room.

        The levels are by their dimensions, such as ``"0,2"``, with the indices ``at`` each of them
        and, by metric and controller, ``mean``, ``low`` and ``high`` over the seeds and the other
        dimensions: 95 % intervals, None with one seed or without room. The second value has
        the points of the level with all dimensions: all points, unless there are too many.
        """
        every = tuple(range(len(self.shape)))
        total = math.prod(self.shape)
        room = MAX_NUMBERS // (len(self.controllers) * max(len(self.columns), 1))
        each = 3 if self.repeated else 1
        kept = total
        if total * each > room:
            # The points of an incomplete grid are for the table only.
            kept = min(total, MAX_POINTS if self.sampled is None else room // each * 2 // 3)
        points = np.arange(kept) * total // kept
        chosen = [(every, points, self.repeated)]
        room -= kept * each
        for dimensions in sorted(_subsets(every), key=self._cells):
            cells = self._cells(dimensions)
            if cells <= room:
                bounds = self.repeated and 3 * cells <= room
                chosen.append((dimensions, np.arange(cells), bounds))
                room -= 3 * cells if bounds else cells
        levels = {
            _key(dimensions): self._level(dimensions, at, bounds=bounds)
            for dimensions, at, bounds in chosen
        }
        limits = self._values(GOODPUT_LIMIT)
        for column in self.columns:
            values = self._values(column.name)
            for dimensions, at, _ in chosen:
                self._fill(levels[_key(dimensions)], dimensions, at, column, values, limits)
        return levels, points

    def _values(self, name: str) -> npt.NDArray[np.float64]:
        """Return a column of the runs by their place; infinite where the data set lacks it."""
        found = np.full(self._cube, np.nan)
        column = self._read(name)
        found.ravel()[self._at] = math.inf if column is None else column
        return found

    def _cells(self, dimensions: Sequence[int]) -> int:
        """Return the number of cells of a level."""
        return math.prod(self.shape[dimension] for dimension in dimensions)

    def _level(
        self, dimensions: Sequence[int], cells: npt.NDArray[np.intp], *, bounds: bool
    ) -> JsonObject:
        """Return a level without means."""
        left = [self.shape[dimension] for dimension in dimensions]
        at = np.unravel_index(cells, left) if left else ()
        return {
            "at": {str(d): places.tolist() for d, places in zip(dimensions, at, strict=True)},
            "mean": {},
            "low": {} if bounds else None,
            "high": {} if bounds else None,
        }

    def _fill(
        self,
        level: JsonObject,
        dimensions: Sequence[int],
        cells: npt.NDArray[np.intp],
        column: Figure,
        values: npt.NDArray[np.float64],
        limits: npt.NDArray[np.float64],
    ) -> None:
        """Average a metric over the dimensions that do not remain in a level."""
        left = [self.shape[dimension] for dimension in dimensions]

        def by_cell(of_runs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            front = np.moveaxis(of_runs, [1 + d for d in dimensions], range(1, 1 + len(left)))
            flat = front.reshape(len(self.controllers), math.prod(left), -1, front.shape[-1])
            return flat[:, cells]

        found = [
            _estimates(part, column, limit)
            for part, limit in zip(by_cell(values), by_cell(limits), strict=True)
        ]
        for name, numbers in zip(("mean", "low", "high"), zip(*found, strict=True), strict=True):
            if level[name] is not None:
                level[name][column.name] = list(numbers)


def _estimates(
    values: npt.NDArray[np.float64], column: Figure, limits: npt.NDArray[np.float64]
) -> tuple[list[float | None], list[float | None], list[float | None]]:
    """Average values of shape (cells, points, seeds) to means and 95 % intervals of the cells.

    The interval is computed from the means over the points, one for each seed. Points without
    values are omitted, and seeds that lack a value at another point. If no seed remains, the mean
    is that of the points' means and has no interval. ``limits`` are those of goodputs in each run.
    """
    known = np.isfinite(values)
    found = known.sum(axis=2)
    alive = found > 0
    count = alive.sum(axis=1)
    totals = np.where(known, values, 0.0)
    missing = (alive[:, :, None] & ~known).sum(axis=1)
    by_seed = np.where(missing == 0, totals.sum(axis=1) / np.maximum(count, 1)[:, None], np.nan)
    by_seed[count == 0] = np.nan
    by_point = totals.sum(axis=2) / np.maximum(found, 1)
    overall = by_point.sum(axis=1) / np.where(count, count, np.nan)
    means: list[float | None] = []
    lows: list[float | None] = []
    highs: list[float | None] = []
    # The limits of the runs at a point are equal.
    largest = np.where(known, np.nan_to_num(limits, nan=math.inf, posinf=math.inf), 0.0).max(axis=2)
    limit = np.where(count > 0, largest.sum(axis=1) / np.maximum(count, 1), math.inf)
    for mean, seeds, most in zip(overall, by_seed, limit, strict=True):
        by_seeds = estimate(seeds, range_within(column.name, float(most)))
        means.append(_short(by_seeds.mean if by_seeds.n else mean, column.factor))
        lows.append(_short(by_seeds.low, column.factor))
        highs.append(_short(by_seeds.high, column.factor))
    return means, lows, highs


def _short(value: float, factor: float) -> float | None:
    """Round a number to the precision of a page."""
    return float(f"{value * factor:.4g}") if math.isfinite(value) else None


def _distinct(
    columns: pd.DataFrame, order: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.intp], pd.DataFrame]:
    """Return the index of each row among the distinct rows, and the distinct rows.

    Numbers are sorted; other values keep the given order.
    """
    names = list(columns.columns)
    # Rows of equal values have one number, which needs less memory than a join.
    numbers = columns.groupby(names, sort=False, dropna=False).ngroup().to_numpy()
    _, first = np.unique(numbers[order], return_index=True)
    places = order[np.sort(first)]
    distinct = columns.iloc[places].reset_index(drop=True)
    if len(names) == 1:
        quantities = _places(distinct[names[0]].tolist())[0]
        if quantities is not None:
            sorting = np.argsort(quantities, kind="stable")
            places, distinct = places[sorting], distinct.iloc[sorting].reset_index(drop=True)
    index = np.empty(len(places), np.intp)
    index[numbers[places]] = np.arange(len(places))
    return index[numbers], distinct


def _axis(name: str, dimension: int, values: list[object]) -> Axis:
    """Describe an axis."""
    places, unit = _places(values)
    return Axis(name, dimension, [label(value) for value in values], places, unit)


def label(value: object) -> str:
    """Format a value of an axis.

    Examples
    --------
    >>> label(True), label(2e6), label("20p")
    ('true', '2000000', '20p')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return np.format_float_positional(value, precision=6, fractional=False, trim="-")
    return str(value)


def _places(values: Sequence[object]) -> tuple[list[float] | None, str]:
    """Parse values as numbers with a unit; None if they are not quantities.

    Examples
    --------
    >>> _places(["1mbit", "500kbit"])
    ([1000000.0, 500000.0], 'bit/s')
    >>> _places(["red", "droptail"])
    (None, '')
    """
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return [float(str(value)) for value in values], ""
    texts = [value for value in values if isinstance(value, str)]
    for read, unit in _UNITS:
        try:
            if len(texts) == len(values):
                return [float(read(text)) for text in texts], unit
        except ValueError:
            continue
    return None, ""


def _subsets(dimensions: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Return the proper subsets of some dimensions."""
    for size in range(len(dimensions)):
        yield from combinations(dimensions, size)


def _key(dimensions: Sequence[int]) -> str:
    """Return the name of a level."""
    return ",".join(map(str, dimensions))
