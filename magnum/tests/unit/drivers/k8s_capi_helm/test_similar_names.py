# SPDX-License-Identifier: Apache-2.0
"""Two clusters whose names begin alike: nothing of the one is ever found for the other."""

from __future__ import annotations

from collections.abc import Iterator
import re

from hypothesis import given, settings
from hypothesis import strategies as st
import testtools

from magnum.drivers.k8s_capi_helm.cloud.access.services import Services
from magnum.drivers.k8s_capi_helm.cloud.resources import server_ownership
from magnum.drivers.k8s_capi_helm.cloud.resources.orphans import Orphans
from magnum.drivers.k8s_capi_helm.model import names, secrets
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeOpenStack

NAMESPACE, PROJECT = "magnum-p1", "p1"
_RANDOM = st.text("bcdfghjklmnpqrstvwxz2456789", min_size=5, max_size=5)
_HEX = st.text("0123456789abcdef", min_size=8, max_size=8)
_TAIL = st.text("abcdef0123456789xyz", min_size=12, max_size=12)
#: Texts that names are cut from, and that look like what is appended to a name.
_HEADS = st.sampled_from(
    ("a", "k8s", "a-b", "a--b", "magnum", "demo-control-plane", "addons", "x" * 29, "12345678")
)


def _release(head: str, tail: str) -> str:
    return f"{head[:30]}-{tail}"


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Two releases; the second one begins with the first, as far as it fits."""
    first = _release(draw(_HEADS), draw(_TAIL))
    more = draw(
        st.one_of(
            st.just(""), st.just("-addons"), st.just("-control-plane"), _HEX.map(lambda x: f"-{x}")
        )
    )
    names_ = st.sampled_from((f"{first}{more}", f"{first}-b", first[:30], first[:-1], first))
    return first, _release(draw(names_), draw(_TAIL))


def credential_names(release: str, uuid: str, digits: str) -> Iterator[str]:
    """All names that this driver and magnum-capi-helm give the credentials of a cluster."""
    for name in (names.credential(release), f"{names.credential(release)}-{digits}"):
        yield name
        yield secrets.addon_credential(name)
    yield f"magnum-{uuid}-{digits}"
    yield f"magnum-{uuid}"


def server_names(release: str, random: str) -> Iterator[str]:
    """Names of machines of our charts and the reference charts, through all versions."""
    long = f"{release}-a-node-group-with-quite-a-long-name"[:63]
    for base in (f"{release}-control-plane", f"{release}-default-worker-{random}", long):
        # Kubernetes cuts what a generated name begins with after 58 characters.
        yield f"{base}-"[:58] + random
    yield f"{release}-bastion"


class TestCredentials(testtools.TestCase):
    @settings(deadline=None, max_examples=300)
    @given(pairs(), _HEX)
    def test_all_of_its_own_and_none_of_another_ones(
        self, pair: tuple[str, str], digits: str
    ) -> None:
        uuids = ("99999999-8888-4777-8666-555555555555", "99999999-8888-4777-8666-555555555556")
        owners = [
            secrets.Owner(release, NAMESPACE, PROJECT, "u1", uuid)
            for release, uuid in zip(pair, uuids, strict=True)
        ]
        for owner, other in (owners, reversed(owners)):
            mine = set(credential_names(owner.release, owner.cluster_uuid, digits))
            theirs = set(credential_names(other.release, other.cluster_uuid, digits))
            self.assertEqual(set(), {one for one in mine if not _is_own(owner, one)})
            if owner.release != other.release:
                self.assertEqual(set(), {one for one in theirs if _is_own(owner, one)})
            for odd in (f"{min(mine)}-x", f"x{min(mine)}", f"{names.credential(owner.release)}-"):
                self.assertFalse(_is_own(owner, odd), odd)


def _is_own(owner: secrets.Owner, name: str) -> bool:
    return secrets.is_credential_name(owner, name)


class TestServers(testtools.TestCase):
    @settings(deadline=None, max_examples=100)
    @given(pairs(), _RANDOM, st.sampled_from(("", f"{NAMESPACE}-")))
    def test_all_of_its_own_and_none_of_another_ones(
        self, pair: tuple[str, str], random: str, place: str
    ) -> None:
        """Nova has the servers of both; the ports, which Cluster API describes, tell them apart.

        Earlier releases of the provider write the namespace in front of the name.
        """
        if pair[0] == pair[1]:
            return
        cloud = FakeOpenStack(PROJECT)
        wanted: dict[str, set[str]] = {}
        for release in pair:
            for name in server_names(release, random):
                server = cloud.leave("servers", name=name)
                words = f"Created by cluster-api-provider-openstack cluster {place}{release}"
                cloud.leave("ports", device_id=server.id, description=words)
                wanted.setdefault(release, set()).add(name)
            # The tenant's own, with a port of the tenant's own.
            mine = cloud.leave("servers", name=f"{release}-my-jump-host")
            cloud.leave("ports", device_id=mine.id, description="")
        remains = Orphans(Services(cloud))
        for release in pair:
            found = remains.servers(release, PROJECT, NAMESPACE)
            self.assertEqual(wanted[release], set(found))

    def test_a_description_without_a_name_says_nothing(self) -> None:
        """So described some releases of the provider all ports of servers."""
        cloud, release = FakeOpenStack(PROJECT), "a-xxxxxxxxxxxx"
        server_titles = (f"{release}-control-plane-bcdfg", f"{release}-my-jump-host")
        for name in server_titles:
            server = cloud.leave("servers", name=name)
            words = "Created by cluster-api-provider-openstack cluster "
            cloud.leave("ports", device_id=server.id, description=words)
        found = Orphans(Services(cloud)).servers(release, PROJECT, NAMESPACE)
        self.assertEqual(server_titles[:1], found)

    def test_a_port_of_another_project_says_nothing(self) -> None:
        """Neutron lets anybody write any server into a port of the own project."""
        cloud, release = FakeOpenStack(PROJECT), "a-xxxxxxxxxxxx"
        words = "Created by cluster-api-provider-openstack cluster"
        machine = cloud.leave("servers", name=f"{release}-control-plane-bcdfg")
        mine = cloud.leave("servers", name=f"{release}-my-jump-host")
        for server, told in ((machine, "other"), (mine, f"{NAMESPACE}-{release}")):
            where = {"device_id": server.id, "project_id": "a-stranger"}
            cloud.leave("ports", description=f"{words} {told}", **where)
        found = Orphans(Services(cloud)).servers(release, PROJECT, NAMESPACE)
        self.assertEqual((machine.name,), found)

    @settings(deadline=None, max_examples=200)
    @given(pairs(), _RANDOM)
    def test_without_ports_the_shape_of_a_name_decides(
        self, pair: tuple[str, str], random: str
    ) -> None:
        for release in pair:
            for name in server_names(release, random):
                self.assertTrue(server_ownership.is_machine(name, release), name)
        for name in (pair[0], f"{pair[0]}-jumphost", f"x{pair[0]}-control-plane-{random}"):
            self.assertFalse(server_ownership.is_machine(name, pair[0]), name)


class TestServices(testtools.TestCase):
    @settings(deadline=None, max_examples=100)
    @given(pairs())
    def test_all_of_its_own_and_none_of_another_ones(self, pair: tuple[str, str]) -> None:
        if pair[0] == pair[1]:
            return
        cloud = FakeOpenStack(PROJECT)
        for release in pair:
            about = f"default/web Service LoadBalancer in cluster {release}"
            cloud.leave("load_balancers", name=f"kube_service_{release}_default_web")
            cloud.leave("security_groups", name=release, description=f"Security Group for {about}")
            words = "Floating IP for Kubernetes external service default/web from cluster"
            cloud.leave("addresses", description=f"{words} {release}")
        remains = Orphans(Services(cloud))
        for _ in range(3):
            remains.delete_services(pair[0], PROJECT)
        told = [one.name for one in cloud.left["load_balancers"]]
        told += [one.name for one in cloud.left["security_groups"]]
        told += [one.description.rpartition(" ")[2] for one in cloud.addresses]
        self.assertEqual([f"kube_service_{pair[1]}_default_web", pair[1], pair[1]], told)

    def test_the_names_are_those_of_releases(self) -> None:
        """What is tried here can be: both drivers make names of that shape."""
        for head in ("a", "a--b", "magnum", "x" * 29):
            self.assertTrue(names.is_release(_release(head, "abcdef012345")))
        self.assertIsNone(re.search("[aeiou013]", "bcdfghjklmnpqrstvwxz2456789"))
