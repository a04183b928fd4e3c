"""When this process began to load the package. A file of the package that changed later than that may not be
what the process runs."""

from __future__ import annotations

import time

BEGAN = time.time()
