# SPDX-License-Identifier: Apache-2.0
"""Federations of clusters, which Magnum asks every driver for and this one does not make."""

from __future__ import annotations

from typing import Any

from magnum.common import exception


class UnsupportedFederations:
    """Each verb refused."""

    def create_federation(self, context: Any, federation: Any) -> None:
        """Refused: this driver makes clusters, not federations of clusters."""
        raise exception.NotSupported(operation="Creating a federation")

    def update_federation(self, context: Any, federation: Any) -> None:
        """Refused: this driver makes clusters, not federations of clusters."""
        raise exception.NotSupported(operation="Updating a federation")

    def delete_federation(self, context: Any, federation: Any) -> None:
        """Refused: this driver makes clusters, not federations of clusters."""
        raise exception.NotSupported(operation="Deleting a federation")
