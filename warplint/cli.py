"""The command line: what the words mean, and what the exit status is.

0: nothing to report; 1: findings (with ``--verify``: confirmed ones); 2: the tool or its use failed, or a program could
not be judged. An error of ours that nobody foresaw is 2 as well: Python's own 1 would read as "findings".
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from warplint import __version__
from warplint.config import ConfigError
from warplint.discovery import DiscoveryError
from warplint.finding import Severity
from warplint.registry import RegistryError
from warplint.report.renderers import FORMATS
from warplint.usage import FAILED, FINDINGS, INTERRUPTED, OK, RUNNING, UsageError

__all__ = ["FAILED", "FINDINGS", "INTERRUPTED", "OK", "UsageError", "check_parser", "main", "run", "settings_of"]

_EPILOG = """\
exit status: 0 nothing to report, 1 findings, 2 the tool or its use failed.
With --verify: 1 when a finding is confirmed or a gradient is wrong that no finding explains, else 2 when a program
could not be judged, else 0.
"""


def run() -> NoReturn:
    """The command line as a process of its own, which holds syntax trees to its end.

    Looking through them for garbage again and again costs five times the parsing, and once more at the end as much as
    all interpretation: nothing is collected but what each file leaves behind (``warplint.lint``).
    """
    gc.disable()
    status = main()
    gc.freeze()
    sys.exit(status)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status. ``--help`` and bad options leave by argparse's ``SystemExit``."""
    words = list(sys.argv[1:] if argv is None else argv)
    _prepare_streams()
    try:
        return _dispatch(words)
    except (ConfigError, DiscoveryError, RegistryError, UsageError) as error:
        print(f"warplint: error: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("warplint: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_gone()
    except Exception as error:
        return _unforeseen(error)


def _dispatch(words: list[str]) -> int:
    from warplint import commands

    if words and words[0] == "rule":
        return commands.rule(_rule_parser().parse_args(words[1:]))
    if words and words[0] == "gradcheck":
        return _gradcheck(words[1:])
    if words and words[0] == "builds":
        from warplint.builds import command_line

        return command_line.main(words[1:])
    if words and words[0] == "check":
        words = words[1:]
    parser = check_parser()
    options = parser.parse_intermixed_args(words)
    return commands.check(options, settings_of(options))


def _gradcheck(words: list[str]) -> int:
    from warplint import commands

    cut = words.index("--") if "--" in words else len(words)
    options = _gradcheck_parser().parse_args(words[:cut])
    if not words[cut + 1 :]:
        raise UsageError("gradcheck: the command is missing: warplint gradcheck -- python train.py")
    return commands.gradcheck(options, settings_of(options), words[cut + 1 :])


def check_parser() -> argparse.ArgumentParser:
    """The words of ``warplint check``, which is also what runs without a command."""
    parser = argparse.ArgumentParser(
        prog="warplint",
        usage="warplint [check] [options] [PATH ...]\n       warplint rule [CODE ... | --all]\n"
        "       warplint gradcheck [options] -- COMMAND ...\n       warplint builds measure [options] -- COMMAND ...\n"
        "       warplint builds compare BEFORE.json AFTER.json",
        description="Find silently wrong gradients and needless builds in NVIDIA Warp programs, and prove them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and folders (default: .); - is standard input")
    _add_selection(parser)
    _add_files(parser)
    running = _add_running(parser)
    running.add_argument("--verify", action="store_true", help="run the programs and say which findings are real")
    running.add_argument("--run", action="append", metavar="CMD", help="what --verify runs (repeatable)")
    running.add_argument(
        "--fail-on",
        choices=("confirmed", "any"),
        help="with --verify: exit 1 for confirmed findings alone (default), or for any that is not refuted",
    )
    fixing = parser.add_argument_group("fixes")
    fixing.add_argument("--fix", action="store_true", help="change the files; what remains is reported")
    fixing.add_argument("--diff", action="store_true", help="show what --fix would change; exit 1 if there is anything")
    fixing.add_argument("--unsafe-fixes", action="store_true", help="also fixes that change what the program computes")
    known = parser.add_argument_group("known findings")
    known.add_argument("--baseline", metavar="FILE", help="report only what this file does not know")
    known.add_argument(
        "--write-baseline", action="store_true", help="write what is found now to the baseline, and exit 0"
    )
    known.add_argument("--add-ignore", action="store_true", help="write a comment that silences it to each finding")
    output = _add_output(parser)
    output.add_argument("--statistics", action="store_true", help="count findings by rule, and what was interpreted")
    output.add_argument("--exit-zero", action="store_true", help="exit 0 also when there are findings")
    output.add_argument("--show-settings", action="store_true", help="print the settings in effect and exit")
    work = parser.add_argument_group("work")
    work.add_argument("--no-cache", action="store_true", help="neither read nor write cached results")
    work.add_argument("--jobs", type=_jobs, metavar="N", help="processes (default: one a processor, 8 at most)")
    parser.add_argument("--version", action="version", version=f"warplint {__version__}")
    return parser


def _rule_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="warplint rule", description="Show a rule's page; without a code list all rules."
    )
    parser.add_argument("codes", nargs="*", metavar="CODE", help="a code, its beginning, or a name")
    parser.add_argument("--all", action="store_true", help="the pages of all rules")
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text")
    return parser


