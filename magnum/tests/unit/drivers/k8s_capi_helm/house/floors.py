# SPDX-License-Identifier: Apache-2.0
"""Rooms and floors, and what may be imported across: data of the import law.

A new room is added to ``FLOORS`` and nowhere else: the contributor's page of the documentation is
made from this table and the rooms' docstrings.
"""

#: Room -> floor, from the top: what Magnum calls, what decides and acts, input and output, rules,
#: and the words that all of them use.
FLOORS = {
    "driver": 4,
    "handlers": 4,
    "commands": 4,
    "reconcile": 3,
    "magnum_objects": 2,
    "cloud": 2,
    "kube_client": 2,
    "kube": 2,
    "helm": 2,
    "chart_store": 2,
    "lease": 2,
    "metrics": 2,
    "conf": 2,
    "helm_values": 1,
    "values": 1,
    "status": 1,
    "labels": 0,
    "model": 0,
    "deadline": 0,
    "errors": 0,
}
#: What may be imported from a room on the same floor, besides errors and deadline.
BESIDE = frozenset(
    {
        ("driver", "handlers"),
        ("kube_client", "kube"),
        ("helm", "kube_client"),
        ("chart_store", "kube_client"),
        ("chart_store", "helm"),
        ("lease", "kube_client"),
        ("magnum_objects", "conf"),
        *((room, "metrics") for room in ("cloud", "kube", "helm", "lease")),
        ("helm_values", "values"),
        ("model", "labels"),
    }
)
#: Room -> the room that stands in front of it, through which the others use it.
FRONTS = {"kube": "kube_client", "values": "helm_values", "handlers": "driver"}
#: Modules of these that are open to all: they do work of their own, and their front none of it.
OPEN = frozenset(
    {
        "values.tree.live",
        "values.change",
        "values.upgrade.upgrade",
        "values.upgrade.upgrade_nodegroups",
        "values.upgrade.version_skew",
        "values.upgrade.deferred",
        "kube.watch.snapshot",
        "kube.watch.informers",
    }
)
_TENANT_API = "a tenant's API is another server than that of kube_client, and has another client"
_COUNTED = "preflight counts what the values are going to ask the cloud for"
#: Module behind a front -> who else imports it, and why.
ALSO_OPEN: dict[str, tuple[frozenset[str], str]] = {
    "kube.tenant.tenant_api": (frozenset({"reconcile"}), _TENANT_API),
    "kube.tenant.tenant_budget": (frozenset({"reconcile"}), _TENANT_API),
    "kube.tenant.tenant_kubeconfig": (frozenset({"reconcile"}), _TENANT_API),
    "kube.identity.identity_expiry": (
        frozenset({"commands"}),
        "the operator is told when the kubeconfig expires, which no request needs to know",
    ),
    "kube.http.request": (
        frozenset({"reconcile"}),
        "the path of an object, as every API server has it",
    ),
    "values.sections.nodegroups": (
        frozenset({"cloud", "commands", "handlers", "magnum_objects", "reconcile"}),
        f"{_COUNTED}, one nodegroup is rendered alone when it is created, and explained alone",
    ),
    "values.sections.network": (frozenset({"cloud", "magnum_objects"}), _COUNTED),
    "values.sections.proxy": (
        frozenset({"magnum_objects"}),
        "addresses of a template are refused where the values cannot take them",
    ),
    "values.sections.pod_security": (
        frozenset({"commands", "conf", "reconcile"}),
        "the level of a release's namespace is an option, and the pods' level in the values",
    ),
    "values.tree.chart_family": (
        frozenset({"reconcile"}),
        "who changes the chart checks that the values fit it",
    ),
    "values.sections.autoscaler": (
        frozenset({"chart_store", "helm", "reconcile"}),
        "the autoscaler's image stands in the values, in the chart and in the Deployment",
    ),
    "values.tree.merge": (
        frozenset({"commands", "helm", "reconcile"}),
        "an operator's overlays are laid over the values, revisions of a release compared, and a "
        "patch that the server cannot try is applied to what is there",
    ),
    "values.provider_policy": (
        frozenset({"conf", "reconcile"}),
        "the operator's rules are read from a file, and requests are compared with them",
    ),
    "values.tree.reserved_keys": (frozenset({"reconcile"}), "keys that no overlay may set"),
}
#: Room -> its inner rooms, which are packages in it, and their floors in there. Files in no inner
#: room count as one of the room's own name: of ``commands`` the program, which imports all, of
#: ``reconcile`` what creates a cluster or changes one, from its beginning to its end, and of
#: ``status`` the verdict: of a cluster, of its nodegroups, of its health.
INNER_FLOORS: dict[str, dict[str, int]] = {
    "commands": {
        "commands": 2,
        "adoption": 1,
        "catalogue": 1,
        "charts": 1,
        "check": 1,
        "clusters": 1,
        "credentials": 1,
        "desired": 1,
        "explain": 1,
        "move": 1,
        "registry": 1,
        "rollout": 1,
        "support": 1,
        "templates": 1,
        "why": 1,
        "lookup": 0,
        "output": 0,
    },
    "handlers": {
        "handlers": 5,
        "health": 4,
        "requests": 3,
        "tasks": 2,
        "outcome": 1,
        "entry": 0,
    },
    "cloud": {"cloud": 2, "catalogue": 1, "resources": 1, "access": 0, "preflight": 0},
    "kube": {"kube": 2, "http": 1, "identity": 0, "tenant": 0, "watch": 0},
    "labels": {"labels": 2, "topics": 1, "value_types": 0},
    "magnum_objects": {"magnum_objects": 2, "validation": 1, "rows": 0},
    "values": {"values": 2, "sections": 1, "upgrade": 1, "tree": 0},
    "reconcile": {
        "reconcile": 5,
        "observe": 4,
        "credentials": 3,
        "deletion": 3,
        "ownership": 3,
        "upgrade": 3,
        "nodegroups": 2,
        "policy": 2,
        "release": 2,
        "context": 1,
        "process": 0,
    },
    "status": {"status": 4, "deletion": 3, "causes": 2, "objects": 1, "texts": 0},
}
#: What an inner room may import from one on the same floor.
INNER_BESIDE: dict[str, frozenset[tuple[str, str]]] = {
    "commands": frozenset(
        {
            ("adoption", "desired"),
            ("catalogue", "templates"),
            ("charts", "registry"),
            ("charts", "templates"),
            ("rollout", "desired"),
            ("support", "check"),
            ("support", "why"),
        }
    ),
    "reconcile": frozenset(
        {
            ("deletion", "credentials"),
            ("deletion", "ownership"),
            ("nodegroups", "policy"),
            ("release", "nodegroups"),
        }
    ),
}
#: The most files of one directory.
MOST_FILES = 16
#: Rooms that know Magnum, and the one that knows oslo.config.
KNOW_MAGNUM = frozenset({"driver", "handlers", "commands", "magnum_objects", "cloud"})
KNOW_OPTIONS = frozenset({"conf"})
#: The one module of rules and ground that reads the wall clock, for the rooms above.
CLOCK = "model/clock.py"
#: The module that saves and destroys Magnum's objects.
SAVES = "magnum_objects/rows/saving.py"
#: The longest chain of rooms, each of which imports the next.
LONGEST_CHAIN = 9
MOST_ROOMS = 20
LONGEST_FILE = 320

