"""Every query of every panel, and of every variable, as Grafana would ask it."""

from __future__ import annotations

import re

from dashboards.__main__ import DASHBOARDS
from dashboards.panels import DISTANCE

AGO = "1s"
"""What is set as the distance between before and after."""

_MADE = [module.dashboard() for module in DASHBOARDS]
QUERIES = {
    f"{dashboard.uid}: {panel.title} {target.ref_id}": target.expr
    for dashboard in _MADE
    for panel in dashboard.panels
    for target in panel.targets
}
CHOICES = {
    f"{dashboard.uid}: {variable.name}": variable.query
    for dashboard in _MADE
    for variable in dashboard.templating.list_val
    if variable.type_val == "query"
}


def filled(expression: str) -> str:
    """The expression with every variable at what Grafana puts for all of its values."""
    durations = expression.replace("$__rate_interval", "1h").replace(DISTANCE, AGO)
    return re.sub(r"\$\w+", ".*", durations)
