# SPDX-License-Identifier: Apache-2.0
"""Barbican in memory, as far as Magnum's certificate manager uses it through openstacksdk."""

from __future__ import annotations

import types
from typing import Any
import uuid

from openstack import exceptions as sdk_exceptions
from openstack.key_manager.v1 import container as sdk_container

_URL = "https://key-manager.example.org/v1"


class FakeBarbican:
    """The key manager's proxy; ``things`` are the secrets and containers that are there.

    ``failing`` is raised when something is to be read or deleted.
    """

    def __init__(self) -> None:
        self.failing: Exception | None = None
        self.things: dict[str, Any] = {}

    def barbican(self) -> FakeBarbican:
        """Itself, where Magnum's clients give a proxy."""
        return self

    def create_secret(self, payload: str, **about: Any) -> Any:
        ref = uuid.uuid4().hex
        made = types.SimpleNamespace(
            payload=payload.encode(), secret_ref=f"{_URL}/secrets/{ref}", **about
        )
        self.things[ref] = made
        return made

    def create_container(self, name: str, type: str, secret_refs: Any) -> Any:
        ref = uuid.uuid4().hex
        made = sdk_container.Container(
            name=name, type=type, secret_refs=secret_refs, container_ref=f"{_URL}/containers/{ref}"
        )
        self.things[ref] = made
        return made

    def get_secret(self, ref: str) -> Any:
        return self._find(ref)

    def get_container(self, ref: str) -> Any:
        return self._find(ref)

    def delete_secret(self, ref: str) -> None:
        self._find(ref)
        del self.things[ref]

    def delete_container(self, ref: str) -> None:
        self._find(ref)
        del self.things[ref]

    def _find(self, ref: str) -> Any:
        if self.failing:
            raise self.failing
        if ref not in self.things:
            raise sdk_exceptions.NotFoundException(f"{ref} is not there", http_status=404)
        return self.things[ref]
