"""Modules of PyTorch's whose names start with an underscore, as far as libraries use them."""
