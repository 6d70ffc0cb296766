"""Children that crash, hang, flood, fork, exit and raise, all in real processes, answered in words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from fake_engine import STARTS_ONLY, engine

from warplint.runner.command import Command, for_script, parse
from warplint.runner.process import TAIL_BYTES, Limits
from warplint.runner.result import RunResult
from warplint.runner.run import RunOptions, run


@pytest.fixture
def observe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run source text in a child whose inside only starts the program: the real runner, a small engine."""
    monkeypatch.setattr(sys.modules["warplint.runner.run"], "PACKAGE", engine(tmp_path, STARTS_ONLY))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)

    def start(text: str, command: str | None = None, **options: object) -> RunResult:
        program = tmp_path / "program.py"
        program.write_text(text)
        chosen: Command = parse(command) if command else for_script(str(program))
        defaults = RunOptions(python=sys.executable, limits=Limits(60.0), folder=str(tmp_path))
        return run(chosen, replace(defaults, **options))  # type: ignore[arg-type]

    return start


def test_a_script_runs_as_main_in_the_folder_where_warplint_was_started(observe, tmp_path):
    result = observe(
        "import os, sys\n"
        "assert __name__ == '__main__' and sys.modules['__main__'].__file__ == __file__\n"
        "assert sys.path[0] == os.path.dirname(os.path.realpath(__file__)), sys.path\n"
        "print(os.getcwd(), sys.argv, sys.stdin.read() == '')\n"
    )
    assert result.problem is None
    assert result.output_tail.split() == [str(tmp_path), f"['{tmp_path / 'program.py'}']", "True"]


def test_the_child_sees_nothing_of_the_linters_environment_but_warplint(observe):
    result = observe("import sys, warplint\nprint([p for p in sys.path if 'package' in p and 'site' not in p])\n")
    assert result.output_tail.strip() == "[]"


def test_the_private_temporary_folder_is_gone_afterwards(observe):
    result = observe("import tempfile\nprint(tempfile.mkdtemp())\n")
    assert "warplint-" in result.output_tail
    assert not os.path.exists(result.output_tail.strip())


def test_a_segmentation_fault_is_told_with_the_last_known_place(observe, tmp_path):
    result = observe("import ctypes\n\ndef inner():\n    ctypes.string_at(0)\n\ninner()\n")
    assert result.exit.signal == signal.SIGSEGV
    assert result.program is None
    assert result.last_place == (str(tmp_path / "program.py"), 4, "inner")
    assert result.problem == f"segmentation fault, last seen in inner ({tmp_path / 'program.py'}:4)"
    assert len(result.records) == 1, "what was sent before the crash is kept"


@pytest.mark.skipif(sys.platform != "linux", reason="the words are those of glibc")
def test_an_overwritten_heap_is_told_in_the_words_of_the_c_library(observe):
    result = observe(
        "import ctypes\n"
        "libc = ctypes.CDLL(None)\n"
        "libc.malloc.restype = ctypes.c_void_p\n"
        "block = libc.malloc(ctypes.c_size_t(1 << 22))\n"
        "ctypes.memset(block - 16, 0xEB, 16)\n"
        "print('corrupted weather', flush=True)\n"
        "libc.free(ctypes.c_void_p(block))\n"
    )
    assert result.exit.signal == signal.SIGABRT
    assert result.problem is not None
    assert "(): invalid pointer (memory was written outside of an array" in result.problem
    assert "weather" not in result.problem


def test_a_hang_ends_at_the_time_limit_with_its_place(observe, tmp_path):
    result = observe("def wait():\n    while True:\n        pass\nwait()\n", limits=Limits(3.0))
    assert result.exit.limit == "time limit"
    assert result.last_place is not None
    assert result.last_place[2] == "wait"
    assert "time limit" in (result.problem or "")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="strays outside the group are found through /proc")
def test_nothing_is_left_running_not_even_what_left_the_group(observe, tmp_path):
    pids = tmp_path / "pids"
    result = observe(
        "import os, time\n"
        "for escape in (False, True):\n"
        "    if os.fork() == 0:\n"
        "        if escape:\n"
        "            os.setsid()\n"
        f"        open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "        time.sleep(600)\n"
        f"while not os.path.exists({str(pids)!r}) or len(open({str(pids)!r}).read().split()) < 2:\n"
        "    time.sleep(0.01)\n"
    )
    assert result.problem is None
    assert [pid for pid in pids.read_text().split() if _alive(int(pid))] == []


def _alive(pid: int) -> bool:
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return False
        if state == "Z":
            return False
        time.sleep(0.02)
    return True


def test_a_forked_process_of_the_program_answers_nothing(observe):
    result = observe("import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\n")
    assert [type(record).__name__ for record in result.records] == ["Note", "Program"]


def test_gigabytes_of_output_are_survived_and_the_end_is_kept(observe):
    flood = "for _ in range(2048):\n    sys.stdout.buffer.write(b'x' * (1 << 20))\n"
    result = observe(f"import sys\n{flood}print('last words')\n")
    assert result.problem is None
    assert len(result.output_tail) <= TAIL_BYTES
    assert result.output_tail.endswith("last words\n")


HOLD = "hold = bytearray(b'x') * ({} << 20)\n"
"""Memory that is written to, so that it is the process's own."""


@pytest.mark.skipif(sys.platform != "linux", reason="the system's bound on a process's own memory is Linux's")
def test_a_program_that_wants_more_than_its_memory_limit_is_one_clear_answer(observe):
    result = observe(HOLD.format(400), limits=Limits(60.0, memory=200 << 20))
    assert result.problem == "ran into its memory limit of 0.195 GB: MemoryError (--memory-limit sets it)"
    assert result.exit.text == "exit 0"


