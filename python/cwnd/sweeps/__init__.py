"""Sweeps: many runs over a grid or sample of parameters, in a Parquet data set."""

from cwnd.extras import require

require("a sweep", "duckdb", "pandas", "pyarrow")
