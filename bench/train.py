"""Runs from which `make wheel` takes the compiler's profile: other networks than bench/run.py."""

from __future__ import annotations

import cwnd

CONTROLLERS = ("reno", "cubic", "bbr", "bbr3", "c4", "simd", "aira", "aiad", "daimd", "dctcp")
QUEUES = ("droptail", "red", "fq_codel")


def main() -> None:
    """Run each controller under the conventions of Linux and of the RFCs."""
    for number, controller in enumerate(CONTROLLERS):
        for conventions in ("linux", "rfc"):
            scenario = cwnd.Scenario.dumbbell(
                rate="60mbit",
                rtt="35ms",
                time="10s",
                queue=QUEUES[number % len(QUEUES)],
                conventions=conventions,
            )
            cwnd.run(scenario.add_flow(controller, count=3))
            print(f"{controller}, {conventions}")


if __name__ == "__main__":
    main()
