"""`tenfold.version`: what PyTorch tells of its own build, as far as it has an answer here."""

# The release of Tenfold, which the packages for other languages repeat.
release = "0.1.0"
# The release of PyTorch whose names and behaviour these are.
pytorch = "2.13.0"
__version__ = pytorch
cuda = hip = rocm = xpu = git_version = None
debug = False
