"""Optional dependencies: the package's extras, and the error for a missing one."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

EXTRAS = {
    "plots": ("jinja2", "matplotlib", "pandas", "plotly", "pyarrow"),
    "sweep": ("cloudpickle", "duckdb"),
    "dask": ("distributed",),
}
"""Libraries of each extra. Each extra includes the extras before it."""


class MissingExtraError(ModuleNotFoundError):
    """A library of an extra is not installed; the message names the extra."""


def find_missing(extra: str) -> list[str]:
    """List the modules of an extra that are not installed, without those of the included extras."""
    return [library for library in EXTRAS[extra] if find_spec(library) is None]


def require(feature: str, *libraries: str) -> None:
    """Raise MissingExtraError if a library that a feature needs is not installed.

    ``feature`` is the subject of the message. The libraries are not imported.

    Examples
    --------
    >>> require("--report", "jinja2", "plotly")
    """
    missing = [library for library in libraries if find_spec(library) is None]
    if missing:
        extra = [extra for extra, known in EXTRAS.items() if not set(known).isdisjoint(missing)][-1]
        *first, last = missing
        listed = f"{', '.join(first)} and {last}" if first else last
        raise MissingExtraError(
            f"{feature} needs {listed}: pip install 'cwnd[{extra}]'", name=missing[0]
        )


def is_csv(directory: str | Path) -> bool:
    """Test whether the tables of a directory are CSV files, which need no extra, by its name."""
    return Path(directory).suffix.lower() == ".csv"
