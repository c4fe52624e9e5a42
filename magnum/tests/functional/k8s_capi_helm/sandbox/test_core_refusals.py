# SPDX-License-Identifier: Apache-2.0
"""Bad input: a clear error at the right moment, and nothing is left behind."""

from __future__ import annotations

from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from magnum.tests.functional.k8s_capi_helm.sandbox.cluster import Cluster
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Refused
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management
from sandbox.cloud.conductor_layout import Layout


class Refusals(Life):
    """A tenant who makes mistakes before anything is built."""

    name = "refusals"
    independent = True

    @step
    def wrong_label(self) -> None:
        """The sentence names label, value and what is expected."""
        labels = {"auto_healing_enabled": "perhaps"}
        cluster = self.customer.create(labels=labels, merge_labels=True)
        self._fails(cluster, "auto_healing_enabled", "perhaps", "expected")

    @step
    def impossible_field(self) -> None:
        """What the driver cannot do is refused and not ignored."""
        template = self.customer.template(tls_disabled=True)
        self._fails(self.customer.create(template=template), "tls_disabled")

    @step
    def password_in_a_proxy(self) -> None:
        """It would stand on every machine, so it is refused, and not repeated."""
        template = self.customer.template(http_proxy="http://user:geheim@192.0.2.1:3128")
        cluster = self.customer.create(template=template)
        rows = cluster.until(lambda rows: rows.status == "CREATE_FAILED", "refusal", fail=False)
        assert "geheim" not in rows.reason, rows.reason
        self._fails(cluster, "http_proxy")

    @step
    def image_without_version(self) -> None:
        """No kube_version on the image, no kube_tag: nobody knows which Kubernetes to make."""
        template = self.customer.template(image_id="ubuntu-plain")
        self._fails(self.customer.create(template=template), "kube_version", "ubuntu-plain")

    @step
    def unknown_flavor(self) -> None:
        """Magnum itself refuses: no row is made."""
        self._refused(flavor_id="m1.nonesuch")

    @step
    def unknown_image(self) -> None:
        self._refused(image_id="nonesuch")

    @ending
    def nothing_is_left(self) -> None:
        assert not self.customer.tenant.left(), self.customer.tenant.left()
        self.customer.leave()

    def _fails(self, cluster: Cluster, *words: str) -> None:
        """CREATE_FAILED with these words, nothing left, and the row can be deleted."""
        rows = cluster.until(lambda rows: rows.status == "CREATE_FAILED", "refusal", fail=False)
        assert all(word in rows.reason for word in words), (words, rows.reason)
        assert "Traceback" not in rows.reason, rows.reason
        self.say(rows.reason)
        assert not cluster.left(), cluster.left()
        assert not management().objects("Lease", self.customer.tenant.namespace)
        self.customer.delete()

    def _refused(self, **fields: str) -> None:
        try:
            self.customer.create(template=self.customer.template(**fields))
        except Refused as refusal:
            assert 400 <= refusal.status < 500, refusal
            # Of an unknown image releases of Magnum before 23 have only the distribution in mind.
            words = [*fields.values(), *(["(vm, Unset, kubernetes)"] if _is_earlier() else [])]
            assert any(word in str(refusal) for word in words), refusal
        else:
            raise AssertionError(f"Magnum takes {fields}")


def _is_earlier() -> bool:
    """Whether the sandbox runs a release of Magnum before its own."""
    return Layout.of(setting.state()).runs_programs


class TestRefusals(LifeCase, life=Refusals):
    """Wrong label, field, image and flavor."""
