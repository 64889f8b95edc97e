"""Whether two programs simulate the same bits.

    python bench/equal.py BASE [SCENARIO …]

BASE is a commit, a program built from one, or a command that runs a program for another system,
such as "qemu-aarch64-static cwnd-bench". The program of BASE needs the option ``--digest``.
Runs every scenario file with its own conventions, with those of the RFCs and with Linux's; with and
without lookahead. Compares the digests of the complete records.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages import ROOT, program, program_of

from cwnd._base import toml as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator

CONVENTIONS = (None, "rfc", "linux")
MODES = ((), ("--every-event",))
# Seconds after which a run counts as not made.
LONGEST = 600


def variants(files: list[Path]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield a name, the scenario in JSON and the arguments of every run."""
    for file in files:
        scenario: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
        for conventions in CONVENTIONS:
            if conventions is not None:
                scenario = {
                    **scenario,
                    "tcp": {**scenario.get("tcp", {}), "conventions": conventions},
                }
            for mode in MODES:
                name = " ".join((file.stem, conventions or "own", *mode))
                yield name, json.dumps(scenario), mode


def digest(path: str, scenario: str, mode: tuple[str, ...]) -> str:
    """Return the digest of a run, or why there is none."""
    done = subprocess.run(
        [*shlex.split(path), "--digest", *mode],
        input=scenario,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    if done.returncode:
        return done.stderr.strip()
    return json.loads(done.stdout).get("digest", "the program has no --digest")


def main() -> None:
    """Compare, and fail if a run differs."""
    parser = argparse.ArgumentParser(description="Whether two programs simulate the same bits.")
    parser.add_argument("base", metavar="BASE", help="a commit, a program or a command")
    parser.add_argument("scenarios", nargs="*", type=Path, help="by default all files")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    files = arguments.scenarios or sorted((ROOT / "python/cwnd/scenarios").glob("*.toml"))
    programs = (program_of(arguments.base), program())
    runs = list(variants(files))
    with ThreadPoolExecutor(arguments.jobs) as pool:
        found = pool.map(lambda run: [digest(path, *run[1:]) for path in programs], runs)
        pairs = list(zip((name for name, *_ in runs), found, strict=True))
    different = [name for name, (before, after) in pairs if before != after]
    failed = sum(len(after) != len("0123456789abcdef") for _, (_, after) in pairs)
    print(f"{len(pairs) - len(different)} of {len(pairs)} runs are equal, {failed} of them not run")
    if different:
        sys.exit("\n".join(["These differ:", *different]))


if __name__ == "__main__":
    main()
