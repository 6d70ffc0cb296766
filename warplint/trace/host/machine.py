"""The state of one run along one path: frames, tapes, memories, modules, the log, and the budget.

The parts of the interpreter (expressions, statements, calls, the models of the libraries) are functions over a
:class:`Machine`; it holds the tables that lead to them, so that no part imports another one that imports it.
"""

from __future__ import annotations

import ast
import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from typing import Any, TypeVar

from warplint.dataclass import dataclass
from warplint.kernels.source import Scope
from warplint.kernels.summary import KernelSummary
from warplint.project import Module, Project
from warplint.trace import events
from warplint.trace.events import Event
from warplint.trace.host.facts import (
    PLAIN_FUNCTION,
    STATIC,
    TELLING,
    CallShape,
    FunctionFacts,
    FunctionNode,
    Signature,
    asks_for_round,
    call_shape,
    free_names,
    function_facts,
    grows,
    is_generic,
    lines_with,
    preferred_arm,
    rings_of,
    signature_of,
    static_calls,
    takes_modulo,
)
from warplint.trace.host.held import Held
from warplint.trace.host.memory import ArrayValue, Memory, Shape, arrays_in
from warplint.trace.host.values import (
    Deferred,
    Environment,
    Generator,
    KernelValue,
    ModuleValue,
    Signal,
    TapeValue,
    UnknownValue,
    Value,
    Vector,
    WarpModule,
)
from warplint.trace.log import EventLog, Place
from warplint.trace.settings import TraceSettings

E = TypeVar("E", bound=Event)

_UNBOUND = object()


class BudgetExceeded(Exception):
    """The run used up its steps or its launches."""


class Unwinding(Exception):
    """Control leaves frames of the program; their ``finally`` blocks run on the way."""


class Raised(Unwinding):
    """The program raised an exception that a handler of the program is there to catch.

    ``kinds`` are the names of its class and of that class's bases.
    """

    def __init__(self, kinds: tuple[str, ...], value: Value = None) -> None:
        super().__init__(*kinds)
        self.kinds = kinds
        self.value = value


class Frame:
    """A function's activation: its scope, and the node that it is at now."""

    __slots__ = ("astray", "environment", "function", "module", "node", "on_yield", "owner", "receiver", "result")

    def __init__(self, environment: Environment, function: str, node: ast.AST, owner: Value = None) -> None:
        self.environment = environment
        self.module = environment.module
        self.function = function
        self.node = node
        self.owner = owner
        self.receiver: Value = None
        self.on_yield: Callable[[Value], Value] | None = None
        self.result: Value = None
        self.astray = ""
        """The exception that was raised here, although nothing catches it."""


@dataclass(eq=False, slots=True)
class Call:
    """The evaluated arguments of a call. ``complete`` false: an unknown ``*args`` or ``**kwargs`` was among them."""

    args: list[Value]
    kwargs: dict[str, Value] = field(default_factory=dict)
    node: ast.Call | None = None
    complete: bool = True

    def get(self, position: int, name: str, default: Value = None) -> Value:
        """The argument at a position or under a keyword."""
        if name in self.kwargs:
            return self.kwargs[name]
        if 0 <= position < len(self.args):
            return self.args[position]
        return default

    def has(self, position: int, name: str) -> bool:
        """Whether the argument was given."""
        return name in self.kwargs or 0 <= position < len(self.args)

    def argument_node(self, position: int, name: str) -> ast.expr | None:
        """The expression that was given for it, where it stands in the call itself."""
        if self.node is None:
            return None
        for keyword in self.node.keywords:
            if keyword.arg == name:
                return keyword.value
        if 0 <= position < len(self.node.args) and not any(
            isinstance(a, ast.Starred) for a in self.node.args[: position + 1]
        ):
            return self.node.args[position]
        return None

    @property
    def values(self) -> list[Value]:
        """All arguments."""
        return [*self.args, *self.kwargs.values()]


