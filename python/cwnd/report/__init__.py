"""Self-contained HTML pages: they work offline, on a phone and in the dark."""
