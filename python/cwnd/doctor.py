"""What of the optional outside world is there, and what it is good for."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.extras import EXTRAS, find_missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cwnd.records import JsonObject

_EXTRAS = {
    "plots": "reports, plots, traces and pandas frames",
    "sweep": "sweeps and their queries",
    "dask": "sweeps on a Dask cluster",
}

_PROGRAMS = {
    "ns": "ns-2, to compare the simulator's speed with",
    "wireshark": "opens what `cwnd run --pcap` writes",
    "tshark": "prints what `cwnd run --pcap` writes",
    "ip": "lets the tests join network namespaces",
    "tc": "gives the tests a bottleneck of the kernel's own",
    "clang-14": "builds the kernel's programs again; those of the package need no compiler",
    "iperf3": "makes traffic to measure emulated links with",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for.

    Attributes
    ----------
    name
        What it is called.
    present
        Whether it is there.
    detail
        Its version or place, or what is missing.
    purpose
        What it is good for.
    """

    name: str
    present: bool
    detail: str
    purpose: str

    def to_json(self) -> JsonObject:
        """Give the finding as plain data."""
        return asdict(self)


def examine() -> list[Finding]:
    """Look for everything that cwnd can use.

    Returns
    -------
    list of Finding
        What is needed first, then what is optional.
    """
    from cwnd import __version__

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [
        Finding("cwnd", True, __version__, "laws and simulator"),  # noqa: FBT003
        Finding("python", True, platform.python_version(), "everything above them"),  # noqa: FBT003
        Finding("cores", True, str(cores), "runs go on all of them"),  # noqa: FBT003
        *_extras(),
        *_programs(),
        *_kernel(),
    ]


def _extras() -> Iterator[Finding]:
    """Look for the libraries of the package and of each of its extras."""
    required = ["click", "griffelib", "numpy", "rich", "scipy", "tomli-w"]
    if sys.platform == "linux":
        required.append("pyroute2")
    yield Finding("libraries", present=True, detail=_versions(required), purpose="all commands")
    for extra, libraries in EXTRAS.items():
        missing = find_missing(extra)
        yield Finding(
            f"cwnd[{extra}]",
            present=not missing,
            detail=f"missing: {', '.join(missing)}" if missing else _versions(libraries),
            purpose=_EXTRAS[extra],
        )


def _versions(libraries: Sequence[str]) -> str:
    """List libraries with their versions."""
    return ", ".join(f"{library} {version(library)}" for library in libraries)


def _programs() -> Iterator[Finding]:
    """Look for programs."""
    for name, purpose in _PROGRAMS.items():
        path = shutil.which(name)
        yield Finding(name, path is not None, path or "not installed", purpose)


def _kernel() -> Iterator[Finding]:
    """Look for what the kernel offers."""
    tun = Path("/dev/net/tun")
    yield Finding(
        "TUN",
        tun.exists(),
        str(tun) if tun.exists() else f"no {tun}",
        "emulated links",
    )
    btf = Path("/sys/kernel/btf/vmlinux")
    yield Finding(
        "BTF",
        btf.exists(),
        f"{btf}, Linux {platform.release()}" if btf.exists() else f"no {btf}",
        "controllers in the Linux kernel, loaded by `cwnd kernel`",
    )
    spaces = _namespaces()
    yield Finding(
        "namespaces",
        spaces,
        "can be made" if spaces else "cannot be made by this user",
        "emulated networks without touching the machine's own",
    )


def _namespaces() -> bool:
    """Tell whether this user can make a network namespace."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return False
    try:
        done = subprocess.run(  # noqa: S603
            [unshare, "--user", "--net", "--map-root-user", "true"],
            capture_output=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
