"""The first file that runs in the user's interpreter: makes ``warplint`` importable, then hands over to the child.

Runs in any Python 3, whatever is installed in it, so that a missing Warp or an old Python is *said* and not a
traceback: nothing here may be newer than the oldest interpreter that someone points ``--python`` at.
"""

import faulthandler
import importlib.util
import json
import os
import signal
import sys

OLDEST = (3, 10)


def _refuse(records: str, topic: str, text: str) -> None:
    """Answer with one line that says why nothing was run, and leave."""
    with open(records, "a", encoding="utf-8") as file:
        file.write(json.dumps({"record": "Note", "topic": topic, "text": text, "at": []}) + "\n")
    sys.exit(0)


def _import_warplint() -> None:
    """Make the package ``warplint`` importable, and nothing else of the environment it is installed in."""
    runner = os.path.dirname(os.path.abspath(__file__))
    folder = os.path.dirname(runner)
    if sys.path and os.path.abspath(sys.path[0]) == runner:
        del sys.path[0]
    spec = importlib.util.spec_from_file_location(
        "warplint", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["warplint"] = module
    spec.loader.exec_module(module)


def _end_with_parent() -> None:
    """Have the kernel end this process when the linter is killed (Linux; elsewhere the time limit is what remains)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _watch(crash: str) -> None:
    """Leave the stack of a crash, or of what runs when the parent asks for it, in a file.

    Not with `dump_traceback_later`: processes that the program forks would wait at their end for its watchdog thread,
    which they do not have.
    """
    file = open(crash, "wb", buffering=0)  # noqa: SIM115 - has to stay open for as long as the process lives
    faulthandler.enable(file=file, all_threads=False)
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR2, file=file, all_threads=False)


def _follow_children(folder: str, request_path: str) -> None:
    """Have the Python processes that the program starts come to ``warplint/verify/engine/spawned.py`` with Warp."""
    startup = os.path.join(folder, "startup")
    behind = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join((startup, behind)) if behind else startup
    os.environ["WARPLINT_BUILDS"] = request_path
    os.environ["WARPLINT_PACKAGE"] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    os.environ["WARPLINT_WATCHER"] = "warplint.verify.engine.spawned"


def main() -> None:
    """Run the request whose file is the only argument."""
    request_path = sys.argv[1]
    with open(request_path, encoding="utf-8") as file:
        asked = json.load(file)
    if sys.version_info < OLDEST:
        version = ".".join(map(str, sys.version_info[:3]))
        _refuse(asked["records"], "no-python", "it is Python %s, and verifying needs 3.10 or newer" % version)  # noqa: UP031
    _end_with_parent()
    _watch(asked["crash"])
    _import_warplint()
    from warplint.garbage import lasting
    from warplint.runner import entry, memory_limit, overlay
    from warplint.runner.protocol import CHILD_MODULES, Channel, Purpose, read_request

    request = read_request(request_path)
    memory_limit.confine(request.memory)
    if request.entry is not None:
        entry.prepare_path(request.entry)
    overlay.install(request.texts)
    missing = [name for name in ("warp", "numpy") if importlib.util.find_spec(name) is None]
    if missing:
        _refuse(request.records, "no-" + missing[0], f"it has no {' and no '.join(missing)}")
    if request.purpose is Purpose.GRADIENTS:
        _follow_children(request.folder, request_path)
    with lasting():
        child = importlib.import_module(CHILD_MODULES[request.purpose])
    sys.exit(child.main(request, Channel(request.records)))


if __name__ == "__main__":
    main()
