"""Measures the truth of the fixture programs without warplint: derivatives by differences, builds by counting.

    python tests/measure_fixtures.py [PATH ...] [--root fixtures] [--output fixtures/measured.json]

A *gradient* program marks the number its derivative is taken for, ``V0 = 0.8  # perturb`` (optionally a step:
``# perturb 1e-3``), and prints lines with ``loss <number>`` and ``grad <number>``: the objective and the derivative
that the program itself obtained from its tape. It is run again with the number replaced, and the printed derivative is
compared with central differences (Richardson, two steps). Where a line also says ``at <number>`` (a training loop),
every such line is compared with differences of the *first* printed loss around that number. Where it declares
``# repair: OLD => NEW``, the differences are those of the repaired program: what the derivative should have been.

A *build* program has no such mark. It runs in a process of its own with an empty kernel cache: module loads that
compiled are counted, and what each of its modules was built with is compared with ``wp.config``. Where the
program declares ``# repair: OLD => NEW`` the same is measured with every OLD replaced by NEW (``\\n``: a line's end).

Needs warp-lang and numpy only. Figures are written as JSON, a program a key.
"""

from __future__ import annotations

import argparse
import ast
import atexit
import contextlib
import functools
import io
import json
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

NUMBER = r"(-?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf))"
LINE = re.compile(rf"(?:\bat\s+{NUMBER}.*?)?\bloss\s+{NUMBER}.*?\bgrad\s+{NUMBER}")
PERTURB = re.compile(r"#\s*perturb\b\s*([\d.eE+-]*)")
REPAIR = re.compile(r"^#[ \t]*repair:[ \t]*(.+?)[ \t]*=>[ \t]*(.*?)[ \t]*$", re.MULTILINE)
CREATION_OPTIONS = ("max_unroll", "enable_backward", "lineinfo", "compile_time_trace", "deterministic_max_records")


@dataclass(frozen=True)
class Row:
    """One printed line: where (None: at the marked number), objective, derivative from the tape."""

    at: float | None
    loss: float
    grad: float


@dataclass(frozen=True)
class Derivative:
    """Derivative from the tape against central differences; ``relative_error`` is the worst of the printed lines."""

    ad: tuple[float, ...]
    fd: tuple[float, ...]
    spread: float
    relative_error: float


@dataclass(frozen=True)
class Builds:
    """Compiled loads of a first and a second process, and options that no module was built with (asked, got).

    ``repaired_…``: the same of the repaired twin, where the program declares one.
    """

    cold: int
    warm: int
    ignored: dict[str, tuple[object, dict[str, object]]]
    repaired_cold: int | None = None
    repaired_warm: int | None = None
    source_bytes: int = 0
    """Generated source of the cold builds."""
    repaired_source_bytes: int | None = None
    header_passes: int = 0
    """How often Warp's own header was translated in the cold builds: by each that has none precompiled, and by each
    thread that precompiles one."""
    repaired_header_passes: int | None = None


class _MainGuard(ast.NodeTransformer):
    """Makes the main guard hold although the module has a name of its own (kernels' modules are named by it)."""

    def visit_If(self, node: ast.If) -> ast.AST:
        if "__name__" in ast.unparse(node.test):
            node.test = ast.copy_location(ast.Constant(True), node.test)
        return self.generic_visit(node)


