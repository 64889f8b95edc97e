"""Install a wheel into a new virtual environment without extras and Rust, and test it.

    python bench/smoke.py cwnd-*.whl

Each command is run as by a user. The first failure ends the script with exit status 1.
"""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "python" / "cwnd"
SCENARIO = """
duration = "5s"
warmup = "1s"
[dumbbell]
rate = "10mbit"
delay = "20ms"
[[flow]]
controller = "simd"
count = 2
"""


class Installation:
    """A virtual environment with a wheel and its dependencies, in a folder."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        venv.create(folder / "venv", with_pip=True)
        self.folder = folder
        self.bin = folder / "venv" / "bin"
        path = [name for name in os.get_exec_path() if not (Path(name) / "cargo").exists()]
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CWND_", "PYTHON", "VIRTUAL_ENV"))
        } | {"PATH": os.pathsep.join([str(self.bin), *path]), "XDG_CONFIG_HOME": str(folder)}
        # Python compiles the modules that are imported; pip would compile all.
        options = ["--quiet", "--no-compile", "--only-binary", ":all:"]
        self.run("pip", "install", *options, str(wheel))

    def run(
        self, program: str, *arguments: str, status: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment; check its exit status."""
        done = subprocess.run(
            [self.bin / program, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode != status:
            line = " ".join([program, *arguments])
            sys.exit(f"{line}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def document(self, *arguments: str) -> dict[str, Any]:
        """Run a command that prints one JSON document."""
        return json.loads(self.run("cwnd", *arguments, "--json").stdout)


def main() -> None:
    """Check the wheel named on the command line."""
    wheel = Path(sys.argv[1]).resolve()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        installed = Installation(wheel, Path(folder))
        check_contents(installed)
        check_simulator(installed)
        check_transfer(installed)
        check_kernel(installed)
        size = measure(installed.bin.parent / "lib")
    took = time.monotonic() - began
    sys.stdout.write(
        f"{wheel.name}: works without extras and Rust; {size} MB installed, {took:.0f} s\n"
    )


def check_contents(installed: Installation) -> None:
    """Check the version and the files, and that neither Rust nor an extra is installed."""
    assert shutil.which("cargo", path=installed.environment["PATH"]) is None
    assert installed.run("cwnd", "--version").stdout.startswith("cwnd ")
    findings = {f["name"]: f for f in installed.document("doctor")["findings"]}
    extras = [name for name in findings if name.startswith("cwnd[")]
    assert extras
    assert not any(findings[name]["present"] for name in extras)
    root = installed.bin.parent
    package = next(root.glob("lib/python*/site-packages/cwnd"))
    for path in SOURCE.rglob("*"):
        if path.is_file() and path.suffix not in {".pyc", ".so"}:
            assert (package / path.relative_to(SOURCE)).exists(), path
    licences = {path.name for path in package.parent.glob("cwnd-*.dist-info/licenses/**/*")}
    assert {"LICENSE-MIT", "LICENSE-APACHE", "libbpf-BSD-2-Clause"} <= licences
    assert (root / "share/man/man1/cwnd-compare.1").exists()


def check_simulator(installed: Installation) -> None:
    """Compare two controllers, run a scenario, and request a report that needs an extra."""
    compared = installed.document("compare", "simd", "--time", "8s", "--repeat", "2")
    assert [row["controller"] for row in compared["alone"]] == ["reno", "simd"]
    (installed.folder / "two.toml").write_text(SCENARIO)
    metrics = installed.document("run", "two.toml")["metrics"]
    assert metrics["goodput_bps"] > 5e6, metrics
    assert installed.run("cwnd", "run", "two.toml").stdout
    packaged = installed.document("scenarios")["scenarios"]
    assert {each["kind"] for each in packaged} == {"scenario", "plan"}
    assert json.loads(installed.run("cwnd", "schema", "run").stdout)["title"]
    installed.run("cwnd", "new-scenario", "new.toml")
    assert installed.document("run", "new.toml", "--set", "duration=20s")["flows"]
    assert installed.document("run", "dumbbell", "--set", "duration=30s")["scenario"] == "dumbbell"
    refused = installed.run("cwnd", "run", "two.toml", "--report", "two.html", status=2).stderr
    assert refused == "cwnd: --report needs jinja2 and plotly: pip install 'cwnd[plots]'\n", refused


def check_transfer(installed: Installation) -> None:
    """Send a file over loopback."""
    source, inbox = installed.folder / "file", installed.folder / "inbox"
    source.write_bytes(os.urandom(3_000_000))
    inbox.mkdir()
    with subprocess.Popen(
        [installed.bin / "cwnd", "recv", "--once", "--port", "0", "--out", inbox],
        env=installed.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as receiver:
        try:
            assert receiver.stderr is not None
            (port,) = re.findall(r"port (\d+)", receiver.stderr.readline())
            installed.run("cwnd", "send", "file", f"127.0.0.1:{port}")
            assert receiver.wait(30) == 0
        finally:
            receiver.kill()
    assert filecmp.cmp(source, inbox / "file", shallow=False)


def check_kernel(installed: Installation) -> None:
    """Load the kernel's controllers, which needs the bundled libelf."""
    findings = {f["name"]: f for f in installed.document("kernel", "check")["findings"]}
    assert all(finding["detail"] for finding in findings.values())
    # Without these no controller can be loaded, and the findings give the reason.
    if all(
        findings[name]["fine"] for name in ("kernel", "capabilities", "BTF", "BPF JIT compiler")
    ):
        assert findings["window laws"]["fine"], findings["window laws"]["detail"]


def measure(folder: Path) -> int:
    """Return the size of a folder in MB, without pip and setuptools."""
    return round(
        sum(
            path.stat().st_size
            for path in folder.rglob("*")
            if path.is_file() and not {"pip", "setuptools", "pkg_resources"} & set(path.parts)
        )
        / 1e6
    )


if __name__ == "__main__":
    main()