@pytest.mark.skipif(sys.platform != "linux", reason="the system's bound on a process's own memory is Linux's")
def test_a_program_that_lives_with_being_refused_memory_is_let_alone(observe):
    text = "try:\n    hold = bytes(400 << 20)\nexcept MemoryError:\n    print('made do')\n"
    result = observe(text, limits=Limits(60.0, memory=200 << 20))
    assert (result.problem, result.output_tail) == (None, "made do\n")


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="what a group holds is read from /proc")
def test_processes_that_take_too_much_together_are_ended_together(observe, tmp_path):
    text = (
        "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n"
        f"        {HOLD.format(150)}        time.sleep(600)\nprint('began')\ntime.sleep(600)\n"
    )
    result = observe(text, limits=Limits(60.0, memory=200 << 20))
    assert result.exit.limit == "memory limit"
    assert (result.problem or "").startswith("ran into its memory limit of 0.195 GB")


def test_what_no_limit_was_set_for_is_told_as_it_was(observe):
    result = observe("raise MemoryError('a queue of its own')\n")
    assert result.problem == "raised: MemoryError: a queue of its own"


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="processes are looked for in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("words", [("gradcheck",), ("builds", "measure")])
def test_nothing_is_left_running_when_the_user_interrupts(tmp_path, words, number):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n"
        f"    open({str(tmp_path / 'stray')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    arguments = [sys.executable, "-m", "warplint", *words, "--", sys.executable, str(program)]
    path = str(Path(sys.modules["warplint"].__file__ or "").parent.parent)
    environment = {**os.environ, "PYTHONPATH": path}
    tool = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    noted = tmp_path / "stray"
    for _ in range(600):
        if noted.exists() and noted.read_text():
            break
        time.sleep(0.1)
    stray = int(noted.read_text())
    for _ in range(2):
        tool.send_signal(number)
        time.sleep(0.02)
    assert tool.wait(60) in (128 + number, -number)  # the second may come when all is done
    assert not Path(f"/proc/{stray}").exists() or "zombie" in Path(f"/proc/{stray}/status").read_text()


@pytest.mark.parametrize(
    ("text", "stopped", "problem"),
    [
        ("import sys\nsys.exit(3)\n", "exit 3", "exit 3"),
        ("import sys\nsys.exit('no data')\n", "exit 1", "exit 1: no data"),
        ("import sys\nsys.exit(0)\n", "end", None),
        ("raise ValueError('bad step')\n", "raised", "raised: ValueError: bad step"),
        ("try:\n    raise KeyError\nexcept BaseException:\n    pass\n", "end", None),
        ("def (:\n", "raised", None),
        ("import os\nos._exit(4)\n", None, "ended without an answer (exit 4)"),
        (
            "raise RuntimeError('Invalid device identifier: cuda:0')\n",
            "raised",
            "needs a device that is not here: RuntimeError: Invalid device identifier: cuda:0 "
            "(--device cpu redirects it)",
        ),
    ],
)
def test_every_ending_is_told(observe, text, stopped, problem):
    result = observe(text)
    assert (result.program.stopped if result.program else None) == stopped
    if "def (" in text:
        assert "SyntaxError" in (result.problem or "")
    else:
        assert result.problem == problem


def test_an_interpreter_without_warp_is_said(observe, tmp_path):
    bare = tmp_path / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    result = observe("print('never')\n", python=str(bare))
    assert result.problem is not None
    told = f"{bare} cannot verify this program: it has no warp and no numpy (name the one that has: "
    assert result.problem.startswith(told)
    assert "--python" in result.problem
    assert "never" not in result.output_tail


def test_modules_code_and_console_scripts_start_as_python_starts_them(observe, tmp_path):
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    text = "from . import __name__ as parent\nimport sys\nprint(parent, __name__, sys.argv[1:])\n"
    (package / "train.py").write_text(text)
    result = observe("", "python -m pkg.train --steps 3")
    assert result.output_tail.strip() == "pkg __main__ ['--steps', '3']"
    assert observe("", "python -c 'import sys; print(sys.argv)' one").output_tail.strip() == "['-c', 'one']"
    (tmp_path / "test_it.py").write_text("def test_it(): assert 1\n")
    result = observe("", "pytest -q -p no:cacheprovider test_it.py")
    assert "1 passed" in result.output_tail
    assert result.problem is None
    assert observe("", "no-such-tool").problem.startswith("exit 2: there is no console script no-such-tool")
    assert observe("", "python -m no_such_module").problem == "exit 2: there is no module no_such_module to run"


def test_an_isolated_cache_is_the_only_one_that_the_child_may_clear(observe, tmp_path):
    seen = observe("import os\nprint(os.environ.get('WARP_CACHE_PATH'))\n", cache=str(tmp_path / "kernels"))
    assert seen.output_tail.strip() == str(tmp_path / "kernels")


def test_assignments_before_the_command_reach_the_program(observe):
    assert observe("", "STEPS=4 python -c 'import os; print(os.environ[\"STEPS\"])'").output_tail.strip() == "4"


def test_a_file_can_have_another_text_for_one_run(observe, tmp_path):
    (tmp_path / "helper.py").write_text("def word():\n    return 'old'\n")
    text = "import inspect, helper\nprint(helper.word(), 'new' in inspect.getsource(helper.word), 'here')\n"
    plain = observe(text)
    texts = {
        str(tmp_path / "helper.py"): "import os\n\ndef word():\n    return 'new'\n",
        str(tmp_path / "program.py"): text.replace("here", "there"),
    }
    replaced = observe(text, texts=texts)
    again = observe(text)
    assert plain.output_tail == again.output_tail == "old False here\n"
    assert replaced.output_tail == "new True there\n"
    assert observe(text, "python -m helper", texts=texts).problem is None
