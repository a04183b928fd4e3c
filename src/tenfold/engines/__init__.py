"""What runs programs. Each engine is loaded on first use; `xla.py` is the default."""
