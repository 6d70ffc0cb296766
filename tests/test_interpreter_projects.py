"""Several files: packages, relative imports, cycles, re-exports, layouts, and the order of what imports do."""

from __future__ import annotations

from pathlib import Path

import pytest
from interpreted import PRELUDE, launches, memories, of_kind, run_file, write

from warplint.kernels.file_scope import FileScope
from warplint.kernels.source import Builtin, Constant, Function, Struct, TypeAlias
from warplint.project import Project
from warplint.trace import events

KERNELS = """
    import warp as wp

    @wp.kernel
    def step(a: wp.array(dtype=float), b: wp.array(dtype=float)):
        b[wp.tid()] = wp.sin(a[wp.tid()])
"""

MAIN = """
    import warp as wp
    {imports}

    def main():
        x = wp.zeros(3, dtype=float, requires_grad=True)
        y = wp.zeros(3, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            {launch}

    if __name__ == "__main__":
        main()
"""


def main_with(imports: str, launch: str) -> str:
    """A program that launches ``step`` under a tape."""
    return MAIN.format(imports=imports, launch=launch)


def assert_reached(folder: Path, name: str = "main.py") -> None:
    """One complete, taped launch of ``step``."""
    (launch,) = launches(run_file(folder, name)[0].trace)
    assert launch.complete
    assert launch.tape == 0
    assert launch.kernel is not None
    assert launch.kernel.span.path.endswith("kernels.py")


CALL = "wp.launch({}, dim=3, inputs=[x], outputs=[y])"


def test_a_file_next_door(tmp_path: Path) -> None:
    write(tmp_path, {"kernels.py": KERNELS, "main.py": main_with("import kernels as k", CALL.format("k.step"))})
    assert_reached(tmp_path)


def test_packages_submodules_and_re_exports(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pkg/__init__.py": "from .core import step as advance\nfrom . import deep\n",
            "pkg/core.py": "from .deep.kernels import step\n",
            "pkg/deep/__init__.py": "",
            "pkg/deep/kernels.py": KERNELS,
            "main.py": main_with("import pkg", CALL.format("pkg.advance")),
            "other.py": main_with("import pkg.deep.kernels", CALL.format("pkg.deep.kernels.step")),
            "star.py": main_with("from pkg.deep.kernels import *", CALL.format("step")),
            "late.py": main_with("import pkg", CALL.format("pkg.deep.kernels.step")),
        },
    )
    for name in ("main.py", "other.py", "star.py", "late.py"):
        assert_reached(tmp_path, name)


def test_src_layout_and_a_package_given_by_its_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": "",
            "src/pkg/__init__.py": "",
            "src/pkg/kernels.py": KERNELS,
            "src/pkg/train.py": main_with("from pkg.kernels import step", CALL.format("step")),
            "examples/main.py": main_with("from pkg.kernels import step", CALL.format("step")),
        },
    )
    assert_reached(tmp_path / "src" / "pkg", "train.py")
    assert_reached(tmp_path / "examples")


def test_cyclic_imports(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pkg/__init__.py": "from .a import go\n",
            "pkg/a.py": "from .b import launch\nfrom .kernels import step\ndef go(x, y):\n    launch(x, y)\n",
            "pkg/b.py": "import warp as wp\nfrom . import a\ndef launch(x, y):\n    wp.launch(a.step, 3, [x], [y])\n",
            "pkg/kernels.py": KERNELS,
            "main.py": main_with("from pkg import go", "go(x, y)"),
        },
    )
    assert_reached(tmp_path)


def test_imports_inside_functions_and_under_try(tmp_path: Path) -> None:
    text = """
        import warp as wp
        try:
            import kernels
        except ImportError:
            kernels = None

        def main():
            from kernels import step
            x, y = wp.zeros(3), wp.zeros(3)
            with wp.Tape() as tape:
                wp.launch(kernels.step if kernels is not None else step, dim=3, inputs=[x], outputs=[y])

        main()
    """
    write(tmp_path, {"kernels.py": KERNELS, "main.py": text})
    assert_reached(tmp_path)


def test_what_is_installed_elsewhere_stays_outside(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "site-packages"
    write(
        site,
        {
            "mine/__init__.py": "",
            "mine/kernels.py": KERNELS,
            "mine/main.py": main_with("from mine.kernels import step", CALL.format("step")),
            "other.py": "raise SystemExit\n",
        },
    )
    project = Project.for_paths([site / "mine"])
    module = project.module(site / "mine" / "main.py")
    assert project.find("mine.kernels", module) is not None
    assert project.find("other", module) is None
    assert project.find("warp.utils", module) is None
    assert_reached(site / "mine")


def test_each_file_alone_follows_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"kernels.py": KERNELS, "main.py": ""})
    project = Project.for_paths([tmp_path], follow_imports=False)
    assert project.find("kernels", project.module(tmp_path / "main.py")) is None


def test_kernels_of_an_imported_file_are_declared_where_it_is_imported(tmp_path: Path) -> None:
    text = """
        import warp as wp
        import kernels
        wp.config.max_unroll = 4
        x, y = wp.zeros(3), wp.zeros(3)
        with wp.Tape() as tape:
            a, b = x, y
            for _ in range(2):
                wp.launch(kernels.step, dim=3, inputs=[a], outputs=[b])
                a, b = b, a
    """
    write(tmp_path, {"kernels.py": KERNELS, "main.py": text})
    trace = run_file(tmp_path, "main.py")[0].trace
    order = [type(event).__name__ for event in trace.events]
    assert order.index("KernelDeclared") < order.index("ConfigSet") < order.index("Launch")
    assert [event.seq for event in trace.events] == sorted(event.seq for event in trace.events)
    first, second = launches(trace)
    assert first.kernel is not None
    assert (first.kernel.module, first.kernel.max_unroll) == ("kernels", 16)
    moved = second.bindings[0].array.moved  # type: ignore[union-attr]
    assert moved is not None
    assert first.seq < moved.seq < second.seq


