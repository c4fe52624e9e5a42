# SPDX-License-Identifier: Apache-2.0
"""Print the options of magnum-capi-helm as its own listing for oslo.config has them, as JSON.

Run by the Python that has it: ``listing.py``. What it prints is kept in
``magnum/tests/unit/drivers/k8s_capi_helm/predecessor_options.json``.
"""

from __future__ import annotations

import json
import sys

from magnum_capi_helm import conf


def listing() -> dict[str, dict[str, object]]:
    """Each option by group and name."""
    found = {}
    for group, (option,) in conf.list_capi_opts() + conf.list_capi_cluster_label_opts():
        found[f"[{group.name}] {option.name}"] = {
            "type": type(option).__name__,
            "default": option.default,
            "choices": list(getattr(option.type, "choices", None) or ()),
            "old": [f"[{old.group}] {old.name}" for old in option.deprecated_opts],
        }
    return found


if __name__ == "__main__":
    json.dump(listing(), sys.stdout, indent=1)
    sys.stdout.write("\n")
