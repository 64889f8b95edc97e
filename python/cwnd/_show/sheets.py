"""Figures in tables: selection, titles and formatting."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cwnd import _native
from cwnd._runs.conventions import conventions_text
from cwnd._runs.scenario_keys import write_values
from cwnd._runs.text import join_parts
from cwnd.metrics.catalog import FIGURES, measured, number, short
from cwnd.stats import Estimate
from cwnd.units import format_rate, format_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cwnd._base.records import JsonObject, Limited, LinkRecord
    from cwnd._runs.fork import Fork
    from cwnd._runs.networks import NetworkSummary
    from cwnd._runs.result import Result
    from cwnd._tasks.comparison.outcome import Comparison
    from cwnd.metrics.catalog import Figure


_IN_SWEEPS = {
    "goodput_bps": "Payload that arrived, each byte once, all flows.",
    "queue_delay_p50_s": "Median.",
    "queue_delay_p95_s": "95th percentile.",
    "queue_delay_p99_s": "99th percentile.",
}
SWEEP_COLUMNS = tuple(
    replace(FIGURES[name], meaning=_IN_SWEEPS.get(name, FIGURES[name].meaning))
    for name in (
        *("share", "utilization", "goodput_bps", "jain", "loss_rate", "mark_rate"),
        *("retransmission_rate", "queue_delay_s", "queue_delay_p50_s"),
        *("queue_delay_p95_s", "queue_delay_p99_s", "cov_2rtt", "cov_10rtt", "cov_50rtt"),
        *("stability_index", "alpha_fairness", "convergence_time_s"),
    )
)
"""Metrics of a sweep: those of `Result.metrics`, without duplicates."""


_GOODPUT = short("goodput_bps", meaning="Payload that arrived, each byte once, all its flows.")


def fork_sheet(fork: Fork) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rows of the figures of both futures of a run."""
    rows = [(FIGURES[name].with_unit, name, values) for name, values in fork.differences.items()]
    goodput = FIGURES["goodput_bps"]
    rows += [
        (f"{goodput.title} of {name} ({goodput.unit})", goodput.name, values)
        for name, values in fork.goodputs.items()
    ]
    heads = ["", "unchanged", fork.values_text, "difference"]
    return heads, [[title, *map(FIGURES[name].text, values)] for title, name, values in rows]


def alone_columns(comparison: Comparison) -> list[Figure]:
    """Choose the columns for controllers alone, from left to right."""
    columns = [
        _GOODPUT,
        short("utilization"),
        *_some(comparison),
        short("queue_delay_s"),
        *map(short, ("queue_delay_p95_s", "mean_rtt_s")),
        _smoothness(comparison),
        short("jain"),
    ]
    return columns + _measured(comparison, columns)


def against_columns(comparison: Comparison) -> list[Figure]:
    """Choose the columns for controllers against the reference, from left to right."""
    other = comparison.reference
    columns = [
        short("share", meaning=f"A flow's share against {other}'s; 0.5 is equal."),
        _GOODPUT,
        short("reference_goodput_bps", other, f"Goodput of {other}'s flows."),
        short("harm_goodput", meaning=f"Goodput that {other}'s flows lose; 0 is none."),
        *_some(comparison),
        *map(short, ("queue_delay_s", "mean_rtt_s")),
        _smoothness(comparison),
        short("jain"),
    ]
    return columns + _measured(comparison, columns)


def _some(comparison: Comparison) -> list[Figure]:
    """Return completion times if all runs have transfers, loss, marks if any, retransmissions."""
    rows = [*comparison.rows_alone, *comparison.rows_against]
    times = _COMPLETION if all("fct_s" in row.figures for row in rows) else []
    marked = any(row.figures["mark_rate"].mean > 0 for row in rows)
    rates = ["loss_rate", *(["mark_rate"] if marked else [])]
    return [*times, *map(short, rates), short("retransmission_rate", "resent")]


