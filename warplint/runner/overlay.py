"""Run a program as if some of its files had another text: a fix is tried without touching anybody's files.

The import system gets the replaced text, and so does ``linecache``, through which Warp reads the source of kernels.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import io
import linecache
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType


def install(texts: Mapping[str, str]) -> None:
    """From now on, the files (absolute real paths) have these texts."""
    if texts:
        sys.meta_path.insert(0, _Finder(texts))


def text_of(path: str) -> str | None:
    """The replaced text of a file that is about to run, None where it is what the disk has."""
    finder = next((finder for finder in sys.meta_path if isinstance(finder, _Finder)), None)
    text = finder.texts.get(os.path.realpath(path)) if finder is not None else None
    if text is not None:
        # No time stamp: `linecache.checkcache` then never looks at the disk again.
        linecache.cache[path] = (len(text), None, list(io.StringIO(text)), path)
    return text


class _Finder(MetaPathFinder):
    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """What the path-based finder finds, with our loader where the file is one of ours."""
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        text = text_of(spec.origin) if spec is not None and spec.origin else None
        if spec is None or text is None or spec.origin is None:
            return None
        spec.loader = _Loader(name, spec.origin, text)
        return spec


class _Loader(SourceFileLoader):
    """Loads the given text; neither reads nor writes compiled files, which belong to the text on the disk."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text.encode()

    def get_data(self, path: str) -> bytes:
        """The text, whatever is asked for."""
        return self._text

    def path_stats(self, path: str) -> Mapping[str, object]:
        """There are none, so that no compiled file is looked for."""
        raise OSError
