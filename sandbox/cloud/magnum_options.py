# SPDX-License-Identifier: Apache-2.0
"""What differs in Magnum's configuration by its layout: processes, database, packaged files."""

from sandbox import database
from sandbox.cloud.conductor_layout import Layout
from sandbox.cloud.ini import packaged, Sections
from sandbox.cloud.services import HOST
from sandbox.state import State

#: Requests that Magnum's own API program answers at once: it forks a process for each.
API_PROCESSES = 4


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
