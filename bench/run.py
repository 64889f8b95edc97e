"""The speed of the simulator: the times and memory sizes of docs/performance.md.

    python bench/run.py [ns2] [many] [controllers] [defaults] [recording] [command] [reproduce]
    python bench/run.py --base BASE        BASE is a commit, or a program built from one

All parts take about five minutes on two cores. Packets are data packets transmitted by the senders.
"""

from __future__ import annotations

import argparse
import os
import platform

import command
import controllers
import defaults
import many
import ns2
import ratio
import recording

PARTS = {
    "ns2": ns2.main,
    "many": many.main,
    "controllers": controllers.main,
    "defaults": defaults.main,
    "recording": recording.main,
    "command": command.main,
    "reproduce": command.reproduce,
}


def main() -> None:
    """Run the selected parts, or compare with another commit."""
    parser = argparse.ArgumentParser(description="The speed of the simulator.")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; by default all"
    )
    parser.add_argument("--base", help="print the ratios to this commit instead")
    arguments = parser.parse_args()
    parts = arguments.parts or list(PARTS)
    if unknown := set(parts) - PARTS.keys():
        parser.error(f"unknown part {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    if arguments.base:
        ratio.main(arguments.base)
        return
    for part in parts:
        PARTS[part]()


if __name__ == "__main__":
    main()
