"""Applications of flows: files of transfer sizes, and the transfers of a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd.records import FlowRecord, JsonObject, TransfersRecord

_AMOUNT = re.compile(r"\s*[0-9.]+([eE][0-9]+)?\s*[a-zA-Z]*\s*")
"""An amount of data, as opposed to a path."""


def read_sizes(text: str) -> JsonObject:
    """Read a file of transfer sizes.

    Parameters
    ----------
    text
        One line for each size in bytes, all equally probable; or for each point of a cumulative
        distribution a size and its probability, up to 1 or 100 (percent). The last column counts;
        empty lines and lines that begin with ``#`` are skipped.

    Returns
    -------
    dict
        The table ``sizes`` of a scenario.

    Raises
    ------
    ValueError
        A line is something else.

    Examples
    --------
    >>> read_sizes("1000\\n20000")
    {'kind': 'list', 'bytes': [1000, 20000]}
    >>> read_sizes("# a CDF in percent\\n1000 50\\n20000 100")
    {'kind': 'cdf', 'points': [[1000.0, 0.5], [20000.0, 1.0]]}
    """
    rows: list[list[float]] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            rows.append([float(word) for word in words])
        except ValueError:
            rows.append([])
        if len(rows[-1]) not in {1, 2, 3} or len(rows[-1]) != len(rows[0]):
            message = f"line {number}: {line.strip()!r} is neither a size nor a size and its"
            raise ValueError(f"{message} cumulative probability")
    if not rows:
        raise ValueError("there are no sizes")
    if len(rows[0]) == 1:
        return {"kind": "list", "bytes": [round(row[0]) for row in rows]}
    scale = 100.0 if rows[-1][-1] > 1 else 1.0
    return {"kind": "cdf", "points": [[row[0], row[-1] / scale] for row in rows]}


def read_files(flow: JsonObject) -> None:
    """Replace files of sizes in a group of flows by their contents.

    Parameters
    ----------
    flow
        A ``[[flow]]`` table. Paths are relative to the work directory.

    Raises
    ------
    ArgumentError
        A file is missing, or has something else than sizes.
    """
    for table in _tables_with_files(flow):
        path = Path(table["sizes"])
        try:
            table["sizes"] = read_sizes(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            message = f"{str(path)!r} is neither an amount of data such as 100kb nor a file"
            raise ArgumentError("sizes", message) from None
        except ValueError as problem:
            raise ArgumentError("sizes", f"{path}: {problem}") from None


def move_files(flow: JsonObject, home: Path) -> None:
    """Make paths of files relative to ``home`` relative to the work directory.

    Parameters
    ----------
    flow
        A ``[[flow]]`` table.
    home
        The directory that the paths are relative to.

    Examples
    --------
    >>> flow = {"arrivals": {"rate": 10, "sizes": "web.txt"}}
    >>> move_files(flow, Path("runs"))
    >>> flow["arrivals"]["sizes"]
    'runs/web.txt'
    """
    for table in _tables_with_files(flow):
        table["sizes"] = str(home / table["sizes"])


def _tables_with_files(flow: JsonObject) -> Iterator[dict[str, Any]]:
    """Yield the tables of a group of flows whose ``sizes`` is a path."""
    for key in ("arrivals", "source"):
        table = flow.get(key)
        sizes = table.get("sizes") if isinstance(table, dict) else None
        if isinstance(table, dict) and isinstance(sizes, str) and not _AMOUNT.fullmatch(sizes):
            yield table


def transfers(flow: FlowRecord) -> TransfersRecord:
    """Return the transfers of a flow: those of its application, or its one amount of data.

    Parameters
    ----------
    flow
        The record of a flow.

    Returns
    -------
    dict
        Arrays ``begin``, ``bytes`` and ``end``. An endless flow without an application has none.
    """
    if flow["transfers"] is not None:
        return flow["transfers"]
    if flow["bytes"] is None:
        return {"begin": np.empty(0), "bytes": np.empty(0), "end": np.empty(0)}
    return {
        "begin": np.array([flow["start_s"]]),
        "bytes": np.array([float(flow["bytes"])]),
        "end": np.array([flow["completed_s"]]),
    }
