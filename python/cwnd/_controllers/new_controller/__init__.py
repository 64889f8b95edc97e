"""A controller, begun from a template: in Rust for a checkout of cwnd, or a law in a file.

The templates beside this file are a plain AIMD as a window law, as a rate law and as a whole
controller. rustfmt sorts and wraps the lists that name it.
"""

from __future__ import annotations

import os
import re
import subprocess
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Literal, TypeAlias

from cwnd import _native
from cwnd._base.files import write_text
from cwnd.errors import ArgumentError

Kind: TypeAlias = Literal["window", "rate", "whole"]

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_MOST_LETTERS = 64
"""Letters of the longest name in the language of laws."""

_CODE = Path("crates", "cwnd", "src")
_LAWS, _ANY = _CODE / "laws" / "mod.rs", _CODE / "laws" / "any.rs"
_CONTROLLERS = _CODE / "controllers" / "mod.rs"
_REGISTRY, _CRATE = _CODE / "registry.rs", _CODE / "lib.rs"
_VARIANTS: dict[Kind, str] = {
    "window": r"^    AnyLaw \{\n(?:        \w+,\n)+",
    "rate": r"^    AnyRateLaw \{\n(?:        \w+,\n)+",
}


def write_controller(name: str, kind: Kind, directory: Path) -> list[Path]:
    """Write a controller in Rust, and its place in the registry, into a checkout of cwnd.

    Return the files written, the controller first and its entry in the registry last. Nothing is
    written if an ArgumentError is raised.
    """
    root = _find_checkout(directory)
    _check_name(name)
    folder = "controllers" if kind == "whole" else "laws"
    code, entry = _CODE / folder / f"{name}.rs", _CODE / "registry" / f"{kind}.rs"
    for path in (code, code.with_suffix(".law"), code.with_suffix("")):
        if (root / path).exists():
            raise ArgumentError("name", f"{path} exists already")
    template = _read_template(f"{kind}_{'controller' if kind == 'whole' else 'law'}.rs")
    words = {"name": name, "Type": name.title().replace("_", ""), "CONST": name.upper()}
    created, additions = (_plan_whole if kind == "whole" else _plan_law)(kind, entry, root)
    texts = {path: (root / path).read_text(encoding="utf-8") for path in additions}
    _check_words(words, {code: template, **texts})
    for path, added in additions.items():
        for pattern, text in added.items():
            texts[path] = _insert(path, texts[path], pattern, Template(text).substitute(words))
    new = {code: template, **created}
    texts = {path: Template(text).substitute(words) for path, text in new.items()} | texts
    # The entry is named last.
    texts[entry] = texts.pop(entry)
    _write({root / path: _format(root, path, text) for path, text in texts.items()})
    return [root / path for path in texts]


def write_law(name: str, kind: Kind, directory: Path) -> Path:
    """Write a law in a file, and return the file; an ArgumentError if it exists."""
    if kind == "whole":
        raise ArgumentError("kind", "a law in a file is for the window or for the rate")
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ArgumentError("name", f"{name!r} is not a name of letters, digits and _")
    if len(name) > _MOST_LETTERS:
        raise ArgumentError(
            "name", f"a name of {len(name)} letters is too long: at most {_MOST_LETTERS}"
        )
    path = directory / f"{name}.law"
    text = Template(_read_template(f"{kind}.law")).substitute(name=name)
    if _native.check_law(path.name, text)[0]["law"] is None:
        raise ArgumentError("name", f"{name!r} is a word of the language of laws")
    if os.path.lexists(path):
        raise ArgumentError("name", f"{path.name} exists already")
    write_text(path, text)
    return path


_Created: TypeAlias = dict[Path, str]
"""Files to create, as templates."""

_Additions: TypeAlias = dict[Path, dict[str, str]]
"""Lines and items to insert into files, each behind the last match of a pattern."""


def _plan_law(kind: Kind, entry: Path, _root: Path) -> tuple[_Created, _Additions]:
    """Return what a law adds to the checkout."""
    return {}, {
        _LAWS: {
            r"^pub mod .*;\n": "pub mod $name;\n",
            r"^pub use .*;\n": "pub use $name::$Type;\n",
        },
        _ANY: {r"^use super::\{": "$Type,", _VARIANTS[kind]: "        $Type,\n"},
        _REGISTRY: {rf"^(?:    {kind}::\w+,\n)+": f"    {kind}::$CONST,\n"},
        entry: {
            r"^use crate::laws::.*;\n": "use crate::laws::$Type;\n",
            r"\Z": _read_template(f"{kind}_entry.rs"),
        },
    }


