"""Self-contained HTML pages: they work offline, on a phone and in the dark."""

from cwnd.extras import require

require("cwnd.report", "jinja2", "plotly")
