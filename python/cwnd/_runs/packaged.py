"""The scenario files and plans of sweeps in the package."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

Folder: TypeAlias = Literal["scenarios", "plans"]
"""A folder of the package, and what its files are."""

_PACKAGE = Path(__file__).parents[1]


class Packaged(NamedTuple):
    """A file of the package."""

    name: str
    """Its name without the ending."""
    path: Path

    @property
    def text(self) -> str:
        """Its contents."""
        return self.path.read_text(encoding="utf-8")

    @property
    def title(self) -> str:
        """The title in the file, or else its first line, a comment."""
        from cwnd._base import toml as tomllib

        first = self.text.partition("\n")[0].strip("# .")
        return str(tomllib.loads(self.text).get("title", first))


def packaged(folder: Folder) -> list[Packaged]:
    """List the files of a folder of the package, in alphabetical order."""
    paths = sorted((_PACKAGE / folder).glob("*.toml"))
    return [Packaged(path.stem, path) for path in paths]


def _is_file(path: Path) -> bool:
    """Test whether a path can be read: a file, or a pipe."""
    return path.exists() and not path.is_dir()


def locate(path: Path, folder: Folder, home: Path = Path()) -> Path:
    """Return the path of a file, or of the packaged one of this name if there is no such file.

    A packaged file has a name without a folder, such as ``wireless`` or ``wireless.toml``; other
    paths are relative to ``home``.

    Examples
    --------
    >>> locate(Path("wireless"), "scenarios").relative_to(_PACKAGE).as_posix()
    'scenarios/wireless.toml'
    """
    here = home / path
    if path.name != str(path) or path.suffix not in {"", ".toml"} or _is_file(here):
        return here
    for each in packaged(folder):
        if each.name == path.name.removesuffix(".toml"):
            return each.path
    absent = f"no such file, and none of the packaged {folder} has this name: see `cwnd scenarios`"
    raise FileNotFoundError(errno.ENOENT, absent, str(path))
