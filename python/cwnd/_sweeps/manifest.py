"""The parts of a data set: their files, with checksums in a manifest."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import dataset, parquet

from cwnd._base import machine
from cwnd.errors import ArgumentError, naming

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from cwnd._base.records import JsonObject

Outs: TypeAlias = "str | Path | Sequence[str | Path]"
"""The directory of a data set, or those of several data sets of one plan."""

MANIFEST = "manifest"
"""Folder with one JSON document for each part."""

TABLES = ("flows", "links", "series")
"""Optional tables of a sweep, besides ``runs``."""

GROUP_ROWS = 1 << 16
"""Rows of a row group of a file; a query holds one in memory."""

LOST = "lost: "
"""Prefix of the error of a run whose worker died; a resumed sweep repeats the run."""

AGAIN = "`cwnd sweep PLAN --out` with another directory makes its runs again"
"""How to go on with a data set that this version does not continue."""

REMAINS_SECONDS = 3600.0
"""Age in seconds of a file that belongs to no part, after which a sweep removes the file."""

_NAME = re.compile(r"part-[0-9]{6,}-[0-9a-f]{16}")
_REMAINS = re.compile(rf"{_NAME.pattern}\.(parquet|json)|\.[0-9a-f]{{32}}\.tmp")


@dataclass(frozen=True)
class Part:
    """A part of a data set: one file in each table, with a common name."""

    out: Path
    name: str
    """Name of its files, without the suffix: a number and the random token of the writer."""
    runs: int
    """Number of runs; 0 if the manifest is unreadable."""
    plan: dict[str, str]
    """Identity of the plan."""
    files: dict[str, tuple[int, str]]
    """Size in bytes and SHA-256 of the file of each table."""

    @property
    def number(self) -> int:
        """Number of the part; parts of concurrent writers may share it."""
        return int(self.name.split("-")[1])

    @property
    def writer(self) -> str:
        """Token of the process that wrote the part."""
        return self.name.split("-")[2]

    @property
    def document(self) -> Path:
        """Path of the part's document in the manifest."""
        return self.out / MANIFEST / f"{self.name}.json"

    def file(self, table: str) -> Path:
        """Return the path of the part's file of a table."""
        return self.out / table / f"{self.name}.parquet"

    def damage(self, *, contents: bool) -> str | None:
        """Return what is wrong with the sizes of the files, and their ``contents``, or None."""
        if not self.files:
            return f"{MANIFEST}: unreadable"
        for table, (size, checksum) in self.files.items():
            file = self.file(table)
            try:
                found = file.lstat()
            except OSError as problem:
                return f"{table}: {problem.strerror}"
            if not stat.S_ISREG(found.st_mode):
                return f"{table}: not a regular file"
            if found.st_size != size:
                return f"{table}: {found.st_size} bytes instead of {size}"
            if contents and _checksum(file) != checksum:
                return f"{table}: wrong checksum"
        return None


class DamagedPart(TypedDict):
    """A part with a missing or changed file."""

    part: str
    problem: str
    runs: int


class Verification(TypedDict):
    """A data set compared with its manifest."""

    out: str
    parts: int
    """Number of undamaged parts."""
    runs: int
    """Number of runs in them."""
    damaged: list[DamagedPart]
    unlisted: list[str]
    """Files that belong to no part."""


def list_parts(out: Path) -> list[Part]:
    """Return the parts in the manifest of a data set, in the order of their names."""
    documents = (out / MANIFEST).glob("part-*.json")
    return [_read(out, file) for file in sorted(documents) if _NAME.fullmatch(file.stem)]


def unlisted(out: Path, parts: Sequence[Part]) -> list[Path]:
    """Return the files that belong to no part: copies, and remains of killed sweeps."""
    listed = {part.file(table) for part in parts for table in part.files}
    listed |= {part.document for part in parts}
    folders = [out / folder for folder in ("runs", *TABLES, MANIFEST)]
    files = [file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir())]
    return [file for file in (*files, *sorted(out.glob(".*.tmp"))) if file not in listed]


def verify(out: Path) -> Verification:
    """Compare all files of a data set with its manifest."""
    check_folders(out)
    parts = list_parts(out)
    others = [str(file.relative_to(out)) for file in unlisted(out, parts)]
    if not parts and not others:
        raise _empty(out)
    damages = [(part, part.damage(contents=True)) for part in parts]
    whole = [part for part, damage in damages if damage is None]
    return {
        "out": str(out),
        "parts": len(whole),
        "runs": sum(part.runs for part in whole),
        "damaged": [
            {"part": part.name, "problem": damage, "runs": part.runs}
            for part, damage in damages
            if damage is not None
        ],
        "unlisted": others,
    }


