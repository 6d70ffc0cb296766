"""The child that counts builds: runs the program as it is, and tells each load of a Warp module.

It records little else (options, and clearings of the cache, which say why), so that a program costs what it costs. A
program that trains for hours builds its modules in the first seconds: the child leaves when no module was loaded for
some time (:data:`QUIET`).
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import field

from warplint.builds.circumstances import Circumstances
from warplint.dataclass import dataclass
from warplint.runner.entry import start
from warplint.runner.protocol import Channel, Request
from warplint.verify.engine.warp_hooks import redirect_devices
from warplint.verify.engine.warp_modules import protect_caches, watch_loads
from warplint.verify.records import ModuleLoad, Note, Program

QUIET = 10.0
"""Seconds without a load, and no shorter than three times the longest pause between loads so far, after which the
rest of the run is not waited for."""


@dataclass
class _Pauses:
    """When modules were loaded, and how long the program worked in between. Builds are no pauses."""

    since: float = field(default_factory=time.monotonic)
    longest: float = 0.0
    loads: int = 0
    building: bool = False

    def build(self, running: bool) -> None:
        """The compiler begins or ends."""
        if running and self.loads:
            self.longest = max(self.longest, time.monotonic() - self.since)
        self.building = running
        self.since = time.monotonic()

    def loaded(self) -> None:
        """A module is there."""
        self.loads += 1
        self.since = time.monotonic()

    @property
    def over(self) -> bool:
        """Whether no further load is to be expected."""
        pause = time.monotonic() - self.since
        return self.loads > 0 and not self.building and pause > max(QUIET, 3.0 * self.longest)


def main(request: Request, channel: Channel) -> int:
    """Run the program and tell its loads; the last record is the ``Program``."""
    import warp

    assert request.entry is not None
    began = time.monotonic()
    pauses = _Pauses()

    def tell(record: object) -> None:
        if channel.mine():
            channel.send(record)

    def loaded(load: ModuleLoad, block_dim: int | None) -> None:
        pauses.loaded()
        tell(load)

    def finish(stopped: str, reason: str = "") -> None:
        tell(Program("", time.monotonic() - began, 0, 0, 0, warp.config.version, stopped, reason))

    def leave_when_over() -> None:
        while not pauses.over:
            time.sleep(0.2)
        finish("horizon", "no module was loaded for some time")
        os._exit(0)

    for option, value in request.config.items():
        setattr(warp.config, option, value)
    isolated = os.environ.get("WARP_CACHE_PATH") if request.isolated_cache else None
    protect_caches(isolated, lambda text: channel.send(Note("cache", text)))
    if request.device is not None:
        redirect_devices(request.device, lambda _: None)  # the recorded run says so
    problem = watch_loads(loaded, pauses.build)
    if problem is not None:
        channel.send(Note("no-builds", problem))
        return 0
    Circumstances(tell).watch()
    threading.Thread(target=leave_when_over, daemon=True).start()
    ending = start(request.entry)
    finish(ending.stopped, ending.told)
    return 0
