# SPDX-License-Identifier: Apache-2.0
"""What is asked of a cluster next, drawn by lot."""

from __future__ import annotations

from collections.abc import Iterator
import itertools
import random
from typing import Any

from magnum.tests.functional.k8s_capi_helm.adoption.setting import GROUP, TEMPLATE
from magnum.tests.functional.k8s_capi_helm.kills import project
from magnum.tests.unit.drivers.k8s_capi_helm import magnum_release

#: A verb of a conductor, and its arguments.
Request = tuple[str, dict[str, Any]]


class Wishes:
    """The wishes of one tenant."""

    def __init__(self, lots: random.Random) -> None:
        self._lots = lots
        self._names = (f"group-{number}" for number in itertools.count(1))

    def draw(self, row: dict[str, Any]) -> Request:
        """One of what may be asked for now.

        :param row: of a cluster at rest, with its ``groups`` by name.
        """
        return self._lots.choice(list(self._all(row)))

    def _all(self, row: dict[str, Any]) -> Iterator[Request]:
        groups, upgraded = row["groups"], row["cluster_template_id"] == project.NEXT_TEMPLATE
        failed = [name for name in groups if groups[name]["status"] == "CREATE_FAILED"]
        if failed:  # nothing else can be done with it
            yield "drop_group", {"name": failed[0]}
            return
        more = [name for name in groups if not name.startswith("default-")]
        for name in ("default-worker", "default-master", *more):
            counts = {1, 3, 5} if name == "default-master" else set(range(5))
            count = self._lots.choice(sorted(counts - {groups[name]["node_count"]}))
            yield "resize", {"count": count, "group": name}
        if magnum_release.credential_conductor:
            yield "rotate", {}
        for _ in range(2):
            image = project.NEXT if upgraded else TEMPLATE["image_id"]
            made = {"name": next(self._names), "node_count": self._lots.randint(0, 2)}
            yield "add_group", {**GROUP, **made, "min_node_count": 0, "image_id": image}
        for name in more:
            yield "drop_group", {"name": name}
            yield "change_group", {"name": name, **self._change(groups[name])}
        if not upgraded:
            yield "upgrade", {"template": project.NEXT_TEMPLATE}

    def _change(self, group: dict[str, Any]) -> dict[str, Any]:
        """What an update of a nodegroup changes: labels of its nodes, where Magnum has them."""
        if "node_labels" in group:
            return {"node_labels": {"lot": f"{self._lots.random()}"}}
        return {"max_node_count": group["node_count"] + self._lots.randint(1, 9)}
