"""Comparisons of controllers: runs (`run`), figures (`outcome`) and verdicts (`verdict`)."""
