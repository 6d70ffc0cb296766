"""The child process: command, interpreter, limits, isolated caches, results as JSON lines."""
