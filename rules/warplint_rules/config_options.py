"""When each option of ``wp.config`` takes effect, by Warp version: measured on 1.19, the sources of 1.12 to 1.19 read.

The deadlines have been the same since 1.13; an option that a version does not have takes no effect there, late or not.
"""

from __future__ import annotations

import enum

from warplint.dataclass import dataclass


class Deadline(enum.Enum):
    """Until when an assignment reaches a module."""

    CREATION = "when the module is created, by its first kernel"
    """Copied into the module's options; later assignments are ignored for good."""
    FIRST_LOAD = "when the module is first loaded"
    """Read when the module's hash is made: at its first load, and again only after the module was changed."""
    LOAD = "when a module is loaded"
    """Read at each load; a module that is loaded stays as it is."""
    INIT = "when Warp is initialised"
    """Read once, at `wp.init()` or the first use of a device."""
    USE = "at each use"
    """Never late."""


@dataclass(frozen=True)
class Option:
    """One option of ``wp.config``: ``default`` is Warp's own value, ``since`` the first version read that has it."""

    deadline: Deadline
    default: object
    since: tuple[int, int] = (1, 12)
    per_module: bool = False
    """Can be given to a module by ``wp.set_module_options``."""


OPTIONS: dict[str, Option] = {
    "max_unroll": Option(Deadline.CREATION, 16, per_module=True),
    "enable_backward": Option(Deadline.CREATION, True, per_module=True),
    "lineinfo": Option(Deadline.CREATION, False, per_module=True),
    "compile_time_trace": Option(Deadline.CREATION, False, per_module=True),
    "deterministic": Option(Deadline.CREATION, "NOT_GUARANTEED", (1, 15), per_module=True),
    "deterministic_max_records": Option(Deadline.CREATION, 0, (1, 15), per_module=True),
    "mode": Option(Deadline.FIRST_LOAD, "release", per_module=True),
    "optimization_level": Option(Deadline.FIRST_LOAD, None, per_module=True),
    "cpu_compiler_flags": Option(Deadline.FIRST_LOAD, None, (1, 13), per_module=True),
    "enable_mathdx_gemm": Option(Deadline.FIRST_LOAD, True, per_module=True),
    "enable_mathdx_solver": Option(Deadline.FIRST_LOAD, True, (1, 14), per_module=True),
    "enable_mathdx_fft": Option(Deadline.FIRST_LOAD, True, (1, 14), per_module=True),
    "default_grid_stride": Option(Deadline.FIRST_LOAD, True, (1, 15), per_module=True),
    "verify_fp": Option(Deadline.FIRST_LOAD, False),
    "line_directives": Option(Deadline.FIRST_LOAD, True),
    "enable_vector_component_overwrites": Option(Deadline.FIRST_LOAD, False),
    "llvm_cuda": Option(Deadline.FIRST_LOAD, False),
    "use_precompiled_headers": Option(Deadline.FIRST_LOAD, True),
    "verify_autograd_array_access": Option(Deadline.FIRST_LOAD, False),
    "enable_tiles_in_stack_memory": Option(Deadline.FIRST_LOAD, True),
    "cache_kernels": Option(Deadline.LOAD, True),
    "kernel_cache_dir": Option(Deadline.LOAD, None),
    "cuda_output": Option(Deadline.LOAD, None),
    "ptx_target_arch": Option(Deadline.LOAD, None),
    "cuda_arch_suffix": Option(Deadline.LOAD, None),
    "legacy_cpu_linker": Option(Deadline.LOAD, False, (1, 13)),
    "load_module_max_workers": Option(Deadline.USE, 0),
    "enable_mempools_at_init": Option(Deadline.INIT, True),
    "track_memory": Option(Deadline.INIT, False, (1, 13)),
    "print_launches": Option(Deadline.USE, False),
    "verify_cuda": Option(Deadline.USE, False),
    "launch_array_access_mode": Option(Deadline.USE, None, (1, 14)),
    "enable_cpu_blocks": Option(Deadline.USE, False, (1, 18)),
    "log_level": Option(Deadline.USE, None, (1, 14)),
    "quiet": Option(Deadline.USE, False),
    "verbose": Option(Deadline.USE, False),
    "verbose_warnings": Option(Deadline.USE, False),
    "legacy_scalar_return_types": Option(Deadline.USE, False),
    "deterministic_debug": Option(Deadline.USE, False, (1, 15)),
    "enable_graph_capture_module_load_by_default": Option(Deadline.USE, True),
}
"""`wp.config` of Warp 1.12 to 1.19. What is not here is no option of Warp, and nothing is said about it."""
