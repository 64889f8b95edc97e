"""Whether the package on another system prints the same documents as on this one.

    python bench/package.py COMMAND

COMMAND runs cwnd of another system, such as "qemu-aarch64-static python3 -m cwnd". Figures may
differ by a relative 1e-12, because mathematical functions differ in the last bit. Wall times are
not compared.
"""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMANDS = (
    ("run", "dumbbell", "--json"),
    ("compare", "reno", "simd", "--repeat", "2", "--time", "5s", "--json"),
)
TOLERANCE = 1e-12
# Seconds after which a command counts as failed.
LONGEST = 600


def output(*command: str) -> str:
    """Return what a command prints, or end with its errors."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    if done.returncode:
        sys.exit(f"{shlex.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def different(here: object, there: object, path: str = "") -> Iterator[str]:
    """Yield the paths of two documents' values that differ, with the values."""
    if path.endswith(".wall_s"):
        return
    if isinstance(here, dict) and isinstance(there, dict) and list(here) == list(there):
        for key, value in here.items():
            yield from different(value, there[key], f"{path}.{key}")
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for number, pair in enumerate(zip(here, there, strict=True)):
            yield from different(*pair, f"{path}[{number}]")
    elif not (
        here == there
        or (
            isinstance(here, float)
            and isinstance(there, float)
            and math.isclose(here, there, rel_tol=TOLERANCE)
        )
    ):
        yield f"{path}: {here} here, {there} there"


def main() -> None:
    """Compare, and fail if a value differs."""
    systems = [sys.executable, "-m", "cwnd"], shlex.split(sys.argv[1])
    here, there = (output(*system, "--version") for system in systems)
    if here != there:
        sys.exit(f"{here.strip()} here, {there.strip()} there")
    for command in COMMANDS:
        here, there = (json.loads(output(*system, *command)) for system in systems)
        found = list(different(here, there))
        if found:
            sys.exit("\n".join([f"cwnd {shlex.join(command)} differs:", *found]))
        print(f"cwnd {shlex.join(command)}: equal")


if __name__ == "__main__":
    main()
