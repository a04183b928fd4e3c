"""Programs that use other people's packages, run on Tenfold and on PyTorch and compared: `make ecosystem`."""
