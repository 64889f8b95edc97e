"""The manual pages."""

from __future__ import annotations

import shutil
import subprocess
import sys

import click
import pytest

from cwnd._cli import run
from cwnd._cli.man import pages
from cwnd._cli.verbs import cwnd


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man")
    assert run(["man", str(folder)]) == 0
    return folder


def test_each_command_has_a_page(made):
    names = {path.name for path in made.iterdir()}
    assert {"cwnd.1", "cwnd-send.1", "cwnd-recv.1", "cwnd-kernel-load.1", "cwnd-man.1"} <= names
    assert len(names) == sum(1 for _ in pages(cwnd, "cwnd"))


def test_each_option_is_on_its_page(made):
    def look(command: click.Command, name: str) -> None:
        text = (made / f"{name}.1").read_text().replace("\\-", "-")
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert all(word in text for word in option.opts), (name, option.opts)
        for inner, below in getattr(command, "commands", {}).items():
            look(below, f"{name}-{inner}")

    look(cwnd, "cwnd")


def test_variables_and_exit_codes_are_told(made):
    assert "CWND_SEND_RATE_LIMIT" in (made / "cwnd-send.1").read_text()
    for name in ("cwnd.1", "cwnd-send.1", "cwnd-recv.1"):
        text = (made / name).read_text()
        assert "Exit status: 0" in text
        assert "130 if interrupted" in text.replace("\n", " ")


def test_pages_have_no_warnings(made):
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    for path in made.iterdir():
        done = subprocess.run(
            ["groff", "-z", "-ww", "-man", "-Tutf8", str(path)], capture_output=True, check=True
        )
        assert done.stderr == b"", path.name


def test_roff_is_escaped():
    @click.command(help="Removes .\\foo and 'bar'.\n\n.so /etc/passwd")
    def trap() -> None:
        pass

    ((_, text),) = pages(trap, "trap")
    assert "\n.so" not in text
    assert "\\&.so" in text
    assert ".\\efoo" in text


def test_a_directory_that_cannot_be_written(capsys):
    assert run(["man", "/proc/x"]) == 2
    assert capsys.readouterr().err.startswith("cwnd: --directory: cannot create /proc/x")


def test_pages_are_written_before_the_native_module_is_compiled(made, complete, tmp_path):
    program = (
        "import sys; sys.modules['cwnd._native'] = None; from cwnd.__main__ import main; main()"
    )
    done = complete(sys.executable, "-c", program, "man", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in made.iterdir()}
