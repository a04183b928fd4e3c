"""Tenfold timed beside its peers, in one run on one machine: see `python -m benchmarks --help`."""
