"""Table of the transfers of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.figures import Sheet, number
from cwnd.units import format_size

if TYPE_CHECKING:
    from cwnd.records import JsonObject

_SPREAD = ("mean", "p50", "p95", "p99")


def size_text(low: float, high: float) -> str:
    """Describe a class of sizes.

    Examples
    --------
    >>> size_text(1e4, 1e5)
    '10 kB–100 kB'
    """
    return f"{format_size(low)}–{format_size(high)}"


def transfer_sheet(document: JsonObject) -> Sheet | None:
    """Tabulate completion times and slowdowns by size; None without complete transfers.

    Parameters
    ----------
    document
        ``Result.to_json()``.
    """
    found = document["metrics"]["transfers"]
    if found is None or not found["by_size"]:
        return None
    classes = [
        (size_text(each["low_bytes"], each["high_bytes"]), each) for each in found["by_size"]
    ]
    total = {"number": sum(each["number"] for each in found["by_size"])}
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
                str(each["number"]),
                *(number(each["fct_s"][name], 1, 1e3) for name in _SPREAD),
                *(number(each["slowdown"][name], 2) for name in _SPREAD),
            ]
            for name, each in [*classes, ("all", found | total)]
        ],
    )
