"""``python -m warplint``."""

from __future__ import annotations

import sys

from warplint.cli import main

if __name__ == "__main__":
    sys.exit(main())
