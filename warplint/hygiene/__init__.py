"""The rules about the linter's own work: files it could not check, and suppressions that suppress nothing.

Nothing of them can be seen in a trace, so their detectors find nothing; ``lint`` makes their findings. They are
declared as rules all the same, so that they have a page, a severity and a place in every list.
"""

from __future__ import annotations

from warplint.hygiene.unreadable import UNREADABLE
from warplint.hygiene.unused_suppression import UNUSED_SUPPRESSION

RULES = (UNREADABLE, UNUSED_SUPPRESSION)
