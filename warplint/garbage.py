"""What the collection of garbage is spared."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lasting() -> Iterator[None]:
    """For imports: what is made meanwhile lives as long as the process, and no collection goes through it any more.

    Modules are hundreds of thousands of objects (Warp, NumPy, the rules): to look through them again and again, and at
    the end of the process once more, was a quarter of what it costs to follow a short program. What else is alive when
    the imports are done is spared as well, so that this is for a process's start.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
