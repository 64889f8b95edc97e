"""Search for the networks on which a controller is worst."""

from cwnd._base.extras import require

require("a search", "duckdb", "jinja2", "pandas", "pyarrow")
