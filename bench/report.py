"""The report of 10,000 groups: CPU time of the command, size of the page, and a browser's time to first display.

Made tables of a day (tests/fleet_tables.py), each group with one partition. REPORT_GROUPS changes the number of groups.
"""

import os
import statistics
import sys
import tempfile
from pathlib import Path

from tests.browser.opened import WHY_NOT, chromium, opened
from tests.fleet_tables import fleet, write

from bench._measure import cost_of

GROUPS = int(os.environ.get("REPORT_GROUPS", "10000"))
MINUTES = 180
ROUNDS = 5
TOOL = str(Path(sys.executable).parent / "groupkeeper")
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="groupkeeper-report-") as name:
        tables = write(Path(name) / "tables", fleet(GROUPS, minutes=MINUTES))
        page = Path(name) / "report.html"
        cost = cost_of([TOOL, "pipeline", "report", "--tables", str(tables), "--output-file", str(page)])
        size = page.stat().st_size
        print(f"{GROUPS:,} groups: {cost.cpu_s:.1f} s of CPU, {cost.memory_mb:.0f} MB, page {size / 1e6:.2f} MB, "
              f"{size / GROUPS:.0f} bytes a group")  # fmt: skip
        if WHY_NOT:
            print(f"  no time of a browser: {WHY_NOT}")
            return
        painted, loaded = [], []
        with chromium() as browser:
            for _ in range(ROUNDS):
                with opened(browser) as (shown, _, _):
                    shown.goto(page.as_uri())
                    shown.wait_for_function(f"{PAINTED} && {LOADED}")
                    painted.append(shown.evaluate(PAINTED))
                    loaded.append(shown.evaluate(LOADED))
        print(f"  browser: first display after {statistics.median(painted):.0f} ms, "
              f"loaded after {statistics.median(loaded):.0f} ms (medians of {ROUNDS})")  # fmt: skip


if __name__ == "__main__":
    main()
