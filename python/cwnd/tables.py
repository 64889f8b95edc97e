"""Tables of a run in Arrow format, and files in Parquet and CSV."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cwnd._base.extras import is_csv, require
from cwnd._base.files import replacing, write_text
from cwnd._runs.flow_completion import active_samples
from cwnd._runs.result import Result, dumps
from cwnd.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from cwnd import Comparison
    from cwnd._base.records import FlowRecord, JsonObject, LinkRecord

    Columns: TypeAlias = dict[str, npt.NDArray[Any]]
    """The columns of a table by name: numbers, NaN if unknown, or strings."""


def samples(result: Result) -> pa.Table:
    """Tabulate the flows' series: one row for each flow and sample while the flow is active.

    Parameters
    ----------
    result
        A run.

    Returns
    -------
    pyarrow.Table
        ``time_s``, ``flow``, ``controller``, ``window`` and ``ssthresh`` in packets, ``rtt_s``,
        ``sent`` and ``delivered`` in packets since the start, and a column for each variable that
        a law exposes (null for flows of laws without it). A flow is active from its start to its
        stop, or to the time at which all of its data has arrived.
    """
    return _arrow(_samples(result))


def queues(result: Result) -> pa.Table:
    """Tabulate the series of the links that have a rate or drop packets: one row for each sample.

    Parameters
    ----------
    result
        A run.

    Returns
    -------
    pyarrow.Table
        ``time_s``, ``link``, ``queue`` in packets and ``drops`` since the start. No queue forms at
        a link without a rate.
    """
    return _arrow(_queues(result))


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
    return _arrow(_cuts(result))


def transfers(result: Result) -> pa.Table:
    """Tabulate the transfers of finite flows and of applications: one row each.

    Parameters
    ----------
    result
        A run.

    Returns
    -------
    pyarrow.Table
        ``flow``, ``controller``, ``begin_s``, ``bytes``, ``end_s``, the completion time ``fct_s``
        and the ``slowdown``; the last three are null for an incomplete transfer. Figures are of
        transfers that begin after the warm-up; this table has the others too.
    """
    return _arrow(_transfers(result))


def acks(result: Result) -> pa.Table:
    """Tabulate the acknowledgements that the senders received: one row each.

    Parameters
    ----------
    result
        A run with ``acks=True``.

    Returns
    -------
    pyarrow.Table
        ``time_s``, ``flow``, ``controller``, the ``window`` after the acknowledgement and the
        packets ``in_flight``, ``rtt_s``, and in packets per second the ``pacing_rate`` and the
        ``delivery_rate``. An RTT and a delivery rate are samples, and null without one. The
        periodic reports of a rate law's receiver are rows too, whose ``in_flight`` is null and
        whose delivery rate is the arrival rate.

    Raises
    ------
    ArgumentError
        The run did not record acknowledgements.
    """
    if not _has_acks(result):
        raise ArgumentError("acks", "the run did not record them: run(…, acks=True)")
    return _arrow(_acks(result))


def write_trace(result: Result, directory: str | Path) -> list[Path]:
    """Write a run's tables as Parquet or CSV, and its figures as JSON.

    Parameters
    ----------
    result
        A run.
    directory
        Output directory; created if missing. The tables are CSV files, which need no extra, if its
        name ends in ``.csv``.

    Returns
    -------
    list of Path
        The files: the tables ``samples``, ``queues``, ``cuts``, ``transfers``, ``flows``, ``links``
        and, if they were recorded, ``acks``, as ``.parquet`` or ``.csv``, and ``run.json``, the
        figures without the flows of groups and without the links that ``queues`` does not have.
    """
    tables = {
        "samples": _samples(result),
        "queues": _queues(result),
        "cuts": _cuts(result),
        "transfers": _transfers(result),
        "flows": _columns(result.flow_rows()),
        "links": _columns(result.link_rows()),
        **({"acks": _acks(result)} if _has_acks(result) else {}),
    }
    figures = result.to_json_without_groups()
    shown = {link["name"] for link in _queueing(result)}
    figures["links"] = [link for link in figures["links"] if link["name"] in shown]
    return _write(Path(directory), tables, "run.json", figures)


def write_comparison(comparison: Comparison, directory: str | Path) -> list[Path]:
    """Write the runs of a comparison as Parquet or CSV, and its figures as JSON.

    Parameters
    ----------
    comparison
        Result of ``compare``.
    directory
        Output directory; created if missing. The tables are CSV files, which need no extra, if its
        name ends in ``.csv``.

    Returns
    -------
    list of Path
        The files: the tables ``runs``, ``flows`` and ``links``, as ``.parquet`` or ``.csv``, and
        ``compare.json``. ``runs`` has one row for each controller, mode, other controller and
        repeat, with its seed and all figures; flows and links refer to it by the number ``run``.
    """
    against = [*comparison.rows_against, *comparison.rows_pairs]
    groups = (("alone", comparison.rows_alone), ("against", against))
    cases = [
        (
            {"controller": row.controller, "mode": mode, "against": row.against}
            | {"repeat": i, "seed": run.seed},
            figures,
            run,
        )
        for mode, rows in groups
        for row in rows
        for i, (figures, run) in enumerate(zip(row.repeats, row.results, strict=True))
    ]
    runs: list[JsonObject] = []
    flows: list[JsonObject] = []
    links: list[JsonObject] = []
    for number, (case, figures, run) in enumerate(cases):
        runs.append({"run": number} | case | figures)
        flows += ({"run": number} | row for row in run.flow_rows())
        links += ({"run": number} | row for row in run.link_rows())
    tables = {"runs": _columns(runs), "flows": _columns(flows), "links": _columns(links)}
    return _write(Path(directory), tables, "compare.json", comparison.to_json())


def _samples(result: Result) -> Columns:
    """Return the columns of `samples`."""
    flows = result.record["flows"]
    spans = [active_samples(flow, result.time) for flow in flows]
    sizes = [span.stop - span.start for span in spans]
    nothing = np.full(result.time.size, np.nan)
    gauges = sorted({name for flow in flows for name in flow["gauges"]})

    def stacked(series: Iterable[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        return _stacked(values[span] for values, span in zip(series, spans, strict=True))

    return {
        "time_s": stacked(result.time for _ in flows),
        **_names(flows, sizes),
        "window": stacked(flow["window"] for flow in flows),
        "ssthresh": stacked(flow["ssthresh"] for flow in flows),
        "rtt_s": stacked(flow["rtt"] for flow in flows),
        "sent": stacked(flow["sent"] for flow in flows),
        "delivered": stacked(flow["delivered"] for flow in flows),
    } | {name: stacked(flow["gauges"].get(name, nothing) for flow in flows) for name in gauges}


def _queueing(result: Result) -> list[LinkRecord]:
    """Return the links that have a rate or drop packets."""
    return [
        link
        for link in result.record["links"]
        if math.isfinite(link["rate_bps"]) or link["queue"].any() or link["drops_series"].any()
    ]


def _queues(result: Result) -> Columns:
    """Return the columns of `queues`."""
    links = _queueing(result)
    return {
        "time_s": np.tile(result.time, len(links)),
        "link": _labels([link["name"] for link in links], result.time.size),
        "queue": _stacked(link["queue"] for link in links),
        "drops": _stacked(link["drops_series"] for link in links),
    }


def _cuts(result: Result) -> Columns:
    """Return the columns of `cuts`."""
    flows = result.record["flows"]
    of = [flow["cuts"] for flow in flows]
    columns = {
        "time_s": _stacked(each["time"] for each in of),
        **_names(flows, [each["time"].size for each in of]),
        "cause": np.array([cause for each in of for cause in each["cause"]], dtype=object),
        "before": _stacked(each["before"] for each in of),
        "after": _stacked(each["after"] for each in of),
    }
    order = np.argsort(columns["time_s"], kind="stable")
    return {name: values[order] for name, values in columns.items()}


def _transfers(result: Result) -> Columns:
    """Return the columns of `transfers`."""
    # Without a warm-up, no transfer begins in it.
    whole = Result({**result.record, "warmup_s": 0.0}, scales=result.scales)
    flows = result.record["flows"]
    found = whole.transfers(flows)
    # The transfers of finite flows are before those of applications.
    finite = [flow for flow in flows if flow["transfers"] is None and flow["bytes"] is not None]
    of = [(flow, flow["transfers"]["begin"].size) for flow in flows if flow["transfers"]]
    owners = [*finite, *(flow for flow, _ in of)]
    return {
        **_names(owners, [1] * len(finite) + [size for _, size in of]),
        "begin_s": found.begin,
        "bytes": found.bytes,
        "end_s": found.begin + found.fct,
        "fct_s": found.fct,
        "slowdown": found.slowdown,
    }


def _has_acks(result: Result) -> bool:
    """Test whether a run recorded acknowledgements."""
    return any(flow["acks"] for flow in result.record["flows"])


def _acks(result: Result) -> Columns:
    """Return the columns of `acks`."""
    flows = [flow for flow in result.record["flows"] if flow["acks"]]
    of = [flow["acks"] for flow in flows if flow["acks"]]
    return {
        "time_s": _stacked(each["time"] for each in of),
        **_names(flows, [each["time"].size for each in of]),
        "window": _stacked(each["window"] for each in of),
        "in_flight": _stacked(each["in_flight"] for each in of),
        "rtt_s": _stacked(each["rtt"] for each in of),
        "pacing_rate": _stacked(each["pacing_rate"] for each in of),
        "delivery_rate": _stacked(each["delivery_rate"] for each in of),
    }


def _columns(rows: Sequence[JsonObject]) -> Columns:
    """Return the columns of rows; a value that a row does not have is NaN."""
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name, math.nan) for row in rows]
        columns[name] = np.array(values, dtype=object if isinstance(values[0], str) else None)
    return columns


def _stacked(series: Iterable[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Concatenate series into one column."""
    return np.concatenate([np.empty(0), *series])


