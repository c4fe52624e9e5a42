# SPDX-License-Identifier: Apache-2.0
"""Configuration of every service: oslo.config files on SQLite, a message broker for Magnum only.

Options are those of each service's configuration reference; what is unusual is said beside it.
Files are written anew at every start, so that ports and paths are those of this sandbox.
"""

import dataclasses
import os
from pathlib import Path
import uuid

from sandbox.cloud import broker, conductors, magnum_options
from sandbox.cloud.conductor_layout import Layout, MEMORY
from sandbox.cloud.ini import ini, merged, packaged, Sections, write_private
from sandbox.cloud.services import (
    auth_url,
    COMPUTE_HOSTS,
    HOST,
    REGION,
    SERVICES,
    TRUSTEE_ADMIN,
    TRUSTEE_DOMAIN,
)
from sandbox.state import State

CERTIFICATE_STORES = ("barbican", "x509keypair")

# Seconds until auto healing replaces a control plane machine without a server, and half of what it
# waits for a worker's. Servers come up at once here; on a busy machine that takes a while too.
SERVER_START_TIMEOUT = "75"


@dataclasses.dataclass(frozen=True)
class Paths:
    """Where the cloud keeps its things below a sandbox's directory."""

    root: Path

    @classmethod
    def of(cls, state: State) -> "Paths":
        """Those of one sandbox."""
        return cls(state.path("cloud", "x").parent)

    @property
    def databases(self) -> Path:
        """One SQLite file per service, two more for Nova."""
        return self.root / "db"

    @property
    def data(self) -> Path:
        """What services keep in files: the bytes of images."""
        return self.root / "data"

    @property
    def scratch(self) -> Path:
        """Locks and working directories, which need not outlive a stop."""
        return self.root / "scratch"

    def conf(self, name: str) -> Path:
        """Configuration file of a service, with the name and place that the service asks for."""
        if name == "glance":
            return self.root / "etc" / name / "glance-api.conf"
        if name == "barbican":  # found below $HOME only
            return self.root / "etc" / name / ".barbican" / "barbican.conf"
        return self.root / "etc" / name / f"{name}.conf"

    def database_url(self, name: str) -> str:
        """The database ``name`` as SQLAlchemy wants it."""
        return f"sqlite:///{self.databases / name}.sqlite"


