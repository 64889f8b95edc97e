"""Definitions that all parts share: missing extras, records, text, progress, lazy imports."""