def add_part(
    out: Path, number: int, writer: str, tables: dict[str, pa.Table], plan: dict[str, str]
) -> None:
    """Write a part; it belongs to the data set when its document in the manifest has its name.

    ``writer`` is a random token of 16 hexadecimal digits; the last of ``tables`` is written first.
    """
    part = Part(out, f"part-{number:06}-{writer}", tables["runs"].num_rows, plan, {})
    try:
        for table in reversed(tables):
            content = encode(tables[table])
            _make_folder(out, table)
            write_file(part.file(table), content)
            part.files[table] = (content.size, hashlib.sha256(content).hexdigest())
        document = {"runs": part.runs, "plan": plan, "files": part.files}
        document["checksum"] = _checksum_of(document)
        text = json.dumps(document, indent=2)
        _make_folder(out, MANIFEST)
        write_file(part.document, text.encode())
    except BaseException:
        remove_part(part)
        raise


def encode(table: pa.Table) -> pa.Buffer:
    """Return the content of a table's file."""
    sink = pa.BufferOutputStream()
    parquet.write_table(
        table, sink, compression="zstd", row_group_size=GROUP_ROWS, write_page_checksum=True
    )
    return sink.getvalue()


def remove_part(part: Part) -> None:
    """Remove a part from the manifest, and its files."""
    part.document.unlink(missing_ok=True)
    for table in ("runs", *TABLES):
        part.file(table).unlink(missing_ok=True)


def remove_remains(out: Path, parts: Sequence[Part]) -> None:
    """Remove what killed sweeps left behind."""
    # Younger files may be those of a sweep on another machine, whose lock is invisible here.
    old = time.time() - REMAINS_SECONDS
    for file in unlisted(out, parts):
        if _REMAINS.fullmatch(file.name) and file.lstat().st_mtime < old:
            file.unlink(missing_ok=True)


def check_folders(out: Path) -> None:
    """Raise an error for a table that is a symbolic link, or a data set of an older version."""
    for folder in ("runs", *TABLES, MANIFEST):
        if (out / folder).is_symlink():
            raise ArgumentError("out", f"{out / folder} is a symbolic link: no sweep writes there")
    if not (out / MANIFEST).is_dir() and any((out / "runs").glob("part-*.parquet")):
        raise ArgumentError(
            "out",
            f"{out} has no manifest: an older version of cwnd wrote it; {AGAIN}",
        )


