"""Optional dependencies: what is installed, and what it is needed for."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd._base.extras import EXTRAS, find_missing
from cwnd._base.machine import count_cores

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cwnd._base.records import JsonObject

_EXTRAS = {
    "plots": "reports, plots, Parquet traces and pandas frames",
    "sweep": "sweeps and their queries",
    "dask": "sweeps on a Dask cluster",
}

_PROGRAMS = {
    "ns": "ns-2, to compare the simulator's speed with",
    "wireshark": "opens the files of `cwnd run --pcap`",
    "tshark": "prints the files of `cwnd run --pcap`",
    "ip": "lets the tests join network namespaces",
    "tc": "sets up the kernel's own bottleneck for tests",
    "clang-14": "rebuilds the eBPF programs; the package contains compiled ones",
    "iperf3": "generates traffic to measure emulated links",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of the check for one dependency."""

    name: str
    present: bool
    detail: str
    """Version or path, or what is missing."""
    purpose: str
    """What the dependency is needed for."""

    def to_json(self) -> JsonObject:
        """Return the finding as plain data."""
        return asdict(self)


def examine() -> list[Finding]:
    """Check all dependencies, required ones first."""
    from cwnd._base.version import __version__

    return [
        Finding("cwnd", True, __version__, "laws and simulator"),  # noqa: FBT003
        Finding("python", True, platform.python_version(), "command line and API"),  # noqa: FBT003
        Finding("cores", True, str(count_cores()), "used by parallel runs"),  # noqa: FBT003
        *_extras(),
        *_programs(),
        *_kernel(),
    ]


def _extras() -> Iterator[Finding]:
    """Check the libraries of the package and of each of its extras."""
    required = ["click", "numpy", "rich", "scipy", "tomli-w"]
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
    """Check for programs."""
    for name, purpose in _PROGRAMS.items():
        path = shutil.which(name)
        yield Finding(name, path is not None, path or "not installed", purpose)


def _kernel() -> Iterator[Finding]:
    """Check the kernel's features."""
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
        "emulated networks isolated from the machine's own network",
    )


def _namespaces() -> bool:
    """Test whether this user can create a network namespace."""
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
