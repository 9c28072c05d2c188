"""
The pictures of docs/page.md: the bundled workload, and then an antagonist beside it::

    python -m tests.page.screenshots docs/images
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.page.browser import running_browser
from tests.programs import WORKLOAD, running, running_agent

_ALONE_SECONDS, _TOGETHER_SECONDS = 75, 65


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as work,
        running_agent(Path(work)) as address,
        running_browser() as browser,
    ):
        with running(*WORKLOAD):
            time.sleep(_ALONE_SECONDS)
        with running(*WORKLOAD, "--antagonist"):
            time.sleep(_TOGETHER_SECONDS)
            browser.open(address)
            browser.screenshot(folder / "page.png")
            browser.open(address, dark=True)
            browser.screenshot(folder / "page-dark.png", height=1000)
            browser.open(address, width=390)
            browser.screenshot(folder / "page-narrow.png", height=1000)


if __name__ == "__main__":
    main()
