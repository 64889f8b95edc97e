from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cwnd._base.files import replacing, write_text

RUN = 'duration = "5s"\n[dumbbell]\nrate = "5mbit"\ndelay = "10ms"\n[[flow]]\ncontroller = "reno"\n'
LAW = 'law a "AIMD"\non grow:\n    return w + acked / w\non cut:\n    return w / 2\n'
CLASS = "class Law:\n    def grow(self, w, acked, cx):\n        return w + acked / w\n"


def test_a_file_that_does_not_become_whole_leaves_the_earlier_one(tmp_path):
    file = tmp_path / "report.html"
    file.write_text("mine")

    def fill() -> None:
        with replacing(file) as unfinished:
            unfinished.write_text("half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space") as found:
        fill()
    assert found.value.filename == str(file)
    assert file.read_text() == "mine"
    assert [*tmp_path.iterdir()] == [file]


def test_links_modes_and_devices_stay(tmp_path):
    file, link = tmp_path / "mine.law", tmp_path / "link.law"
    file.write_text("old")
    file.chmod(0o750)
    link.symlink_to(file)
    write_text(link, "new")
    assert link.is_symlink()
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o750
    write_text(os.devnull, "gone")
    assert not Path(os.devnull).is_file()


def test_an_error_names_the_file_of_the_user(tmp_path):
    file = tmp_path / "missing" / "report.html"
    with pytest.raises(FileNotFoundError) as found:
        write_text(file, "text")
    assert found.value.filename == str(file)


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (["run", "n.toml", "--report", "./n.toml"], "n.toml"),
        (["run", "n.toml", "--pcap", "n.toml", "--link", "left-right"], "n.toml"),
        (["run", "n.toml", "--plot", "p.png", "--report", "p.png"], "p.png"),
        (["run", "n.toml", "--set", "flow[0].controller=a.law", "--report", "a.law"], "a.law"),
        (["run", "n.toml", "--set", "flow[0].controller=m.py:Law", "--report", "m.py"], "m.py"),
        (["compare", "reno", "a.law", "--report", "a.law"], "a.law"),
        (["sweep", "p.toml", "--out", "out", "--report", "p.toml"], "p.toml"),
    ],
)
def test_an_output_is_no_other_file_of_the_command(command, tmp_path, arguments, file):
    texts = {"n.toml": RUN, "a.law": LAW, "m.py": CLASS, "p.toml": "x", "p.png": "x"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    done = command(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"the command reads or writes {file} already" in done.stderr
    assert {name: (tmp_path / name).read_text() for name in texts} == texts


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors of a shell")
@pytest.mark.parametrize("arguments", [["--version"], ["algorithms", "--json"], ["law", "check"]])
def test_a_closed_standard_output_is_one_line(arguments):
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", sys.executable, "-m", "cwnd", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, "cwnd: standard output is closed\n")
