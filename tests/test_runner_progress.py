"""The progress line changes in place on a terminal and is written once elsewhere."""

from __future__ import annotations

import io

from warplint.report.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_elsewhere_each_step_is_one_line():
    stream = io.StringIO()
    say = Progress(stream)
    for seconds in (0.0, 1.0, 2.0):
        say("running a", seconds)
    say("running b")
    say("")
    assert stream.getvalue() == "running a\nrunning b\n"


def test_on_a_terminal_the_line_changes_in_place_and_is_gone_at_the_end():
    stream = Terminal()
    say = Progress(stream)
    for seconds in (0.0, 0.05, 1.2, 1.3, 2.0):
        say("running a", seconds)
    say("")
    parts = stream.getvalue().split("\r\x1b[2K")
    assert parts == ["", "running a", "running a (1 s)", "running a (2 s)", ""]
    assert "\n" not in stream.getvalue()
