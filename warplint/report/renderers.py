"""The output formats by name. A renderer is a function of a report and a look; it is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from warplint.report.look import Look
from warplint.report.model import Report

Renderer = Callable[[Report, Look], str]

FORMATS: Mapping[str, str] = {
    "text": "warplint.report.text",
    "concise": "warplint.report.concise",
    "json": "warplint.report.json_report",
    "github": "warplint.report.github",
    "sarif": "warplint.report.sarif",
    "junit": "warplint.report.junit",
}


def renderer(name: str) -> Renderer:
    """The renderer of a format of :data:`FORMATS`."""
    render: Renderer = import_module(FORMATS[name]).render
    return render
