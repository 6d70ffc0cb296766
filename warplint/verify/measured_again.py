"""Measures one gradient of a program again, without warplint: needs python, warp and numpy, and the program.

The program is run three times up to the backward call that the gradient comes from: as it is, and with one array moved
forth and back by a step. Prints the slope that the tape claims, and the one that the three losses show.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import runpy
import subprocess
import sys
from typing import Any

MEASURED: dict[str, Any] = {}
"""``kind``, ``target``, ``arguments``, ``folder``: the program; ``beside``: where a script's imports lie; ``notebook``:
whether it was one. ``path``, ``line``, ``array``: where the array with a gradient is made, and how many such were made
there before. ``entered``: it is moved when so many tapes were entered before; none: as soon as it is made.
``backward``: so many backward calls come before the one that counts. ``move``: index and amount for each number of the
array that moves. ``step``: how far."""


def main() -> None:
    """Run the program three times, and compare."""
    still, forth, back = (_run(step) for step in (0.0, MEASURED["step"], -MEASURED["step"]))
    difference = (forth["loss"] - back["loss"]) / (2.0 * MEASURED["step"])
    print(f"loss {still['loss']:.9g}, moved by {MEASURED['step']:g} forth {forth['loss']:.9g}, back {back['loss']:.9g}")
    print(f"the tape's slope {still['slope']:.6g}, by differences {difference:.6g}")


def _run(step: float) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, repr(step)], stdout=subprocess.PIPE, cwd=MEASURED["folder"])
    answer = done.stdout.decode(errors="replace").rpartition(MARK)[2]
    if done.returncode or not answer:
        raise SystemExit(f"the program ended (status {done.returncode}) before the backward call that is wanted")
    told: dict[str, float] = json.loads(answer)
    return told


MARK = "\nmeasured: "


def program(step: float) -> None:
    """Run the program up to the backward call, with the array moved by ``step``."""
    watch(step)
    target, arguments = MEASURED["target"], MEASURED["arguments"]
    sys.argv[:] = [target, *arguments]
    if MEASURED["kind"] == "script":
        sys.path[0] = MEASURED["beside"]
        given = {"display": print} if MEASURED["notebook"] else {}
        runpy.run_path(target, given, run_name="__main__")
    elif MEASURED["kind"] == "module":
        sys.path[0] = os.getcwd()
        runpy.run_module(target, run_name="__main__", alter_sys=True)
    elif MEASURED["kind"] == "code":
        sys.path[0] = ""
        exec(target, {"__name__": "__main__"})
    else:
        points = importlib.metadata.entry_points(group="console_scripts")
        next(point for point in points if point.name == target).load()()


def watch(step: float) -> None:
    """Follow arrays, tapes and backward calls; at the one that is wanted, tell the loss and the slope, and end."""
    import warp as wp

    array: Any = wp.array
    tape: Any = wp.Tape
    made, enter, backward = array.__init__, tape.__enter__, tape.backward
    seen: dict[str, Any] = {"arrays": 0, "entered": 0, "backward": 0, "leaf": None}

    def making(self: Any, *words: Any, **named: Any) -> None:
        made(self, *words, **named)
        if self.requires_grad and _here() == (MEASURED["path"], MEASURED["line"]):
            if seen["arrays"] == MEASURED["array"]:
                seen["leaf"] = self
                if MEASURED["entered"] is None:
                    _move(self, step)
            seen["arrays"] += 1

    def entering(self: Any) -> Any:
        if seen["entered"] == MEASURED["entered"]:
            _move(seen["leaf"], step)
        seen["entered"] += 1
        return enter(self)

    def differentiating(self: Any, loss: Any = None, *words: Any, **named: Any) -> None:
        backward(self, loss, *words, **named)
        if seen["backward"] == MEASURED["backward"]:
            gradient = seen["leaf"].grad.numpy().ravel()
            slope = sum(amount * float(gradient[at]) for at, amount in MEASURED["move"])
            print(MARK + json.dumps({"loss": float(loss.numpy().sum()), "slope": slope}), flush=True)
            os._exit(0)
        seen["backward"] += 1

    array.__init__, tape.__enter__, tape.backward = making, entering, differentiating


def _here() -> tuple[str, int]:
    """The innermost line that is neither Warp's nor ours."""
    import warp as wp

    library = os.path.dirname(os.path.abspath(wp.__file__))
    frame = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename.startswith(library) or frame.f_code.co_filename == __file__):
        frame = frame.f_back  # type: ignore[assignment]
    return (os.path.realpath(frame.f_code.co_filename), frame.f_lineno) if frame is not None else ("", 0)


def _move(leaf: Any, step: float) -> None:
    values = leaf.numpy().copy()
    flat = values.reshape(-1)
    for at, amount in MEASURED["move"]:
        flat[at] += step * amount
    leaf.assign(values)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        program(float(sys.argv[1]))
    else:
        main()
