"""`torch._higher_order_ops`: functions that take functions, which become one node of a program."""

from tenfold.func.control_flow import cond, while_loop
from tenfold.func.scans import associative_scan, map, scan

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