_COMPLETION = [
    short("fct_s"),
    *(
        replace(FIGURES["fct_s"], name=f"fct_{part}_s", title=f"FCT, {part}", meaning=meaning)
        for part, meaning in (
            ("p50", "Median completion time of its transfers."),
            ("p95", "95th percentile of the completion times."),
            ("p99", "99th percentile of the completion times."),
        )
    ),
]
"""Completion times of transfers."""


def _measured(comparison: Comparison, columns: list[Figure]) -> list[Figure]:
    """Return the columns of the metrics that were asked for, without those that are there."""
    shown = {column.name for column in columns}
    return [
        FIGURES[name] if name in FIGURES else measured(name)
        for name in comparison.measures
        if name not in shown
    ]


def _smoothness(comparison: Comparison) -> Figure:
    """Return the column of the coefficient of variation, with its time scale."""
    scale = format_time(comparison.rows_alone[0].results[0].scales[1])
    meaning = f"Coefficient of variation of a flow's throughput over {scale}; 0 is smooth."
    return replace(short("cov_10rtt", meaning=meaning), unit=scale)


def figure_text(value: float | str | None) -> str:
    """Format a figure of a reproduction: text unchanged, numbers with four significant digits.

    Examples
    --------
    >>> figure_text(0.0314159), figure_text("smaller"), figure_text(None)
    ('0.03142', 'smaller', '–')
    """
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:.4g}"


def measured_text(claim: JsonObject) -> str:
    """Format the measurement of ``Claim.to_json()``, with its interval."""
    text = figure_text(claim["measured"])
    if claim["interval"]:
        text += " ({} to {})".format(*map(figure_text, claim["interval"]))
    return text


def network_text(network: NetworkSummary) -> str:
    """Describe ``Comparison.network`` in one line."""
    length = length_text(network["duration_s"], network["warmup_s"])
    return f"{path_text(network)}; {network['repeat']} × {length}"


def length_text(duration_s: float, warmup_s: float) -> str:
    """Format the length of a run and of its warm-up.

    Examples
    --------
    >>> length_text(20, 5), length_text(20, 0)
    ('20 s, of which the first 5 s are warm-up', '20 s')
    """
    rest = f", of which the first {format_time(warmup_s)} are warm-up" if warmup_s else ""
    return f"{format_time(duration_s)}{rest}"


def warmup_text(warmup_s: float) -> str:
    """Format the length of a warm-up.

    Examples
    --------
    >>> warmup_text(5), warmup_text(0)
    ('5 s of warm-up', 'no warm-up')
    """
    return f"{format_time(warmup_s)} of warm-up" if warmup_s else "no warm-up"


def limit_text(queue: LinkRecord | NetworkSummary) -> str:
    """Return the finite limit of the queue of ``Comparison.network`` or of a link, with its unit.

    Examples
    --------
    >>> limit_text({"queue_limit": 15360.0, "queue_limit_unit": "bytes"})
    '15360 bytes'
    """
    return f"{number(queue['queue_limit'], 0)} {queue['queue_limit_unit']}"


def path_text(network: NetworkSummary) -> str:
    """Describe the flows and the path of ``Comparison.network``, without the length of the runs."""
    queue = queue_text(network)
    name = "" if queue else f" of {network['scenario']}"
    limit = "infinite queue"
    if math.isfinite(network["queue_limit"]):
        limit = f"{queue} queue of {limit_text(network)}".lstrip()
    rate = format_rate(network["rate_bps"])
    if not math.isfinite(network["rate_bps"]):
        rate = "a link of infinite rate"
    parts = [
        f"{network['flows']} flows{name} on {rate}",
        rtt_text(network),
        limit if queue else f"{limit} at {network['bottleneck']}",
    ]
    if network["loss"]:
        parts.append(f"{100 * network['loss']:g} % loss")
    if network["values"]:
        parts.append(f"with {changes_text(network)}")
    return join_parts(", ".join(parts), conventions_text(network["conventions"]))


