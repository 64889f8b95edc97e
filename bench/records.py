"""The types in python/cwnd/_base/records.py and tables in docs/json.md, from the records in Rust.

    python bench/records.py

After a change of the records: `make dev` first. A test fails if the files are stale.
"""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cwnd
from cwnd._native import record_schema

if TYPE_CHECKING:
    from collections.abc import Collection

ROOT = Path(__file__).parent.parent
TYPES, DOCUMENT = ROOT / "python/cwnd/_base/records.py", ROOT / "docs/json.md"
BEGIN, END = "# Begin of the types that bench/records.py generates.\n", "# End of these types.\n"
SCALARS = {"boolean": "bool", "integer": "int", "number": "float", "string": "str"}
ARRAYS = {"float": "Series", "int": "tuple[int, ...]"}


def annotation(schema: dict[str, Any]) -> str:
    """Return the Python type of a schema."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "anyOf" in schema:
        return f"{annotation(schema['anyOf'][0])} | None"
    kind = schema["type"]
    if isinstance(kind, list):
        return f"{SCALARS[kind[0]]} | None"
    if kind == "array":
        item = annotation(schema["items"])
        return ARRAYS.get(item, f"list[{item}]")
    if kind == "object":
        return f"dict[str, {annotation(schema['additionalProperties'])}]"
    return SCALARS[kind]


def docstring(schema: dict[str, Any]) -> str:
    """Return the description of a schema as an indented docstring."""
    text = f'"""{" ".join(schema["description"].split())}"""'
    return textwrap.fill(text, 100, initial_indent="    ", subsequent_indent="    ")


def types(classes: dict[str, Any]) -> str:
    """Return the TypedDicts, and the names of the counters."""
    parts = []
    for name, schema in classes.items():
        lines = [f"class {name}(TypedDict):", docstring(schema), ""]
        # Fields that may be None are not required.
        for field in dict.fromkeys([*schema["required"], *schema["properties"]]):
            own = schema["properties"][field]
            lines += [f"    {field}: {annotation(own)}", docstring(own)]
        parts.append("\n".join(lines))
    for name in ("Flow", "Link"):
        fields = classes[f"{name}Record"]
        # The document counts reductions at marks among `cuts`.
        counters = [
            f'    "{field}",'
            for field in fields["required"]
            if fields["properties"][field].get("format") == "uint64" and field != "ecn_cuts"
        ]
        parts.append("\n".join([f"{name.upper()}_COUNTERS = (", *counters, ")"]))
    return "\n\n\n".join(parts)


def table(text: str, heading: str, keys: Collection[str], schema: dict[str, Any]) -> str:
    """Replace the rows of the first table after a heading; rows of other keys stay as they are."""
    before, head, after = text.partition(f"{heading}\n")
    start, rule, rest = after.partition("|---|---|\n")
    rows, empty, end = rest.partition("\n\n")
    old = {re.findall(r"`(\w+)`", row)[0]: row for row in rows.splitlines()}
    # Series and lists are not in the document, which has other values of these names.
    fields = {k: v for k, v in schema["properties"].items() if not v.get("writeOnly")}
    written = [
        f"| `{key}` | {' '.join(fields[key]['description'].split())} |"
        if key in fields
        else old[key]
        for key in keys
    ]
    written += [row for key, row in old.items() if key not in keys]
    return before + head + start + rule + "\n".join(written) + empty + end


def generated() -> dict[Path, str]:
    """Return the contents of both files."""
    schema = json.loads(record_schema())
    classes = {**schema["$defs"], "RunRecord": schema}
    old = TYPES.read_text(encoding="utf-8")
    before, _, rest = old.partition(BEGIN)
    code = f"{before}{BEGIN}\n\n{types(classes)}\n\n\n{END}{rest.partition(END)[2]}"
    run = cwnd.run(cwnd.Scenario.dumbbell(time="1s").add_flow("reno")).to_json()
    text = DOCUMENT.read_text(encoding="utf-8")
    text = table(text, "## `cwnd run --json`", run, schema)
    text = table(text, "### `flows`", run["flows"][0], classes["FlowRecord"])
    text = table(text, "### `links`", run["links"][0], classes["LinkRecord"])
    return {TYPES: code, DOCUMENT: text}


def main() -> None:
    """Write both files."""
    for path, text in generated().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
