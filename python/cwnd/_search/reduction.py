"""Reduction of a network: what is not needed for its weakness is removed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from cwnd._search.networks import PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cwnd._search.archive import Judge, Samples
    from cwnd._search.objective import Objective
    from cwnd._search.space import Space, Values

KEPT = 0.8
"""Fraction of the size of a weakness that a reduction keeps."""


class Reducer:
    """Reduces networks while the test of the objective fails and most of the size stays."""

    def __init__(
        self,
        judge: Judge,
        space: Space,
        objective: Objective,
        seeds: Sequence[int],
        room: Callable[[int], int],
    ) -> None:
        self._judge, self._space, self._objective = judge, space, objective
        self._seeds, self._room = seeds, room
        self.complete = True

    def reduce(self, values: Values, size: float) -> Values:
        """Return the reduced network of one whose weakness has a size.

        `complete` is false afterwards if the budget ended before.
        """
        self._least = KEPT * size
        values = self._simplify(values, self._targets)
        for digits in (2, 1):
            values = self._simplify(values, partial(self._rounded, digits=digits))
        return values

    def sensitivity(self, values: Values) -> dict[str, tuple[float | None, float | None]]:
        """Return the size of the weakness with each number halved and doubled.

        It is None where the bounds or the kind of number do not allow this.
        """
        asked: list[tuple[str, int, Values]] = []
        for one, value in zip(self._space.parameters, values, strict=True):
            if value is not None and one.axis.sampled is not None:
                for side, factor in enumerate((0.5, 2.0)):
                    changed = one.number(value) * factor
                    if one.axis.sampled.low <= changed <= one.axis.sampled.high:
                        other = one.bounded(changed, 3)
                        if other != value:
                            made = self._space.with_value(values, one.name, other)
                            asked.append((one.name, side, made))
        found: dict[str, list[float | None]] = {name: [None, None] for name, _, _ in asked}
        for (name, side, _), size in zip(
            asked, self._sizes([of for _, _, of in asked]), strict=False
        ):
            found[name][side] = size
        # The budget may end before all are measured.
        return {
            name: (one, two) for name, (one, two) in found.items() if (one, two) != (None, None)
        }

    def _targets(self, values: Values) -> dict[str, Any]:
        """Return the simpler value of each parameter that has one: off or the default."""
        found: dict[str, Any] = {}
        for one, value in zip(self._space.parameters, values, strict=True):
            default = PARAMETERS[one.name].default
            if value is None:
                continue
            if one.off > 0:
                found[one.name] = None
            elif default is not None and value != default and one.allows(default):
                found[one.name] = default
        return found

    def _rounded(self, values: Values, *, digits: int) -> dict[str, Any]:
        """Return the values of the parameters that have more digits, with fewer."""
        found = {}
        for one, value in zip(self._space.parameters, values, strict=True):
            if value is None or one.axis.sampled is None or value == PARAMETERS[one.name].default:
                continue
            rounded = one.bounded(one.number(value), digits)
            if rounded != value:
                found[one.name] = rounded
        return found

    def _simplify(self, values: Values, simpler: Callable[[Values], Mapping[str, Any]]) -> Values:
        """Apply as many of the simpler values as the weakness permits (delta debugging)."""
        while targets := simpler(values):
            if self._accepted([self._with(values, targets)]):
                return self._with(values, targets)
            if len(targets) == 1:
                return values
            singles = [self._with(values, {name: target}) for name, target in targets.items()]
            accepted = self._accepted(singles)
            if not accepted:
                return values
            names = [name for name, made in zip(targets, singles, strict=True) if made in accepted]
            # The largest part of these changes that the weakness permits together.
            size = len(names)
            while size > 1:
                together = self._with(values, {name: targets[name] for name in names[:size]})
                if self._accepted([together]):
                    break
                size = (size + 1) // 2 if size > 2 else 1
            values = self._with(values, {name: targets[name] for name in names[:size]})
            if not self.complete:
                return values
        return values

    def _with(self, values: Values, targets: Mapping[str, Any]) -> Values:
        """Return values with others, in the order of the space."""
        for name, target in targets.items():
            if values[self._space.names.index(name)] is not None:
                values = self._space.with_value(values, name, target)
        return values

    def _accepted(self, networks: Sequence[Values]) -> list[Values]:
        """Return the networks that keep the weakness."""
        found = []
        for values, samples in zip(networks, self._samples(networks), strict=False):
            failed = samples.judge(self._objective)[0] == "fails"
            if failed and samples.size(self._objective) >= self._least:
                found.append(values)
        return found

    def _sizes(self, networks: Sequence[Values]) -> list[float]:
        return [samples.size(self._objective) for samples in self._samples(networks)]

    def _samples(self, networks: Sequence[Values]) -> list[Samples]:
        """Measure networks, as many as the budget permits."""
        size = self._room(len(networks))
        if size < len(networks):
            self.complete = False
        return self._judge.measure(networks[:size], self._seeds, [self._objective])
