"""Transfers of a run: their completion times and slowdowns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cwnd import _native

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cwnd._base.records import FlowRecord, LinkRecord, Series
    from cwnd._runs.result import Result


class RunTransfers(NamedTuple):
    """Transfers of some flows of a run, one value each."""

    begin: Series
    """Seconds."""
    bytes: Series
    """Payload."""
    fct: Series
    """Completion time in seconds; NaN if it is incomplete."""
    slowdown: Series
    """Completion time over that on the empty path; NaN if one of them is unknown."""


def transfers_of(result: Result, flows: Sequence[FlowRecord]) -> RunTransfers:
    """Return the transfers of some flows that begin after the warm-up."""
    return RunTransfers(*_native.run_transfers(result, flows))


def capacity_of(link: LinkRecord) -> Series | None:
    """Return the capacity of a link at the samples in bit/s; None if it does not vary."""
    return link["capacity_bps"] if link["capacity_bps"].size else None


def active_samples(flow: FlowRecord, time: Series) -> slice:
    """Return which samples are between a flow's start and its completion or stop."""
    # `completed_s` is NaN for a flow that never completed; min() then keeps `stop_s`.
    end = min(flow["stop_s"], flow["completed_s"])
    first = int(time.searchsorted(flow["start_s"]))
    return slice(first, max(first, int(time.searchsorted(end, "right"))))
