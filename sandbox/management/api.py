# SPDX-License-Identifier: Apache-2.0
"""Writes of the sandbox itself to its management cluster."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import time

from sandbox.management.connection import Connection, Document, Refused, Unreachable
from sandbox.state import SandboxError

APPLIED_AT_ONCE = 8
FIELD_MANAGER = "sandbox"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Api:
    """Apply, read and delete objects as the user of a kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        self._connection = Connection(kubeconfig)

    def get(self, path: str) -> Document | None:
        """The object at an API path, None when it does not exist.

        :raises SandboxError: the API server refuses, or cannot be reached.
        """
        try:
            return self._connection.request("GET", path)
        except Refused as error:
            if error.status == 404:
                return None
            raise

    def apply(self, document: Document) -> None:
        """Server-side apply of one object, taking over fields that others set.

        :raises SandboxError: the API server refuses, or cannot be reached.
        """
        self._connection.request(
            "PATCH",
            path_of(document),
            query=[("fieldManager", FIELD_MANAGER), ("force", "true")],
            body=document,
            content_type="application/apply-patch+yaml",
        )

    def apply_all(self, documents: Iterable[Document]) -> None:
        """Server-side apply of many objects, several at a time.

        :raises SandboxError: the API server refuses one, or cannot be reached.
        """
        with ThreadPoolExecutor(APPLIED_AT_ONCE) as pool:
            for _ in pool.map(self.apply, documents):
                pass

    def delete(self, path: str) -> None:
        """Delete the object at an API path; it may be gone already.

        :raises SandboxError: the API server refuses, or cannot be reached.
        """
        try:
            self._connection.request("DELETE", path)
        except Refused as error:
            if error.status != 404:
                raise

    def answers(self, path: str = "/readyz") -> bool:
        """Whether a path answers with success right now."""
        try:
            self._connection.request("GET", path, timeout=2.0)
        except (Refused, Unreachable):
            return False
        return True

    def wait_established(self, names: Iterable[str], timeout: float = 60.0) -> None:
        """Wait until CRDs are served.

        :raises SandboxError: one is not in time; the text tells which, and why.
        """
        deadline = time.monotonic() + timeout
        for name in names:
            while why := _not_served(self.get(f"{CRDS}/{name}")):
                if time.monotonic() > deadline:
                    raise SandboxError(f"CRD {name} is not served after {timeout:.0f} s: {why}")
                time.sleep(0.1)


def path_of(document: Document) -> str:
    """API path of an object, from its apiVersion, kind, namespace and name."""
    version, kind, meta = document["apiVersion"], document["kind"], document["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    if "namespace" in meta:
        root += f"/namespaces/{meta['namespace']}"
    return f"{root}/{kind.lower()}s/{meta['name']}"


def _not_served(crd: Document | None) -> str:
    """Why a CRD is not served, empty when it is."""
    if crd is None:
        return "it is not there"
    conditions = {item["type"]: item for item in crd.get("status", {}).get("conditions") or []}
    if conditions.get("Established", {}).get("status") == "True":
        return ""
    refused = conditions.get("NamesAccepted", {})
    return str(refused.get("message") or "the API server has not looked at it yet")