def write_file(path: Path, content: bytes | pa.Buffer) -> None:
    """Write a file durably: it has its name when its content is on the disk.

    A symbolic link of this name is replaced and not followed.
    """
    temporary = path.with_name(f".{secrets.token_hex(16)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | machine.O_NOFOLLOW
    try:
        with naming(path), open(os.open(temporary, flags, 0o666), "wb") as file:  # noqa: PTH123
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    machine.sync_folder(path.parent)


class Tables:
    """The tables of a data set, or of several data sets of one plan, for readers.

    A run counts once: concurrent writers may have made it twice, and a resumed sweep repeats lost
    runs. Missing or truncated parts, or different plans or code, are an ArgumentError.
    """

    def __init__(self, outs: Outs) -> None:
        self.outs = [Path(outs)] if isinstance(outs, str | Path) else [Path(out) for out in outs]
        self._parts: list[Part] = []
        for out in {out.resolve(): out for out in self.outs}.values():
            check_folders(out)
            parts = list_parts(out)
            if not parts:
                raise _empty(out)
            for part in parts:
                if damage := part.damage(contents=False):
                    raise damaged(out, f"{part.name}: {damage}")
            self._parts += parts
        if not self._parts:
            raise ArgumentError("out", "name at least one directory")
        first = self._parts[0].files
        self.names = [table for table in ("runs", *TABLES) if table in first]
        self._repeated: dict[int, pa.Array] = {}
        if len(self.outs) > 1:
            self._compare()
        self._repeated = self._find_repeated()

    def open(self, table: str) -> dataset.Dataset:
        """Return a table as an Arrow data set, which verifies the checksum of each page."""
        whole = [part for at, part in enumerate(self._parts) if at not in self._repeated]
        found = [self._scan(table, whole)] if whole else []
        for at, keys in self._repeated.items():
            rows = self._load(self._scan(table, [self._parts[at]]), None)
            kept = rows.filter(pc.invert(pc.is_in(rows["key"], value_set=keys)))
            found.append(dataset.dataset(kept))
        return found[0] if len(found) == 1 else dataset.dataset(found)

    def read(self, table: str, columns: list[str] | None = None) -> pa.Table:
        """Read a table, or some of its columns; ArgumentError if a page is damaged."""
        return self._load(self.open(table), columns)

    def _scan(self, table: str, parts: Sequence[Part]) -> dataset.Dataset:
        """Return the files of some parts as an Arrow data set."""
        options = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
        files = [str(part.file(table)) for part in parts]
        try:
            return dataset.dataset(
                files, format=dataset.ParquetFileFormat(default_fragment_scan_options=options)
            )
        except (OSError, pa.ArrowInvalid) as problem:
            raise damaged(self._parts[0].out, f"{table}: {problem}") from None

    def _load(self, scan: dataset.Dataset, columns: list[str] | None) -> pa.Table:
        """Read columns of an Arrow data set."""
        try:
            return scan.to_table(columns=columns)
        except (OSError, pa.ArrowInvalid) as problem:
            raise damaged(self._parts[0].out, str(problem)) from None

    def _compare(self) -> None:
        """Raise an error if the data sets are of different plans or made by different code."""
        # Not all parts have the same files as values of axes.
        seen: dict[str, tuple[str, Path]] = {}
        for part in self._parts:
            for name, value in part.plan.items():
                first, out = seen.setdefault(name, (value, part.out))
                if value != first:
                    problem = f"are of plans with a different `{name}`"
                    raise ArgumentError("out", f"{out} and {part.out} {problem}")
        made = self.read("runs", ["controller", "code"]).group_by(["controller"])
        for row in made.aggregate([("code", "distinct")]).to_pylist():
            if len(row["code_distinct"]) > 1:
                of = "" if row["controller"] is None else f" of {row['controller']}"
                codes = " and ".join(sorted(row["code_distinct"]))
                problem = f"the data sets have runs{of} with different code ({codes})"
                raise ArgumentError("out", problem)

    def _find_repeated(self) -> dict[int, pa.Array]:
        """Return the keys to skip in each part: of copies, and of lost runs that were repeated."""
        # A writer makes a run once.
        if len({(part.out, part.writer) for part in self._parts}) == 1:
            return {}
        hashes = [self._hash_keys(part) for part in self._parts]
        ordered = np.sort(np.concatenate(hashes))
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if not twice.size:
            return {}
        tables = [self._find_keys(at, of, twice) for at, of in enumerate(hashes)]
        rows = pa.concat_tables(tables)
        order = [("key", "ascending"), ("lost", "ascending"), ("part", "ascending")]
        repeated: dict[int, list[str]] = {}
        previous = None
        for row in rows.sort_by(order).select(["key", "part"]).to_pylist():
            if row["key"] == previous:
                repeated.setdefault(row["part"], []).append(row["key"])
            previous = row["key"]
        return {at: pa.array(keys, pa.string()) for at, keys in repeated.items()}

    def _hash_keys(self, part: Part) -> npt.NDArray[np.uint64]:
        """Return hashes of the keys of a part: 8 bytes instead of the 32 of a key."""
        from pandas.util import hash_array

        keys = self._load(self._scan("runs", [part]), ["key"])["key"]
        return hash_array(keys.to_numpy(), categorize=False)

    def _find_keys(
        self, at: int, hashes: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]
    ) -> pa.Table:
        """Return the keys of a part with some hashes, and which of these runs were lost."""
        found = np.isin(hashes, wanted)
        scan = self._scan("runs", [self._parts[at]])
        rows = self._load(scan, ["key", "error"]).filter(pa.array(found))
        lost = pc.fill_null(pc.starts_with(rows["error"], LOST), fill_value=False)
        return pa.table({"key": rows["key"], "lost": lost, "part": pa.repeat(at, rows.num_rows)})


def _read(out: Path, file: Path) -> Part:
    """Read a document of the manifest; an invalid one is a part without files."""
    try:
        document: JsonObject = json.loads(file.read_bytes())
        checksum = document.pop("checksum")
        files = {table: (size, of) for table, (size, of) in document["files"].items()}
        if checksum == _checksum_of(document) and files.keys() <= {"runs", *TABLES}:
            return Part(out, file.stem, document["runs"], document["plan"], files)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    return Part(out, file.stem, 0, {}, {})


def damaged(out: Path, problem: str) -> ArgumentError:
    """Return the error for a data set with a damaged file."""
    return ArgumentError(
        "out", f"{out} is damaged ({problem}): the command of the sweep makes such runs again"
    )


def _empty(out: Path) -> ArgumentError:
    """Return the error for a directory without parts."""
    return ArgumentError("out", f"{out} has no runs of a sweep")


def _make_folder(out: Path, name: str) -> None:
    """Create a folder of the data set if missing."""
    if not (out / name).is_dir():
        (out / name).mkdir(exist_ok=True)
        machine.sync_folder(out)


def _checksum_of(document: JsonObject) -> str:
    """Return the SHA-256 of a document of the manifest."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _checksum(file: Path) -> str:
    """Return the SHA-256 of a file."""
    hashed = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(1 << 20):
            hashed.update(block)
    return hashed.hexdigest()
