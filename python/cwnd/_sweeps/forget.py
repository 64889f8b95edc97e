"""Remove runs from a data set."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from cwnd._sweeps.dataset import lock
from cwnd._sweeps.manifest import add_part, damaged, list_parts, remove_part
from cwnd._sweeps.query import read


def forget(out: str | Path, where: str) -> int:
    """Remove runs from a data set, and return their number.

    ``where`` is an SQL condition on the columns of ``runs``. A part with such runs is replaced by
    one with its other runs, which is written before the old one is removed: a process that is
    killed loses no other run, and the same call continues.
    """
    out = Path(out)
    # The statement has no access to files.
    keys = read(out, f"select key from runs where ({where}\n)")["key"]  # noqa: S608
    opened = lock(out)
    try:
        _remove(out, pc.unique(keys))
    finally:
        os.close(opened)
    return len(keys)


def _remove(out: Path, keys: pa.Array) -> None:
    """Remove the rows of some runs from all parts."""
    parts = list_parts(out)
    writer = secrets.token_hex(8)
    number = 1 + max(part.number for part in parts)
    for part in parts:
        own = parquet.read_table(part.file("runs"), columns=["key"])["key"]
        found = pc.sum(pc.is_in(own, value_set=keys)).as_py()
        if not found:
            continue
        if found < part.runs:
            if damage := part.damage(contents=True):
                raise damaged(out, f"{part.name}: {damage}")
            tables = {}
            for table in part.files:
                rows = parquet.read_table(part.file(table))
                tables[table] = rows.filter(pc.invert(pc.is_in(rows["key"], value_set=keys)))
            add_part(out, number, writer, tables, part.plan)
            number += 1
        remove_part(part)
