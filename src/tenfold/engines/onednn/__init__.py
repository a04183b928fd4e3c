"""Convolutions on the CPU by oneDNN, an extra."""