@dataclass(frozen=True)
class Parts:
    """The interpreter's parts, as the machine calls them."""

    evaluators: Mapping[type[ast.expr], Callable[[Machine, Frame, Any], Value]]
    executors: Mapping[type[ast.stmt], Callable[[Machine, Frame, Any], Signal | None]]
    call: Callable[[Machine, Value, Call], Value]
    get_attribute: Callable[[Machine, Value, str], Value]
    set_attribute: Callable[[Machine, Value, str, Value], None]
    iterate: Callable[[Machine, Value], Sequence[Value] | None]
    run_generator: Callable[[Machine, Generator, Callable[[Value], Value]], None]
    import_module: Callable[[Machine, str, ModuleValue], Value]
    builtins: Mapping[str, Value]
    summarise: Callable[[Machine, events.Kernel], KernelSummary | None]


SummaryKey = tuple[str, int | None, bool, tuple[int, int], frozenset[str]]
"""A kernel by its content, its unroll limit, whether it has an adjoint, Warp's version and what of it is followed."""


class Caches:
    """What holds for a file whatever run looks at it; shared by all runs over one project."""

    def __init__(self) -> None:
        self.facts: dict[FunctionNode, FunctionFacts] = {}
        self.frames: dict[ast.AST, events.Frame] = {}
        self.signatures: dict[FunctionNode, Signature] = {}
        self.lines: dict[tuple[Module, tuple[str, ...]], list[int]] = {}
        self.call_shapes: dict[ast.Call, CallShape] = {}
        self.free_names: dict[ast.FunctionDef, frozenset[str]] = {}
        self.wrapping: dict[ast.expr, bool] = {}
        self.static_calls: dict[ast.FunctionDef, tuple[ast.expr, ...]] = {}
        self.generic: dict[ast.FunctionDef, bool] = {}
        self.growing: dict[ast.stmt, bool] = {}
        self.asking: dict[ast.stmt, bool] = {}
        self.rings: dict[ast.stmt, tuple[ast.expr, ...]] = {}
        self.arms: dict[ast.If, bool | None] = {}
        self.summaries: dict[SummaryKey, KernelSummary] = {}

    def facts_of(self, node: FunctionNode, module: Module) -> FunctionFacts:
        """See :class:`FunctionFacts`. A function whose text has none of the words is not walked."""
        facts = self.facts.get(node)
        if facts is None:
            telling = self.occurs(TELLING, node, module)
            facts = self.facts[node] = function_facts(node) if telling else PLAIN_FUNCTION
        return facts

    def occurs(self, words: tuple[str, ...], node: FunctionNode, module: Module) -> bool:
        """Whether one of the words may occur in the lines of a function."""
        lines = self.lines.get((module, words))
        if lines is None:
            lines = self.lines[module, words] = lines_with(module.source.text, words)
        first = bisect.bisect_left(lines, node.lineno)
        return first < len(lines) and lines[first] <= (node.end_lineno or node.lineno)

    def call_shape_of(self, node: ast.Call) -> CallShape:
        """What the text of a call tells."""
        shape = self.call_shapes.get(node)
        if shape is None:
            shape = self.call_shapes[node] = call_shape(node)
        return shape

    def signature_of(self, node: FunctionNode) -> Signature:
        """The names of a function's parameters."""
        signature = self.signatures.get(node)
        if signature is None:
            signature = self.signatures[node] = signature_of(node)
        return signature

    def free_names_of(self, node: ast.FunctionDef) -> frozenset[str]:
        """The names that a kernel's body reads from outside."""
        known = self.free_names.get(node)
        if known is None:
            known = self.free_names[node] = free_names(node)
        return known

    def static_calls_of(self, node: ast.FunctionDef, module: Module) -> tuple[ast.expr, ...]:
        """What a kernel's ``wp.static(…)`` expressions are given, where that calls something itself."""
        known = self.static_calls.get(node)
        if known is None:
            known = self.static_calls[node] = static_calls(node) if self.occurs(STATIC, node, module) else ()
        return known

    def is_generic(self, node: ast.FunctionDef) -> bool:
        """Whether a kernel has a parameter of a type that each launch decides."""
        known = self.generic.get(node)
        if known is None:
            known = self.generic[node] = is_generic(node)
        return known

    def grows(self, loop: ast.For | ast.While) -> bool:
        """Whether something may grow in a loop's body."""
        known = self.growing.get(loop)
        if known is None:
            known = self.growing[loop] = grows(loop)
        return known

    def asks_for_round(self, loop: ast.For) -> bool:
        """Whether a loop's body asks which round it is."""
        known = self.asking.get(loop)
        if known is None:
            known = self.asking[loop] = asks_for_round(loop)
        return known

    def rings_of(self, loop: ast.For | ast.While) -> tuple[ast.expr, ...]:
        """The containers that a loop's body indexes modulo something."""
        known = self.rings.get(loop)
        if known is None:
            known = self.rings[loop] = rings_of(loop)
        return known

    def preferred_arm(self, node: ast.If) -> bool | None:
        """The arm to follow where the condition is not known."""
        if node not in self.arms:
            self.arms[node] = preferred_arm(node)
        return self.arms[node]

    def wraps_around(self, index: ast.expr) -> bool:
        """Whether an index is taken modulo something."""
        known = self.wrapping.get(index)
        if known is None:
            known = self.wrapping[index] = takes_modulo(index)
        return known


