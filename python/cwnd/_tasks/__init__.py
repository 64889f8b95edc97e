"""Comparisons, agreement of backends, and evaluations."""
