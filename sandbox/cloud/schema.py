# SPDX-License-Identifier: Apache-2.0
"""Create the empty databases of one service.

Most services bring a command for it. The migrations of Magnum, Neutron and Octavia alter
constraints, which SQLite cannot; their tables are made from the models instead, which is what
the migrations end in.
"""

from collections.abc import Callable
import os
from pathlib import Path
import subprocess
import sys
from typing import Any

from sandbox.cloud.config import Paths
from sandbox.cloud.ini import write_private
from sandbox.cloud.services import auth_url, REGION
from sandbox.state import State

COMMAND_TIMEOUT = 300


def main() -> None:
    """Make the schema of the service named on the command line."""
    name, root = sys.argv[1:]
    state = State(Path(root))
    MAKERS[name](state)


def _manage(state: State, service: str, *commands: list[str]) -> None:
    """Run the service's own management program."""
    for command in commands:
        program = str(Path(sys.executable).with_name(f"{service}-manage"))
        config = ["--config-file", str(Paths.of(state).conf(service))]
        subprocess.run([program, *config, *command], check=True, timeout=COMMAND_TIMEOUT)


def _keystone(state: State) -> None:
    from cryptography.fernet import Fernet

    for repository in ("fernet", "credential"):  # what fernet_setup and credential_setup make
        for number in ("0", "1"):
            key = Fernet.generate_key().decode()
            write_private(Paths.of(state).root / "keys" / repository / number, key)
    # The password of the user `admin` comes in OS_BOOTSTRAP_PASSWORD.
    urls = [
        word
        for interface in ("public", "internal", "admin")
        for word in (f"--bootstrap-{interface}-url", auth_url(state))
    ]
    _manage(state, "keystone", ["db_sync"], ["bootstrap", "--bootstrap-region-id", REGION, *urls])


def _nova(state: State) -> None:
    """What four calls of nova-manage do, without importing Nova four times."""
    from nova import config, objects
    from nova.cmd import manage

    config.parse_args(["nova-manage", "--config-file", str(Paths.of(state).conf("nova"))])
    objects.register_all()
    cells = manage.CellV2Commands()
    done = [
        manage.ApiDbCommands().sync(),
        cells.map_cell0(),
        manage.DbCommands().sync(),
        cells.create_cell(name="cell1"),
    ]
    if any(done):
        raise SystemExit(f"nova-manage ended with {done}")


def _barbican(state: State) -> None:
    program = str(Path(sys.executable).with_name("barbican-manage"))
    subprocess.run(
        [program, "db", "upgrade", "--db-url", Paths.of(state).database_url("barbican")],
        check=True,
        timeout=COMMAND_TIMEOUT,
        env={**os.environ, "HOME": str(Paths.of(state).conf("barbican").parent.parent)},
    )


def _magnum(state: State) -> None:
    import sqlalchemy

    from magnum.common import service
    import magnum.conf
    from magnum.db.sqlalchemy import migration, models

    service.prepare_service(["magnum", "--config-file", str(Paths.of(state).conf("magnum"))])
    # The snapshot has it also where another release of Magnum has its own database elsewhere.
    url = Paths.of(state).database_url("magnum")
    magnum.conf.CONF.set_override("connection", url, group="database")
    engine = sqlalchemy.create_engine(url)
    models.Base.metadata.create_all(engine)
    migration.stamp("head")


def _neutron(state: State) -> None:
    from neutron.db.migration.models import head
    import sqlalchemy

    engine = sqlalchemy.create_engine(Paths.of(state).database_url("neutron"))
    head.get_metadata().create_all(engine)


def _octavia(state: State) -> None:
    from octavia.db import base_models
    import sqlalchemy
    from sqlalchemy import orm

    vocabulary = _octavia_vocabulary()  # first, as the tables are those of imported models
    engine = sqlalchemy.create_engine(Paths.of(state).database_url("octavia"))
    base_models.BASE.metadata.create_all(engine)
    with orm.Session(engine) as session, session.begin():
        session.add_all(vocabulary)


def _octavia_vocabulary() -> list[Any]:
    """Rows of the look-up tables, which Octavia's migrations insert."""
    from octavia.common import constants
    from octavia.db import models

    vocabulary = {
        models.ProvisioningStatus: constants.SUPPORTED_PROVISIONING_STATUSES,
        models.OperatingStatus: constants.SUPPORTED_OPERATING_STATUSES,
        models.HealthMonitorType: constants.SUPPORTED_HEALTH_MONITOR_TYPES,
        models.Algorithm: constants.SUPPORTED_LB_ALGORITHMS,
        models.Protocol: constants.SUPPORTED_PROTOCOLS,
        models.SessionPersistenceType: constants.SUPPORTED_SP_TYPES,
        models.AmphoraRoles: constants.SUPPORTED_AMPHORA_ROLES,
        models.LBTopology: constants.SUPPORTED_LB_TOPOLOGIES,
        models.VRRPAuthMethod: constants.SUPPORTED_VRRP_AUTH,
        models.L7RuleType: constants.SUPPORTED_L7RULE_TYPES,
        models.L7RuleCompareType: constants.SUPPORTED_L7RULE_COMPARE_TYPES,
        models.L7PolicyAction: constants.SUPPORTED_L7POLICY_ACTIONS,
        models.ClientAuthenticationMode: constants.SUPPORTED_CLIENT_AUTH_MODES,
    }
    return [table(name=word) for table, words in vocabulary.items() for word in words]


MAKERS: dict[str, Callable[[State], None]] = {
    "keystone": _keystone,
    "glance": lambda state: _manage(state, "glance", ["db_sync"]),
    "placement": lambda state: _manage(state, "placement", ["db", "sync"]),
    "nova": _nova,
    "neutron": _neutron,
    "cinder": lambda state: _manage(state, "cinder", ["db", "sync"]),
    "octavia": _octavia,
    "barbican": _barbican,
    "magnum": _magnum,
}

if __name__ == "__main__":
    main()
