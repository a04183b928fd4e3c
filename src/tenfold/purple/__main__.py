"""`python -m tenfold.purple` is the command `purple`."""

from __future__ import annotations

import sys

from tenfold.purple.cli import command

sys.exit(command())
