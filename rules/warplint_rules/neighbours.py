"""What the rules about overwritten arrays say of elements that other threads of the same launch read."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from warplint.finding import Finding
from warplint.kernels.summary import KernelFault, KernelFaultKind
from warplint.rule import Context, Rule
from warplint.trace.dataflow import Dataflow
from warplint.trace.events import Kernel, Launch
from warplint_rules import kernel_faults, wording


def findings(
    rule: Rule, context: Context, instead: str, concerns: Callable[[KernelFault], bool]
) -> tuple[Finding, ...]:
    """One finding for each store to a thread's own element that other threads read as their neighbour."""

    def moot(fault: KernelFault, kernel: Kernel | None, launch: Launch | None, flow: Dataflow) -> bool:
        """A single thread has no neighbours."""
        alone = launch is not None and launch.dim is not None and all(size == 1 for size in launch.dim)
        return alone or not concerns(fault)

    kinds = frozenset((KernelFaultKind.NEIGHBOUR_OVERWRITTEN,))
    told = kernel_faults.Told(kinds, _what, lambda fault: instead, moot=moot)
    return kernel_faults.findings(rule, told, context)


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each statement once."""
    return wording.strongest(tuple(findings))


def is_field(fault: KernelFault) -> bool:
    """Whether the array is a field of a struct parameter."""
    return any("." in path for path in fault.given)


def is_parameter(fault: KernelFault) -> bool:
    """Whether the array is a parameter itself."""
    return not is_field(fault)


def _what(fault: KernelFault) -> str:
    return (
        f"`{fault.operation}` overwrites what another thread of the same launch reads as `{fault.detail}`: which value "
        "it gets depends on the order of the threads, and the adjoint runs them in that order once more, so the "
        "gradient is wrong"
    )
