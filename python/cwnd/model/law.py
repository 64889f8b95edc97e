"""Any registered law outside of a network, with the code that the simulator runs.

The law is in congestion avoidance, alone on a path with constant round-trip time. Acknowledgements
are evenly spaced over the round-trip time; losses are given explicitly. Functions that step by
rounds also run rate laws: the window is rate × round-trip time, and in every control interval the
law receives its own rate as the arrival rate, and the given capacity.
Windows are in packets and at least 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import numpy as np

from cwnd import _native
from cwnd._controllers.registry import describe
from cwnd.controller import Spec, read_controller
from cwnd.errors import ArgumentError
from cwnd.model import checks
from cwnd.model.checks import Array, Value
from cwnd.model.quantities import OneRtt, Packets, Unit, document

T = TypeVar("T")

Per: TypeAlias = Literal["ack", "round"]
"""How to step a window law: by every acknowledgement, as implemented, or by one acknowledgement of
the whole window per round trip, which is the rule that papers print."""

AtLoss: TypeAlias = Annotated[
    bool, "Whether ``window`` is the window at a loss; growth then starts from the reduced window"
]
Law: TypeAlias = Annotated[Spec, "A specification"]
WindowLaw: TypeAlias = Annotated[Spec, "A specification of a window law"]
PacketSize: TypeAlias = Annotated[int, "Packet size", Unit("bytes")]
FirstWindow: TypeAlias = Annotated[
    float, "The window when congestion avoidance begins; at least 1", Unit("packets")
]
Stepping: TypeAlias = Annotated[
    Per, "Whether to acknowledge every packet (``ack``), or a whole window at once (``round``)"
]

RTT_S = 0.1
PACKET_BYTES = 1500
MAX_STEPS = 100_000_000


@dataclass(frozen=True, slots=True)
class Sawtooth:
    """A law between periodic losses, all at the same window; arrays of one shape."""

    at_loss: Annotated[Array, "The window at a loss", Unit("packets")]
    after: Annotated[Array, "The window after a loss", Unit("packets")]
    rounds: Annotated[
        Array, "Round-trip times from a loss to the next; one window is sent in each", Unit("RTT")
    ]
    packets: Annotated[Array, "Packets acknowledged in that time", Unit("packets")]

    @property
    def increase(self) -> Array:
        """Increase in packets per round-trip time, averaged over the growth."""
        return np.asarray((self.at_loss - self.after) / self.rounds)

    @property
    def decrease(self) -> Array:
        """Fraction of the window given up at a loss."""
        return np.asarray(1 - self.after / self.at_loss)


def specification(spec: Annotated[Spec, "A controller; as for `cwnd.compare`"]) -> str:
    """Return the name of a controller.

    Examples
    --------
    >>> specification("simd( beta = 1/16 )"), specification("aimd(0.31, 1/8)")
    ('simd', 'aimd(alpha=0.31, beta=1/8)')
    """
    return read_controller(spec)[0]


def step(
    call: Annotated[Callable[..., T], "The function"],
    spec: Annotated[
        Spec | list[Spec] | tuple[Spec, ...],
        "Its first argument; a controller as for `cwnd.compare`, or a list or tuple of them",
    ],
    *values: Annotated[Any, "Its other positional arguments"],  # noqa: ANN401
    **options: Annotated[Any, "Its named arguments"],  # noqa: ANN401
) -> T:
    """Call a function of `cwnd._native` that steps one or several controllers.

    Raises
    ------
    SpecError
        An unknown name or parameter, a value out of range, or a controller written in Python that
        returns a value that is not finite.
    """
    many: Any = type(spec) if isinstance(spec, list | tuple) else None
    given: Any = spec if many else [spec]
    read = [read_controller(each) for each in given]
    stepped = [name if factory is None else factory for name, factory in read]
    return call(many(stepped) if many else stepped[0], *values, **options)


def is_rate_law(spec: Law) -> bool:
    """Test whether a law controls a rate with its own timer, instead of a window.

    Examples
    --------
    >>> is_rate_law("daimd"), is_rate_law("reno")
    (True, False)
    """
    return describe(spec).kind == "rate"


def acks(
    spec: WindowLaw,
    window: FirstWindow,
    count: Annotated[int, "Number of acknowledgements"],
    *,
    rtt: OneRtt = RTT_S,
    packet: PacketSize = PACKET_BYTES,
    at_loss: AtLoss = False,
) -> Annotated[
    Array, "``count + 1`` windows; before the first acknowledgement and after each", Unit("packets")
]:
    """Step a window law by acknowledgements of one packet each.

    Some laws depend on clock time, and so on ``rtt``.

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
    spec: Law,
    window: FirstWindow,
    count: Annotated[int, "Number of round-trip times"],
    *,
    rtt: OneRtt = RTT_S,
    packet: PacketSize = PACKET_BYTES,
    capacity: Annotated[
        float | None, "Capacity of the link; only rate laws need it", Unit("packets/RTT")
    ] = None,
    per: Stepping = "ack",
    at_loss: AtLoss = False,
) -> Annotated[
    Array, "``count + 1`` windows; before the first round and after each", Unit("packets")
]:
    """Step any law by round-trip times without losses.

    Examples
    --------
    >>> rounds("reno", 10, 2, per="round").tolist()
    [10.0, 11.0, 12.0]
    >>> rounds("daimd", 100, 2, capacity=1000).round(2).tolist()
    [100.0, 173.0, 183.0]
    """
    if capacity is None and is_rate_law(spec):
        name = specification(spec)
        raise ArgumentError("capacity", f"{name} needs the link's packets per round-trip time")
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
    spec: Law,
    window: Annotated[Packets, "Windows at the loss; at least 1, of any shape"],
    *,
    rtt: OneRtt = RTT_S,
    packet: PacketSize = PACKET_BYTES,
) -> Annotated[Value, "Windows after the loss; of the same shape", Unit("packets")]:
    """Return the window after the first loss that a law experiences.

    RFC 5681, section 3.1, for Reno; the decrease of each law's own paper.

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


def forgets(spec: WindowLaw, *, rtt: OneRtt = RTT_S, packet: PacketSize = PACKET_BYTES) -> bool:
    """Test whether a window law's state after a loss depends only on the window at the loss.

    Empirical test: the law reaches the same windows through four histories, and has to behave
    equally after each. CUBIC's and BIC's fast convergence, AIRA's loss rates and Westwood's
    estimate fail.

    Examples
    --------
    >>> forgets("simd"), forgets("cubic"), forgets("cubic(fast=off)")
    (True, False, True)
    """
    return step(_native.law_forgets, spec, rtt=_scalar("rtt", rtt), packet=_packet(packet))


def sawtooth(
    spec: WindowLaw,
    at_loss: Annotated[Packets, "Windows at the loss; at least 2, of any shape"],
    *,
    rtt: OneRtt = RTT_S,
    packet: PacketSize = PACKET_BYTES,
) -> Sawtooth:
    """Step a window law between losses at the same window until the cycle repeats.

    From windows of 128 packets on, each round has only 64 acknowledgements, of several packets.

    Raises
    ------
    ArgumentError
        A law whose cycle does not repeat, or whose loss reduces nothing.

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
            "spec",
            f"{name} has no cycle between losses at the same window: it does not reduce the window,"
            " does not return to it, or differs each time",
        )
    after, took, packets = (column.reshape(array.shape) for column in teeth.T)
    return Sawtooth(array, after, took, packets)


def whole_rounds(per: Annotated[str, "``ack`` or ``round``"]) -> bool:
    """Validate ``per``; true if one acknowledgement covers a whole window.

    Examples
    --------
    >>> whole_rounds("round")
    True
    """
    if per not in ("ack", "round"):
        raise ArgumentError("per", f"must be 'ack' or 'round', not {per!r}")
    return per == "round"


def _scalar(name: str, value: float) -> float:
    """Validate a number above 0."""
    return _require_number(name, checks.positive(name, value))


def _window(name: str, value: float) -> float:
    """Validate a window."""
    return _require_number(name, checks.between(name, value, 1, 1e9))


def _packet(value: int) -> int:
    """Validate a packet size."""
    return int(_require_number("packet", checks.whole("packet", value, 1, 65535)))


def _count(name: str, value: int) -> int:
    """Validate a number of steps."""
    return int(_require_number(name, checks.whole(name, value, 0, MAX_STEPS)))


def _require_number(name: str, array: Array) -> float:
    """Raise an error for an array where a number is needed."""
    if array.ndim:
        raise ArgumentError(name, "must be one number, not an array")
    return float(array)


document(globals())
