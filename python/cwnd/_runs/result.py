"""Result of one run of a scenario: figures, tables and series."""

from __future__ import annotations

import json
import math
from functools import cached_property
from typing import TYPE_CHECKING, cast

from cwnd import _native, _show, metrics
from cwnd._base.extras import require
from cwnd._base.files import write_text
from cwnd._base.records import FLOW_COUNTERS, LINK_COUNTERS
from cwnd._runs.flow_completion import RunTransfers, transfers_of
from cwnd._runs.flow_groups import first_kind, group_flows
from cwnd.units import counted, format_rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

    from cwnd._base.records import FlowRecord, JsonObject, LinkRecord, RunRecord, Series
    from cwnd._runs.expect import Outcome


class Result:
    """One run of a scenario.

    Series are NumPy arrays, tables are pandas frames.

    Parameters
    ----------
    record
        The simulator's record.
    title
        Title in reports; the scenario's name by default.
    rerun
        The command that repeats the run, for reports.
    scales
        Time scales of smoothness in seconds; as `default_scales` by default.
    on
        Backend of the run: ``sim``, ``udt``, ``linux`` or ``quic``.
    limit
        Reason why the emulator, not the network, was the bottleneck, if it was.
    document
        The scenario as plain data, for slowdowns and `check`.
    laws
        Texts of the scenario's laws in files, by their names.
    """

    def __init__(
        self,
        record: RunRecord,
        *,
        title: str = "",
        rerun: str = "",
        scales: list[float] | None = None,
        on: str = "sim",
        limit: str | None = None,
        document: Mapping[str, object] | None = None,
        laws: Mapping[str, str] | None = None,
    ) -> None:
        self.record = record
        self.title = title or record["scenario"]
        self.rerun = rerun
        self.scales: list[float] = default_scales(record) if scales is None else scales
        self.on = on
        self.limit = limit
        self.document = document or {}
        self.laws = dict(laws or {})
        self._transfers: RunTransfers | None = None

    def __repr__(self) -> str:
        flows, met = counted(len(self.record["flows"]), "flow"), self.metrics
        fair = f"Jain {met['jain']:.3f}, " if math.isfinite(met["jain"]) else ""
        return (
            f"<Result of {self.scenario!r}, seed {self.seed}, on {self.on}: {flows}, "
            f"{format_rate(met['goodput_bps'])}, {fair}loss {met['loss_rate']:.2%}>"
        )

    def _repr_html_(self) -> str | None:
        return _show.notebook.result_html(self)

    def summary(self) -> pd.DataFrame:
        """Return the main figures of the flows in readable units: ten columns."""
        return _show.notebook.summarize_result(self)

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return self.record["scenario"]

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return self.record["seed"]

    @property
    def notes(self) -> list[str]:
        """Notes on parts of the scenario that have no effect, or that the backend approximates."""
        return self.record["notes"]

    @property
    def duration_s(self) -> float:
        """Length of the run in seconds."""
        return self.record["duration_s"]

    @property
    def warmup_s(self) -> float:
        """Length of the warm-up in seconds; counters exclude it."""
        return self.record["warmup_s"]

    @property
    def measured_s(self) -> float:
        """Length of the run without the warm-up, in seconds."""
        return self.duration_s - self.warmup_s

    @property
    def time(self) -> Series:
        """Times of the samples in seconds, warm-up included."""
        return self.record["time"]

    @property
    def measured_flows(self) -> list[FlowRecord]:
        """Flows that the metrics include; background traffic is excluded."""
        return [flow for flow in self.record["flows"] if flow["measured"]]

    @property
    def bottleneck(self) -> LinkRecord:
        """The link of finite rate with the highest utilisation."""
        finite = [link for link in self.record["links"] if math.isfinite(link["rate_bps"])]
        return max(finite or self.record["links"], key=lambda link: link["utilization"])

    def seconds(self, flow: FlowRecord) -> float:
        """Return the seconds for which a flow was active, without the warm-up."""
        return _native.run_seconds(self, [flow])[0]

    def goodput_bps(self, flow: FlowRecord) -> float:
        """Return a flow's payload that arrived for the first time, in bits per second."""
        return metrics.goodput(flow["bytes_delivered"], self.seconds(flow))

    def active(self, flows: Sequence[FlowRecord]) -> list[FlowRecord]:
        """Return the flows that were active after the warm-up."""
        seconds = _native.run_seconds(self, flows)
        return [flow for flow, time in zip(flows, seconds, strict=True) if time > 0]

    def goodputs_bps(self, flows: Sequence[FlowRecord]) -> list[float]:
        """Return the goodput of each flow that was active after the warm-up, in bits per second."""
        return _native.run_goodputs(self, flows)

    def total_goodput_bps(self, flows: Sequence[FlowRecord]) -> float:
        """Return the payload of flows that arrived first in the measured time, in bit/s."""
        return _native.run_total_goodput(self, flows)

    def smoothness(
        self, flow: FlowRecord, scales: Sequence[float] | None = None
    ) -> dict[float, float]:
        """Return the coefficient of variation of a flow's throughput, by time scale in seconds."""
        chosen = self.scales if scales is None else scales
        found = _native.run_smoothness(self, flow, chosen)
        return dict(zip(chosen, found, strict=True))

    @cached_property
    def _figures(self) -> tuple[JsonObject, dict[str, JsonObject]]:
        """Metrics of the measured flows together, and of each flow by name."""
        figures, each = _native.run_figures(self)
        names = [flow["name"] for flow in self.record["flows"]]
        return figures, dict(zip(names, each, strict=True))

    def transfers(self, flows: Sequence[FlowRecord] | None = None) -> RunTransfers:
        """Return size, completion time and slowdown of transfers that begin after the warm-up.

        Parameters
        ----------
        flows
            Flows of this run; by default the measured ones.
        """
        if flows is not None:
            return transfers_of(self, flows)
        if self._transfers is None:
            self._transfers = transfers_of(self, self.measured_flows)
        return self._transfers

    def jain_over_time(
        self, window: float | None = None, flows: Sequence[FlowRecord] | None = None
    ) -> metrics.JainSeries:
        """Return Jain's index of the goodputs in windows of time after the warm-up.

        Parameters
        ----------
        window
            Length of a window in seconds; by default ten round-trip times, as of ``scales[1]``.
        flows
            Flows of this run; by default the first kind of the measured ones, as for the metric
            ``jain``. A flow counts in the windows in which it is active.
        """
        counted = first_kind(self.measured_flows) if flows is None else flows
        length = self.scales[1] if window is None else window
        return metrics.JainSeries(*_native.run_jain(self, counted, length))

    @cached_property
    def metrics(self) -> JsonObject:
        """Metrics of the measured flows together; see docs/metrics.md."""
        return self._figures[0]

    @cached_property
    def flows(self) -> pd.DataFrame:
        """One row for each flow; columns as in the JSON document, with ``limited`` flattened.

        Ten of the columns are displayed.
        """
        require("Result.flows", "pandas")
        import pandas as pd

        from cwnd._runs.data_frames import FLOWS, show_columns

        rows = self.flow_rows()
        # A seed may draw no arrival.
        columns = None if rows else ["name", *FLOWS]
        return show_columns(pd.DataFrame(rows, columns=columns).set_index("name"), FLOWS)

    def flow_rows(self) -> list[JsonObject]:
        """Return the rows of `flows` as plain data."""
        rows = []
        for flow in self.record["flows"]:
            row = self._flow_json(flow)
            limited = row.pop("limited")
            row.pop("smoothness")
            row.pop("application")
            row.pop("closed")
            rows.append(row | {f"limited_{cause}_s": s for cause, s in limited.items()})
        return rows

    @cached_property
    def links(self) -> pd.DataFrame:
        """One row for each link; columns as in the JSON document, ten of them displayed."""
        require("Result.links", "pandas")
        import pandas as pd

        from cwnd._runs.data_frames import LINKS, show_columns

        return show_columns(pd.DataFrame(self.link_rows()).set_index("name"), LINKS)

    def link_rows(self) -> list[JsonObject]:
        """Return the rows of `links` as plain data."""
        rows = []
        for link in self.record["links"]:
            row = link_json(link)
            delay = row.pop("queue_delay_s")
            rows.append(row | {f"queue_delay_{name}_s": s for name, s in delay.items()})
        return rows

    def group_rows(self) -> list[JsonObject]:
        """Return the figures of each group of finite flows as plain data."""
        rows = []
        for name, flows in group_flows(self.record["flows"]).groups.items():
            found = self.transfers(flows)
            times, slow = metrics.spread(found.fct), metrics.spread(found.slowdown)
            row = {
                "name": name,
                "controller": flows[0]["controller"],
                "flows": len(flows),
                "completed": times.number / found.begin.size if found.begin.size else math.nan,
                "goodput_bps": self.total_goodput_bps(flows),
                "fct_s": times._asdict(),
                "slowdown": slow._asdict(),
                "retransmission_rate": retransmission_rate_of(flows),
                "timeouts": sum(flow["timeouts"] for flow in flows),
            }
            rows.append(jsonable(row))
        return rows

    @cached_property
    def cuts(self) -> pd.DataFrame:
        """One row for each window reduction, warm-up included."""
        from cwnd.tables import cuts

        frame: pd.DataFrame = cuts(self).to_pandas()
        return frame

    @cached_property
    def samples(self) -> pd.DataFrame:
        """One row for each sample of an active flow: window, ssthresh, RTT, counters, variables."""
        from cwnd.tables import samples

        frame: pd.DataFrame = samples(self).to_pandas()
        return frame

    @cached_property
    def queues(self) -> pd.DataFrame:
        """One row for each queue and sample: its length in packets and cumulative drops."""
        from cwnd.tables import queues

        frame: pd.DataFrame = queues(self).to_pandas()
        return frame

    @cached_property
    def acks(self) -> pd.DataFrame:
        """One row for each acknowledgement: window, packets in flight, RTT and rates.

        Only a run with ``acks=True`` has them.
        """
        from cwnd.tables import acks

        frame: pd.DataFrame = acks(self).to_pandas()
        return frame

    def check(self, expect: Mapping[str, object] | None = None) -> list[Outcome]:
        """Compare metrics with the bounds of ``[expect]``, as ``cwnd run --check`` does.

        Parameters
        ----------
        expect
            Bounds by metric, nested as in a scenario file; by default those of the scenario.

        Returns
        -------
        list of Outcome
            One for each bound: the ``expectation``, the measured ``value``, and whether it
            ``holds``.

        Raises
        ------
        ScenarioError
            There are no expectations, or a metric, group, link, unit or operator is wrong.

        Examples
        --------
        >>> import cwnd
        >>> scenario = cwnd.Scenario.dumbbell(rate="10mbit", rtt="40ms", time="5s")
        >>> result = cwnd.run(scenario.add_flow("reno"))
        >>> [outcome.holds for outcome in result.check({"goodput": {"reno": "> 12mbit"}})]
        [False]
        """
        from cwnd._runs.expect import check

        table = cast("JsonObject", self.document).get("expect", {}) if expect is None else expect
        return check(self, table)

    def plot(self, *, column: bool = False) -> Figure:
        """Draw windows, throughput and queue over time.

        Parameters
        ----------
        column
            Whether the size is that of a journal's column, 3.5 inches wide.

        Returns
        -------
        matplotlib.figure.Figure
            Show it in a notebook, or save it with ``savefig``.
        """
        return _show.plots.plot_result(self, column=column)

    def plot_transfers(self, *, column: bool = False) -> Figure:
        """Draw completion times and slowdowns by size, and Jain's index over time."""
        return _show.plots.plot_transfers(self, column=column)

    def report(self, path: str | Path) -> None:
        """Write a self-contained HTML page with tables and interactive plots.

        Parameters
        ----------
        path
            The file to write.
        """
        write_text(path, _show.report.run.run_page(self))

    def to_json(self) -> JsonObject:
        """Return the figures as plain data, unknown ones as None; see docs/json.md."""
        return self._to_json(self.record["flows"])

    def to_json_without_groups(self) -> JsonObject:
        """Return the same without the flows of groups, which tables have in one row each."""
        return self._to_json(group_flows(self.record["flows"]).single)

    def _to_json(self, flows: Sequence[FlowRecord]) -> JsonObject:
        """Return the figures as plain data, with those of some flows."""
        return jsonable(
            {
                "scenario": self.scenario,
                "seed": self.seed,
                "duration_s": self.duration_s,
                "warmup_s": self.warmup_s,
                "flows": [self._flow_json(flow) for flow in flows],
                "conventions": self.record["conventions"],
                "links": [link_json(link) for link in self.record["links"]],
                "metrics": self.metrics,
                "engine": dict(self.record["engine"]),
                "on": self.on,
                "limit": self.limit,
                "notes": self.notes,
            }
        )

    def _flow_json(self, flow: FlowRecord) -> JsonObject:
        """Return the figures of a flow."""
        figures = self._figures[1][flow["name"]]
        return {
            "name": flow["name"],
            "controller": flow["controller"],
            "kind": flow["kind"],
            "measured": flow["measured"],
            "start_s": flow["start_s"],
            "stop_s": flow["stop_s"],
            "completed_s": flow["completed_s"],
            "acknowledged_s": flow["acknowledged_s"],
            "closed": flow["closed"],
            "throughput_bps": figures["throughput_bps"],
            "goodput_bps": figures["goodput_bps"],
            **_pick(flow, FLOW_COUNTERS),
            "cuts": figures["cuts"],
            "loss_rate": figures["loss_rate"],
            "mean_rtt_s": flow["mean_rtt_s"],
            "min_rtt_s": flow["min_rtt_s"],
            "mean_window": flow["mean_window"],
            "smoothness": figures["smoothness"],
            "limited": dict(flow["limited"]),
            "application": dict(flow["application"]),
        }


