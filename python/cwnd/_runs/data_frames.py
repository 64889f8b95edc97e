"""Frames that display their main columns and contain all."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Sequence

FLOWS = (
    *("controller", "measured", "goodput_bps", "packets_sent", "retransmissions"),
    *("loss_rate", "cuts", "timeouts", "mean_rtt_s", "mean_window"),
)
"""Displayed columns of `Result.flows`."""

LINKS = (
    *("rate_bps", "utilization", "arrivals", "drops", "marks"),
    *("loss_rate", "mean_queue", "queue_limit", "queue_delay_mean_s", "queue_delay_p95_s"),
)
"""Displayed columns of `Result.links`."""

FIGURES = (
    *("share", "goodput_bps", "reference_goodput_bps", "utilization", "loss_rate"),
    *("queue_delay_s", "cov_10rtt", "jain", "retransmission_rate", "mean_window"),
    *("queue_delay_p95_s", "mean_rtt_s"),
)
"""Displayed figures of `Comparison.alone` and `Comparison.against`, as far as they exist."""

MAX_COLUMNS = 10
"""Largest number of displayed columns."""


class Frame(pd.DataFrame):
    """A pandas frame that displays only some of its columns.

    Only the display differs from pandas; indexing returns a plain frame. Columns of two levels, a
    figure and its ``mean``, ``low`` and ``high``, are displayed as one column per figure.

    Examples
    --------
    >>> frame = show_columns(pd.DataFrame({"a": [1], "b": [2], "c": [3]}), ["c", "a"])
    >>> print(frame)
       c  a
    0  3  1
    2 of 3 columns are shown; .columns lists all.
    >>> list(frame.columns), type(frame[["a", "b"]]).__name__
    (['a', 'b', 'c'], 'DataFrame')
    """

    _metadata: ClassVar[list[str]] = ["_shown"]
    _shown: Sequence[str] = ()

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def _view(self) -> pd.DataFrame:
        """Return the displayed part."""
        if self.columns.nlevels == 1:
            return self[list(self._shown)]
        texts = {
            name: _texts(*(self[name, part] for part in ("mean", "low", "high")))
            for name in self._shown
        }
        return pd.DataFrame(texts, index=self.index)

    def _note(self, view: pd.DataFrame) -> str:
        names = self.columns.get_level_values(0).unique()
        kind = "columns" if self.columns.nlevels == 1 else "figures"
        return f"{view.shape[1]} of {len(names)} {kind} are shown; .columns lists all."

    def __repr__(self) -> str:
        view = self._view()
        text = view.to_string(max_rows=60, line_width=pd.get_option("display.width"))
        return f"{text}\n{self._note(view)}"

    def _repr_html_(self) -> str:
        view = self._view()
        return f"{view.to_html(max_rows=60, notebook=True)}<p>{self._note(view)}</p>"


def show_columns(frame: pd.DataFrame, names: Sequence[str]) -> Frame:
    """Choose the displayed columns, or figures, of a frame: the first `MAX_COLUMNS` that exist."""
    known = frame.columns.get_level_values(0)
    made = Frame(frame)
    made._shown = [name for name in names if name in known][:MAX_COLUMNS]  # noqa: SLF001
    return made


def _texts(mean: pd.Series[float], low: pd.Series[float], high: pd.Series[float]) -> list[str]:
    """Format means with their intervals."""
    return [
        f"{m:.4g} [{lower:.4g}, {upper:.4g}]" if np.isfinite(lower) else f"{m:.4g}"
        for m, lower, upper in zip(mean, low, high, strict=True)
    ]
