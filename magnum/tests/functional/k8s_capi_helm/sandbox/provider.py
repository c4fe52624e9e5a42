# SPDX-License-Identifier: Apache-2.0
"""The cloud's operator: what the cloud offers, and how Magnum is configured."""

from __future__ import annotations

from collections.abc import Mapping
import functools
from pathlib import Path
from typing import Any

from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from sandbox import cloud
from sandbox.cloud import seed
from sandbox.cloud.conductor_layout import Layout
from sandbox.cloud.config import Paths
from sandbox.cloud.ini import ini, write_private

#: Sections of magnum.conf, each about one service that Magnum asks.
_CLIENTS = ("magnum", "glance", "nova", "neutron", "cinder", "octavia", "barbican")


def reconfigure(options: Mapping[str, Mapping[str, object]]) -> None:
    """Start Magnum anew with other options by section; {} for those that it always has.

    Whoever does this has Magnum for itself: requests on their way are lost.
    """
    text = "\n".join([_magnum_conf(), ini(options)])  # of an option that is there twice the last
    write_private(_magnum_conf_file(), text)
    for name in ("magnum", *Layout.of(setting.state()).names):
        cloud.restart(setting.state(), name)


def in_region(name: str) -> dict[str, dict[str, object]]:
    """Options with which Magnum, and what it makes, asks the services of a region."""
    return {f"{client}_client": {"region_name": name} for client in _CLIENTS}


def open_region(name: str) -> None:
    """A second region, in which the same services answer under the same addresses."""
    identity = _admin().identity
    here = list(identity.endpoints())
    identity.create_region(id=name)
    for one in here:
        identity.create_endpoint(
            service_id=one.service_id, interface=one.interface, url=one.url, region_id=name
        )


def close_region(name: str) -> None:
    """The region is not there any more, with its endpoints; gone already is as good."""
    identity = _admin().identity
    for one in list(identity.endpoints()):
        if one.region_id == name:
            identity.delete_endpoint(one)
    identity.delete_region(name)


def offer(*, volume_type: str, flavor: str) -> None:
    """A volume type, and a flavor for machines."""
    admin = _admin()
    admin.block_storage.create_type(name=volume_type)
    admin.compute.create_flavor(name=flavor, ram=4096, vcpus=2, disk=20)


def withdraw(*, volume_type: str, flavor: str) -> None:
    """They are not offered any more; gone already is as good."""
    admin = _admin()
    for find, delete, name in (
        (admin.block_storage.find_type, admin.block_storage.delete_type, volume_type),
        (admin.compute.find_flavor, admin.compute.delete_flavor, flavor),
    ):
        if found := find(name):
            delete(found)


def offer_flavor(name: str) -> None:
    """A flavor for machines, like m1.medium."""
    _admin().compute.create_flavor(name=name, ram=4096, vcpus=4, disk=40)


def withdraw_flavor(name: str) -> None:
    """It is not offered any more; gone already is as good."""
    compute = _admin().compute
    if found := compute.find_flavor(name):
        compute.delete_flavor(found)


def overlays(**texts: str) -> Path:
    """The directory of overlays, with these and no others."""
    directory = setting.state().path("overlays", "x").parent
    for old in directory.iterdir():
        old.unlink()
    for name, text in texts.items():
        (directory / f"{name}.yaml").write_text(text, encoding="utf-8")
    return directory


def magnum_log() -> str:
    """All that Magnum has logged in this sandbox."""
    return setting.state().log("magnum").read_text(encoding="utf-8", errors="replace")


def _admin() -> Any:
    return seed.connect(setting.state(), "admin")


def _magnum_conf_file() -> Path:
    return Paths.of(setting.state()).conf("magnum")


@functools.cache
def _magnum_conf() -> str:
    """As the sandbox has written it."""
    return _magnum_conf_file().read_text(encoding="utf-8")
