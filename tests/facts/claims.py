"""What the probes of the tapes' programs read and ought to have read: gradients known in closed form."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """The printed ``field`` is taken for ``gradient``: the derivative of what the probe calls its loss."""

    field: str
    gradient: tuple[float, ...]


def _claim(field: str, *gradient: float) -> Claim:
    return Claim(field, gradient)


_SQUARES = (2.0, 4.0, 6.0)
"""Of the sum of x^2 at 1, 2, 3."""
_QUADRATICS = (2.2, 4.2, 6.2)
"""Of the sum of x^2 + x / 5 there."""
_QUARTICS = (5.28, 36.96, 119.04)
"""Of the sum of (x^2 + x / 5)^2 there."""
_STATES = (1.0, -0.6, 1.8)
"""Of the sum of x^2 at 0.5, -0.3, 0.9."""

CLAIMS: dict[str, dict[str, Claim]] = {
    "p05_requires_grad": {
        "backward() with no loss and no seed": _claim("g", *_SQUARES),
        "backward(grads={loss without requires_grad: ones})": _claim("g", *_SQUARES),
        "backward(loss=l) ok": _claim("g", *_SQUARES),
        "loss kernel launched outside the tape": _claim("g", *_QUARTICS),
    },
    "p06_duplicate": {"intermediate grads after backward (consumed?)": _claim("bgrad", 0.98, 3.38, 0.32)},
    "p07_tape": {
        "backward inside with tape:": _claim("g", *_STATES),
        "two iterations inside one with-block: backward, reset, forward, backward": _claim("g", *_STATES),
        "backward + optimiser launch inside with tape:": _claim("g", *_STATES),
        "grad read before backward; .grad.numpy() aliases on CPU": _claim("alias_after", *_STATES),
        "g = x.grad.numpy() kept (no copy), then tape.zero(): CPU zero-copy alias": _claim(
            "kept_reference_after_zero", *_STATES
        ),
        "loss.grad after backward / tape.zero()": _claim("lgrad_after_bw", 1.0),
    },
    "p13_misc": {
        "13 module option enable_backward=False": _claim("g", 4.0, 32.0, 108.0),
        "13 wp.config.enable_backward=False while module was created": _claim("g", 36.0, 288.0, 972.0),
        "13 wp.config.enable_backward=False after module creation": _claim("g", *_QUARTICS),
        "13 kernel enable_backward=True overrides module False": _claim("g", 64.0, 512.0, 1728.0),
        "15 seed grads={y: ones} gives gradient of SUM, not mean": _claim("ad_sum", *_QUADRATICS),
        "15 y.grad.fill_(1); backward(); then second backward without re-seed": _claim(
            "second_backward_without_reseed", *_QUADRATICS
        ),
        "15 x.grad.zero_() then backward again (benign)": _claim("after_second", *_SQUARES),
        "15 grads= seed array for y without grad: consumed (zeroed) by backward?": _claim("xg", *_QUADRATICS),
        "18 ScopedCapture on CPU with tape": _claim("g", *_SQUARES),
        "19 manual launch(adjoint=True)": _claim("gx", *_QUADRATICS),
        "19 launch(adjoint=True, adj=None) uses array .grad": _claim("gx", *_QUADRATICS),
        "19 record_func": _claim("g", *_QUARTICS),
        "19 launch_tiled on tape": _claim("g", *(2.0 * each for each in range(8))),
    },
}
"""By program and case; a probe without an entry compares nothing."""
