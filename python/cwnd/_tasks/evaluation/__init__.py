"""Report cards of controllers: tests by RFC 9743, as scenarios with thresholds."""

from cwnd._base.extras import require

require("an evaluation", "duckdb", "jinja2", "pandas", "pyarrow")
