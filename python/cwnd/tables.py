"""Tables of a run in Arrow format, and files in Parquet and CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cwnd._base.extras import require
from cwnd._runs.result import dumps, write_text

require("cwnd.tables", "pyarrow")
import pyarrow as pa  # noqa: E402

if TYPE_CHECKING:
    from cwnd import Comparison
    from cwnd._base.records import JsonObject
    from cwnd._runs.result import Result


def samples(result: Result) -> pa.Table:
    """Tabulate the flows' series: one row for each flow and sample.

    Parameters
    ----------
    result
        A run.

    Returns
    -------
    pyarrow.Table
        ``time_s``, ``flow``, ``controller``, ``window`` and ``ssthresh`` in packets, ``rtt_s``,
        ``sent`` and ``delivered`` in packets since the start, and a column for each variable that
        a law exposes (null for flows of laws without it).
    """
    flows = result.record["flows"]
    n = result.time.size
    gauges = sorted({name for flow in flows for name in flow["gauges"]})
    nothing = np.full(n, np.nan)
    columns = {
        "time_s": pa.array(np.tile(result.time, len(flows))),
        "flow": _labels([flow["name"] for flow in flows], n),
        "controller": _labels([flow["controller"] for flow in flows], n),
        "window": _stacked([flow["window"] for flow in flows]),
        "ssthresh": _stacked([flow["ssthresh"] for flow in flows]),
        "rtt_s": _stacked([flow["rtt"] for flow in flows]),
        "sent": _stacked([flow["sent"] for flow in flows]),
        "delivered": _stacked([flow["delivered"] for flow in flows]),
    }
    for name in gauges:
        columns[name] = _stacked([flow["gauges"].get(name, nothing) for flow in flows])
    return pa.table(columns)


def queues(result: Result) -> pa.Table:
    """Tabulate the links' series: one row for each link and sample.

    Parameters
    ----------
    result
        A run.

    Returns
    -------
    pyarrow.Table
        ``time_s``, ``link``, ``queue`` in packets and ``drops`` since the start.
    """
    links = result.record["links"]
    return pa.table(
        {
            "time_s": pa.array(np.tile(result.time, len(links))),
            "link": _labels([link["name"] for link in links], result.time.size),
            "queue": _stacked([link["queue"] for link in links]),
            "drops": _stacked([link["drops_series"] for link in links]),
        }
    )


def cuts(result: Result) -> pa.Table:
    """Tabulate the window reductions of the flows, ordered by time.

    Parameters
    ----------
    result
        A run.

    Returns
    -------
    pyarrow.Table
        ``time_s``, ``flow``, ``controller``, ``cause`` (loss, mark or timeout), the window
        ``before`` and ``after`` in packets.
    """
    flows = result.record["flows"]
    counts = [flow["cuts"]["time"].size for flow in flows]
    table = pa.table(
        {
            "time_s": _stacked([flow["cuts"]["time"] for flow in flows]),
            "flow": _labels([flow["name"] for flow in flows], counts),
            "controller": _labels([flow["controller"] for flow in flows], counts),
            "cause": pa.array([c for f in flows for c in f["cuts"]["cause"]], pa.string()),
            "before": _stacked([flow["cuts"]["before"] for flow in flows]),
            "after": _stacked([flow["cuts"]["after"] for flow in flows]),
        }
    )
    return table.sort_by("time_s")


def write_trace(result: Result, directory: str | Path) -> list[Path]:
    """Write a run's tables as Parquet and CSV, and its figures as JSON.

    Parameters
    ----------
    result
        A run.
    directory
        Output directory; created if missing.

    Returns
    -------
    list of Path
        The files: ``samples``, ``queues``, ``cuts``, ``flows`` and ``links``, each as ``.parquet``
        and as ``.csv``, and ``run.json``.
    """
    tables = {
        "samples": samples(result),
        "queues": queues(result),
        "cuts": cuts(result),
        "flows": pa.Table.from_pandas(result.flows.reset_index(), preserve_index=False),
        "links": pa.Table.from_pandas(result.links.reset_index(), preserve_index=False),
    }
    return _write(Path(directory), tables, "run.json", result.to_json())


def write_comparison(comparison: Comparison, directory: str | Path) -> list[Path]:
    """Write the runs of a comparison as Parquet and CSV, and its figures as JSON.

    Parameters
    ----------
    comparison
        Result of ``compare``.
    directory
        Output directory; created if missing.

    Returns
    -------
    list of Path
        The files: ``runs``, ``flows`` and ``links``, each as ``.parquet`` and as ``.csv``, and
        ``compare.json``. ``runs`` has one row for each controller, mode and repeat with its seed
        and all figures; flows and links refer to it by the number ``run``.
    """
    import pandas as pd

    groups = (("alone", comparison.rows_alone), ("against", comparison.rows_against))
    cases = [
        ({"controller": row.controller, "mode": mode, "repeat": i, "seed": run.seed}, figures, run)
        for mode, rows in groups
        for row in rows
        for i, (figures, run) in enumerate(zip(row.repeats, row.results, strict=True))
    ]
    results = [run for _, _, run in cases]
    flows = pd.concat([run.flows for run in results], keys=range(len(cases)), names=["run"])
    links = pd.concat([run.links for run in results], keys=range(len(cases)), names=["run"])
    runs = pd.DataFrame([case | figures for case, figures, _ in cases])
    runs.insert(0, "run", range(len(cases)))
    frames = {"runs": runs, "flows": flows.reset_index(), "links": links.reset_index()}
    tables = {
        name: pa.Table.from_pandas(frame, preserve_index=False) for name, frame in frames.items()
    }
    return _write(Path(directory), tables, "compare.json", comparison.to_json())


def _write(home: Path, tables: dict[str, pa.Table], name: str, figures: JsonObject) -> list[Path]:
    """Write tables and a JSON document into a directory."""
    from pyarrow import csv, parquet

    home.mkdir(parents=True, exist_ok=True)
    written = []
    for each, table in tables.items():
        parquet.write_table(table, home / f"{each}.parquet", compression="zstd")
        csv.write_csv(table, home / f"{each}.csv")
        written += [home / f"{each}.parquet", home / f"{each}.csv"]
    document = home / name
    write_text(document, dumps(figures) + "\n")
    return [*written, document]


def _stacked(series: list[np.ndarray]) -> pa.Array:
    """Concatenate series into one column, with null for NaN."""
    values = np.concatenate(series) if series else np.empty(0)
    return pa.array(values, mask=np.isnan(values))


def _labels(names: list[str], counts: int | list[int]) -> pa.Array:
    """Repeat each name for its rows, dictionary-encoded."""
    indices = np.repeat(np.arange(len(names), dtype=np.int32), counts)
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string())).cast(pa.string())
