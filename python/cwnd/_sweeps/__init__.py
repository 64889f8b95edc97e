"""Sweeps: many runs over a grid or sample of parameters, in a Parquet data set."""

from cwnd._base.extras import require

require("a sweep", "duckdb", "pandas", "pyarrow")