def queue_text(network: NetworkSummary) -> str:
    """Return the requested queue of ``Comparison.network``, of a table its kind; empty if none.

    Examples
    --------
    >>> queue_text({"queue": {"kind": "codel", "limit": 100}})
    'codel'
    """
    queue = network["queue"] or ""
    return queue if isinstance(queue, str) else queue.get("kind", "droptail")


def changes_text(network: NetworkSummary) -> str:
    """Format the values set on ``Comparison.network``; empty without any.

    Examples
    --------
    >>> changes_text({"values": {"duration": "20s", "dumbbell.loss": 0.01}})
    'duration=20s, dumbbell.loss=0.01'
    """
    return ", ".join(write_values(network["values"])[1::2])


def rtt_text(network: NetworkSummary) -> str:
    """Format the round-trip time of ``Comparison.network``; lists and ranges as in the argument."""
    asked = network["rtt"] or ""
    return asked if "," in asked or ".." in asked else format_time(network["rtt_s"])


PLACES = {
    "sim": "simulated",
    "udt": "UDT sockets on an emulated network",
    "linux": "the kernel's TCP on an emulated network",
    "quic": "QUIC stacks on an emulated network",
}
"""Descriptions of the backends, by name."""


def run_text(result: Result) -> str:
    """Describe a run in one line."""
    engine = result.record["engine"]
    wall = format_time(float(f"{engine['wall_s']:.2g}"))
    return join_parts(
        f"{result.scenario}, seed {result.seed}, {PLACES[result.on]}: "
        f"{length_text(result.duration_s, result.warmup_s)}",
        conventions_text(result.record["conventions"]),
        f"{engine['packets']} packets in {wall}",
    )


def seeds_text(results: Sequence[Result]) -> str:
    """Name the seeds of runs with consecutive ones."""
    first, last = results[0].seed, results[-1].seed
    return f"seed {first}" if first == last else f"seeds {first} to {last}"


def repeated_text(results: Sequence[Result]) -> str:
    """Describe runs of one scenario in one line."""
    first = results[0]
    length = length_text(first.duration_s, first.warmup_s)
    return join_parts(
        f"{first.scenario}, {seeds_text(results)}, {PLACES[first.on]}: {len(results)} × {length}",
        conventions_text(first.record["conventions"]),
        "means and 95 % intervals",
    )


def agreement_text(backends: Sequence[str]) -> str:
    """Name the backends, the reference last.

    Examples
    --------
    >>> agreement_text(["sim", "udt", "linux"])
    'udt and linux against sim'
    """
    return f"{' and '.join(backends[1:])} against {backends[0]}"


