"""``python -m warplint``."""

from __future__ import annotations

from warplint.cli import run

if __name__ == "__main__":
    run()