class Machine:
    """One run of one root along one path."""

    def __init__(
        self,
        project: Project,
        settings: TraceSettings,
        parts: Parts,
        caches: Caches,
        polarity: bool = True,
    ) -> None:
        self.project = project
        self.settings = settings
        self.parts = parts
        self.caches = caches
        self._evaluators = parts.evaluators
        self._executors = parts.executors
        self.polarity = polarity
        """The way unknown conditions go on this path."""
        self.log = EventLog()
        self.frames: list[Frame] = []
        self.memories: dict[int, Memory] = {}
        self.tapes: list[TapeValue] = []
        self.active_tape: TapeValue | None = None
        self.modules: dict[Module, ModuleValue] = {}
        self.warp_modules: dict[str, WarpModule] = {}
        self.config: dict[str, Value] = {}
        self.kernels: dict[str, KernelValue] = {}
        self.counts: dict[UnknownValue, int] = {}
        self.captures: list[tuple[Place, frozenset[int]]] = []
        """Where the captures of graphs began that are under way, and the tapes that were walked by then."""
        self.rings: list[int] = []
        self.stand_ins: dict[tuple[UnknownValue, str], ArrayValue] = {}
        """Arrays that stand for what the caller gave, by the value (and its field) that Warp takes for an array."""
        self.unknowns: list[events.Unknown] = []
        self.entered: set[ast.AST] = set()
        self.handlers: list[tuple[str, ...]] = []
        self.steps = 0
        self.limit = settings.steps_before_tape
        """The steps that the run may take, as far as it has come."""
        self.loops = 0
        self.long_loops: set[ast.expr] = set()
        """What the loops that ran for many rounds went over, or what they asked before each."""
        self.backwards = 0
        self.assertions = 0
        self.showings = 0
        self.tapes_entered = 0
        self.tapes_walked: set[int] = set()
        """Tapes that were run backwards."""
        self.collected = 0
        """How often a container took something other than plain data: arrays, objects, kernels."""
        self.launches = 0
        self.unrecorded_launches = 0
        self.undecided = False
        self.decisions = 0
        """How often a way was taken at a condition that nobody knows."""
        self.undecided_in: set[Module | None] = set()
        """The files in which a condition was met that nobody knows."""
        self.scopes: dict[Environment, Scope] = {}
        self.summaries: dict[SummaryKey, KernelSummary] = {}
        self.held: dict[int, Held] = {}
        """The lists and structs that recorded launches were given, by identity."""
        self.unordered: dict[int, Value] = {}
        """Lists and tuples of a set's items, by identity: their order is another one in each process."""
        self.seeded = False
        """The program seeds a generator of random numbers."""
        self.importing: Callable[[ModuleValue], AbstractContextManager[None]] = lambda module: nullcontext()
        """Surrounds the top level of a file that runs late, for who goes back to an earlier state and keeps it."""
        self.can_shorten: Callable[[ast.expr], bool] = lambda count: False
        """Whether the program can be run with a smaller number in the place of this count: it need not run on."""
        self._next_memory = 0

    # -- running ---------------------------------------------------------------------------------------------------

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression; that of a name bound in this very scope without a further call."""
        if type(node) is ast.Name:
            value = frame.environment.variables.get(node.id, _UNBOUND)
            if value is not _UNBOUND and type(value) is not Deferred:
                return value
        return self._evaluators[type(node)](self, frame, node)

    def execute(self, statements: Sequence[ast.stmt], frame: Frame) -> Signal | None:
        """Run a block; the signal that ended it early, if any."""
        executors = self._executors
        for statement in statements:
            self.steps += 1
            if self.steps > self.limit:
                raise BudgetExceeded
            frame.node = statement
            signal = executors[type(statement)](self, frame, statement)
            if signal is not None:
                return signal
        return None

    def take_step(self) -> None:
        """One more step; raises :class:`BudgetExceeded`."""
        self.steps += 1
        if self.steps > self.limit:
            raise BudgetExceeded

    @contextmanager
    def unhurried(self, environment: Environment) -> Iterator[None]:
        """A question of the analysis about a name, maybe long after the run: it may start files that nothing needed."""
        before = self.steps, self.limit, self.frames
        self.steps, self.limit = 0, self.settings.steps
        self.frames = [*self.frames[:1]] or [Frame(environment, "<module>", ast.Pass(lineno=1, col_offset=0))]
        try:
            yield
        except (BudgetExceeded, RecursionError, Raised):
            return
        finally:
            self.steps, self.limit, self.frames = before

    def call(self, callee: Value, args: Sequence[Value] = (), kwargs: Mapping[str, Value] | None = None) -> Value:
        """Call a value from a model."""
        return self.parts.call(self, callee, Call(list(args), dict(kwargs or {})))

    def iterate(self, value: Value) -> Sequence[Value] | None:
        """The items of an iterable; None where they are not known."""
        return self.parts.iterate(self, value)

    @property
    def frame(self) -> Frame:
        """The innermost frame."""
        return self.frames[-1]

    # -- events ----------------------------------------------------------------------------------------------------

    def stack(self) -> events.Stack:
        """The call stack now."""
        known = self.caches.frames
        stack: list[events.Frame] = []
        for frame in self.frames:
            place = known.get(frame.node)
            if place is None or place.function != frame.function:
                place = known[frame.node] = events.Frame(frame.module.module.span(frame.node), frame.function)
            stack.append(place)
        return tuple(stack)

    def emit(self, kind: type[E], **fields: Any) -> E:
        """Append an event that happens now."""
        return self.log.add(kind, self.stack(), **fields)

    def count_launch(self, recorded: bool) -> None:
        """One more launch; raises :class:`BudgetExceeded`."""
        self.launches += 1
        self.unrecorded_launches += not recorded
        if self.launches > self.settings.launches:
            raise BudgetExceeded

    @property
    def active_tape_id(self) -> int | None:
        """The number of the tape that is open now."""
        return None if self.active_tape is None else self.active_tape.id

    def note_unknown(self, node: ast.AST | None, why: str) -> None:
        """Record why something was given up."""
        frame = self.frame
        where = node if node is not None and hasattr(node, "lineno") else frame.node
        text = frame.module.module.text(where)
        self.unknowns.append(events.Unknown(frame.module.module.span(where), text[:200], why))

    # -- memory ----------------------------------------------------------------------------------------------------

    def allocate(self, made_by: str, requires_grad: bool | None = False, **fields: Any) -> ArrayValue:
        """A new memory allocated here, and the handle on all of it."""
        shape: Shape | None = fields.get("shape")
        memory = Memory(self._next_memory, self.stack(), made_by, requires_grad, **fields)
        self._next_memory += 1
        self.memories[memory.id] = memory
        return ArrayValue(memory, dtype=memory.dtype, shape=shape)

    def stand_in(self, value: UnknownValue, field: str = "") -> ArrayValue:
        """The array that a foreign value (or a field of it) must be: the same each time, and nothing known of it."""
        known = self.stand_ins.get((value, field))
        if known is None:
            known = self.stand_ins[value, field] = self.allocate("argument", None, outside=True)
        return known

    def adopt(self, memory: Memory) -> None:
        """Take a memory that was made elsewhere (numpy's own) into the trace."""
        self.memories[memory.id] = memory

    @property
    def newest_memory(self) -> int:
        """The number that the next memory will get."""
        return self._next_memory

    def next_memory(self) -> int:
        """A fresh number for a memory."""
        self._next_memory += 1
        return self._next_memory - 1

    def collect(self, value: Value) -> None:
        """A container takes a value."""
        if not _is_plain_data(value):
            self.collected += 1

    def escape(self, why: str, values: Sequence[Value]) -> None:
        """Arrays went to code that the trace does not follow."""
        found = [array for value in values for array in arrays_in(value, 2)][:16]
        for array in found:
            if array.gradient:
                self.emit(events.GradRead, array=array.snapshot(), how=self.reading("escape"))
        data = tuple(array.snapshot() for array in found if not array.gradient)
        if data:
            self.emit(events.Opaque, why=why, arrays=data)

    def reading(self, how: str) -> str:
        """How a gradient is read: asserting something about it or printing it is no computing with it."""
        return "assert" if self.assertions else "print" if self.showings else how

    # -- unknown counts and conditions -----------------------------------------------------------------------------

    def decide(self, condition: UnknownValue) -> bool:
        """The way an unknown condition goes on this path; its opposite goes the other way."""
        self.undecided = True
        self.decisions += 1
        self.undecided_in.add(self.frames[-1].module.module if self.frames else None)
        return self.polarity != condition.negated

    def count_of(self, value: UnknownValue) -> int:
        """How many rounds stand for an unknown count on this path, the same wherever the count recurs."""
        base = value.base or value
        if base not in self.counts:
            self.counts[base] = max(self.settings.unknown_rounds, *(length + 1 for length in self.rings), 0)
        return max(self.counts[base] * value.factor + value.offset, 0)

    # -- kernels ---------------------------------------------------------------------------------------------------

    def summary_of(self, kernel: events.Kernel) -> KernelSummary | None:
        """The adjoint-need summary of a kernel of this run; None where its source cannot be analysed."""
        return self.parts.summarise(self, kernel)

    # -- names -----------------------------------------------------------------------------------------------------

    def will_catch(self, *kinds: str) -> bool:
        """Whether a handler of the program waits for an exception of one of these names."""
        return any(catches(names, kinds) for names in self.handlers)


_PLAIN_DATA = frozenset({int, float, str, bool, bytes, type(None), Vector, UnknownValue})


def _is_plain_data(value: Value) -> bool:
    if type(value) in (tuple, list):
        return len(value) <= 64 and all(type(item) in _PLAIN_DATA for item in value)
    return type(value) in _PLAIN_DATA


def catches(names: Sequence[str], kinds: Sequence[str]) -> bool:
    """Whether a handler for ``names`` catches an exception whose class and bases are ``kinds``."""
    return "Exception" in names or "BaseException" in names or any(kind in names for kind in kinds)
