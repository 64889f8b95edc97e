"""Sweeps: many runs over a grid or sample of parameters, kept as a Parquet data set."""
