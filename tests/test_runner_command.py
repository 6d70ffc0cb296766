"""Commands are taken apart as a shell and Python would, and what cannot be observed is refused in words."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from warplint.proof import Repair
from warplint.runner import answers
from warplint.runner.command import CommandError, find_interpreter, parse
from warplint.runner.protocol import Entry, EntryKind, KernelTarget, Purpose, Request, read_request, write_request
from warplint.runner.result import last_place
from warplint.verify.records import (
    ChildSeen,
    Culprit,
    Direction,
    Gradient,
    GradientStatus,
    KernelCheck,
    ModuleLoad,
    Note,
    Program,
    Signature,
    SignatureKind,
    SparedView,
    Stagnant,
    to_json,
)


@pytest.mark.parametrize(
    ("command", "entry", "interpreter", "flags"),
    [
        ("python train.py --lr 0.1", Entry(EntryKind.SCRIPT, "train.py", ("--lr", "0.1")), None, ()),
        ("python3.11 -u -W error train.py", Entry(EntryKind.SCRIPT, "train.py"), None, ("-u", "-W", "error")),
        ("python -m pkg.train -m x", Entry(EntryKind.MODULE, "pkg.train", ("-m", "x")), None, ()),
        ("python -c 'a b' c", Entry(EntryKind.CODE, "a b", ("c",)), None, ()),
        ("/opt/env/bin/python3 t.py", Entry(EntryKind.SCRIPT, "t.py"), "/opt/env/bin/python3", ()),
        ("pytest tests -k 'a b'", Entry(EntryKind.CONSOLE, "pytest", ("tests", "-k", "a b")), None, ()),
        ("./train.py", Entry(EntryKind.SCRIPT, "./train.py"), None, ()),
    ],
)
def test_a_command_is_taken_apart(command, entry, interpreter, flags):
    parsed = parse(command)
    assert (parsed.entry, parsed.interpreter, parsed.interpreter_options) == (entry, interpreter, flags)
    assert parsed.shown == command


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("", "empty"),
        ("cd x && python t.py", "needs a shell"),
        ("python", "starts no program"),
        ("python -m", "must follow -m"),
        ("/bin/no-such-program", "no program"),
        ("/bin/sh x", "not a Python program"),
    ],
)
def test_what_cannot_be_observed_is_refused_in_words(command, says):
    with pytest.raises(CommandError, match=says):
        parse(command)


def test_the_interpreter_is_the_one_asked_for_else_the_active_environments(tmp_path: Path):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    assert find_interpreter(None, {"VIRTUAL_ENV": str(tmp_path)}) == str(python)
    assert find_interpreter(None, {"VIRTUAL_ENV": str(tmp_path / "gone")}) == sys.executable
    assert find_interpreter(str(python), {}) == str(python)
    with pytest.raises(CommandError, match="no Python interpreter"):
        find_interpreter("/no/such/python", {})


def test_a_request_survives_the_way_to_the_child(tmp_path: Path):
    entry = Entry(EntryKind.MODULE, "m", ("a",))
    kernels = (KernelTarget("k.py", 3, "k", "pkg.k", "/root"),)
    request = Request(Purpose.KERNELS, "r", "c", "f", 10.0, 5.0, entry, kernels, "cpu", True, 7)
    write_request(request, str(tmp_path / "request.json"))
    assert read_request(str(tmp_path / "request.json")) == request


PLACE = ("train.py", 12, "step")
RECORDS = (
    Gradient(
        "x", 3, (PLACE,), ((PLACE, PLACE),), 0, GradientStatus.FAIL, "differs", 1.5, float("inf"), None,
        (Direction("random", 1.0, 2.0, 1e-4, 1e-2, status=GradientStatus.FAIL),),
        Signature(SignatureKind.FACTOR, "2 times", 2.0, "k", (PLACE,)), (Repair.MEMORY, Repair.GRADIENT),
        (Culprit(Repair.MEMORY, 3, (PLACE,), (PLACE,), "step", (PLACE,), "step", effect=0.9),),
    ),
    ChildSeen(17, "fork", (PLACE,)),
    Stagnant(3, (PLACE,), (PLACE,), (PLACE,), (PLACE,), 0.6),
    SparedView(3, (PLACE,), (PLACE,), (PLACE,), 0.6, 0.2),
    KernelCheck("k", PLACE, (PLACE,), GradientStatus.PASS, "", 1.0, 1.0, "x"),
    ModuleLoad("m", "abc", "cpu", True, 12.0, (PLACE,), options={"max_unroll": 16}),
    Note("cache", "not cleared", (PLACE,)),
    Program("python t.py", 1.0, 1, 2, 3, "1.19.0", "end"),
)  # fmt: skip


def test_records_come_back_as_they_were_sent(tmp_path: Path):
    file = tmp_path / "records.jsonl"
    file.write_text("".join(to_json(record) + "\n" for record in RECORDS))
    assert answers.read(file) == RECORDS


def test_a_line_that_a_crash_cut_off_is_kept_as_unreadable(tmp_path: Path):
    file = tmp_path / "records.jsonl"
    file.write_text(to_json(RECORDS[-1]) + "\n" + to_json(RECORDS[0])[:40] + "\n" + json.dumps({"record": "New"}))
    read = answers.read(file)
    assert read[0] == RECORDS[-1]
    assert [type(record) for record in read[1:]] == [answers.Unreadable, answers.Unreadable]
    assert answers.read(tmp_path / "nothing") == ()


def test_the_last_place_is_the_users_innermost_frame():
    report = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n"
        '  File "/env/lib/python3.11/site-packages/warp/_src/context.py", line 9 in invoke\n'
        '  File "/tool/warplint/verify/engine/recording/recorder.py", line 4 in hook\n'
        '  File "/home/me/train.py", line 31 in step\n'
        '  File "/home/me/train.py", line 40 in <module>\n'
    )
    assert last_place(report, "/tool/warplint") == ("/home/me/train.py", 31, "step")
    assert last_place("no stack", "/tool/warplint") is None
