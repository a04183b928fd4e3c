"""`tenfold.linalg`: the functions of `torch.linalg`, by the same names. The op table fills it."""