def default_scales(record: RunRecord) -> list[float]:
    """Choose the time scales of smoothness in seconds, as multiples of the round-trip time.

    They are 2, 10 and 50 times the median of the flows' smallest round-trip times (or the sampling
    period, if longer), to two digits.
    """
    sample = record["duration_s"] / max(record["time"].size - 1, 1)
    return _native.time_scales([flow["min_rtt_s"] for flow in record["flows"]], sample)


def link_loss_rate(link: LinkRecord) -> float:
    """Return the fraction of the packets offered that the queue dropped or the link lost."""
    return _link_rates(link)[0]


def link_mark_rate(link: LinkRecord) -> float:
    """Return the fraction of the packets offered that the queue marked."""
    return _link_rates(link)[1]


def _link_rates(link: LinkRecord) -> list[float]:
    """Return the fractions of the packets offered that were lost and marked."""
    return _native.link_rates(link["offered"], link["drops"], link["losses"], link["marks"])


def loss_rate_of(flows: Sequence[FlowRecord]) -> float:
    """Return the fraction of flows' data packets that were lost, of those lost or received."""
    return _native.packet_rates(flows)[0]


def mark_rate_of(flows: Sequence[FlowRecord]) -> float:
    """Return the fraction of flows' received data packets that were marked."""
    return _native.packet_rates(flows)[1]


