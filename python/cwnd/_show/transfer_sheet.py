"""Table of the transfers of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd._show.sheets import Sheet, mean_of
from cwnd.metrics.catalog import number
from cwnd.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._base.records import JsonObject

_SPREAD = ("mean", "p50", "p95", "p99")


def size_text(low: float, high: float) -> str:
    """Describe a class of sizes.

    Examples
    --------
    >>> size_text(1e4, 1e5)
    '10 kB–100 kB'
    """
    return f"{format_size(low)}–{format_size(high)}"


def group_sheet(groups: Sequence[JsonObject]) -> Sheet | None:
    """Tabulate ``Result.group_rows``, the groups of finite flows; None without any."""
    rows = [
        [
            group["name"],
            group["controller"],
            number(group["flows"], 0),
            number(group["completed"], 1, 100),
            number(group["goodput_bps"], 2, 1e-6),
            *(number(group["fct_s"][part], 1, 1e3) for part in ("p50", "p95", "p99")),
            *(number(group["slowdown"][part], 2) for part in ("p50", "p99")),
            number(group["retransmission_rate"], 2, 100),
            number(group["timeouts"], 0),
        ]
        for group in groups
    ]
    if not rows:
        return None
    return Sheet(
        [
            ("group", "", "Finite flows with one name."),
            ("controller", "", ""),
            ("flows", "", "All flows of the group."),
            ("complete", "%", "Complete flows, of those that begin after the warm-up."),
            ("goodput", "Mbit/s", "Payload of all flows that arrived after the warm-up."),
            ("p50", "ms", "Median completion time."),
            ("p95", "ms", "95th percentile of the completion time."),
            ("p99", "ms", "99th percentile of the completion time."),
            ("slowdown", "p50", "Median completion time over that on the empty path."),
            ("slowdown", "p99", "99th percentile of the slowdown."),
            ("retransmitted", "%", "Retransmissions of all packets sent."),
            ("timeouts", "", "Expirations of the retransmission timers."),
        ],
        rows,
    )


def transfer_sheet(document: JsonObject) -> Sheet | None:
    """Tabulate completion times and slowdowns by size; None without complete transfers."""
    found = document["metrics"]["transfers"]
    if found is None or not found["by_size"]:
        return None
    classes = [
        (size_text(each["low_bytes"], each["high_bytes"]), each) for each in found["by_size"]
    ]
    total = {"number": sum(mean_of(each["number"]) for each in found["by_size"])}
    return Sheet(
        [
            ("size", "", "Payload of a transfer."),
            ("complete", "", "Complete transfers."),
            ("time", "ms", "Mean completion time."),
            ("p50", "ms", "Median completion time."),
            ("p95", "ms", "95th percentile of the completion time."),
            ("p99", "ms", "99th percentile of the completion time."),
            ("slowdown", "", "Mean completion time over that on the empty path."),
            ("p50", "", "Median slowdown."),
            ("p95", "", "95th percentile of the slowdown."),
            ("p99", "", "99th percentile of the slowdown."),
        ],
        [
            [
                name,
                number(each["number"], 0),
                *(number(each["fct_s"][name], 1, 1e3) for name in _SPREAD),
                *(number(each["slowdown"][name], 2) for name in _SPREAD),
            ]
            for name, each in [*classes, ("all", found | total)]
        ],
    )
