"""What the hooks report to: the events of a running program, each with the means to let it happen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Observer(Protocol):
    """What the hooks report to. Every method runs the operation itself by calling what it is given."""

    def kernel(
        self, run: Callable[..., None], kernel: Any, hooks: Any, params: Sequence[Any], adjoint: bool, blocks: bool
    ) -> None:
        """A kernel is launched on the CPU (``blocks``: the cooperative route)."""

    def native(self, name: str, run: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """A memory operation or a native utility runs."""

    def allocate(self, run: Callable[..., int], args: tuple[Any, ...]) -> int:
        """Memory is allocated; ``args[0]`` is its size in bytes."""

    def free(self, run: Callable[..., None], address: int) -> None:
        """Python is done with an allocation."""

    def destroy(self, name: str, run: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Python is done with a mesh, a hash grid, a bounding volume hierarchy …"""

    def created(self, name: str, handle: int, args: tuple[Any, ...]) -> None:
        """A mesh, a hash grid … was made."""

    def capture(self, what: str, state: int, count: Callable[[], int]) -> None:
        """Graph capture on the CPU: ``begin``, ``end``, ``branch``, ``forget``; ``count()`` its native operations."""

    def captured_kernel(self, kernel: Any, hooks: Any, params: Sequence[Any], adjoint: bool, blocks: bool) -> None:
        """A kernel is about to be taken into the graph."""

    def captured_launch(self, run: Callable[[], Any]) -> Any:
        """The kernel that was announced is taken now."""

    def graph(self, state: int | None, run: Callable[[], Any]) -> Any:
        """A captured graph is launched (None: a loaded one, of which nothing is known)."""

    def array(self, array: Any) -> None:
        """A ``wp.array`` object was constructed."""

    def host_view(self, array: Any, view: Any, how: str) -> None:
        """The host looks at an array's memory (``view``: the numpy array, None where it is not known)."""

    def tape(self, what: str, tape: Any) -> None:
        """``created``, ``entered`` (just before recording), ``left``, ``zero``, ``zeroed``, ``reset``, ``wasreset``."""

    def recorded(self, tape: Any, entry: Any) -> None:
        """The tape has taken an entry (a launch's list, or a callable)."""

    def struct_set(self, struct: Any, name: str) -> None:
        """A field of a ``@wp.struct`` instance was set."""

    def wrap_callable(self, tape: Any, function: Callable[[], Any]) -> Callable[[], Any]:
        """What to put on the tape in place of a recorded function."""

    def backward(self, tape: Any, loss: Any, grads: Any, run: Callable[[], Any]) -> Any:
        """``tape.backward`` runs."""

    def kernel_declared(self, kernel: Any) -> None:
        """A kernel object was made."""

    def module_created(self, module: Any) -> None:
        """A module object was made."""

    def module_options(self, module: Any, options: dict[str, Any]) -> None:
        """``wp.set_module_options``."""

    def options_written(self, module: str, options: dict[str, Any]) -> None:
        """The user's code wrote into a module's ``options``."""

    def config(self, option: str, value: Any) -> None:
        """``wp.config.option = value``."""

    def optimiser(self, optimiser: Any, gradients: Any, run: Callable[[], Any]) -> Any:
        """An optimiser of ``warp.optim`` takes a step."""

    def failed(self, error: BaseException) -> None:
        """The observer itself raised: it is switched off from here on."""
