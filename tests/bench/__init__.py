"""Measures the linter's speed as ratios within one run: ``python -m tests.bench FOLDER…``."""
