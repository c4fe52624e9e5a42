# SPDX-License-Identifier: Apache-2.0
"""Wrong values on record: charts/<chart>/tests/refused/<topic>.yaml, a list of rows.

because: why the chart must not take the values
change:  {dotted.path: wrong value}, as of rendering.changed()
words:   [key that the sentence names, more of the sentence, ...]
release: name of the release, if that is what is wrong
served:  [group/version], what the management cluster is said to serve
from:    scenario that is changed, if it is not the smallest
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass, field
import os
from pathlib import Path
from typing import Any

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import rendering

#: The scenario that a row changes, where it does not say another.
_SMALLEST = {rendering.CLUSTER: "minimal", rendering.ADDONS: "bare"}


@dataclass(frozen=True)
class Row:
    """Values that a chart must refuse, and what it must say to them."""

    file: Path
    because: str
    words: Sequence[str]
    change: Mapping[str, Any] = field(default_factory=dict)
    release: str = "demo"
    served: Sequence[str] = ()
    scenario: str = ""

    @property
    def title(self) -> str:
        """What the row is called where it fails."""
        return f"{self.file.parents[2].name} {self.file.stem}: {self.because}"

    def said(self) -> str:
        """What helm says to the values; empty if it takes them."""
        chart = self.file.parents[2]
        values = rendering.scenarios(chart)[self.scenario or _SMALLEST[chart]].values
        if chart == rendering.CLUSTER and not self.scenario:
            values = {**values, "nodeGroups": [{"name": "md-0", "machineCount": 3}]}
        try:
            rendering.render(
                chart,
                rendering.changed(values, self.change),
                release=self.release,
                served=self.served,
            )
        except rendering.HelmRefused as error:
            return str(error)
        return ""


def rows() -> list[Row]:
    """All wrong values on record."""
    return [
        Row(file=path, scenario=found.pop("from", ""), **found)
        for chart in _SMALLEST
        for path in sorted((chart / "tests" / "refused").glob("*.yaml"))
        for found in yaml.safe_load(path.read_text())
    ]


def answers(of: Sequence[Row]) -> list[str]:
    """What helm says to each row, in their order."""
    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(Row.said, of))
