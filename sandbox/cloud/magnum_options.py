# SPDX-License-Identifier: Apache-2.0
"""What differs in Magnum's configuration by its layout: processes, database, packaged files."""

import yaml

from sandbox import database
from sandbox.cloud.conductor_layout import Layout
from sandbox.cloud.ini import packaged, Sections
from sandbox.cloud.magnum_release import PREDECESSOR, ROOT
from sandbox.cloud.services import HOST
from sandbox.management import addon_provider, chart_repository
from sandbox.management.releases import Providers
from sandbox.state import State

_CHART = ROOT / "charts" / "openstack-cluster"
#: Requests that Magnum's own API program answers at once: it forks a process for each.
API_PROCESSES = 4
#: From this release of Cluster API on, the chart needs no apiVersions.clusterApi.
CHART_DEFAULT = (1, 12)
#: An older one does not see that a server was refused, and replaces its machine after this time; an
#: operator who leaves it out waits for half an hour.
OVERLAY = """\
apiVersions: {{clusterApi: "{}.{}"}}
nodeGroupDefaults: {{healthCheck: {{spec: {{nodeStartupTimeout: 3m0s}}}}}}
"""


def of(state: State, layout: Layout) -> Sections:
    """Sections of its file."""
    release, programs = layout.release, layout.runs_programs
    paste = release.packaged if release else lambda file: packaged("magnum", file)
    sections: Sections = {
        "api": {
            "host": HOST,
            "port": state.port("magnum"),
            "workers": API_PROCESSES if programs else 1,
            "api_paste_config": paste("api-paste.ini"),
        },
        "conductor": {"workers": layout.workers if programs else 1},
    }
    if release:
        sections["database"] = {"connection": database.url(state)}
    return sections


def overlays(state: State) -> dict[str, object]:
    """Options for the overlay with which an operator tells the chart of an older Cluster API.

    With the real addon provider it also says where the charts of addons are. The driver reads
    overlays for each release of a chart, so that it is right after an upgrade too.
    """
    capi = Providers.of(state).capi
    path = state.path("cloud", "overlays", "site.yaml")
    text = OVERLAY.format(*capi.minor) if capi.minor < CHART_DEFAULT else ""
    if addon_provider.chosen(state) == addon_provider.REAL:
        text += yaml.safe_dump(chart_repository.overlay(state))
    if not text:
        path.unlink(missing_ok=True)
        return {}
    path.write_text(text)
    return {"overlay_directory": path.parent}


def of_driver(layout: Layout) -> dict[str, object]:
    """Options of another driver than this project's: the chart, as it bundles none."""
    if layout.driver != PREDECESSOR:
        return {}
    return {
        "helm_chart_repo": "",
        "helm_chart_name": str(_CHART),
        "default_helm_chart_version": "",
    }