class GradientProgram:
    """A program with a number marked for perturbation; runs in this process, so that kernels are built once."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.source = path.read_text()
        lines = self.source.splitlines()
        marked = [(i, m) for i, text in enumerate(lines, 1) if (m := PERTURB.search(text))]
        if len(marked) != 1:
            raise ValueError(f"{path}: {len(marked)} lines marked `# perturb`")
        self.line, mark = marked[0]
        self.step = float(mark.group(1) or 1e-2)
        numbers = [n for n in ast.walk(ast.parse(self.source)) if self._is_marked(n)]
        if len(numbers) != 1:
            raise ValueError(f"{path}:{self.line}: {len(numbers)} numbers on the marked line")
        self.value = float(ast.literal_eval(numbers[0]))
        self.meant = self.source
        for old, new in REPAIR.findall(self.source):
            self.meant = "\n".join(t if t.startswith("#") else t.replace(old, new) for t in self.meant.split("\n"))

    def _is_marked(self, node: ast.AST) -> bool:
        if getattr(node, "lineno", None) != self.line:
            return False
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant)
        return (
            isinstance(node, ast.Constant)
            and type(node.value) is float
            and not self.source.splitlines()[self.line - 1][: node.col_offset].rstrip().endswith("-")
        )

    def run(self, value: float, source: str) -> list[Row]:
        """The lines printed by the program (its ``source``, or what is meant) with the marked number replaced."""
        program = self

        class Replace(_MainGuard):
            def generic_visit(self, node: ast.AST) -> ast.AST:
                if program._is_marked(node):
                    return ast.copy_location(ast.Constant(value), node)
                return super().generic_visit(node)

            visit_Constant = visit_UnaryOp = generic_visit

        tree = ast.fix_missing_locations(Replace().visit(ast.parse(source)))
        name = "measured_" + re.sub(r"\W", "_", "_".join(self.path.with_suffix("").parts[-3:]))
        module = types.ModuleType(name)
        module.__file__ = str(self.path)
        sys.modules[name] = module
        output = io.StringIO()
        with _folder_of(self.path), _own_options(), contextlib.redirect_stdout(output):
            exec(compile(tree, str(self.path), "exec"), module.__dict__)
        return [Row(float(m[1]) if m[1] else None, float(m[2]), float(m[3])) for m in LINE.finditer(output.getvalue())]

    def measure(self) -> Derivative:
        rows = self.run(self.value, self.source)
        if not rows:
            raise ValueError(f"{self.path}: printed no line with `loss … grad …`")
        if rows[0].at is None:
            rows = rows[:1]
        differences = [self._difference(self.value if row.at is None else row.at) for row in rows]
        fd = tuple(d for d, _ in differences)
        ad = tuple(row.grad for row in rows)
        errors = [_relative(a, d) for a, d in zip(ad, fd, strict=True)]
        return Derivative(ad, fd, max(s for _, s in differences), max(errors))

    def _difference(self, at: float) -> tuple[float, float]:
        """Central differences extrapolated from two steps, and how far the two are apart."""
        wide, narrow = (
            (self.run(at + h, self.meant)[0].loss - self.run(at - h, self.meant)[0].loss) / (2.0 * h)
            for h in (self.step, self.step / 2.0)
        )
        return (4.0 * narrow - wide) / 3.0, _relative(wide, narrow)


def _relative(a: float, b: float) -> float:
    scale = max(abs(a), abs(b), 1e-9)
    error = abs(a - b) / scale
    return error if error == error else float("inf")


@contextlib.contextmanager
def _folder_of(path: pathlib.Path) -> Iterator[None]:
    """As if the script at ``path`` was run: its folder leads the import path, the command line is bare."""
    argv, sys.argv = sys.argv, [str(path)]
    sys.path.insert(0, str(path.parent))
    try:
        yield
    finally:
        sys.argv = argv
        sys.path.remove(str(path.parent))


@contextlib.contextmanager
def _own_options() -> Iterator[None]:
    """What the program sets in ``wp.config`` ends with it."""
    import warp as wp

    wp.init()  # sets an option itself
    before = {name: value for name, value in vars(wp.config).items() if not name.startswith("_")}
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(wp.config, name, value)


def _forget_siblings(path: pathlib.Path) -> None:
    """Another program may have a module of the same name beside it."""
    for name, module in list(sys.modules.items()):
        if (file := getattr(module, "__file__", None)) and pathlib.Path(file).parent == path.parent:
            del sys.modules[name]


def measure_builds(path: pathlib.Path) -> Builds:
    """Counts the builds of the program in fresh caches, and of its repaired twin where it declares one."""
    first, second = _processes(path, [], 2)
    files = path.parent.glob("*.py") if path.name == "main.py" else [path]
    repairs = [repair for file in files for repair in REPAIR.findall(file.read_text())]
    measured = Builds(
        first["compiled"],
        second["compiled"],
        first["ignored"],
        source_bytes=first["source_bytes"],
        header_passes=first["header_passes"],
    )
    if not repairs:
        return measured
    cold, warm = _processes(path, repairs, 2)
    return replace(
        measured,
        repaired_cold=cold["compiled"],
        repaired_warm=warm["compiled"],
        repaired_source_bytes=cold["source_bytes"],
        repaired_header_passes=cold["header_passes"],
    )


def _processes(path: pathlib.Path, repairs: list[tuple[str, str]], runs: int) -> list[dict]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch, "program")
        if path.name == "main.py":
            shutil.copytree(path.parent, folder)
        else:
            folder.mkdir()
            shutil.copy(path, folder)
        for file in folder.glob("*.py") if repairs else ():
            text = file.read_text()
            for old, new in repairs:
                lines = text.split("\n")
                new = new.replace("\\n", "\n")
                text = "\n".join(line if line.startswith("# repair:") else line.replace(old, new) for line in lines)
            file.write_text(text)
        environment = dict(os.environ, WARP_CACHE_PATH=str(pathlib.Path(scratch, "cache")))
        results = []
        for _ in range(runs):
            done = subprocess.run(
                [sys.executable, __file__, "--child", str(folder / path.name), "--headers", _headers()],
                env=environment,
                capture_output=True,
                text=True,
                cwd=folder,
            )
            if done.returncode:
                raise RuntimeError(f"{path}: {done.stderr[-600:]}")
            compiled = done.stdout.count("(compiled)")
            generated = sum(file.stat().st_size for file in pathlib.Path(scratch, "cache").rglob("*.cpp"))
            told = json.loads(done.stdout.splitlines()[-1])
            results.append({"compiled": compiled, "source_bytes": generated, **told})
        return results


@functools.lru_cache(maxsize=1)
def _headers() -> str:
    """A folder for precompiled headers, which all programs share: each process would take seconds to make its own."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _child(path: pathlib.Path, headers: pathlib.Path) -> None:
    """Runs the program as a script, then prints the options its loaded modules were built without."""
    sys.path.insert(0, str(path.parent))
    sys.argv = [str(path)]
    import warp as wp
    from warp._src import context

    wp.config.optimization_level = 0  # cheap builds: how many there are does not depend on it
    defaults = {k: v for k, v in vars(wp.config).items() if not k.startswith("_")}
    created: dict[str, dict[str, object]] = {}
    built: dict[str, dict[str, object]] = {}
    load = context.Module.load

    def recording_load(self, *args, **kwargs):
        executable = load(self, *args, **kwargs)
        created[self.name] = {k: self.options[k] for k in CREATION_OPTIONS}
        if self.resolved_options:
            built[self.name] = list(self.resolved_options.values())[-1]
        return executable

    threads: set[int] = set()
    bare = []
    compile_module = context.Module._compile

    def recording_compile(self, *args, **kwargs):
        was_built = compile_module(self, *args, **kwargs)
        if was_built and wp.config.use_precompiled_headers:
            threads.add(threading.get_ident())
        elif was_built:
            bare.append(self.name)
        return was_built

    context.Module.load, context.Module._compile = recording_load, recording_compile

    def shared_headers(runtime):
        folder = headers / threading.current_thread().name
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    context.Runtime.get_clang_pch_dir = shared_headers
    runpy.run_path(str(path), run_name="__main__")
    ignored = {}
    for option, default in defaults.items():
        asked = getattr(wp.config, option)
        got = {m: o[option] for m, o in {n: {**built.get(n, {}), **created[n]} for n in created}.items() if option in o}
        if asked != default and any(value != asked for value in got.values()):
            ignored[option] = (asked, got)
    print("\n" + json.dumps({"ignored": ignored, "header_passes": len(bare) + len(threads)}, default=str))


