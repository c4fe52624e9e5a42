# SPDX-License-Identifier: Apache-2.0
"""What OpenStack was asked, from the sandbox's access log."""

from __future__ import annotations

from magnum.tests.functional.k8s_capi_helm.sandbox import setting

#: Barbican is asked by Magnum itself, for the authorities.
_SERVICES = frozenset({"keystone", "glance", "nova", "neutron", "cinder", "octavia"})
_PROGRAM = "magnum-api"


def of_newest_create(project_id: str) -> list[str]:
    """What Magnum has asked for a project since it was last asked for a cluster there.

    What Magnum's API asks before it answers does not count. The periodic passes do not either: they
    come with the service's own token. So it is what the driver asks, all of it with the tenant's.

    :returns: service, method and path of each request.
    """
    asked: list[str] = []
    for line in setting.state().log("access").read_text(encoding="utf-8").splitlines():
        if not line.endswith(f" project={project_id}"):
            continue
        _, service, method, path, _, _, program, *_ = line.split(" ")
        if (service, method, path) == ("magnum", "POST", "/v1/clusters"):
            asked.clear()
        elif program == _PROGRAM and service in _SERVICES:
            asked.append(f"{service} {method} {path}")
    return asked
