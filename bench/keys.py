"""The tables of keys in docs/scenario.md, from the JSON Schema of scenarios.

    python bench/keys.py

A comment ``<!-- keys: TABLE -->`` precedes each. After a change of the keys or of their
descriptions: `make dev` first. A test fails if the document is stale.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd._runs.scenario_keys import key_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cwnd._runs.scenario_keys import Key

DOCUMENT = Path(__file__).parent.parent / "docs/scenario.md"
MARKED = re.compile(r"^(<!-- keys: (\w+) -->\n\n)(?:\|.*\n)*\n*", re.MULTILINE)
HEAD = ("| key | value | default | |", "|---|---|---|---|")


def rows(keys: list[Key]) -> Iterator[str]:
    """Yield the rows of a table."""
    for key in keys:
        default = "required" if key.required else f"`{key.default}`" if key.default else ""
        cells = (f"`{key.name}`", key.type, default, key.meaning)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def generated() -> str:
    """Return the contents of the document."""
    tables = {table.name: table.keys for table in key_tables()}

    def fill(marked: re.Match[str]) -> str:
        return marked[1] + "\n".join([*HEAD, *rows(tables[marked[2]])]) + "\n\n"

    return MARKED.sub(fill, DOCUMENT.read_text(encoding="utf-8"))


if __name__ == "__main__":
    DOCUMENT.write_text(generated(), encoding="utf-8")
