"""Measure what logging costs: `python -m benchmarks`; README.md says what, how and with which results."""
