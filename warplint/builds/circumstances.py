"""What a program does that builds depend on: options of all modules, options of one, a cache that it clears."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from warplint.verify.build_records import CacheClearedSeen, ConfigSeen, ModuleOptionsSeen, Place
from warplint.verify.engine import warp_modules
from warplint.verify.engine.recording.user_frames import user_stack


class Circumstances:
    """Sends a record for each, in order."""

    def __init__(self, send: Callable[[object], None]) -> None:
        self._send = send
        self._seen = 0

    def watch(self) -> None:
        """Begin, once in a process and those that are forked from it."""
        warp_modules.watch_config(self._configured)
        warp_modules.watch_module_options(self._options_set)
        warp_modules.watch_clearing(self._cleared)

    def forget(self) -> None:
        """This is a process of its own now."""
        self._seen = 0

    def _configured(self, option: str, value: Any) -> None:
        if not _is_initialisation(option):
            self._send(ConfigSeen(self._next(), _here(), option, warp_modules.plain(value)))

    def _options_set(self, module: str, options: dict[str, Any]) -> None:
        plain = {name: warp_modules.plain(value) for name, value in options.items()}
        self._send(ModuleOptionsSeen(self._next(), _here(), module, plain))

    def _cleared(self, how: str) -> None:
        self._send(CacheClearedSeen(self._next(), _here(), how))

    def _next(self) -> int:
        self._seen += 1
        return self._seen


def _here() -> tuple[Place, ...]:
    return tuple((code.co_filename, line, code.co_name) for code, line in reversed(user_stack(sys._getframe(2))))


def _is_initialisation(option: str) -> bool:
    """Whether Warp, not the program, assigns: its ``init`` writes the folder of the cache."""
    frame = sys._getframe(3)
    return option == "kernel_cache_dir" and frame.f_code.co_name == "init_kernel_cache"