def _plan_whole(_kind: Kind, entry: Path, root: Path) -> tuple[_Created, _Additions]:
    """Return what a whole controller adds to the checkout, whose first one it may be."""
    described = _read_template("whole_entry.rs")
    listed = {r"^(?:    (?:rate|whole)::\w+,\n)+": "    whole::$CONST,\n"}
    if (root / _CONTROLLERS).exists():
        return {}, {
            _CONTROLLERS: {
                r"^pub mod .*;\n": "pub mod $name;\n",
                r"^pub use .*;\n": "pub use $name::$Type;\n",
            },
            _REGISTRY: listed,
            entry: {
                r"^use crate::controllers::.*;\n": "use crate::controllers::$Type;\n",
                r"\Z": described,
            },
        }
    created = {
        _CONTROLLERS: _read_template("whole_mod.rs"),
        entry: _read_template("whole_registry.rs") + described,
    }
    return created, {
        _CRATE: {r"^mod .*;\n": "pub mod controllers;\n"},
        _REGISTRY: {r"^mod .*;\n": "mod whole;\n", **listed},
    }


def _find_checkout(directory: Path) -> Path:
    """Return the root of the checkout that a directory is in."""
    for root in (directory, *directory.parents):
        if (root / _REGISTRY).is_file():
            return root
    raise ArgumentError("directory", f"{directory} is in no checkout of cwnd: there is no {_CODE}")


def _check_name(name: str) -> None:
    """Check that a module of Rust can have this name."""
    if not _NAME.fullmatch(name):
        raise ArgumentError(
            "name",
            f"{name!r} is not a name of lower-case letters and digits, such as ledbat or tcp_lp",
        )
    if _rustfmt(f"mod {name};\n").returncode != 0:
        raise ArgumentError("name", f"{name!r} is a keyword of Rust")


def _check_words(words: dict[str, str], texts: dict[Path, str]) -> None:
    """Check that the code does not use a controller's names for anything else."""
    for path, text in texts.items():
        code = re.sub(r'"(?:\\[\s\S]|[^"\\])*"|//.*', "", text)
        # Only there are modules of controllers named.
        modules = path in (_LAWS, _ANY, _CONTROLLERS)
        for word in words.values() if modules else (words["Type"], words["CONST"]):
            if re.search(rf"\b{word}\b", code):
                raise ArgumentError("name", f"{word} has another meaning in the code of cwnd")


def _read_template(file: str) -> str:
    """Return the text of a template."""
    return files(__name__).joinpath(file).read_text(encoding="utf-8")


def _insert(path: Path, text: str, pattern: str, added: str) -> str:
    """Insert behind the last match of a pattern."""
    found = list(re.finditer(pattern, text, re.MULTILINE))
    if not found:
        line = added.strip().splitlines()[0]
        raise ArgumentError("directory", f"{path} has no place for `{line}` that this cwnd knows")
    end = found[-1].end()
    return text[:end] + added + text[end:]


def _format(root: Path, path: Path, text: str) -> str:
    """Format the text of a file as the checkout's rustfmt.toml says."""
    done = _rustfmt(text, "--config-path", str(root))
    if done.returncode != 0:
        problem = done.stderr.strip().splitlines()[0]
        raise ArgumentError("directory", f"{path} is not Rust: {problem}")
    return done.stdout


def _rustfmt(text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run rustfmt on a text."""
    try:
        return subprocess.run(  # noqa: S603 — a fixed program, and the checkout's own directory
            ["rustfmt", "--edition", "2024", *options],  # noqa: S607
            input=text,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    except FileNotFoundError:
        add = "`rustup component add rustfmt` installs it"
        raise ArgumentError("directory", f"rustfmt is not installed: {add}") from None


def _write(texts: dict[Path, str]) -> None:
    """Write files: all of them, or none where one cannot be written."""
    parts = {path: path.with_name(f"{path.name}.new") for path in texts}
    folders = {path.parent for path in texts if not path.parent.exists()}
    try:
        for folder in folders:
            folder.mkdir()
        for path, text in texts.items():
            parts[path].write_text(text, encoding="utf-8", newline="\n")
    except OSError:
        for part in parts.values():
            part.unlink(missing_ok=True)
        for folder in folders:
            folder.rmdir()
        raise
    for path, part in parts.items():
        part.replace(path)
