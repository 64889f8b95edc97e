"""Self-contained HTML pages, usable offline, on small screens and in dark mode."""

from cwnd.extras import require

require("cwnd.report", "jinja2", "plotly")
