"""`python -m tenfold` is the command `tenfold`."""

from __future__ import annotations

import sys

from tenfold.command.cli import main

if __name__ == "__main__":
    sys.exit(main())
