"""The arguments of a call, written anew: comments, line breaks, trailing commas and all other text stay as they are.

The call is cut by libcst, whose nodes render to exactly the text they were parsed from. Imported by ``edits`` alone,
when there is an edit to make: libcst takes as long to import as a whole run without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from warplint.dataclass import dataclass

_MODULE = cst.Module([])


@dataclass(frozen=True)
class Argument:
    """One argument's text, and what follows it: the comma if there is one, white space and comments."""

    text: str
    after: str


@dataclass(frozen=True)
class Call:
    """A call as text: up to its parenthesis, white space and comments behind that, the arguments, the rest."""

    head: str
    opening: str
    arguments: tuple[Argument, ...]
    keywords: tuple[str | None, ...]
    tail: str

    @property
    def text(self) -> str:
        """The whole call."""
        return "".join([self.head, self.opening, *(each.text + each.after for each in self.arguments), self.tail])


def parsed(text: str) -> Call | None:
    """The call that ``text`` is; None where libcst sees none (or does not know this Python's grammar yet)."""
    try:
        node = cst.parse_expression(f"({text})")
    except cst.ParserSyntaxError:
        return None
    if not isinstance(node, cst.Call):
        return None
    opening = _MODULE.code_for_node(node.whitespace_before_args)
    arguments = tuple(_argument(argument) for argument in node.args)
    inside = opening + "".join(argument.text + argument.after for argument in arguments)
    head = text[: len(text) - len(inside) - len(")")]
    keywords = tuple(argument.keyword.value if argument.keyword is not None else None for argument in node.args)
    call = Call(head, opening, arguments, keywords, ")")
    return call if call.text == text else None


def _argument(node: cst.Arg) -> Argument:
    alone = node.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=cst.SimpleWhitespace(""))
    text = _MODULE.code_for_node(alone)
    return Argument(text, _MODULE.code_for_node(node)[len(text) :])


def with_value(call: Call, keyword: str, value: str) -> Call:
    """``keyword=value`` in place of the value that the keyword has."""
    at = call.keywords.index(keyword)
    old = call.arguments[at]
    sign = old.text.index("=") + 1
    space = old.text[sign : len(old.text) - len(old.text[sign:].lstrip())]
    return _with_arguments(call, at, replace(old, text=f"{old.text[:sign]}{space}{value}"))


def with_new(call: Call, keyword: str, value: str) -> Call:
    """``keyword=value`` as the last argument, on a line of its own where the others have one."""
    text = f"{keyword}={value}"
    if not call.arguments:
        return replace(call, arguments=(Argument(text, ""),), keywords=(keyword,))
    last = call.arguments[-1]
    between, behind = _parted(call, last.after)
    arguments = (*call.arguments[:-1], Argument(last.text, between), Argument(text, behind))
    return replace(call, arguments=arguments, keywords=(*call.keywords, keyword))


def _parted(call: Call, after: str) -> tuple[str, str]:
    """What stood after the last argument, for the one that is no longer the last, and for the new one."""
    comma = "," if after.lstrip(" \t").startswith(",") else ""
    space = after.split(",", 1)[1] if comma else after
    gaps = [call.opening, *(argument.after for argument in call.arguments[:-1])]
    if "#" in space:  # the comments are the old argument's
        comments, closing = space.rsplit("\n", 1)
        return f",{comments}\n{_indent(gaps)}", f"{comma}\n{closing}"
    if "\n" in space or comma:
        each_has_a_line = all("\n" in gap for gap in gaps)
        return (f",\n{_indent(gaps)}" if each_has_a_line else ", "), after
    return ", ", after


def _indent(gaps: Sequence[str]) -> str:
    indents = [gap.rsplit("\n", 1)[1] for gap in gaps if "\n" in gap]
    return indents[-1] if indents else " " * 4


def without(call: Call, keyword: str) -> Call:
    """The call without that keyword; comments beside it stay."""
    at = call.keywords.index(keyword)
    after = call.arguments[at].after
    kept = call.arguments[:at] + call.arguments[at + 1 :]
    rest = replace(call, arguments=kept, keywords=call.keywords[:at] + call.keywords[at + 1 :])
    if "#" in after:
        return _with_gap(rest, at, after.replace(",", "", 1) if after.lstrip(" \t\n").startswith(",") else after)
    if at < len(kept):
        return rest
    if not kept:
        return replace(rest, opening="") if not call.opening.strip() else rest
    before = kept[-1].after
    if "#" in before:  # a comment behind the argument before: its comma may stay
        return _with_arguments(rest, at - 1, replace(kept[-1], after=before.rsplit("\n", 1)[0] + _closing(after)))
    return _with_arguments(rest, at - 1, replace(kept[-1], after=after))


def _closing(after: str) -> str:
    return "\n" + after.rsplit("\n", 1)[1] if "\n" in after else "\n"


def _with_gap(call: Call, at: int, comments: str) -> Call:
    """The comments put into the gap before the argument at ``at``."""
    gap = call.arguments[at - 1].after if at else call.opening
    joined = gap + (comments.lstrip(" \t") if gap.endswith(("\n", " ", "\t")) else comments)
    if not at:
        return replace(call, opening=joined)
    return _with_arguments(call, at - 1, replace(call.arguments[at - 1], after=joined))


def _with_arguments(call: Call, at: int, argument: Argument) -> Call:
    return replace(call, arguments=(*call.arguments[:at], argument, *call.arguments[at + 1 :]))