def retransmission_rate_of(flows: Sequence[FlowRecord]) -> float:
    """Return the fraction of flows' sent data packets that were retransmissions."""
    return _native.packet_rates(flows)[2]


def jsonable(document: Mapping[str, object]) -> JsonObject:
    """Replace NaN and infinities by None at all levels: JSON has neither."""
    return {key: _jsonable(item) for key, item in document.items()}


def _jsonable(value: object) -> object:
    """Convert one value to a JSON value."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return jsonable(value)
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    return value


def dumps(document: Mapping[str, object]) -> str:
    """Format a JSON document."""
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)


def link_json(link: LinkRecord) -> JsonObject:
    """Return the figures of a link."""
    return {
        "name": link["name"],
        "rate_bps": link["rate_bps"],
        "token_rate_bps": link["token_rate_bps"],
        "delay_s": link["delay_s"],
        "utilization": link["utilization"],
        **_pick(link, LINK_COUNTERS),
        "loss_rate": link_loss_rate(link),
        "mark_rate": link_mark_rate(link),
        "mean_queue": link["mean_queue"],
        "queue_limit": link["queue_limit"],
        "queue_limit_unit": link["queue_limit_unit"],
        "queue_delay_s": dict(link["delay"]),
    }


def _pick(record: Mapping[str, object], names: Sequence[str]) -> JsonObject:
    """Return some values of a record."""
    return {name: record[name] for name in names}


def mean_of_known(values: list[float]) -> float:
    """Return the mean of the finite values; NaN without any."""
    return _native.mean_of_finite(values)