def programs(root: pathlib.Path) -> Iterator[pathlib.Path]:
    """The entry files below ``root``: ``bad_*.py``, ``good_*.py`` and ``main.py`` of folders of those names."""
    for path in sorted(root.rglob("*.py")):
        named = path if path.name != "main.py" else path.parent
        if named.name.startswith(("bad_", "good_")):
            yield path


def measure(path: pathlib.Path) -> Derivative | Builds:
    """What the program at ``path`` really does."""
    if PERTURB.search(path.read_text()):
        try:
            return GradientProgram(path).measure()
        finally:
            _forget_siblings(path)
    return measure_builds(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=pathlib.Path)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "fixtures")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--child", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--headers", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        _child(args.child, args.headers)
        return
    import warp as wp

    wp.config.log_level = wp.LOG_WARNING
    wp.config.optimization_level = 0  # cheap builds; the numbers do not depend on it
    results = json.loads(args.output.read_text()) if args.output and args.output.exists() else {}
    for path in args.paths or programs(args.root):
        path = path.resolve()
        try:
            result = measure(path)
        except Exception as error:
            print(f"{path.relative_to(args.root.resolve())}: {type(error).__name__}: {error}", flush=True)
            continue
        key = path.relative_to(args.root.resolve()).as_posix()
        results[key] = asdict(result)
        print(key, json.dumps(results[key], default=str), flush=True)
    if args.output:
        results = {key: figures for key, figures in results.items() if (args.root / key).exists()}
        args.output.write_text(json.dumps(dict(sorted(results.items())), indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()
