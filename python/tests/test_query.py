from __future__ import annotations

import csv
import json
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from cwnd._sweeps.manifest import add_part
from cwnd._sweeps.query import query, read, tables
from cwnd._sweeps.sweep import Sweep
from cwnd.errors import ArgumentError


@pytest.fixture
def out(tmp_path):
    """A data set of two files: 60 runs of which 5 failed."""
    home = tmp_path / "my sweep's"
    rows = [
        {
            "key": f"{number:032x}",
            "dumbbell.rate": f"{number // 4 + 1}mbit",
            "controller": "reno" if number % 2 else "aimd(0.31, 1/8)",
            "seed": number % 4,
            "error": "ValueError: [bold]no" if number >= 55 else None,
            "jain": None if number >= 55 else 1 - number / 1000,
        }
        for number in range(60)
    ]
    schema = pa.schema(
        {
            "key": pa.string(),
            "dumbbell.rate": pa.string(),
            "controller": pa.string(),
            "seed": pa.uint64(),
            "error": pa.string(),
            "jain": pa.float64(),
        }
    )
    home.mkdir()
    for number, part in enumerate((rows[:30], rows[30:])):
        flows = {
            "key": [row["key"] for row in part],
            "packets": list(range(30 * number, 30 * number + 30)),
        }
        written = {"runs": pa.Table.from_pylist(part, schema=schema), "flows": pa.table(flows)}
        add_part(home, number, "a" * 16, written, {})
    # A part that is not complete: the manifest does not have it.
    lost = pa.table({"key": ["lost"], "packets": [1]})
    parquet.write_table(lost, home / "flows" / f"part-000002-{'a' * 16}.parquet")
    return home


def refuse(out, sql):
    with pytest.raises(ArgumentError) as caught:
        query(out, sql)
    assert caught.value.argument == "sql"
    assert "\n" not in caught.value.problem
    return caught.value.problem


def test_a_query_sees_all_files(out):
    frame = query(out, "select controller, count(*) n, count(error) failed from runs group by 1")
    assert frame.set_index("controller").to_dict() == {
        "n": {"reno": 30, "aimd(0.31, 1/8)": 30},
        "failed": {"reno": 3, "aimd(0.31, 1/8)": 2},
    }


def test_tables_are_joined_by_the_key(out):
    joined = query(
        out, "select sum(packets) s from runs join flows using (key) where error is null"
    )
    assert joined["s"].tolist() == [sum(range(55))]
    assert joined["s"].dtype == "int64"


def test_sums_beyond_64_bits_are_doubles(out):
    assert query(out, "select sum(9e18::bigint) s from runs")["s"].tolist() == [60 * 9e18]


def test_rates_and_times_are_read_with_their_units(out):
    frame = query(
        out,
        "select bps(\"dumbbell.rate\") rate, seconds('80ms') s from runs "
        "group by all order by rate desc limit 1",
    )
    assert frame.to_dict("records") == [{"rate": 15e6, "s": 0.08}]
    assert "'x' is not a rate such as 15mbit" in refuse(out, "select bps('x')")


def test_tables_are_listed(out):
    found = {table.name: table for table in tables(out)}
    assert list(found) == ["runs", "flows"]
    assert found["runs"].rows == 60
    assert ("seed", "UBIGINT") in found["runs"].columns
    assert ("dumbbell.rate", "VARCHAR") in found["runs"].columns


