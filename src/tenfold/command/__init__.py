"""The command line: `tenfold demo`, `ops`, `doctor` and the others."""
