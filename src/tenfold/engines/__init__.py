"""What runs programs. Each engine is loaded on first use; `xla/` is the default."""
