"""Scenarios and networks, their runs, and the results."""