#: Standard modules that read a clock, a file, the environment or a socket: not for floor 0.
IMPURE = frozenset(
    "asyncio glob http io logging os pathlib random select shutil signal socket ssl subprocess "
    "tempfile threading time urllib".split()
)
IMPURE_CALLS = frozenset({"now", "utcnow", "today", "open", "print", "input"})
#: Pure libraries: text that has to be understood as Magnum, or as every reader of YAML and of
#: versions, does.
PURE_LIBRARIES = frozenset(
    {
        "oslo_utils.strutils",
        "packaging.specifiers.SpecifierSet",
        "packaging.version.Version",
        "yaml",
    }
)
#: What a room's ``__init__`` hands on besides classes: room -> names, and why.
FUNCTIONS_OF_ROOMS: dict[str, tuple[frozenset[str], str]] = {
    "labels": (
        frozenset(
            "BY_NAME REGISTRY check_merged check_new check_nodegroup effective given_names "
            "named_notices nodegroup_notices notices parse parse_nodegroup readable_labels "
            "template_only_names value_text why_without_effect with_template_only".split()
        ),
        "a room of functions over one registry, which has no class to stand in front of it",
    ),
    "model": (frozenset({"Json", "NOTHING", "present"}), "a type, a value and a question of it"),
    "helm": (frozenset({"END_MARGIN"}), "seconds that an option of conf has to leave"),
    "chart_store": (
        frozenset({"uses_tenant_registry"}),
        "a question to a chart, which has no class",
    ),
}
