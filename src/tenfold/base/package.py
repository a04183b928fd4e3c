"""The name under which the package shows itself: "torch" while it stands in for PyTorch, as programs compare
such words: `str(dtype) == "torch.float32"`."""

shown = "tenfold"
