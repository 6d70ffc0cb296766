"""A line on stderr while programs run: it changes in place on a terminal, and is written once anywhere else."""

from __future__ import annotations

from typing import TextIO


class Progress:
    """Called with what is going on, as often as the caller likes; ``""`` ends the line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._in_place = stream.isatty()
        self._last = ""

    def __call__(self, text: str, seconds: float = 0.0) -> None:
        """Show ``text``, and on a terminal how long it has been going on."""
        if self._in_place:
            shown = f"{text} ({seconds:.0f} s)" if seconds >= 1.0 else text
            if shown != self._last:
                self._stream.write(f"\r\x1b[2K{shown}")
                self._last = shown
        elif text != self._last:
            self._stream.write(f"{text}\n" if text else "")
            self._last = text
        self._stream.flush()