def compute_node_id(host: str) -> str:
    """UUID of the compute node of ``host``: the same in every sandbox and after every start."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, host))


@dataclasses.dataclass(frozen=True)
class Configuration:
    """Writes the files of all services.

    :param password: of the service users.
    :param barbican_key: Fernet key with which Barbican encrypts, URL-safe base64.
    :param certificates: Magnum's ``cert_manager_type``, one of ``CERTIFICATE_STORES``.
    :param kubeconfig: of the management cluster, for Magnum's driver.
    :param layout: of Magnum.
    """

    state: State
    password: str = dataclasses.field(repr=False)
    barbican_key: str = dataclasses.field(repr=False)
    certificates: str
    kubeconfig: Path
    layout: Layout

    @property
    def paths(self) -> Paths:
        """Where the files go."""
        return Paths.of(self.state)

    def write(self) -> None:
        """Write every file, readable by the owner only, and make the directories they name."""
        for folder in ("images", "staging", "tasks"):
            (self.paths.data / folder).mkdir(parents=True, exist_ok=True)
        self.paths.databases.mkdir(parents=True, exist_ok=True)
        for name in SERVICES:
            sections = merged(self._common(name), getattr(self, f"_{name}")())
            self._scratch(name, "locks").mkdir(parents=True, exist_ok=True)
            write_private(self.paths.conf(name), ini(sections))
        for name, own in conductors.configurations(self.layout).items():
            write_private(self.paths.conf(name), ini(own))
        # Nova refuses to start for the second time when this file is not there.
        write_private(
            self._scratch("nova") / "compute_id", compute_node_id(COMPUTE_HOSTS["zone-1"])
        )

    def _common(self, name: str) -> Sections:
        database = {"connection": self.paths.database_url(name), "sqlite_synchronous": False}
        sections: Sections = {
            "DEFAULT": {
                "use_stderr": True,
                "host": COMPUTE_HOSTS["zone-1"],
                "transport_url": "fake://",  # all RPC of a service stays in its one process
                "state_path": self._scratch(name),
            },
            "placement_database" if name == "placement" else "database": database,
            "oslo_concurrency": {"lock_path": self._scratch(name, "locks")},
            "oslo_messaging_notifications": {"driver": "noop"},
        }
        if name != "keystone":
            # Without the role `service` Cinder refuses detaching on behalf of Nova.
            sections["keystone_authtoken"] = {
                **self._user(name),
                "service_token_roles": "service",
                "service_token_roles_required": True,
            }
        return sections

    def _keystone(self) -> Sections:
        keys = self.paths.root / "keys"
        return {
            "token": {"provider": "fernet", "expiration": 86400},
            "fernet_tokens": {"key_repository": keys / "fernet"},
            "fernet_receipts": {"key_repository": keys / "fernet"},
            "credential": {"key_repository": keys / "credential"},
            "cache": {"enabled": True, "backend": "dogpile.cache.memory"},
            # Every request with an application credential checks a hash: the cheapest is enough.
            "identity": {"password_hash_rounds": 4},
        }

    def _glance(self) -> Sections:
        return {
            "DEFAULT": {
                "workers": 0,
                "enabled_backends": "files:file",
                "enabled_import_methods": "[]",
                "worker_self_reference_url": SERVICES["glance"].url(self.state),
                "node_staging_uri": f"file://{self.paths.data / 'staging'}",
            },
            "glance_store": {"default_backend": "files"},
            "files": {"filesystem_store_datadir": self.paths.data / "images"},
            "os_glance_staging_store": {"filesystem_store_datadir": self.paths.data / "staging"},
            "os_glance_tasks_store": {"filesystem_store_datadir": self.paths.data / "tasks"},
            "paste_deploy": {
                "flavor": "keystone",
                "config_file": packaged("glance", "glance-api-paste.ini"),
            },
        }

    def _placement(self) -> Sections:
        return {"api": {"auth_strategy": "keystone"}}

    def _nova(self) -> Sections:
        return {
            "DEFAULT": {
                "compute_driver": "sandbox.Driver",
                "my_ip": HOST,
                "vif_plugging_is_fatal": False,
                "vif_plugging_timeout": 0,
                "service_down_time": 600,
            },
            "api_database": {
                "connection": self.paths.database_url("nova_api"),
                "sqlite_synchronous": False,
            },
            "api": {"auth_strategy": "keystone"},
            "wsgi": {"api_paste_config": packaged("nova", "api-paste.ini")},
            "scheduler": {"discover_hosts_in_cells_interval": 5},
            "glance": {"api_servers": SERVICES["glance"].url(self.state)},
            "placement": self._user("placement"),
            "neutron": self._user("neutron"),
            "cinder": self._user("cinder"),
            "service_user": {**self._user("nova"), "send_service_user_token": True},
        }

    def _neutron(self) -> Sections:
        return {
            "DEFAULT": {
                "core_plugin": "ml2",
                "service_plugins": "router,sandbox_floating_ip",
                "auth_strategy": "keystone",
                "api_paste_config": packaged("neutron", "api-paste.ini"),
                "dhcp_agent_notification": False,
                # Nova learns floating IPs and port changes from these.
                "notify_nova_on_port_status_changes": True,
                "notify_nova_on_port_data_changes": True,
                "send_events_interval": 1,
            },
            "ml2": {
                "type_drivers": "flat,vlan,local",
                "tenant_network_types": "local",
                "mechanism_drivers": "sandbox",
                "extension_drivers": "port_security",
            },
            "ml2_type_flat": {"flat_networks": "*"},
            "nova": self._user("nova"),
            "placement": self._user("placement"),
        }

    def _cinder(self) -> Sections:
        return {
            "DEFAULT": {
                "auth_strategy": "keystone",
                "api_paste_config": packaged("cinder", "api-paste.ini"),
                "resource_query_filters_file": packaged("cinder", "resource_filters.json"),
                "glance_api_servers": SERVICES["glance"].url(self.state),
                "enabled_backends": "sandbox",
                "storage_availability_zone": "nova",
                # Of several services in one process only the last one reports that it is alive.
                "service_down_time": 2_000_000_000,
            },
            "sandbox": {
                "volume_driver": "sandbox.cloud.plugins.volumes.Driver",
                "volume_backend_name": "sandbox",
            },
            "coordination": {"backend_url": f"file://{self._scratch('cinder', 'coordination')}"},
            "nova": self._user("nova"),
            "service_user": {**self._user("cinder"), "send_service_user_token": True},
        }

    def _octavia(self) -> Sections:
        return {
            "api_settings": {
                "auth_strategy": "keystone",
                "enabled_provider_drivers": "amphora:simulated,ovn:simulated",
                "default_provider_driver": "amphora",
            },
            # This driver leaves the making of VIP ports to Octavia itself, on the real Neutron.
            "controller_worker": {"network_driver": "allowed_address_pairs_driver"},
            "neutron": self._user("octavia"),
            "service_auth": self._user("octavia"),
        }

    def _barbican(self) -> Sections:
        return {
            "DEFAULT": {"host_href": SERVICES["barbican"].url(self.state)},
            "simple_crypto_plugin": {"kek": self.barbican_key},
        }

    def _magnum(self) -> Sections:
        client = {"region_name": REGION, "endpoint_type": "publicURL"}
        clients = ("magnum", "glance", "nova", "neutron", "cinder", "octavia", "barbican")
        return {
            **magnum_options.of(self.state, self.layout),
            **self._magnum_transport(),
            "certificates": {"cert_manager_type": self.certificates},
            "quotas": {"max_clusters_per_project": 100},
            "cluster_template": {
                "kubernetes_allowed_network_drivers": "calico,cilium",
                "kubernetes_default_network_driver": "calico",
            },
            "keystone_auth": self._user("magnum"),
            "trust": {
                "trustee_domain_name": TRUSTEE_DOMAIN,
                "trustee_domain_admin_name": TRUSTEE_ADMIN,
                "trustee_domain_admin_password": self.password,
            },
            "cinder": {"default_docker_volume_type": ""},
            "drivers": {"verify_ca": True},
            "capi_helm": {
                **magnum_options.overlays(self.state),
                **magnum_options.of_driver(self.layout),
                "kubeconfig_file": self.kubeconfig,
                "server_start_timeout": os.environ.get(
                    "SANDBOX_SERVER_START_TIMEOUT", SERVER_START_TIMEOUT
                ),
            },
            **{f"{name}_client": dict(client) for name in clients},
        }

    def _magnum_transport(self) -> Sections:
        if self.layout.transport == MEMORY:
            return {}
        return {
            "DEFAULT": {"transport_url": broker.url(self.state, self.password)},
            "oslo_messaging_notifications": {"driver": "messagingv2"},
        }

    def _user(self, name: str) -> dict[str, object]:
        """A service user, in the options of keystoneauth's ``password`` plug-in."""
        return {
            "www_authenticate_uri": auth_url(self.state),
            "auth_url": auth_url(self.state),
            "auth_type": "password",
            "username": name,
            "password": self.password,
            "user_domain_id": "default",
            "project_domain_id": "default",
            "project_name": "service",
            "region_name": REGION,
        }

    def _scratch(self, name: str, folder: str = "") -> Path:
        return self.paths.scratch / name / folder
