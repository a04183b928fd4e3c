"""PyTorch's other names: what `import torch` finds here besides the op table, and how it comes to find it."""
