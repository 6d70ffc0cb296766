"""# late-config (NVW301)

## What it does

Finds an option of `wp.config` that is assigned after its deadline: for the modules that the program goes on to use, the
assignment has no effect.

- Until the module is created (the first `@wp.kernel` of the file, the import of the library): `max_unroll`,
  `enable_backward`, `lineinfo`, `compile_time_trace`, `deterministic`, `deterministic_max_records`.
- Until the module is first loaded (its first launch): `mode`, `optimization_level`, `cpu_compiler_flags`,
  `enable_vector_component_overwrites`, `verify_fp`, `verify_autograd_array_access`, `use_precompiled_headers`,
  `line_directives`, `llvm_cuda`, `default_grid_stride`, `enable_mathdx_gemm` (`_solver`, `_fft`),
  `enable_tiles_in_stack_memory`.
- Until a module is loaded: `cache_kernels`, `kernel_cache_dir`, `cuda_output`, `ptx_target_arch`, `cuda_arch_suffix`,
  `legacy_cpu_linker`.
- Until `wp.init()` or the first launch: `enable_mempools_at_init`, `track_memory`.

## Why is this bad

Warp says nothing. The loop is not unrolled (and its gradient stays wrong), the backward pass is generated all the same,
the check that was switched on does not run.

## Example

```python
@wp.kernel
def solve(a: wp.array(dtype=float)): ...

wp.config.max_unroll = 32            # NVW301: `solve` has made the module already
```

## Use instead

Assign before the first kernel, or say it to the module:

```python
wp.set_module_options({"max_unroll": 32})
```

## How it is verified

The program runs, and the option is read back from the module that was loaded: it is the value that was asked for, or
it is not.

## Limits

Options that are read at each use (`log_level`, `print_launches`, `verify_cuda`, …) are never late. Silent: assignments
whose value is not known, that put back the default or an earlier value, that are undone before the module is used, or
whose modules set the option themselves.
Information only: assignments that still reach some other module of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warplint.finding import Anchor, Finding, Label, Role, Severity
from warplint.proof import Experiment
from warplint.rule import Context, Group, Rule
from warplint.trace.events import ConfigSet, Launch, Trace
from warplint.trace.flow.module_lives import ModuleLife, assigned_next, module_lives, values_before
from warplint_rules import wording
from warplint_rules.config_options import OPTIONS, Deadline, Option


def detect(context: Context) -> Iterable[Finding]:
    """One finding for each assignment."""
    lives = module_lives(context.trace)
    return wording.strongest(list(_findings(context, lives)))


def _findings(context: Context, lives: tuple[ModuleLife, ...]) -> Iterator[Finding]:
    for event in context.trace.events:
        if not isinstance(event, ConfigSet):
            continue
        option = OPTIONS.get(event.option)
        if option is None or context.warp < option.since or not _asks_for_a_change(event, option, context.trace):
            continue
        until = assigned_next(context.trace, event)
        missed = [life for life in lives if _misses(life, event, option) and _is_meant(life, event, until)]
        if missed:
            reached = [life for life in lives if life not in missed and _reaches(life, event, option)]
            yield _finding(event, option, missed[0], bool(reached), context.trace)


def _asks_for_a_change(event: ConfigSet, option: Option, trace: Trace) -> bool:
    """The value is known, and neither Warp's own nor one that the program had before (which it then puts back)."""
    before = values_before(trace, event)
    return event.value is not None and None not in before and event.value not in (option.default, *before)


def _misses(life: ModuleLife, event: ConfigSet, option: Option) -> bool:
    """Whether the module goes on as it was, although it is used after the assignment."""
    if life.sets(event.option) or _is_decided_by_kernels(life, event):
        return False
    built = life.first_load is not None and life.first_load.seq < event.seq
    if option.deadline is Deadline.CREATION:
        return life.created.seq < event.seq and (life.is_used_after(event.seq) or not life.loads)
    if option.deadline is Deadline.FIRST_LOAD:
        return built and life.is_used_after(event.seq) and not life.is_changed_after(event.seq)
    if option.deadline in (Deadline.LOAD, Deadline.INIT):
        return built and life.is_used_after(event.seq)
    return False


def _is_meant(life: ModuleLife, event: ConfigSet, until: ConfigSet | None) -> bool:
    """Whether the module is used while the value holds: one that is put back before was set for other modules."""
    return until is None or any(event.seq < load.seq < until.seq for load in life.loads)


def _is_decided_by_kernels(life: ModuleLife, event: ConfigSet) -> bool:
    """Whether each kernel that is launched later has the asked value anyway, from its decorator."""
    kernels = life.launched_after(event.seq) or life.kernels
    if event.option == "enable_backward":
        return bool(kernels) and all(kernel.enable_backward == event.value for kernel in kernels)
    if event.option == "max_unroll":
        return bool(kernels) and all(kernel.max_unroll == event.value for kernel in kernels)
    return False


def _reaches(life: ModuleLife, event: ConfigSet, option: Option) -> bool:
    """Whether the assignment is in time for a module that the program uses afterwards."""
    if option.deadline is Deadline.INIT:
        return False
    if option.deadline is Deadline.CREATION:
        return life.created.seq > event.seq and bool(life.loads)
    built = life.first_load is not None and life.first_load.seq < event.seq
    return life.is_used_after(event.seq) and (not built or life.is_changed_after(event.seq))


def _finding(event: ConfigSet, option: Option, life: ModuleLife, reaches_others: bool, trace: Trace) -> Finding:
    first, load = (life.declared[0].kernel if life.declared else None), life.first_load
    if option.deadline is Deadline.CREATION and first is not None:
        deadline = wording.label(first.decorator, Role.KERNEL, f"the module is created here, by `{first.name}`")
    else:
        deadline = wording.label(load.span if load is not None else None, Role.LAUNCH, "the module is loaded here")
    elsewhere = f', or use `wp.set_module_options({{"{event.option}": {event.value!r}}})`' if option.per_module else ""
    but = "; other modules of this program do get it" if reaches_others else ""
    return wording.finding(
        RULE,
        Severity.INFO if reaches_others else Severity.WARNING,
        event.span,
        f"`wp.config.{event.option} = {event.value!r}` comes too late for {_module(life)}: Warp reads this option "
        f"{option.deadline.value}{but}; assign it earlier{elsewhere}",
        [*deadline, *_use(life, event)],
        trace.source,
        Anchor(
            kernel=first.span if first is not None else None,
            write=load.span if load is not None else None,
            module=life.name,
            option=event.option,
        ),
    )


def _module(life: ModuleLife) -> str:
    names = [f"`{kernel.name}`" for kernel in life.kernels[:3]]
    return f"the module of {wording.listing(names)}" if names else f"module `{life.name}`"


def _use(life: ModuleLife, event: ConfigSet) -> Iterator[Label]:
    later = next((load for load in life.loads if load.seq > event.seq), None)
    if later is not None:
        name = wording.operation_name(later) if isinstance(later, Launch) else "the module"
        yield from wording.label(later.span, Role.LAUNCH, f"{name} is used here without it")


RULE = Rule(
    code="NVW301",
    name="late-config",
    summary="an option of `wp.config` assigned after the module that it is meant for was created or loaded",
    group=Group.BUILD,
    severity=Severity.WARNING,
    experiment=Experiment.OPTION_VALUE,
    since="0.1.0",
    detect=detect,
)
