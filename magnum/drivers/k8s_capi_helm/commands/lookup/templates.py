# SPDX-License-Identifier: Apache-2.0
"""The cluster templates of this driver, and by whose eyes what they name is looked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeAlias

from magnum import objects
from magnum.common import context as magnum_context
from magnum.drivers.k8s_capi_helm.model import names

#: ``magnum.objects.ClusterTemplate``.
Template: TypeAlias = Any
#: A project without members: it sees what every project sees.
EVERYBODY = ""


def all_templates() -> list[Template]:
    """All templates of Magnum, by name; hidden ones and those of other drivers among them."""
    context = magnum_context.make_admin_context(all_tenants=True)
    return list(objects.ClusterTemplate.list(context, sort_key="name"))


def own_templates() -> list[Template]:
    """All templates of this driver, by name; hidden ones among them."""
    return [template for template in all_templates() if template.driver == names.DRIVER]


def shown_templates() -> list[Template]:
    """The templates of this driver that users can create clusters from."""
    return [template for template in own_templates() if not template.hidden]


def member_project(template: Template) -> str:
    """The project in whose eyes the names of a template are looked for."""
    return EVERYBODY if template.public else str(template.project_id or EVERYBODY)


def cluster_counts() -> Mapping[str, int]:
    """The number of clusters by UUID of their template."""
    context = magnum_context.make_admin_context(all_tenants=True)
    return Counter(cluster.cluster_template_id for cluster in objects.Cluster.list(context))