@pytest.mark.parametrize(
    "sql",
    [
        "copy runs to '{file}'",
        "copy (select 1) to '{file}'",
        "explain analyze copy runs to '{file}'",
        "select * from read_text('{file}')",
        "select * from '{out}/runs/part-000000-aaaaaaaaaaaaaaaa.parquet'",
        "select * from glob('*')",
        "attach '{file}'",
        "export database '{file}'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "select 1; copy runs to '{file}'",
    ],
)
def test_a_statement_has_no_access_to_files(out, tmp_path, sql, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    refuse(out, sql.format(file=tmp_path / "x", out=out))
    assert sorted(tmp_path.rglob("*")) == before


def test_variables_of_python_are_no_tables(out):
    import pandas as pd

    secret = pd.DataFrame({"x": [1]})
    assert refuse(out, "select * from secret").endswith(
        "Table with name secret does not exist; the tables are flows, runs"
    )
    assert len(secret) == 1


def test_mistakes_are_told_in_a_line(out):
    assert refuse(out, "selekt 1") == 'Parser Error: syntax error at or near "selekt"'
    assert 'column "nope" not found' in refuse(out, "select nope from runs")
    assert refuse(out, "select dumbbell.rate from runs").endswith('quotes: "dumbbell.rate"')
    assert refuse(out, " ") == "the statement returns no rows; use select"


def test_a_directory_without_data_is_refused(tmp_path):
    (tmp_path / "runs").mkdir()
    with pytest.raises(ArgumentError, match="has no runs of a sweep") as caught:
        query(tmp_path, "select 1")
    assert caught.value.argument == "out"
    with pytest.raises(ArgumentError, match="has no runs of a sweep"):
        Sweep(tmp_path)
    (tmp_path / "runs" / "part-000001.parquet").write_bytes(b"no Parquet")
    with pytest.raises(ArgumentError, match=r"has no manifest: an older version of cwnd wrote it"):
        query(tmp_path, "select 1")


def test_pandas_and_polars_read_the_same(out):
    import pandas as pd

    polars = pytest.importorskip("polars")
    ours = read(out, "select avg(jain) from runs").column(0)[0].as_py()
    assert pd.read_parquet(out / "runs")["jain"].mean() == pytest.approx(ours)
    lazy = polars.scan_parquet(out / "runs" / "*.parquet")
    assert lazy.select("jain").mean().collect().item() == pytest.approx(ours)


def test_the_command_prints_a_table(command, out):
    done = command("query", out, "select key, jain, seed, error from runs order by key desc")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["key", "jain", "seed", "error"]
    assert lines[1].split() == [f"{59:032x}", "–", "3", "ValueError:", "[bold]no"]
    assert lines[40].split() == [f"{20:032x}", "0.980000", "0", "–"]
    assert lines[41] == "… 20 more rows: --csv prints all"
    numbers = [
        line[: line.index(f"{number}.") + 1]
        for line, number in zip(lines[6:41], [0] * 35, strict=True)
    ]
    assert len({len(number) for number in numbers}) == 1


PEAK = """
import resource, sys
from cwnd._cli import run
status = run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
sys.exit(status)
"""
"""A command that prints its peak of memory in megabytes."""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A data set with a million rows of series, 100 MB in memory."""
    home = tmp_path_factory.mktemp("large")
    numbers = pa.array(np.random.default_rng(1).random(250_000))
    for part in range(4):
        runs = pa.table({"key": [f"{part:032x}"], "error": pa.array([None], pa.string())})
        key = pa.repeat(f"{part:032x}", 250_000)
        series = pa.table({"key": key, **dict.fromkeys("abcdefgh", numbers)})
        add_part(home, part, "a" * 16, {"runs": runs, "series": series}, {})
    return home


def test_a_query_reads_a_row_group_at_a_time(complete, large):
    peaks = []
    for sql in ("select 1 a", "select * from series limit 40"):
        done = complete(sys.executable, "-c", PEAK, "query", large, sql)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stderr))
    assert peaks[1] - peaks[0] < 40


def test_rows_of_several_batches_are_printed(command, large):
    sql = "select a from series order by 1 limit 20000"
    lines = command("query", large, sql, "--csv").stdout.splitlines()
    assert lines[0] == "a"
    assert len(lines) == 20_001
    document = json.loads(command("query", large, sql, "--json").stdout)
    assert [row["a"] for row in document["rows"]] == [float(line) for line in lines[1:]]


def test_errors_in_the_middle_of_a_result_are_told_in_a_line(command, large):
    sql = "select bps(if(a > 0.9999, 'x', '1mbit')) from series"
    done = command("query", large, sql, "--csv")
    assert done.returncode == 2
    assert "'x' is not a rate such as 15mbit" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_table_can_be_read_twice_in_a_statement(large):
    sql = "select count(*) n from series s join series t using (key) where s.a < 1e-4 and t.a > 0.9"
    first = query(large, "select count(*) n from series where a < 1e-4")["n"][0]
    second = query(large, "select count(*) n from series where a > 0.9")["n"][0]
    assert query(large, sql)["n"][0] == first * second / 4


def test_the_command_lists_the_tables(command, out, check_json):
    done = command("query", out)
    assert done.returncode == 0, done.stderr
    assert "runs: 60 rows, 5 failed" in done.stdout
    assert ["dumbbell.rate", "VARCHAR"] in [line.split() for line in done.stdout.splitlines()]
    document = json.loads(command("query", out, "--json").stdout)
    check_json(document, "`cwnd query OUT --json`")
    assert document["failed"] == 5
    assert [table["rows"] for table in document["tables"]] == [60, 60]


def test_the_command_prints_csv_and_json(command, out, check_json):
    sql = "select seed, jain, controller from runs order by key"
    rows = list(csv.DictReader(command("query", out, sql, "--csv").stdout.splitlines()))
    assert len(rows) == 60
    assert rows[0] == {"seed": "0", "jain": "1.0", "controller": "aimd(0.31, 1/8)"}
    assert rows[-1]["jain"] == ""
    document = json.loads(command("query", out, sql, "--json").stdout)
    columns = {"seed": 1, "jain": 0.999, "controller": "reno"}
    assert document["rows"][1] == columns
    check_json(document, '`cwnd query OUT "select …" --json`', data=columns)
    odd = "select 'nan'::double n, date '2026-01-02' d, [1, null] l"
    assert json.loads(command("query", out, odd, "--json").stdout)["rows"] == [
        {"n": None, "d": "2026-01-02", "l": [1, None]}
    ]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("{out}", "selekt 1"), 'cwnd: Parser Error: syntax error at or near "selekt"'),
        (("{out}/runs", "select 1"), "has no runs of a sweep"),
        (("{out}/nowhere",), "has no runs of a sweep"),
        (("{out}", "--csv"), "--csv needs a statement"),
        (("{out}", "select 1", "--csv", "--json"), "are mutually exclusive"),
        (("{out}", "select 1, 1 a, 2 a", "--json"), "two columns are named a"),
        (("{out}", "--report", "/nowhere/x.html"), "--report: cannot write"),
    ],
)
def test_the_command_refuses_in_a_line(command, out, arguments, word):
    done = command("query", *(argument.format(out=out) for argument in arguments))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert word in done.stderr
