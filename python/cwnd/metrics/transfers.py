"""Completion times of transfers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cwnd import _native

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from cwnd.metrics.network import Array


class Spread(NamedTuple):
    """Mean and percentiles of a metric of transfers, and their number."""

    number: int
    mean: float
    p50: float
    p95: float
    p99: float
    max: float


class SizeClass(NamedTuple):
    """A metric of the transfers of ``low`` to below ``high`` bytes."""

    low: float
    high: float
    spread: Spread


def completion_time(begin: npt.ArrayLike, end: npt.ArrayLike) -> Array:
    """Time from the beginning of each transfer to its end (RFC 5166, section 2.1.1).

    Parameters
    ----------
    begin
        Beginning of each transfer in seconds.
    end
        End of each transfer in seconds; NaN if it is incomplete.

    Returns
    -------
    ndarray
        Seconds; NaN for an incomplete transfer.

    Examples
    --------
    >>> completion_time([0.0, 1.0], [0.5, 3.0]).tolist()
    [0.5, 2.0]
    """
    times: Array = np.asarray(end, dtype=float) - np.asarray(begin, dtype=float)
    return times


def ideal_completion_time(
    wire_bytes: npt.ArrayLike, rate_bps: npt.ArrayLike, rtt_s: npt.ArrayLike
) -> Array:
    """Completion time on the empty path: transmission at its rate, and one round-trip time.

    The reference of the normalised completion time of pFabric (Alizadeh et al., SIGCOMM 2013) and
    of the slowdown of Homa (Montazeri et al., SIGCOMM 2018). Handshakes are not part of it.

    Parameters
    ----------
    wire_bytes
        Bytes of each transfer on the wire, headers included.
    rate_bps
        Lowest rate on the path; for a link that varies its `offered_rate`.
    rtt_s
        Propagation time of the path, both ways.

    Examples
    --------
    >>> float(ideal_completion_time(250_000, 10e6, 0.05))
    0.25
    """
    return _each(_native.ideal_completion_time, wire_bytes, rate_bps, rtt_s)


def offered_rate(
    time: npt.ArrayLike,
    capacity_bps: npt.ArrayLike,
    begin: npt.ArrayLike,
    wire_bytes: npt.ArrayLike,
) -> Array:
    """Mean rate that an empty link of varying rate offers to each transfer until its last bit.

    Parameters
    ----------
    time
        Times of the samples in seconds, ascending.
    capacity_bps
        Mean rate of the link from each sample to the next one.
    begin
        Beginning of each transfer in seconds.
    wire_bytes
        Its bytes on the wire, headers included.

    Returns
    -------
    ndarray
        Bits per second. The run ends at the last sample: a transfer that needs more time has the
        rate of a transfer of these bytes until then.

    Examples
    --------
    >>> offered_rate([0.0, 1.0, 3.0], [8e3, 4e3, 0.0], [0.0, 0.5], [1500, 500]).tolist()
    [6000.0, 8000.0]
    """
    return _each(partial(_native.offered_rate, time, capacity_bps), begin, wire_bytes)


def slowdown(times: npt.ArrayLike, ideal: npt.ArrayLike) -> Array:
    """Completion time over that on the empty path (pFabric; Homa).

    Parameters
    ----------
    times
        Completion time of each transfer in seconds.
    ideal
        Its `ideal_completion_time`.

    Returns
    -------
    ndarray
        1 for a transfer that nothing delayed; NaN for an incomplete one, or without an ideal time.

    Examples
    --------
    >>> slowdown([0.3, 0.15], [0.15, 0.15]).tolist()
    [2.0, 1.0]
    """
    return _each(_native.slowdown, times, ideal)


def spread(values: npt.ArrayLike) -> Spread:
    """Mean and percentiles of the complete transfers (RFC 5166, section 2.1.1).

    Parameters
    ----------
    values
        Completion time or slowdown of each transfer; NaN for incomplete ones, which are omitted.

    Returns
    -------
    Spread
        The number of complete transfers, their mean, the smallest values that 50, 95 and 99 % of
        them do not exceed, and the largest.

    Examples
    --------
    >>> spread([4.0, 1.0, 3.0, 2.0, float("nan")])
    Spread(number=4, mean=2.5, p50=2.0, p95=4.0, p99=4.0, max=4.0)
    """
    return Spread(*_native.spread(values))


def by_size(sizes: npt.ArrayLike, values: npt.ArrayLike) -> list[SizeClass]:
    """Mean and percentiles by decade of size, as in the figures of pFabric and Homa.

    Parameters
    ----------
    sizes
        Size of each transfer in bytes.
    values
        Its completion time or slowdown; NaN if it is incomplete.

    Returns
    -------
    list of SizeClass
        The decades with complete transfers, smallest first.

    Examples
    --------
    >>> found = by_size([500, 700, 20_000], [1.0, 3.0, 5.0])
    >>> [(each.low, each.high, each.spread.mean) for each in found]
    [(100.0, 1000.0, 2.0), (10000.0, 100000.0, 5.0)]
    """
    classes = _native.by_size(sizes, values)
    return [SizeClass(low, high, Spread(*found)) for low, high, found in classes]


def _each(formula: Callable[..., Array], *arguments: npt.ArrayLike) -> Array:
    """Apply a formula to arrays of any shapes that NumPy can broadcast."""
    arrays = np.broadcast_arrays(*(np.asarray(each, dtype=float) for each in arguments))
    return formula(*(each.ravel() for each in arrays)).reshape(arrays[0].shape)
