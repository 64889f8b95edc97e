"""The speed of the simulator: everything that docs/performance.md says of seconds and bytes.

    python bench/run.py [ns2] [many] [watching] [command] [reproduce]

All of it takes about five minutes on two cores. Packets are data packets put on the wire by the
senders.
"""

from __future__ import annotations

import argparse
import os
import platform

import command
import many
import ns2
import watching

PARTS = {
    "ns2": ns2.main,
    "many": many.main,
    "watching": watching.main,
    "command": command.main,
    "reproduce": command.reproduce,
}


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description="The speed of the simulator.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all")
    parts = parser.parse_args().parts or list(PARTS)
    if unknown := set(parts) - PARTS.keys():
        parser.error(
            f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}"
        )
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for part in parts:
        PARTS[part]()


if __name__ == "__main__":
    main()
