"""Exhibits of the papers as code: every table and figure, with the published values."""
