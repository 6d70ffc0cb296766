"""A Python process that the user's program starts: watched from its import of Warp on, judged when it ends.

``warplint/builds/startup.py`` comes here, in an interpreter that knows nothing of a request but where it lies.
"""

from __future__ import annotations

import os

from warplint.runner.protocol import Channel, read_request, records_of_child
from warplint.verify.engine.child import Session


def begin(request_path: str, started: float, importing: float) -> None:
    """Watch this process; where the request is gone (its run has ended), nothing happens."""
    if not os.path.exists(request_path):
        return
    request = read_request(request_path)
    Session(request, Channel(records_of_child(request.records, os.getpid()))).accompany()
