"""Sweeps: one network with many values, controllers and seeds."""
