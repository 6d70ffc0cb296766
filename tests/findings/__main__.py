"""``python -m tests.findings [--write] FOLDER...``: show what has changed, or keep what is found now."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.findings import findings, kept, published, write


def main() -> int:
    """Zero where nothing has changed, or all was written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="keep what is found now")
    arguments = parser.parse_args()
    changed = 0
    for distribution in (each for folder in arguments.folders for each in published(folder)):
        file, found = distribution.kept_in, findings(distribution)
        known = set(kept(file)) if file.exists() else set()
        for sign, places in (("+", found - known), ("-", known - found)):
            for place in sorted(places):
                print(sign, *place, sep="\t")
        changed += found != known
        if arguments.write:
            write(file, found)
        print(f"{distribution.name} {distribution.version}: {len(found)} findings, {len(known)} known")
    return 0 if arguments.write else int(bool(changed))


if __name__ == "__main__":
    raise SystemExit(main())
