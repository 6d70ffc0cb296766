"""What every Python process of an observed command runs first: it waits for Warp and then has it watched.

By default its builds (``warplint.builds.watch``); ``WARPLINT_WATCHER`` names another module that has a ``begin``.

A copy of this file named ``sitecustomize.py`` lies in a private folder that leads ``PYTHONPATH``, so the command itself
is not touched and its children are seen too. It takes that folder off ``sys.path`` again, runs the ``sitecustomize``
that it hides, and does nothing else in a process that never imports Warp. Runs in any Python 3.
"""

import importlib
import importlib.machinery
import os
import sys
import time
from typing import Any

STARTED = time.monotonic()
FOLDER_VARIABLE = "WARPLINT_BUILDS"
PACKAGE_VARIABLE = "WARPLINT_PACKAGE"
WATCHER_VARIABLE = "WARPLINT_WATCHER"
OLDEST = (3, 10)


class _WarpFinder:
    """Finds ``warp`` as everybody else does, and has the watcher installed as soon as it is imported."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec of ``warp`` with an observed loader; None for anything else."""
        if name != "warp" or path is not None:
            return None
        found = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not cls)
        spec = next((each for each in found if each is not None), None)
        if spec is None or spec.loader is None:
            return None
        sys.meta_path.remove(cls)
        loader: Any = spec.loader
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            began = time.monotonic()
            execute(module)
            _watch(time.monotonic() - began)

        loader.exec_module = exec_module
        return spec


def _watch(importing: float) -> None:
    """Make the package ``warplint`` importable, and nothing else of the environment that it is installed in."""
    if "warplint" not in sys.modules:
        import importlib.util

        folder = os.environ[PACKAGE_VARIABLE]
        spec = importlib.util.spec_from_file_location(
            "warplint", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["warplint"] = module
        spec.loader.exec_module(module)
    watcher = importlib.import_module(os.environ.get(WATCHER_VARIABLE, "warplint.builds.watch"))
    watcher.begin(os.environ[FOLDER_VARIABLE], STARTED, importing)


def _run_hidden(own: str) -> None:
    """Run the ``sitecustomize`` that stands behind this one."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != own]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = type(sys)("sitecustomize")
        module.__dict__.update(__file__=spec.origin, __spec__=spec, __loader__=spec.loader)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    if FOLDER_VARIABLE in os.environ and sys.version_info >= OLDEST:
        sys.meta_path.insert(0, _WarpFinder)
    _run_hidden(os.path.dirname(os.path.abspath(__file__)))
