"""Tenfold beside its peers on a GPU: training and decoding, as people write them."""
