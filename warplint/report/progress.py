"""A line on stderr while programs run: it changes in place on a terminal, and is written once anywhere else."""

from __future__ import annotations

from typing import TextIO


class Progress:
    """Called with what is going on, as often as the caller likes; ``""`` ends the line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._in_place = stream.isatty()
        self._last = ""

    def __call__(self, text: str) -> None:
        """Show ``text``."""
        if self._in_place:
            self._stream.write(f"\r\x1b[2K{text}")
        elif text and text != self._last:
            self._stream.write(f"{text}\n")
        self._last = text
        self._stream.flush()
