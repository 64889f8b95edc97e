"""Experiments of the report card: networks, tests with thresholds, and the grades they give."""
