"""The child process: command, interpreter, limits, isolated caches, results as JSON lines."""

from warplint.runner.result import RunResult
from warplint.runner.run import RunOptions, check_kernels, run

__all__ = ["RunOptions", "RunResult", "check_kernels", "run"]
