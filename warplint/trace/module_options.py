"""The options of Warp's modules and of ``wp.config`` that builds hang on."""

from __future__ import annotations

from collections.abc import Mapping

COPIED_AT_CREATION: Mapping[str, object] = {
    "max_unroll": 16,
    "enable_backward": True,
    "lineinfo": False,
    "compile_time_trace": False,
    "deterministic": 0,
    "deterministic_max_records": 0,
}
"""Options that a module takes from ``wp.config`` when it is created, with their defaults."""

DEFAULTS: Mapping[str, object] = {
    **COPIED_AT_CREATION,
    "fast_math": False,
    "fuse_fp": True,
    "strip_hash": False,
    "mode": "release",
    "enable_mathdx_gemm": True,
    "enable_mathdx_solver": True,
    "enable_mathdx_fft": True,
    "default_grid_stride": True,
}
"""What an option of a module is where nobody says anything; the others are None."""

NOT_BUILT_IN = frozenset({"block_dim"})
"""Options that rebuild nothing on the CPU (measured)."""

CACHING = frozenset({"cache_kernels", "kernel_cache_dir", "verify_autograd_array_access"})
"""Options of ``wp.config`` that decide whether a cache is used."""
