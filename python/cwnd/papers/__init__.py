"""The papers as something to run: every table and figure, beside what was published."""
