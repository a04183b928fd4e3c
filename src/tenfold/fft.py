"""`tenfold.fft`: the functions of `torch.fft`, by the same names. The op table fills it."""
