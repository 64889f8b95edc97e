"""Networks of the sources: rates in Mb/s, times in ms, buffers in bandwidth-delay products or KB.

Papers that measured Linux have its conventions. Copa's authors measured a sender in user space that
gets an acknowledgement for each packet. C4's tests run over QUIC, which detects losses by time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cwnd._papers.networks import dumbbell, flow

if TYPE_CHECKING:
    from cwnd._base.records import JsonObject
    from cwnd._runs.scenario import Scenario

FRAME = 1500
"""Bytes of a packet on the wire."""

LINUX: JsonObject = {"conventions": "linux", "packet": 1448}
EACH: JsonObject = {
    "conventions": "rfc5681",
    "packet": 1460,
    "delayed_acks": False,
    "overhead": "0s",
}
QUIC: JsonObject = {**EACH, "rack": True, "tlp": True}
"""TCP of Linux, with an acknowledgement for each packet, and with the loss detection of QUIC.

RACK and tail loss probes are nearest to RFC 9002. QUIC excludes the delay of acknowledgements from
round-trip times, as does an acknowledgement for each packet.
"""

PAYLOAD = 1448 / FRAME
"""Largest goodput over the rate of the link, with the conventions of Linux."""

PROBE_RTT = 3.0
"""State of BBR in which its window is four packets."""


def bdp(rate: float, rtt: float) -> float:
    """Return the bandwidth-delay product in packets."""
    return rate * 1e3 * rtt / 8 / FRAME


def path(
    name: str,
    duration: float,
    flows: list[JsonObject],
    *,
    rate: float,
    rtt: float,
    queue: float,
    tcp: JsonObject = LINUX,
    link: JsonObject | None = None,
    **keys: object,
) -> Scenario:
    """Return a dumbbell whose queue holds ``queue`` packets, rounded."""
    bottleneck = {"rate": rate * 1e6, "delay": rtt / 2e3, "queue": f"{max(1, round(queue))}p"}
    return dumbbell(name, duration, flows, bottleneck=bottleneck | (link or {}), tcp=tcp, **keys)


def lossy(controller: str, loss: float, duration: float) -> Scenario:
    """Return one flow on 100 Mb/s and 100 ms with random loss (Cardwell et al., Fig. 10)."""
    return path(
        "bbr-loss",
        duration,
        [flow(controller, start="0s..100ms")],
        rate=100,
        rtt=100,
        queue=bdp(100, 100),
        link={"loss": loss},
    )


def start(controller: str, duration: float, products: float) -> Scenario:
    """Return one flow on 10 Mb/s and 40 ms (Cardwell et al., Fig. 6 and 7)."""
    return path(
        "bbr-start",
        duration,
        [flow(controller, start="0s..40ms")],
        rate=10,
        rtt=40,
        queue=products * bdp(10, 40),
        sample="10ms",
    )


def steps(controller: str) -> Scenario:
    """Return one flow at 10, 20 and 10 Mb/s and 40 ms, 20 s each (Cardwell et al., Fig. 5)."""
    changes = [{"at": "20s", "rate": "20mbit"}, {"at": "40s", "rate": "10mbit"}]
    return path(
        "bbr-steps",
        60.0,
        [flow(controller, start="0s..1s")],
        rate=10,
        rtt=40,
        queue=8 * bdp(10, 40),
        link={"changes": changes},
        sample="10ms",
    )


def joining(count: int, gap: float, duration: float) -> Scenario:
    """Return flows of BBR that start one after the other on 100 Mb/s and 10 ms (ibid., Fig. 8)."""
    return path(
        "bbr-share",
        duration,
        [flow("bbr", start=f"{gap * n}s..{gap * (n + 0.5)}s") for n in range(count)],
        rate=100,
        rtt=10,
        queue=4 * bdp(100, 10),
        sample="50ms",
        warmup=duration / 2,
    )


def several(
    controller: str, count: int, products: float, duration: float, rtts: tuple[float, ...] = (40,)
) -> Scenario:
    """Return ``count`` flows for each round-trip time on 50 Mb/s (Hock et al.)."""
    flows = [
        flow(controller, name=f"at-{rtt:g}", count=count, rtt=rtt / 1e3, start="0s..2s")
        for rtt in rtts
    ]
    return path(
        "bbr-several",
        duration,
        flows,
        rate=50,
        rtt=0,
        queue=products * bdp(50, max(rtts)),
        warmup=duration / 4,
    )


def framework(
    controllers: tuple[str, ...], rtt: float, duration: float, *, buffer: float = 100.0
) -> Scenario:
    """Return flows on 10 Mb/s behind a buffer of ``buffer`` ms (Jaeger et al.'s framework)."""
    return path(
        "framework",
        duration,
        [flow(controller, start="0s..100ms") for controller in controllers],
        rate=10,
        rtt=rtt,
        queue=10e3 * buffer / 8 / FRAME,
        sample="40ms",
    )


class Place(NamedTuple):
    """A bottleneck of Ware et al.'s Fig. 8: rate in Mb/s, round-trip time in ms."""

    rate: float
    rtt: float

    @property
    def label(self) -> str:
        """Label in claims."""
        return f"{self.rate:g} Mb/s, {self.rtt:g} ms"


def versus(
    place: Place, products: int, bbr: int, others: int, duration: float, *, other: str = "cubic"
) -> Scenario:
    """Return flows of BBR and of a loss-based controller (Ware et al.)."""
    flows = [flow("bbr", name="bbr", count=bbr, start="0s..500ms")]
    if others:
        flows.append(flow(other, name="loss", count=others, start="0s..500ms"))
    return path(
        "bbr-versus",
        duration,
        flows,
        rate=place.rate,
        rtt=place.rtt,
        queue=products * bdp(place.rate, place.rtt),
        warmup=duration / 2,
    )


def filled(controller: str, rate: float, rtt: float, kilobytes: float, duration: float) -> Scenario:
    """Return one flow for a minute behind a buffer in KB (Cao et al., Fig. 5 and 7)."""
    return path(
        "bbr-buffer",
        duration,
        [flow(controller, start="0s..100ms")],
        rate=rate,
        rtt=rtt,
        queue=kilobytes * 1e3 / FRAME,
    )


def cliff(controller: str, loss: float, duration: float, *, before: bool = False) -> Scenario:
    """Return one flow on 100 Mb/s, 25 ms and 10 MB with random loss (Cao et al., Fig. 7).

    Packets are lost behind the bottleneck, or on a link before it.
    """
    law = flow(controller, start="0s..100ms")
    keys: JsonObject = {"rate": 100, "rtt": 25, "queue": 10e6 / FRAME}
    if not before:
        return path("bbr-cliff", duration, [law], **keys, link={"loss": loss})
    lossy_link = {"from": "source", "to": "left", "loss": loss}
    scenario = path("bbr-cliff", duration, [law | {"from": "source"}], **keys)
    return scenario.with_values({"link": [lossy_link]})


def pair(kilobytes: float, duration: float) -> Scenario:
    """Return a flow of BBR and one of CUBIC on 1 Gb/s and 20 ms (Cao et al., Fig. 8, Table 1)."""
    return path(
        "bbr-pair",
        duration,
        [flow("bbr", start="0s..100ms"), flow("cubic", start="0s..100ms")],
        rate=1000,
        rtt=20,
        queue=kilobytes * 1e3 / FRAME,
    )


def copa(count: int, rate: float, rtt: float, products: float, duration: float) -> Scenario:
    """Return flows of Copa whose queue is sampled each millisecond (Arun and Balakrishnan, 3)."""
    return path(
        "copa-queue",
        duration,
        [flow("copa", count=count, start="0s..500ms")],
        rate=rate,
        rtt=rtt,
        queue=products * bdp(rate, rtt),
        tcp=EACH,
        warmup=30.0,
        sample="1ms",
    )


def tcp_of(controller: str) -> JsonObject:
    """Return the TCP of a controller: Copa's authors measured a sender that gets each ACK."""
    return EACH if controller.startswith("copa") else LINUX


def alone(
    controller: str, duration: float, *, rtts: tuple[float, ...] = (40.0,) * 4, loss: float = 0.0
) -> Scenario:
    """Return a flow for each round-trip time on 24 Mb/s with a buffer of 2 BDP, of one law."""
    each: dict[float, int] = {rtt: rtts.count(rtt) for rtt in rtts}
    flows = [
        flow(controller, name=f"at-{rtt:g}", count=n, rtt=rtt / 1e3, start="0s..5s")
        for rtt, n in each.items()
    ]
    return path(
        "copa-alone",
        duration,
        flows,
        rate=24,
        rtt=0,
        queue=2 * bdp(24, max(rtts)),
        tcp=tcp_of(controller),
        link={"loss": loss},
        warmup=duration / 4,
    )


def beside_cubic(controller: str, products: float, duration: float) -> Scenario:
    """Return two flows of a law and two of CUBIC on 24 Mb/s and 40 ms."""
    flows = [
        flow(controller, name="first", count=2, tcp=tcp_of(controller)),
        flow("cubic", name="second", count=2),
    ]
    return path(
        "copa-beside",
        duration,
        flows,
        rate=24,
        rtt=40,
        queue=products * bdp(24, 40),
        warmup=duration / 4,
    )


class Transfer(NamedTuple):
    """A test of C4: rate in Mb/s, round-trip time and buffer in ms, sizes in MB, times in s.

    The transfer is due at ``deadline``. ``beside`` is another transfer: controller, size, start.
    """

    deadline: float
    rate: float = 20.0
    rtt: float = 80.0
    buffer: float = 80.0
    size: float = 10.0
    start: float = 0.0
    beside: tuple[str, float, float] | None = None
    changes: tuple[tuple[float, str, str], ...] = ()
    wifi: bool = False

    def scenario(self, *, steady: bool = False) -> Scenario:
        """Return the transfer, with access delays of up to 0.5 ms.

        With ``steady`` Wi-Fi does not delay acknowledgements at random.
        """
        flows = [flow("c4", name="main", bytes=int(1e6 * self.size), start=self.start)]
        if self.beside:
            controller, size, start = self.beside
            flows.append(flow(controller, name="beside", bytes=int(1e6 * size), start=start))
        link: JsonObject = {}
        if self.changes:
            link["changes"] = [{"at": at, key: value} for at, key, value in self.changes]
        if self.wifi:
            link["model"] = {"kind": "wifi", "jitter": "7ms"}
            if steady:
                link["back"] = {"rate": self.rate * 1e6}
        return path(
            "c4-test",
            60.0,
            flows,
            rate=self.rate,
            rtt=self.rtt,
            queue=self.rate * 1e3 * self.buffer / 8 / FRAME,
            tcp=QUIC,
            access={"delay": "0ms..0.5ms"},
            link=link,
        )


PAUSES = tuple(
    change
    for end in (2.0, 4.0, 6.0, 8.0)
    for change in ((end - 0.2, "rate", "0bit"), (end, "rate", "20mbit"))
)

C4_ALONE = {
    "c4_alone": Transfer(5.0),
    "c4_alone_200": Transfer(1.3, rate=200, rtt=40, size=20),
    "c4_low_and_up": Transfer(7.9, rate=5, rtt=100, size=7, changes=((2.5, "rate", "10mbit"),)),
    "c4_drop_and_back": Transfer(
        8.15,
        rate=10,
        rtt=100,
        size=7,
        changes=((1.5, "rate", "5mbit"), (3.5, "rate", "10mbit")),
    ),
    "c4_blackhole": Transfer(
        6.1, rate=25, rtt=70, changes=((2, "rate", "0bit"), (4, "rate", "25mbit"))
    ),
    "c4_short_long": Transfer(
        22.0, rate=10, rtt=30, buffer=100, size=20, changes=((1, "delay", "100ms"),)
    ),
    "c4_wifi_suspension": Transfer(5.4, rtt=10, buffer=20, changes=PAUSES),
    "c4_wifi_bad": Transfer(4.3, rate=10, rtt=2, buffer=250, size=4, wifi=True),
}
C4_ITSELF = {
    "c4_vs_c4": Transfer(6.7, size=5, beside=("c4", 10, 0)),
    "c4_after_c4": Transfer(8.15, size=5, start=0.5, beside=("c4", 10, 0)),
    "c4_before_c4": Transfer(4.1, rate=50, rtt=30, beside=("c4", 20, 0.5)),
    "c4_vs_c4_lg": Transfer(22.8, size=30, beside=("c4", 20, 0)),
    "c4_vs_c4_lg2": Transfer(22.1, rate=10, rtt=70, size=15, beside=("c4", 10, 1)),
    "c4_wifi_bad_c4": Transfer(
        13.5, rate=10, rtt=2, buffer=250, size=4, start=1, beside=("c4", 10, 0), wifi=True
    ),
}
CUBIC = "cubic(start=hystart-linux)"
"""CUBIC that leaves slow start at a delay, as in the stack of C4's authors."""

C4_CUBIC = {
    "c4_vs_cubic": Transfer(6.8, size=5, beside=(CUBIC, 10, 0)),
    "c4_vs_cubic_lg": Transfer(21.9, size=30, beside=(CUBIC, 20, 0)),
    "c4_vs_cubic_lg2": Transfer(22.0, rate=10, rtt=70, size=15, beside=(CUBIC, 10, 1)),
    "c4_wifi_bad_cubic": Transfer(
        12.1, rate=10, rtt=2, buffer=250, size=4, start=1, beside=(CUBIC, 10, 0), wifi=True
    ),
}
"""Tests of C4 by the names of their specifications: alone, beside C4 and beside CUBIC."""