def _names(flows: Sequence[FlowRecord], counts: int | Sequence[int]) -> Columns:
    """Return the names and the controllers of flows, repeated for their rows."""
    return {
        "flow": _labels([flow["name"] for flow in flows], counts),
        "controller": _labels([flow["controller"] for flow in flows], counts),
    }


def _labels(names: list[str], counts: int | Sequence[int]) -> npt.NDArray[Any]:
    """Repeat each name for its rows."""
    return np.repeat(np.array(names, dtype=object), np.asarray(counts, dtype=int))


def _arrow(columns: Columns) -> pa.Table:
    """Convert a table to Arrow's format, with null for NaN."""
    require("cwnd.tables", "pyarrow")
    import pyarrow as pa

    return pa.table(
        {
            name: pa.array(
                values, pa.string() if values.dtype == object else None, from_pandas=True
            )
            for name, values in columns.items()
        }
    )


def _write(home: Path, tables: dict[str, Columns], name: str, figures: JsonObject) -> list[Path]:
    """Write tables and a JSON document into a directory."""
    write, suffix = (_write_csv, ".csv") if is_csv(home) else (_write_parquet, ".parquet")
    home.mkdir(parents=True, exist_ok=True)
    written = []
    for each, columns in tables.items():
        path = home / f"{each}{suffix}"
        with replacing(path) as unfinished:
            write(unfinished, columns)
        written.append(path)
    document = home / name
    write_text(document, dumps(figures) + "\n")
    return [*written, document]


def _write_parquet(path: Path, columns: Columns) -> None:
    """Write a table as Parquet."""
    table = _arrow(columns)
    from pyarrow import parquet

    parquet.write_table(table, path, compression="zstd")


def _write_csv(path: Path, columns: Columns) -> None:
    """Write a table as CSV; unknown numbers are empty."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*map(_cells, columns.values()), strict=True))


def _cells(values: npt.NDArray[Any]) -> list[Any]:
    """Return the values of a column of CSV."""
    cells: list[Any] = values.tolist()
    return (
        [None if math.isnan(cell) else cell for cell in cells]
        if values.dtype.kind == "f"
        else cells
    )