def counts_text(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Count the figures with each verdict of ``Agreement.counts``, one line for each backend.

    Examples
    --------
    >>> counts_text({"linux": {"agrees": 9, "differs": 1, "undecided": 2, "unknown": 0}})
    ['linux: of 12 figures 9 agree, 1 differs, 2 are undecided']
    """
    lines = []
    for on, found in counts.items():
        parts = [
            f"{found['agrees']} {'agrees' if found['agrees'] == 1 else 'agree'}",
            f"{found['differs']} {'differs' if found['differs'] == 1 else 'differ'}",
            f"{found['undecided']} {'is' if found['undecided'] == 1 else 'are'} undecided",
        ]
        if found["unknown"]:
            parts.append(f"{found['unknown']} unknown")
        lines.append(f"{on}: of {sum(found.values())} figures {', '.join(parts)}")
    return lines


def limits_text(limited: Limited) -> str:
    """Describe what limited a flow's rate, from the seconds of each cause.

    Examples
    --------
    >>> limits_text({"window": 90.0, "pacing": 0.0, "receiver": 10.0, "application": 0.0})
    'window 90 %, receiver 10 %'
    """
    causes = {
        "window": limited["window"],
        "pacing": limited["pacing"],
        "receiver": limited["receiver"],
        "application": limited["application"],
    }
    total = sum(causes.values())
    if total <= 0:
        return "–"
    shown = [f"{cause} {100 * s / total:.0f} %" for cause, s in causes.items() if s > total / 200]
    return ", ".join(shown)


MAX_ROWS = 40
"""Largest number of rows in a table for people; JSON has all of them."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of text."""

    heads: list[tuple[str, str, str]]
    """Title, unit and meaning of each column."""
    rows: list[list[str]]
    more: int = 0
    """Number of omitted rows."""


_OF_FLOWS = [
    FIGURES["goodput_bps"],
    FIGURES["packets_sent"],
    FIGURES["retransmissions"],
    short("loss_rate", "lost", "Packets of the flow that were lost."),
    *(FIGURES[name] for name in ("cuts", "timeouts", "mean_rtt_s")),
]
"""Figures in tables of flows."""


def flow_sheet(document: JsonObject) -> Sheet:
    """Tabulate the flows of a run."""
    return Sheet(
        [
            ("flow", "", ""),
            ("controller", "", ""),
            *(figure.head for figure in _OF_FLOWS),
            ("limited by", "", "Limits of the sending rate, by time."),
        ],
        [
            [
                flow["name"],
                flow["controller"],
                *(figure.text(flow[figure.name]) for figure in _OF_FLOWS),
                limits_text(flow["limited"]),
            ]
            for flow in document["flows"][:MAX_ROWS]
        ],
        more=max(len(document["flows"]) - MAX_ROWS, 0),
    )


_OF_LINKS = [
    short("utilization", meaning="Utilisation of the link, or of the rate of a shaper."),
    short("loss_rate", "lost", "Packets dropped by the queue or lost on the link."),
    short("mark_rate", "marked", "Packets marked by the queue."),
    FIGURES["mean_queue"],
]
_DELAYS = {
    "mean": short("queue_delay_s"),
    **{part: short(f"queue_delay_{part}_s") for part in ("p50", "p95", "p99")},
}


def link_sheet(document: JsonObject) -> Sheet:
    """Tabulate the links of a run where a queue can form, highest utilisation first."""
    finite = [link for link in document["links"] if link["rate_bps"] is not None]
    finite.sort(key=lambda link: mean_of(link["utilization"]), reverse=True)
    return Sheet(
        [
            ("link", "", ""),
            ("rate", "", "Rate of the link, and the token rate of its policer or shaper."),
            *(figure.head for figure in (*_OF_LINKS, *_DELAYS.values())),
        ],
        [
            [
                link["name"],
                _rate_text(link),
                *(figure.text(link[figure.name]) for figure in _OF_LINKS),
                *(each.text(link["queue_delay_s"][part]) for part, each in _DELAYS.items()),
            ]
            for link in finite[:MAX_ROWS]
        ],
        more=max(len(finite) - MAX_ROWS, 0),
    )


def mean_of(value: float | Estimate) -> float:
    """Return a figure of one run, or the mean of several."""
    return value.mean if isinstance(value, Estimate) else value


def _inline(text: str, unit: str = "") -> str:
    r"""Put the interval of a figure behind its mean, and the unit behind both.

    Examples
    --------
    >>> _inline("14.2\n13.9–14.5", "ms"), _inline("–", "ms")
    ('14.2 ms (13.9–14.5)', '– ms')
    """
    mean, _, interval = text.partition("\n")
    shown = f"{mean} {unit}".rstrip()
    return f"{shown} ({interval})" if interval else shown


def _rate_text(link: JsonObject) -> str:
    """Format the rate of a link, and that of its token bucket."""
    tokens = link["token_rate_bps"]
    more = "" if tokens is None else f", tokens {format_rate(tokens)}"
    return format_rate(link["rate_bps"]) + more


def metric_items(metrics: JsonObject) -> list[tuple[str, str, str]]:
    """List title, value and remark of the metrics of a run, or of their means over several."""
    delay, link = metrics["queue_delay_s"], metrics["bottleneck"]
    kinds, windows = metrics["jain_by_kind"], metrics["jain_windows"]
    labels = [
        _native.kind_label(kind["name"], round(mean_of(kind["number"]))) for kind in kinds or ()
    ]
    equal = [("Jain's index", _inline(number(metrics["jain"], 3)), "1 is equal")]
    if kinds is not None:
        equal = [
            ("Jain's index", _inline(number(kind["jain"], 3)), f"{label}; 1 is equal")
            for kind, label in zip(kinds, labels, strict=True)
        ]
    of = f" {labels[0]}" if labels else ""
    worst = [(windows["worst"], f"of Jain's index over {format_time(windows['window_s'])}{of}")]
    items = [
        (
            "Goodput",
            _inline(
                number(metrics["goodput_bps"], 2, 1e-6),
                "" if metrics["goodput_bps"] is None else "Mbit/s",
            ),
            "all measured flows",
        ),
        *equal,
        ("Utilisation", _inline(number(metrics["utilization"], 1, 100), "%"), f"of {link}"),
        ("Loss", _inline(number(metrics["loss_rate"], 2, 100), "%"), f"at {link}"),
        *(
            [("Marks", _inline(number(metrics["mark_rate"], 1, 100), "%"), f"at {link}")]
            if metrics["mark_rate"] and mean_of(metrics["mark_rate"])
            else []
        ),
        (
            "Queueing delay",
            _inline(number(delay["mean"], 1, 1e3), "ms"),
            ", ".join(
                f"{part} {_inline(number(delay[part], 1, 1e3), unit)}"
                for part, unit in (("p95", ""), ("p99", "ms"))
            ),
        ),
    ]
    if len(metrics["smoothness"]) > 1:
        middle = metrics["smoothness"][1]
        remark = f"CoV of throughput over {format_time(middle['scale_s'])}"
        items.append(("Smoothness", _inline(number(middle["cov"], 3)), remark))
    items += [
        ("Worst window", _inline(number(value, 3)), remark)
        for value, remark in worst
        if value is not None and math.isfinite(mean_of(value))
    ]
    converged = metrics["convergence_time_s"]
    if converged is not None:
        shown = number(converged, 2) if isinstance(converged, Estimate) else f"{converged:.4g}"
        items.append(("Converged", _inline(shown, "s"), "after the last start"))
    if metrics["transfers"] is not None:
        found = metrics["transfers"]
        complete = f"{_inline(number(found['completed'], 1, 100), '%')} complete"
        times = found["fct_s"]
        median, remark = "–", complete
        if times["p50"] is not None:
            median = _inline(number(times["p50"], 1, 1e3), "ms")
            remark = f"p99 {_inline(number(times['p99'], 1, 1e3), 'ms')}, {complete}"
        items.append(("FCT, median", median, remark))
    return items


_APPLICATION = [
    *(FIGURES[name] for name in ("startup_s", "stalls", "rebuffering_s")),
    *(FIGURES[name] for name in ("frames", "frames_late", "mean_bitrate_bps")),
]
"""Figures of applications."""


def application_sheet(document: JsonObject) -> Sheet:
    """Tabulate the figures of video and media sources, over the whole run."""
    flows = [flow for flow in document["flows"] if flow["application"]]
    shown = [f for f in _APPLICATION if any(f.name in flow["application"] for flow in flows)]
    rows = [
        [flow["name"], *(figure.text(flow["application"].get(figure.name)) for figure in shown)]
        for flow in flows[:MAX_ROWS]
    ]
    return Sheet(
        [("flow", "", ""), *(figure.head for figure in shown)],
        rows,
        more=max(len(flows) - MAX_ROWS, 0),
    )
