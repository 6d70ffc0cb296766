"""Small parts of the standard library that decide counts and paths: ``math``, ``argparse``, ``os.path``, clocks."""

from __future__ import annotations

import builtins
import math
import posixpath
import zlib
from collections.abc import Callable

from warplint.trace.host.library.numpy import drawn
from warplint.trace.host.library.salt import varying
from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.operators import is_plain
from warplint.trace.host.values import Record, UnknownValue, Value, unknown_from


def _folded(function: Callable[..., Value], name: str) -> Callable[[Machine, Call], Value]:
    """A pure function of plain values, computed where all of them are known."""

    def run(machine: Machine, call: Call) -> Value:
        if all(is_plain(value) and value is not None for value in call.values):
            try:
                return function(*call.args, **call.kwargs)
            except Exception:
                return UnknownValue(f"{name} that fails")
        return unknown_from(f"{name} of something unknown", *call.values)

    return run


def _clock(machine: Machine, call: Call) -> Value:
    return varying(machine, "the time")


def _strftime(machine: Machine, call: Call) -> Value:
    """The time as text; of a given time (``t``), what that gives."""
    given = [value for value in (call.get(1, "t"), call.kwargs.get("secs")) if value is not None]
    return unknown_from("a time as text", *given) if given else varying(machine, "the time as text")


def _of_this_process(machine: Machine, call: Call) -> Value:
    return varying(machine, "a value of this process", *call.values)


def _random(machine: Machine, call: Call) -> Value:
    return drawn(machine)


def _seed(machine: Machine, call: Call) -> Value:
    machine.seeded = True
    return None


def _temporary_directory(machine: Machine, call: Call) -> Value:
    path = _of_this_process(machine, call)
    return Record("temporary-directory", {"name": path, "__enter__": path})


def _parser(machine: Machine, call: Call) -> Value:
    return Record("argument-parser", {"defaults": {}})


def _nothing(machine: Machine, call: Call) -> Value:
    return None


def _environment(machine: Machine, call: Call) -> Value:
    """The run in which nobody has set the variable, as with an option of ``argparse``: its default, if it has one."""
    default = call.get(1, "default")
    return default if isinstance(default, str) else UnknownValue("a variable of the environment")


_TRANGE = "tqdm.trange"


def _trange(machine: Machine, call: Call) -> Value:
    from warplint.trace.host.library.builtins import BUILTINS

    return machine.call(BUILTINS["range"], call.args)


def _exception(name: str) -> Callable[[Machine, Call], Value]:
    return lambda machine, call: Record(name, {"args": tuple(call.args)})


MODELS: dict[str, Callable[[Machine, Call], Value]] = {
    **{
        name: _exception(name)
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    },
    **{
        f"math.{name}": _folded(getattr(math, name), name)
        for name in dir(math)
        if not name.startswith("_") and callable(getattr(math, name))
    },
    **{
        f"os.path.{name}": _folded(getattr(posixpath, name), name)
        for name in ("join", "basename", "dirname", "splitext", "split", "normpath")
    },
    "zlib.crc32": _folded(zlib.crc32, "crc32"),
    "zlib.adler32": _folded(zlib.adler32, "adler32"),
    "time.time": _clock,
    "time.time_ns": _clock,
    "time.perf_counter": _clock,
    "time.perf_counter_ns": _clock,
    "time.monotonic": _clock,
    "time.monotonic_ns": _clock,
    "time.strftime": _strftime,
    "time.ctime": _strftime,
    "datetime.datetime.now": _clock,
    "datetime.datetime.today": _clock,
    "os.getpid": _of_this_process,
    "os.getenv": _environment,
    "os.environ.get": _environment,
    "uuid.uuid1": _of_this_process,
    "uuid.uuid4": _of_this_process,
    "tempfile.mkdtemp": _of_this_process,
    "tempfile.mktemp": _of_this_process,
    "tempfile.TemporaryDirectory": _temporary_directory,
    **{
        f"random.{name}": _random
        for name in ("random", "randint", "randrange", "uniform", "gauss", "choice", "getrandbits", "normalvariate")
    },
    "random.seed": _seed,
    **{
        f"secrets.{name}": _of_this_process
        for name in ("token_hex", "token_bytes", "token_urlsafe", "randbelow", "randbits", "choice")
    },
    "os.urandom": _of_this_process,
    "datetime.datetime.utcnow": _clock,
    "argparse.ArgumentParser": _parser,
    "sys.exit": _nothing,
    "time.sleep": _nothing,
    "gc.collect": _nothing,
    "logging.basicConfig": _nothing,
    _TRANGE: _trange,
    "tqdm.auto.trange": _trange,
}