def _gradcheck_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="warplint gradcheck",
        usage="warplint gradcheck [options] -- COMMAND ...",
        description="Run a program and check every gradient that it computes against finite differences.",
        epilog="exit status: 0 no gradient is wrong, 1 one is, 2 none is but the program could not be judged.",
    )
    parser.add_argument(
        "--severity", choices=[s.value for s in Severity], help="lowest severity shown (default: warning)"
    )
    _add_running(parser)
    _add_output(parser)
    return parser


def _add_selection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "rules", "codes (NVW101), beginnings of codes (NVW1) or names, separated by commas"
    )
    group.add_argument("--select", action="append", metavar="CODES", help="these rules alone")
    group.add_argument("--extend-select", action="append", metavar="CODES", help="these as well")
    group.add_argument("--ignore", action="append", metavar="CODES", help="not these")
    group.add_argument("--per-file-ignores", action="append", metavar="PATTERN:CODES", help="not these in such files")
    group.add_argument(
        "--severity", choices=[s.value for s in Severity], help="lowest severity shown (default: warning)"
    )
    group.add_argument("--warp-version", metavar="N.N", help="the version that rules speak of (default: the newest)")


def _add_files(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("files")
    group.add_argument("--exclude", action="append", metavar="PATTERNS", help="leave out, in place of the default")
    group.add_argument("--extend-exclude", action="append", metavar="PATTERNS", help="leave out as well")
    group.add_argument(
        "--force-exclude", action="store_const", const=True, help="excludes hold for files that are named, too"
    )
    group.add_argument(
        "--notebooks", action="store_const", const=True, help="check the notebooks found in folders, too"
    )
    group.add_argument("--stdin-filename", metavar="FILE", help="the name of what is read from standard input")


def _add_running(parser: argparse.ArgumentParser) -> Any:
    group = parser.add_argument_group("running programs")
    group.add_argument("--python", metavar="FILE", help="the interpreter (default: that of the active environment)")
    group.add_argument("--device", metavar="NAME", help="redirect every device request there, such as cpu")
    group.add_argument("--time-limit", type=float, metavar="SECONDS", help="for each program (default: 120)")
    group.add_argument(
        "--memory-limit", type=float, metavar="GB", help="for each program (default: 3/4 of the machine's; 0: none)"
    )
    group.add_argument("--iterations", type=int, metavar="N", help="stop each program when N were seen (default: 2)")
    group.add_argument(
        "--horizon", type=int, metavar="N", help="backward calls that one iteration may have (default: 8)"
    )
    group.add_argument("--keep", metavar="DIR", help="write a script for each gradient that measures it again")
    return group


def _add_output(parser: argparse.ArgumentParser) -> Any:
    group = parser.add_argument_group("output")
    group.add_argument("--format", choices=list(FORMATS), default="text", help="default: text")
    group.add_argument("--output-file", metavar="FILE", help="write the report there")
    return group


def settings_of(options: argparse.Namespace) -> Mapping[str, Any]:
    """The options that are settings, under their names in pyproject.toml; those not given are left out."""
    given = vars(options)
    lists = ("select", "extend_select", "ignore", "exclude", "extend_exclude")
    table: dict[str, Any] = {name.replace("_", "-"): _listed(given[name]) for name in lists if given.get(name)}
    if given.get("per_file_ignores"):
        table["per-file-ignores"] = _patterns(given["per_file_ignores"])
    words = ("severity", "baseline", "warp_version")
    table |= {name.replace("_", "-"): given[name] for name in words if given.get(name)}
    if given.get("force_exclude"):
        table["force-exclude"] = True
    if given.get("notebooks"):
        table["notebooks"] = True
    running = {name: given[key] for name, key in RUNNING.items() if given.get(key) is not None}
    return {**table, **({"verify": running} if running else {})}


def _listed(values: Sequence[str]) -> list[str]:
    return [word.strip() for value in values for word in value.split(",") if word.strip()]


def _patterns(values: Sequence[str]) -> Mapping[str, list[str]]:
    table: dict[str, list[str]] = {}
    for value in values:
        pattern, colon, codes = value.rpartition(":")
        if not colon or not pattern or not codes:
            raise ConfigError(f"--per-file-ignores: expected PATTERN:CODE,CODE, not `{value}`")
        table.setdefault(pattern.strip(), []).extend(_listed([codes]))
    return table


def _jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("a number of processes above 0 is needed")
    return int(text)


def _prepare_streams() -> None:
    """A name that the terminal cannot show must not end the run."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _reader_gone() -> int:
    """Whoever read our output has left (``warplint | head``); nothing more may be written at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED


def _unforeseen(error: Exception) -> int:
    import traceback

    if os.environ.get("WARPLINT_DEBUG"):
        traceback.print_exc()
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    print(
        f"warplint: internal error: {type(error).__name__}: {error} ({where}); please report it "
        "(WARPLINT_DEBUG=1 shows the traceback)",
        file=sys.stderr,
    )
    return FAILED
