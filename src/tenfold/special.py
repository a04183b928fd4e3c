"""`tenfold.special`: the functions of `torch.special`, by the same names. The op table fills it."""
