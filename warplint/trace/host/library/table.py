"""The one table of models by dotted path; each room of models contributes its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from warplint.trace.host.machine import Call, Machine
from warplint.trace.host.values import Value

Model = Callable[[Machine, Call], Value]


@lru_cache(maxsize=1)
def _models() -> Mapping[str, Model]:
    from warplint.trace.host.library import assembly, functional, libraries, numpy
    from warplint.trace.host.warp_api import (
        arrays,
        copies,
        geometry,
        graphs,
        kernels,
        launches,
        maps,
        modules,
        optim,
        outside,
        tapes,
        types,
    )

    table: dict[str, Model] = {}
    for room in (
        functional,
        libraries,
        numpy,
        assembly,
        arrays,
        copies,
        geometry,
        graphs,
        kernels,
        launches,
        maps,
        modules,
        optim,
        outside,
        tapes,
        types,
    ):
        table.update(room.MODELS)
    return table


@lru_cache(maxsize=1)
def _decorators() -> Mapping[str, Model]:
    from warplint.trace.host.library import functional
    from warplint.trace.host.warp_api import kernels

    return {**functional.DECORATORS, **kernels.DECORATORS}


@lru_cache(maxsize=4096)
def model_of(path: str) -> Model | None:
    """The model of a function or class outside the project."""
    model = _models().get(path)
    if model is None and path.startswith("warp."):
        from warplint.trace.host.warp_api.types import host_constructor

        return host_constructor(path)
    if model is None and path.startswith("numpy."):
        from warplint.trace.host.library.numpy import default_model

        return default_model(path)
    return model


def decorator_model_of(path: str) -> Model | None:
    """The model of a decorator that is used without a call (``@wp.kernel``, ``@property``)."""
    return _decorators().get(path)
