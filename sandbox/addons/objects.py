# SPDX-License-Identifier: Apache-2.0
"""Read and change the objects around an addon."""

from sandbox.addons import rules
from sandbox.addons.tenant_install import Inside
from sandbox.management.connection import Connection, Document, Refused

CORE = "cluster.x-k8s.io"
MERGE = "application/merge-patch+json"


class UnknownKind(Exception):
    """An API has no such kind of objects."""


class Objects:
    """The management cluster that a connection leads to, or else the one of ``$KUBECONFIG``."""

    def __init__(self, connection: Connection | None = None) -> None:
        self._connection = connection or Connection()
        self._kinds: dict[str, dict[str, Document]] = {}  # what discovery tells, by API version

    def look(self, addon: rules.Document) -> rules.Seen:
        """Everything that a decision about an addon needs."""
        namespace, spec = addon["metadata"]["namespace"], addon["spec"]
        cluster = self.get(self.served(CORE), namespace, "clusters", spec["clusterName"])
        infra, identity, unknown = None, None, ""
        try:
            infra = self._referred(cluster, "infrastructureRef", namespace)
            identity = self._referred(infra, "identityRef", namespace)
        except UnknownKind as error:
            unknown = str(error)
        sources = {
            (kind, name): self.get("v1", namespace, f"{kind.lower()}s", name)
            for kind, name in rules.source_names(addon)
        }
        faults = self.get("v1", "default", "configmaps", rules.FAULTS) or {}
        kubeconfig = f"{spec['clusterName']}-kubeconfig"
        return rules.Seen(
            addon=addon,
            cluster=cluster,
            infra_cluster=infra,
            identity=identity,
            unknown_kind=unknown,
            sources=sources,
            faults=faults.get("data") or {},
            has_kubeconfig=self.get("v1", namespace, "secrets", kubeconfig) is not None,
        )

    def served(self, group: str) -> str:
        """Group and version that the API server prefers for a group."""
        found = self._connection.request("GET", f"/apis/{group}")
        return str(found["preferredVersion"]["groupVersion"])

    def get(self, version: str, namespace: str, plural: str, name: str) -> Document | None:
        """An object, None when it does not exist."""
        try:
            return self._connection.request("GET", _path(version, namespace, plural, name))
        except Refused as error:
            if error.status == 404:
                return None
            raise

    def addons_using(self, kind: str, namespace: str, name: str) -> list[Document]:
        """Addons of a namespace that take something from a ConfigMap or Secret."""
        label = f"{name}.{kind.lower()}.{rules.GROUP}/uses"
        found = []
        for addon_kind, plural in rules.KINDS.items():
            path = _path(f"{rules.GROUP}/{rules.VERSION}", namespace, plural)
            listed = self._connection.request("GET", path, query=[("labelSelector", label)])
            found += [{"kind": addon_kind, **item} for item in listed["items"]]
        return found

    def patch_addon(self, addon: rules.Document, patch: Document, subresource: str = "") -> None:
        """Merge-patch an addon or its status."""
        meta = addon["metadata"]
        plural = rules.KINDS[addon["kind"]]
        path = _path(f"{rules.GROUP}/{rules.VERSION}", meta["namespace"], plural, meta["name"])
        self._connection.request("PATCH", path + subresource, body=patch, content_type=MERGE)

    def install(self, addon: rules.Document, documents: list[Document]) -> None:
        """Put the objects of an addon into its cluster, if Cluster API has made a way there."""
        there = self._inside(addon) if documents else None
        if there is not None:
            there.put(documents, addon["spec"]["targetNamespace"])

    def uninstall(self, addon: rules.Document) -> None:
        """Take them away again."""
        made = (addon.get("status") or {}).get("resources") or []
        there = self._inside(addon) if made else None
        if there is not None:
            there.remove(made, addon["spec"]["targetNamespace"])

    def watch_source(self, kind: str, source: Document) -> None:
        """Label a ConfigMap or Secret so that its changes are seen."""
        meta = source["metadata"]
        if rules.WATCH_LABEL not in (meta.get("labels") or {}):
            path = _path("v1", meta["namespace"], f"{kind.lower()}s", meta["name"])
            patch: Document = {"metadata": {"labels": {rules.WATCH_LABEL: ""}}}
            self._connection.request("PATCH", path, body=patch, content_type=MERGE)

    def note_checksum(self, addon: rules.Document, kind: str, name: str, value: str) -> None:
        """Write the checksum of a source on an addon that uses it, if it is another one."""
        key = rules.checksum_annotation(kind, name)
        if (addon["metadata"].get("annotations") or {}).get(key) != value:
            self.patch_addon(addon, {"metadata": {"annotations": {key: value}}})

    def _inside(self, addon: rules.Document) -> Inside | None:
        namespace, cluster = addon["metadata"]["namespace"], addon["spec"]["clusterName"]
        secret = self.get("v1", namespace, "secrets", f"{cluster}-kubeconfig")
        return Inside(secret) if secret is not None else None

    def _referred(self, owner: Document | None, field: str, namespace: str) -> Document | None:
        """What a field of a spec refers to: a Secret of the namespace, if it does not say more.

        :raises UnknownKind: the API that it names has no such kind.
        """
        reference = ((owner or {}).get("spec") or {}).get(field)
        if not reference:
            return None
        try:
            if reference.get("apiGroup") is not None:
                version = self.served(reference["apiGroup"])
            else:
                version = reference.get("apiVersion", "v1")
            found = self._kind(version, reference.get("kind", "Secret"))
        except Refused as error:
            if error.status == 404:
                return None
            raise
        place = reference.get("namespace", namespace) if found["namespaced"] else ""
        return self.get(version, place, found["name"], reference["name"])

    def _kind(self, version: str, kind: str) -> Document:
        if kind not in self._kinds.get(version, {}):
            listed = self._connection.request("GET", _root(version))
            self._kinds[version] = {
                one[key]: one
                for key in ("singularName", "kind", "name")
                for one in reversed(listed["resources"])
            }
        try:
            return self._kinds[version][kind]
        except KeyError:
            raise UnknownKind(f"API '{version}' has no resource '{kind}'") from None


def _path(version: str, namespace: str, plural: str, name: str = "") -> str:
    place = f"/namespaces/{namespace}" if namespace else ""
    tail = f"/{name}" if name else ""
    return f"{_root(version)}{place}/{plural}{tail}"


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"