def test_options_set_by_an_import_come_in_time(tmp_path: Path) -> None:
    text = """
        import setup_warp
        import warp as wp
        import kernels
        tape = wp.Tape()
        wp.launch(kernels.step, dim=3, inputs=[wp.zeros(3), wp.zeros(3)])
    """
    setup = "import warp as wp\nwp.config.max_unroll = 4\n"
    write(tmp_path, {"kernels.py": KERNELS, "setup_warp.py": setup, "main.py": text})
    trace = run_file(tmp_path, "main.py")[0].trace
    (launch,) = launches(trace)
    assert launch.kernel is not None
    assert launch.kernel.max_unroll == 4
    assert of_kind(trace, events.ConfigSet)[0].span.path.endswith("setup_warp.py")


def test_objects_of_another_file_keep_their_arrays(tmp_path: Path) -> None:
    state = """
        import warp as wp

        class State:
            def __init__(self, n):
                self.x = wp.zeros(n, dtype=float, requires_grad=True)

        def states(n):
            return [State(3) for _ in range(n)]
    """
    text = """
        import warp as wp
        from kernels import step
        from state import states
        s = states(3)
        with wp.Tape() as tape:
            for a, b in zip(s, s[1:]):
                wp.launch(step, dim=3, inputs=[a.x], outputs=[b.x])
    """
    write(tmp_path, {"kernels.py": KERNELS, "state.py": state, "main.py": text})
    trace = run_file(tmp_path, "main.py")[0].trace
    first, second = launches(trace)
    assert memories(first)[1] == memories(second)[0]
    allocated = trace.memories[memories(first)[0]].allocated
    assert [frame.function for frame in allocated] == ["<module>", "states", "__init__"]


def test_scope_of_a_file_known_by_text_alone(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "consts.py": "import math\nimport warp as wp\nH = wp.constant(0.25)\nTWO = 2 * H\nclass C:\n    N = 3\n",
            "funcs.py": """
                import warp as w
                @w.func
                def helper(x: float):
                    return x
                @w.func_native("return x;")
                def native(x: float) -> float: ...
                @w.struct
                class S:
                    q: w.array(dtype=float)
            """,
            "main.py": """
                import math
                import warp as w
                from warp import sin as sinus
                import consts
                from consts import TWO
                from funcs import *
                vec5 = w.types.vector(length=5, dtype=float)
                changing = 1
                changing = 2
                def factory(k):
                    from funcs import helper as h
                    @w.kernel
                    def made(a: w.array(dtype=float)):
                        a[0] = k * h(TWO)
                    return made
            """,
        },
    )
    project = Project.for_paths([tmp_path])
    path = str(tmp_path / "main.py")
    module = project.module(path)
    scope = FileScope(project, module)
    assert scope.resolve("w.cos") == Builtin("cos")
    assert scope.resolve("sinus") == Builtin("sin")
    assert scope.resolve("w.types.vector") == Builtin("vector")
    assert scope.resolve("float") == Builtin("float")
    assert scope.resolve("consts.H") == Constant(0.25)
    assert scope.resolve("TWO") == Constant(0.5)
    assert scope.resolve("consts.C.N") == Constant(3)
    assert isinstance(scope.resolve("helper"), Function)
    assert isinstance(scope.resolve("S"), Struct)
    assert isinstance(scope.resolve("vec5"), TypeAlias)
    assert scope.resolve("changing") == Constant()
    assert scope.resolve("nothing") is None
    line = next(n for n, text in enumerate(module.source.lines, 1) if "def made" in text)
    inner = FileScope(project, module, line)
    assert inner.resolve("k") == Constant()
    assert isinstance(inner.resolve("h"), Function)


FOLLOW = """
def follow(n):
    with wp.Tape() as tape:
        wp.launch(step, dim=3, inputs=[make()], outputs=[make()])
"""


@pytest.mark.parametrize(
    "entry",
    [
        "from pk import solve\nsolve(4)",
        "from pk import solve\nraise SystemExit(solve(4))",
        "from pk import solve\ntry:\n    solve(4)\nfinally:\n    pass",
        'from pk import solve\nfound = {"a": solve(4)}',
        "from pk import solve\nfound: int = solve(4)",
        "import sys\nfrom pk import solve\nif len(sys.argv) < 9:\n    solve(4)",
    ],
)
def test_an_entry_that_only_starts_a_package_is_followed_to_its_tape(tmp_path: Path, entry: str) -> None:
    write(
        tmp_path,
        {
            "main.py": entry + "\n",
            "pk/__init__.py": "from .sub import solve\n",
            "pk/sub/__init__.py": "from .deep import solve\n",
            "pk/sub/deep.py": "from .steps import follow as solve\n",
            "pk/sub/steps.py": PRELUDE + FOLLOW,
        },
    )
    assert len(launches(run_file(tmp_path, "main.py")[0].trace)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "import warp as wp\nC = wp.config\nC.max_unroll = 4\n",
        "import warp as wp\nwp.config.max_unroll, wp.config.enable_backward = 4, False\n",
        "import warp as wp\ndef put(c, **options):\n    for k, v in options.items():\n        setattr(c, k, v)\n"
        "put(wp.config, max_unroll=4)\n",
    ],
)
def test_options_are_seen_however_their_owner_is_reached(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"main.py": text})
    assert "max_unroll" in {found.option for found in of_kind(run_file(tmp_path, "main.py")[0].trace, events.ConfigSet)}
