"""Any law of the registry outside of a network, by the code that the simulator runs.

A law is alone on a path whose round-trip time never changes, in congestion avoidance. Its
acknowledgements come evenly spread over the round-trip time; a loss happens when it is told of one.
Rate laws run too, where rounds are asked for: their window is rate × round-trip time, they hear of
their own rate as the arrival rate every control interval, and of the capacity that is given.
Windows are in packets and never below 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from cwnd import _native
from cwnd.controller import read_controller
from cwnd.errors import ArgumentError
from cwnd.model import checks
from cwnd.registry import describe

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from cwnd.controller import Spec
    from cwnd.model.checks import Array, Value

T = TypeVar("T")

Per: TypeAlias = Literal["ack", "round"]
"""How a window law is stepped: by each acknowledgement, as it is implemented, or by one that stands
for the whole window, which is the rule for a round-trip time that papers print."""

RTT_S = 0.1
PACKET_BYTES = 1500
MOST_STEPS = 100_000_000


@dataclass(frozen=True, slots=True)
class Sawtooth:
    """What a law does between losses that all come at the same window; arrays of one shape.

    Attributes
    ----------
    at_loss, after
        The window at a loss and after it, in packets.
    rounds
        Round-trip times until the window is back, with the window of each instant sent in each.
    packets
        Packets acknowledged until then.
    """

    at_loss: Array
    after: Array
    rounds: Array
    packets: Array

    @property
    def increase(self) -> Array:
        """Packets gained in each round-trip time, averaged over the growth."""
        return np.asarray((self.at_loss - self.after) / self.rounds)

    @property
    def decrease(self) -> Array:
        """The fraction of the window given up."""
        return np.asarray(1 - self.after / self.at_loss)


def specification(spec: Spec) -> str:
    """Return the name of a controller.

    Parameters
    ----------
    spec
        As for `cwnd.compare`.

    Raises
    ------
    SpecError
        An unknown name or parameter, or a value out of range.

    Examples
    --------
    >>> specification("simd( beta = 1/16 )"), specification("aimd(0.31, 1/8)")
    ('simd', 'aimd(alpha=0.31, beta=1/8)')
    """
    return read_controller(spec)[0]


def step(
    call: Callable[..., T],
    spec: Spec | list[Spec] | tuple[Spec, ...],
    *values: Any,  # noqa: ANN401
    **settings: Any,  # noqa: ANN401
) -> T:
    """Call a function of `cwnd._native` that steps a controller, or several.

    Parameters
    ----------
    call
        The function.
    spec
        Its first argument: a controller as for `cwnd.compare`, or a list or tuple of them.
    *values, **settings
        Its other arguments.

    Raises
    ------
    SpecError
        An unknown name or parameter, a value out of range, or a controller written in Python that
        answers no finite number.
    """
    many: Any = type(spec) if isinstance(spec, list | tuple) else None
    given: Any = spec if many else [spec]
    read = [read_controller(each) for each in given]
    stepped = [name if factory is None else factory for name, factory in read]
    return call(many(stepped) if many else stepped[0], *values, **settings)


def is_rate_law(spec: Spec) -> bool:
    """Tell whether a law sets a rate by a clock of its own, not a window.

    Parameters
    ----------
    spec
        A specification.

    Examples
    --------
    >>> is_rate_law("daimd"), is_rate_law("reno")
    (True, False)
    """
    return describe(spec).kind == "rate"


def acks(
    spec: Spec,
    window: float,
    count: int,
    *,
    rtt: float = RTT_S,
    packet: int = PACKET_BYTES,
    at_loss: bool = False,
) -> Array:
    """Step a window law by acknowledgements of one packet each.

    Parameters
    ----------
    spec
        A specification of a window law.
    window
        The window when congestion avoidance begins, in packets.
    count
        Acknowledgements.
    rtt
        Round-trip time in seconds: some laws know clock time.
    packet
        Bytes in a packet.
    at_loss
        Whether ``window`` is that at a loss, and growth begins with what the law leaves of it.

    Returns
    -------
    array
        ``count + 1`` windows: before the first acknowledgement and after each.

    Raises
    ------
    ArgumentError
        A window below 1, a negative count, a round-trip time or packet that is not above 0.
    SpecError
        Not a window law.

    Examples
    --------
    >>> acks("reno", 10, 2).round(4).tolist()
    [10.0, 10.1, 10.199]
    >>> acks("aimd(0.31, 1/8)", 16, 1, at_loss=True).round(4).tolist()
    [14.0, 14.0221]
    """
    return step(
        _native.law_acks,
        spec,
        _window("window", window),
        _count("count", count),
        rtt=_scalar("rtt", rtt),
        packet=_packet(packet),
        at_loss=at_loss,
    )


def rounds(
    spec: Spec,
    window: float,
    count: int,
    *,
    rtt: float = RTT_S,
    packet: int = PACKET_BYTES,
    capacity: float | None = None,
    per: Per = "ack",
    at_loss: bool = False,
) -> Array:
    """Step any law by round-trip times without a loss.

    Parameters
    ----------
    spec
        A specification.
    window
        The window when congestion avoidance begins, in packets.
    count
        Round-trip times.
    rtt
        Round-trip time in seconds.
    packet
        Bytes in a packet.
    capacity
        What the link carries in a round-trip time, in packets; needed by rate laws alone.
    per
        Whether each packet is acknowledged, or a window at once.
    at_loss
        Whether ``window`` is that at a loss, and growth begins with what the law leaves of it.

    Returns
    -------
    array
        ``count + 1`` windows: before the first round and after each.

    Raises
    ------
    ArgumentError
        As for `acks`; a rate law without a capacity.
    SpecError
        Not a law of the registry.

    Examples
    --------
    >>> rounds("reno", 10, 2, per="round").tolist()
    [10.0, 11.0, 12.0]
    >>> rounds("daimd", 100, 2, capacity=1000).round(2).tolist()
    [100.0, 173.0, 183.0]
    """
    if capacity is None and is_rate_law(spec):
        name = specification(spec)
        raise ArgumentError("capacity", f"{name} needs what the link carries in a round-trip time")
    return step(
        _native.law_rounds,
        spec,
        _window("window", window),
        _count("count", count),
        rtt=_scalar("rtt", rtt),
        packet=_packet(packet),
        capacity=0.0 if capacity is None else _scalar("capacity", capacity),
        whole=whole_rounds(per),
        at_loss=at_loss,
    )


def cut(
    spec: Spec, window: npt.ArrayLike, *, rtt: float = RTT_S, packet: int = PACKET_BYTES
) -> Value:
    """Give what a law leaves of a window at the first loss that it sees.

    RFC 5681, section 3.1, for Reno; the decrease of each law's own paper.

    Parameters
    ----------
    spec
        A specification.
    window
        Windows at the loss in packets, of any shape.
    rtt
        Round-trip time in seconds.
    packet
        Bytes in a packet.

    Returns
    -------
    float or array
        Windows after it, of the same shape.

    Raises
    ------
    ArgumentError
        A window below 1, a round-trip time or packet that is not above 0.
    SpecError
        Not a law of the registry.

    Examples
    --------
    >>> cut("reno", 10), cut("simd(beta=1/16)", [16, 32]).tolist()
    (5.0, [15.0, 30.0])
    """
    array = checks.between("window", window, 1, 1e9)
    after = step(
        _native.law_cut, spec, np.ravel(array), rtt=_scalar("rtt", rtt), packet=_packet(packet)
    )
    return checks.plain(after.reshape(array.shape))


def forgets(spec: Spec, *, rtt: float = RTT_S, packet: int = PACKET_BYTES) -> bool:
    """Tell whether the window at a loss is all that a window law remembers after it.

    Found by trying: the law comes to the same windows by four histories, and has to do the same
    from there. CUBIC's and BIC's fast convergence, AIRA's loss rates and Westwood's estimate fail.

    Parameters
    ----------
    spec
        A specification of a window law.
    rtt
        Round-trip time in seconds.
    packet
        Bytes in a packet.

    Raises
    ------
    SpecError
        Not a window law.

    Examples
    --------
    >>> forgets("simd"), forgets("cubic"), forgets("cubic(fast=off)")
    (True, False, True)
    """
    return step(_native.law_forgets, spec, rtt=_scalar("rtt", rtt), packet=_packet(packet))


def sawtooth(
    spec: Spec, at_loss: npt.ArrayLike, *, rtt: float = RTT_S, packet: int = PACKET_BYTES
) -> Sawtooth:
    """Follow a window law from one loss to the next at the same window, once that repeats.

    From windows of 128 packets on, several packets are acknowledged at once: 64 times in a round.

    Parameters
    ----------
    spec
        A specification of a window law.
    at_loss
        Windows at the loss in packets, of any shape.
    rtt
        Round-trip time in seconds.
    packet
        Bytes in a packet.

    Raises
    ------
    ArgumentError
        A window below 2; a law that does not repeat itself, or whose loss takes nothing.
    SpecError
        Not a window law.

    Examples
    --------
    Reno between 20 and 40 packets: 600 packets in 20 rounds.

    >>> tooth = sawtooth("reno", 40)
    >>> float(tooth.after), round(float(tooth.rounds), 1), round(float(tooth.packets))
    (20.0, 20.0, 600)
    """
    array = checks.between("at_loss", at_loss, 2, 1e6)
    teeth = step(
        _native.law_sawtooth, spec, np.ravel(array), rtt=_scalar("rtt", rtt), packet=_packet(packet)
    )
    if np.isnan(teeth).any():
        name = specification(spec)
        raise ArgumentError(
            "spec", f"{name} does not do the same between any two losses at the same window"
        )
    after, took, packets = (column.reshape(array.shape) for column in teeth.T)
    return Sawtooth(array, after, took, packets)


def whole_rounds(per: str) -> bool:
    """Read ``per``: whether one acknowledgement stands for a whole window.

    Parameters
    ----------
    per
        ``"ack"`` or ``"round"``.

    Raises
    ------
    ArgumentError
        Neither.

    Examples
    --------
    >>> whole_rounds("round")
    True
    """
    if per not in ("ack", "round"):
        raise ArgumentError("per", f"must be 'ack' or 'round', not {per!r}")
    return per == "round"


def _scalar(name: str, value: float) -> float:
    """Read a number above 0."""
    return _one(name, checks.positive(name, value))


def _window(name: str, value: float) -> float:
    """Read a window."""
    return _one(name, checks.between(name, value, 1, 1e9))


def _packet(value: int) -> int:
    """Read a packet size."""
    return int(_one("packet", checks.between("packet", checks.whole("packet", value), 1, 65535)))


def _count(name: str, value: int) -> int:
    """Read a number of steps."""
    return int(_one(name, checks.between(name, checks.whole(name, value), 0, MOST_STEPS)))


def _one(name: str, array: Array) -> float:
    """Refuse an array where a number is needed."""
    if array.ndim:
        raise ArgumentError(name, "must be one number, not an array")
    return float(array)
