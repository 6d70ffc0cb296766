"""warplint: a linter and run-time verifier for NVIDIA Warp programs."""

__version__ = "0.1.0"
