# SPDX-License-Identifier: Apache-2.0
"""The table of mutants: what is broken, where, how, and which tests stand guard.

A mutant is one small change of one file. Its text has to be there exactly once, so a change of the
code that a mutant is about breaks the table loudly and not silently.
"""

from __future__ import annotations

import dataclasses
import enum
from pathlib import Path

DRIVER = "magnum/drivers/k8s_capi_helm"
CLUSTER = "charts/openstack-cluster"
ADDONS = "charts/cluster-addons"


class Suite(str, enum.Enum):  # noqa: UP042 (unit tests on Python 3.10 read it)
    """Where the tests are, cheapest first; the value is their package below magnum.tests."""

    __str__ = str.__str__

    UNIT = "unit.drivers.k8s_capi_helm"
    CHARTS = "functional.k8s_capi_helm.charts"
    ENVTEST = "functional.k8s_capi_helm.envtest"
    FUNCTIONAL = "functional.k8s_capi_helm.sandbox"


@dataclasses.dataclass(frozen=True, slots=True)
class Mutant:
    """One broken driver or chart.

    :ivar sentence: what it does wrong.
    :ivar file: from the root of the checkout.
    :ivar old: stands in the file exactly once; ``new`` takes its place. "": there is no such file,
        and ``new`` is all of it.
    :ivar near: modules (or, functional, whole test ids) of the suite that should catch it, which
        are tried before the rest of the suite.
    """

    name: str
    sentence: str
    file: str
    old: str
    new: str
    suite: Suite
    near: tuple[str, ...]

    def fits(self, root: Path) -> bool:
        """Whether it can be applied to the files below a directory."""
        path = root / self.file
        if not self.old:
            return not path.exists()
        return path.is_file() and path.read_text(encoding="utf-8").count(self.old) == 1


_TWO_LOOKS = "if current_fingerprint and current_fingerprint == state.ready_fingerprint:"

_EVERYTHING = """        or generations.missing(observed, state)
        or infrastructure.openstack_missing(observed.infrastructure)
        or nodegroups.first_missing(observed, state)
        or machine_deployment.deletion_issue(observed)
        or addons.core_missing(observed, state.without_addons, state.status_reason or "")
        or infrastructure.cluster_missing(observed.cluster)
"""
_RECORDINGS = ("test_recordings.OwnTest.test_no_word_before_the_truth_and_the_word_after_it",)


def _naive(name: str, sentence: str, *questions: str) -> Mutant:
    """A judge that asks what other programs take for done, and nothing else."""
    listed = "\n            and ".join(questions)
    return Mutant(
        name,
        sentence,
        f"{DRIVER}/status/__init__.py",
        _EVERYTHING,
        "        or (\n"
        "            None\n"
        "            if isinstance(observed.machine_deployments, tuple)\n"
        "            and isinstance(observed.cluster, dict)\n"
        f"            and {listed}\n"
        '            else Issue("not done")\n'
        "        )\n",
        Suite.UNIT,
        _RECORDINGS,
    )


_AVAILABLE = 'conditions.condition(observed.cluster, "Available").good'
_QUIET = (
    'all(conditions.condition(observed.cluster, kind).good for kind in ("RollingOut", "ScalingUp", '
    '"ScalingDown"))'
)
_EQUAL = (
    "all(conditions.generation_seen(one) and conditions.condition(one, 'RollingOut').good and "
    "{conditions.counter(one, key) for key in ('replicas', 'readyReplicas', 'availableReplicas', "
    "'upToDateReplicas')} == {one['spec']['replicas']} for one in observed.machine_deployments)"
)

#: What is known to lie for seconds to minutes of every change.
_NAIVE = (
    _naive(
        "phase-running",
        "COMPLETE when every MachineDeployment is Running",
        "observed.machine_deployments",
        'all(conditions.dig(one, "status", "phase") == "Running" '
        "for one in observed.machine_deployments)",
    ),
    _naive("cluster-available", "COMPLETE when the Cluster is Available", _AVAILABLE),
    _naive(
        "available-and-quiet",
        "COMPLETE when the Cluster is Available and nothing rolls or scales",
        _AVAILABLE,
        _QUIET,
    ),
    _naive(
        "counters-equal",
        "COMPLETE when generations are observed and all counters of MachineDeployments are equal",
        "observed.machine_deployments",
        _EQUAL,
    ),
)

_STATUS = (
    Mutant(
        "group-after-one-look",
        "a nodegroup is COMPLETE after one look instead of two that agree",
        f"{DRIVER}/status/nodegroups.py",
        "bool(current_fingerprint) and current_fingerprint == nodegroup.ready_fingerprint",
        "bool(current_fingerprint)",
        Suite.UNIT,
        ("test_status_confirmed.GroupLooksTest",),
    ),
    Mutant(
        "older-look",
        "a look from before Helm's last change is believed",
        f"{DRIVER}/status/generations.py",
        "if _generation(obj) < state.applied_generations.get(_uid(obj), 0):",
        "if _generation(obj) < 0:",
        Suite.UNIT,
        ("test_status_confirmed.WrittenTest",),
    ),
    Mutant(
        "watched-alone",
        "what was watched alone makes COMPLETE and HEALTHY, however far the watch is behind",
        f"{DRIVER}/reconcile/observe.py",
        "    changes = not read.is_readable or (\n"
        "        case.may_finish and news.is_change("
        "verdict, subject.state, subject.health_of(verdict))\n"
        "    )\n",
        "    changes = not read.is_readable\n",
        Suite.UNIT,
        ("test_status_task_with_watches.TestWatching",),
    ),
    Mutant(
        "watch-upgrades-workers",
        "a watch alone says that the control plane is upgraded, and workers follow",
        f"{DRIVER}/reconcile/upgrade.py",
        "    return _with_objects(run, current, live)\n",
        "    return dataclasses.replace(current, objects=current.observed)\n",
        Suite.UNIT,
        ("test_status_task_with_watches.TestUpgrades",),
    ),
    Mutant(
        "stale-watch",
        "what is watched is used however old it is",
        f"{DRIVER}/kube/informers.py",
        "if age is not None and age <= self._staleness",
        "if age is not None",
        Suite.UNIT,
        ("test_informers.TestWatching",),
    ),
    Mutant(
        "silent-list",
        "what has changed while a watch was broken prompts nobody",
        f"{DRIVER}/kube/reflector.py",
        "            self._tell(cached.unpack())\n",
        "            pass\n",
        Suite.UNIT,
        ("test_informers.TestWatching",),
    ),
    Mutant(
        "long-pause",
        "another kubeconfig does not end the pause of a watch that was refused",
        f"{DRIVER}/kube/informers.py",
        "            self._identity = identity\n            self._wake()\n",
        "            self._identity = identity\n",
        Suite.UNIT,
        ("test_informers.TestWatching",),
    ),
    Mutant(
        "prompted-end",
        "a look out of turn ends what is in progress",
        f"{DRIVER}/reconcile/observe.py",
        "    if not may_finish:\n        verdict = news.without_ends(verdict, subject.state)\n",
        "",
        Suite.UNIT,
        ("test_status_task_with_watches.TestPrompts",),
    ),
    Mutant(
        "always-complete",
        "COMPLETE as soon as Helm has taken the values",
        f"{DRIVER}/status/__init__.py",
        _TWO_LOOKS,
        "if state.is_applied:",
        Suite.UNIT,
        ("test_status_lifecycle.LifecycleTest",),
    ),
    Mutant(
        "one-look",
        "COMPLETE after one look instead of two that agree",
        f"{DRIVER}/status/__init__.py",
        _TWO_LOOKS,
        "if current_fingerprint:",
        Suite.UNIT,
        ("test_status_lifecycle.LifecycleTest",),
    ),
    Mutant(
        "any-generation",
        "status of an older generation is believed",
        f"{DRIVER}/model/conditions.py",
        "return isinstance(generation, int) and observed == generation",
        "return isinstance(generation, int) and observed is not None",
        Suite.UNIT,
        ("test_conditions.ReadingTest",),
    ),
    Mutant(
        "unreadable-is-gone",
        "what could not be read counts as not there, so an outage looks like a deletion",
        f"{DRIVER}/kube/snapshot.py",
        "obj = self._kube.get(kind, self._namespace, name)\n"
        "        except errors.DriverError as error:\n"
        "            self._note(kind, error)\n"
        "            return Missing.UNREADABLE\n",
        "obj = self._kube.get(kind, self._namespace, name)\n"
        "        except errors.DriverError:\n"
        "            return Missing.NOT_FOUND\n",
        Suite.UNIT,
        ("test_snapshot.LookTest",),
    ),
    Mutant(
        "healthy-in-the-dark",
        "HEALTHY while the management cluster cannot be read",
        f"{DRIVER}/status/health.py",
        'return UNKNOWN, {"management"',
        'return HEALTHY, {"management"',
        Suite.UNIT,
        ("test_status_health.HealthTest",),
    ),
)

_CHANGE = (
    Mutant(
        "group-dropped",
        "a nodegroup that failed or is not in the rows any more is dropped without being asked",
        f"{DRIVER}/values/change.py",
        "            if name not in allowed.deletions:\n                result.append(entry)\n",
        "            continue\n",
        Suite.UNIT,
        ("test_values_change.TestNextValues",),
    ),
    Mutant(
        "group-back-again",
        "a nodegroup that is being deleted is rendered again",
        f"{DRIVER}/magnum_objects/reader.py",
        '_NOT_RENDERED = ("CREATE_FAILED", *_LEAVING)',
        '_NOT_RENDERED = ("CREATE_FAILED",)',
        Suite.UNIT,
        ("test_magnum_objects.TestRequest",),
    ),
    Mutant(
        "resize-renders-all",
        "a resize brings today's template, image and configuration along",
        f"{DRIVER}/values/change.py",
        "if live is None or allowed.all_values:",
        "if live is None or allowed.all_values or allowed.counts:",
        Suite.UNIT,
        ("test_values_change.TestNextValues",),
    ),
    Mutant(
        "older-record-believed",
        "a release whose newest revisions are lost counts as what runs",
        f"{DRIVER}/reconcile/revisions.py",
        "if live.revision >= known.newest and live.whole >= known.last_applied:",
        "if deployed_release.revision:",
        Suite.UNIT,
        ("test_release_outdated.TestVerbs",),
    ),
    Mutant(
        "superseded-record-believed",
        "a revision that a later one has superseded counts as the newest",
        f"{DRIVER}/reconcile/revisions.py",
        "if live.status != _SUPERSEDED:",
        "if deployed_release.status:",
        Suite.UNIT,
        ("test_release_outdated.TestVerbs",),
    ),
    Mutant(
        "living-group-cleared",
        "what is there of a refused nodegroup is deleted, Nodes or not",
        f"{DRIVER}/reconcile/nodegroups.py",
        'if node := conditions.at_path(machine, "status", "nodeRef", "name"):',
        'if node := conditions.at_path(machine, "status", "nodeRef", "none"):',
        Suite.UNIT,
        ("test_release_outdated.TestClearing",),
    ),
    Mutant(
        "deadline-moves",
        "each resize of a nodegroup gives the change its full time anew",
        f"{DRIVER}/lease/pending_operations.py",
        "return max(first.deadline, min(new.deadline, last))",
        "return max(last, new.deadline)",
        Suite.UNIT,
        ("test_lease_capacity.TestSeries",),
    ),
    Mutant(
        "full-lease-keeps-its-cluster",
        "a Lease that is full takes no deletion either",
        f"{DRIVER}/lease/capacity.py",
        "        _drop_for_deletion(lease, operation)\n",
        "        assert operation\n",
        Suite.UNIT,
        ("test_lease_capacity.TestBound",),
    ),
    Mutant(
        "label-ignored",
        "the label auto_healing_enabled is ignored",
        f"{DRIVER}/values/nodegroups.py",
        '{"enabled": request.labels.auto_healing_enabled}',
        '{"enabled": True}',
        Suite.UNIT,
        ("test_helm_values.TestContract.test_every_label_moves_the_values",),
    ),
    Mutant(
        "secret-in-values",
        "the credential stands in the values, and so in Helm's release",
        f"{DRIVER}/reconcile/apply.py",
        "        deployed = clients.helm.apply(",
        "        name = prerequisites.names.credential_secret(request.release)\n"
        "        secret = clients.kube.get(prerequisites.names.SECRET, request.namespace, name)\n"
        '        values["machineMetadata"] = dict((secret or {}).get("data") or {})\n'
        "        deployed = clients.helm.apply(",
        Suite.UNIT,
        ("test_secrets_stay_secret.TestSecrets",),
    ),
    Mutant(
        "all-at-once",
        "an upgrade replaces workers before the control plane is through",
        f"{DRIVER}/values/upgrade.py",
        "[{**entry, **pins[name]} for name, entry in nodegroups.items()]",
        "list(nodegroups.values())",
        Suite.UNIT,
        ("test_upgrade_cluster.TestOrder",),
    ),
    Mutant(
        "own-image-released",
        "a nodegroup's own image is taken for one that an upgrade holds back",
        f"{DRIVER}/values/upgrade_nodegroups.py",
        " and name not in own\n",
        "\n",
        Suite.UNIT,
        ("test_nodegroup_image.TestOnItsWay",),
    ),
    Mutant(
        "own-image-by-row",
        "a row alone makes an image a nodegroup's own, also what another driver left there",
        f"{DRIVER}/values/upgrade_nodegroups.py",
        "        if name not in entries or upgrade.is_pinned(entries[name])\n",
        "",
        Suite.UNIT,
        ("test_nodegroup_image.TestOnItsWay",),
    ),
    Mutant(
        "copies-are-wishes",
        "an upgrade takes a nodegroup's copies of the cluster's labels for its own",
        f"{DRIVER}/magnum_objects/reader.py",
        "upgrade.merged_labels(cluster.labels or {}, texts, own)",
        "own",
        Suite.UNIT,
        ("test_nodegroup_labels.TestUpgrade",),
    ),
    Mutant(
        "upgrade-renders-all",
        "an upgrade brings today's configuration along",
        f"{DRIVER}/values/upgrade.py",
        "result: Json = merge.carry_over(live, base, target)",
        "result: Json = merge.merge(live, target)",
        Suite.UNIT,
        ("test_upgrade_cluster.TestValues",),
    ),
    Mutant(
        "overlay-over-labels",
        "an overlay wins over a label that asks for the default",
        f"{DRIVER}/values/merge.py",
        "        result = carry_over(result, other, full)\n",
        "        pass\n",
        Suite.UNIT,
        ("test_overlays.TestBelowLabels",),
    ),
)

_DELETION = (
    Mutant(
        "secret-first",
        "the credential is deleted before the machines, which then stay for ever",
        f"{DRIVER}/status/deletion_order.py",
        "    if release_present:\n",
        "    if secrets_present:\n        return DeletionStep(DeletionAction.REMOVE_SECRETS)\n"
        "    if release_present:\n",
        Suite.UNIT,
        ("test_status_deletion.OrderTest",),
    ),
    Mutant(
        "any-management-cluster",
        "an empty management cluster proves that a cluster is deleted",
        f"{DRIVER}/status/deletion_order.py",
        "    if not proof:\n"
        "        return DeletionStep(DeletionAction.NO_PROOF, NO_PROOF_SENTENCE)\n",
        "    if not proof:\n        return DeletionStep(DeletionAction.DONE)\n",
        Suite.UNIT,
        ("test_status_deletion.OrderTest",),
    ),
    Mutant(
        "anybodys-release",
        "a release of another cluster is taken for ours",
        f"{DRIVER}/reconcile/ownership.py",
        "return record if record.cluster_uuid == release_owner.cluster_uuid else None",
        "return record if record.cluster_uuid else None",
        Suite.UNIT,
        ("test_verbs.TestDelete.test_a_release_of_another_cluster_is_not_touched",),
    ),
    Mutant(
        "tenants-own-interface",
        "clouds.yaml lacks endpoint_type, the only spelling that the OpenStack provider reads",
        f"{DRIVER}/model/secrets.py",
        '        "endpoint_type": interface,\n',
        "",
        Suite.UNIT,
        ("test_secrets",),
    ),
    Mutant(
        "one-witness",
        "a management cluster that was moved or half restored makes a running cluster gone",
        f"{DRIVER}/reconcile/orphans.py",
        "    if servers:\n",
        "    if False:\n",
        Suite.UNIT,
        ("test_delete_hangs",),
    ),
    Mutant(
        "refused-is-gone",
        "what Nova, Octavia or Neutron refuses to tell counts as nothing left",
        f"{DRIVER}/reconcile/orphans.py",
        'return f"{errors.Cause.PERMISSION}: {_UNTOLD.format(error=error)}"',
        'return ""',
        Suite.UNIT,
        ("test_delete_hangs",),
    ),
    Mutant(
        "cut-list-is-whole",
        "a list of Kubernetes that ends too early is taken for all there is",
        f"{DRIVER}/kube/response.py",
        'if about.get("remainingItemCount") and not about.get("continue"):',
        "if False:",
        Suite.UNIT,
        ("test_kube_client",),
    ),
    Mutant(
        "another-404-is-gone",
        "a 404 that names another object, or a proxy's, says that an object is gone",
        f"{DRIVER}/kube/request.py",
        'bool(details.get("name")) and details["name"] in tuple(object_names)',
        "True",
        Suite.UNIT,
        ("test_kube_client",),
    ),
    Mutant(
        "deletion-believed",
        "a credential counts as deleted because something answered the request",
        f"{DRIVER}/reconcile/credentials.py",
        "if ids and (remaining :=",
        "if not ids and (remaining :=",
        Suite.UNIT,
        ("test_delete_hangs",),
    ),
    Mutant(
        "credential-of-a-namesake",
        "credentials of a cluster whose name begins alike go with a cluster",
        f"{DRIVER}/model/secrets.py",
        "return re.fullmatch(pattern, text) is not None",
        "return re.match(pattern, text) is not None",
        Suite.UNIT,
        ("test_similar_names",),
    ),
    Mutant(
        "server-of-a-namesake",
        "servers of a cluster whose name begins alike keep a cluster from being deleted",
        f"{DRIVER}/cloud/orphans.py",
        "if self._is_own_server(server, release, project_id, namespace)",
        "if server",
        Suite.UNIT,
        ("test_similar_names",),
    ),
    Mutant(
        "secret-that-nobody-reads",
        "a rotation writes the Secret of the usual name, whichever Cluster API reads",
        f"{DRIVER}/reconcile/credential_rotation.py",
        "secret_name=secret_name)",
        "secret_name=None)",
        Suite.UNIT,
        ("test_rotate_credential_secret",),
    ),
    Mutant(
        "services-with-machines",
        "load balancers of Services go while machines can still make them again",
        f"{DRIVER}/reconcile/orphans.py",
        "if observed.machines != () or",
        "if",
        Suite.UNIT,
        ("test_orphans",),
    ),
    Mutant(
        "stale-healthy",
        "what keeps the driver from looking leaves the health as it was",
        f"{DRIVER}/handlers/monitor.py",
        'self.data["health_status"] = fields.ClusterHealthStatus.UNKNOWN',
        "self.data.clear()",
        Suite.UNIT,
        ("test_health_task",),
    ),
    Mutant(
        "refusal-for-ever",
        "a refused request leaves a cluster UPDATE_FAILED for ever",
        f"{DRIVER}/handlers/health_task.py",
        "        >= _REFUSAL_SHOWN\n",
        "        is None\n",
        Suite.UNIT,
        ("test_health_task",),
    ),
    Mutant(
        "refusal-unseen",
        "a refused request is COMPLETE before anybody has seen that it was refused",
        f"{DRIVER}/handlers/health_task.py",
        "_REFUSAL_SHOWN = datetime.timedelta(minutes=10)",
        "_REFUSAL_SHOWN = datetime.timedelta()",
        Suite.UNIT,
        ("test_health_task",),
    ),
)

_FOUNDING = (
    Mutant(
        "another-authority",
        "Cluster API makes its own CA, so certificates that Magnum signs open nothing",
        f"{DRIVER}/model/secrets.py",
        "names.ca_secret(owner.release, purpose),",
        'names.ca_secret(owner.release, f"magnum-{purpose}"),',
        Suite.UNIT,
        ("test_secrets",),
    ),
    Mutant(
        "credential-forgotten",
        "an application credential that could not be saved is not taken back",
        f"{DRIVER}/reconcile/prerequisites.py",
        "cloud.delete_credential(user_id, credential_id)",
        "LOG.error(credential_id)",
        Suite.UNIT,
        ("test_verbs.TestCreate.test_a_credential_that_cannot_be_saved_is_taken_back",),
    ),
    Mutant(
        "authorities-replaced",
        "Magnum signs with an authority that the cluster does not know once a rotation was refused",
        f"{DRIVER}/driver.py",
        "        certificates.restore(context, cluster)\n",
        "",
        Suite.UNIT,
        ("test_certificates",),
    ),
    Mutant(
        "belongings-left",
        "server groups and the API's floating IP outlive their cluster",
        f"{DRIVER}/reconcile/deletion.py",
        "            provision.delete_resources(cloud(), owner)\n",
        "",
        Suite.UNIT,
        ("test_create_cluster_resources",),
    ),
    Mutant(
        "images-of-everybody",
        "a pass takes a neighbour's private image for one of the project's",
        f"{DRIVER}/cloud/images.py",
        "if visibility.lists_image(services, image, project_id)]",
        "]",
        Suite.UNIT,
        ("test_cloud_visibility", "test_same_names_in_another_project"),
    ),
    Mutant(
        "images-by-any-id",
        "an image of another project is found by its id",
        f"{DRIVER}/cloud/images.py",
        "            if visibility.shows_image(services, image, project_id):\n",
        "            if image:\n",
        Suite.UNIT,
        ("test_cloud_visibility",),
    ),
    Mutant(
        "images-offered",
        "an image counts that a stranger has offered and nobody has accepted",
        f"{DRIVER}/cloud/visibility.py",
        "_membership(services, image, project_id) == accepted",
        "bool(_membership(services, image, project_id))",
        Suite.UNIT,
        ("test_cloud_visibility",),
    ),
    Mutant(
        "flavors-of-everybody",
        "a private flavor counts for projects that may not use it",
        f"{DRIVER}/cloud/visibility.py",
        'return _has(services.nova().get_flavor_access(flavor), "tenant_id", project_id)',
        "return True",
        Suite.UNIT,
        ("test_cloud_visibility",),
    ),
    Mutant(
        "networks-shared-with-magnum",
        "a network counts that others may use and the project may not",
        f"{DRIVER}/cloud/visibility.py",
        "if policy.target_project_id in targets}",
        "}",
        Suite.UNIT,
        ("test_cloud_visibility",),
    ),
    Mutant(
        "extra-networks-by-name",
        "the OpenStack provider looks for a further network, and finds a stranger's of the name",
        f"{DRIVER}/values/nodegroups.py",
        '{"id": networks[name]} if name in networks else {"filter"',
        '{"filter"',
        Suite.UNIT,
        ("test_same_names_in_another_project", "test_nodegroup_labels"),
    ),
    Mutant(
        "extra-networks-inherited",
        "a new nodegroup of an older cluster takes its networks over by their names",
        f"{DRIVER}/values/nodegroups.py",
        "if not same_networks or (own_labels.extra_network_names and not inherits_networks):",
        "if not same_networks:",
        Suite.UNIT,
        ("test_same_names_in_another_project",),
    ),
    Mutant(
        "volume-types-of-everybody",
        "a cluster gets storage classes of volume types that are others'",
        f"{DRIVER}/cloud/capabilities.py",
        "            if visibility.allows_volume_type(services, kind, project_id)\n",
        "",
        Suite.UNIT,
        ("test_cloud_visibility", "test_same_names_in_another_project"),
    ),
    Mutant(
        "administrators-see-all",
        "who is shown what is in all projects is asked as if it were a member of one",
        f"{DRIVER}/reconcile/clients.py",
        "is_admin=bool(context.is_admin)",
        "is_admin=False",
        Suite.UNIT,
        ("test_cloud_visibility",),
    ),
    Mutant(
        "names-resolved-again",
        "a deferred upgrade looks the image's name up again",
        f"{DRIVER}/reconcile/upgrade_plan.py",
        "interface=interface, lookup=operation.resolved_names",
        "interface=interface",
        Suite.UNIT,
        ("test_same_names_in_another_project",),
    ),
    Mutant(
        "resolved-forgotten",
        "what names stood for is not written down",
        f"{DRIVER}/lease/codec.py",
        "document |= resolved_names.entry(operation.resolved_names)",
        "document |= {}",
        Suite.UNIT,
        ("test_same_names_in_another_project",),
    ),
    Mutant(
        "belongings-of-another",
        "server groups of another project are taken for the cluster's",
        f"{DRIVER}/cloud/cluster_resources.py",
        'if server_group["project_id"] == project_id\n                and (nodegroup',
        "if (nodegroup",
        Suite.UNIT,
        ("test_cloud_cluster_resources",),
    ),
    Mutant(
        "address-of-a-machine",
        "an API without load balancer loses its address with its machine",
        f"{DRIVER}/values/network.py",
        "return not request.load_balancer and has_floating_ip(request) and not given",
        "return False",
        Suite.UNIT,
        ("test_create_cluster_resources",),
    ),
    Mutant(
        "credential-of-an-administrator",
        "a cluster's credential has the administrator's role",
        f"{DRIVER}/cloud/roles.py",
        "if name.casefold() != _NEVER and (allowed",
        "if (allowed",
        Suite.UNIT,
        ("test_credential_roles",),
    ),
)

_RECORDS = (
    Mutant(
        "one-write",
        "a write that Galera took back is given up",
        f"{DRIVER}/magnum_objects/saving.py",
        "    retry_on_deadlock=True,",
        "    retry_on_deadlock=False,",
        Suite.UNIT,
        ("test_database_refuses.TestBusy",),
    ),
    Mutant(
        "no-reconnect",
        "a write whose connection was lost is given up",
        f"{DRIVER}/magnum_objects/saving.py",
        "    retry_on_disconnect=True,",
        "    retry_on_disconnect=False,",
        Suite.UNIT,
        ("test_database_refuses.TestBusy",),
    ),
    Mutant(
        "any-character",
        "reasons have characters that utf8mb3 does not",
        f"{DRIVER}/errors/column_limits.py",
        "    plain = _BEYOND_THREE_BYTES.sub(_REPLACEMENT, _readable(text[: limit + 1]))",
        "    plain = _readable(text[: limit + 1])",
        Suite.UNIT,
        ("test_column_limits",),
    ),
    Mutant(
        "letters-for-bytes",
        "a text's length is counted in characters",
        f"{DRIVER}/errors/column_limits.py",
        "    return shorten(plain, limit, lambda character: len(character.encode()))",
        "    return shorten(plain, limit)",
        Suite.UNIT,
        ("test_column_limits",),
    ),
)

_REGIONS = (
    Mutant(
        "first-region",
        "of several regions the first one is taken",
        f"{DRIVER}/cloud/endpoints.py",
        "        if not configured and len(regions) > 1:",
        "        if not configured and not regions:",
        Suite.UNIT,
        ("test_cloud_regions.TestRegion",),
    ),
    Mutant(
        "contradictions",
        "options that name different regions are taken as they come",
        f"{DRIVER}/cloud/endpoints.py",
        "        if len(set(configured.values())) > 1:",
        "        if not all(configured.values()):",
        Suite.UNIT,
        ("test_cloud_regions.TestRegion",),
    ),
    Mutant(
        "keystone-anywhere",
        "clusters log in at the Keystone that the catalogue has first",
        f"{DRIVER}/cloud/endpoints.py",
        "[url for name, url in endpoints if name == region] or [url for _, url in endpoints]",
        "[url for _, url in endpoints][:1]",
        Suite.UNIT,
        ("test_cloud_regions.TestRegion",),
    ),
    Mutant(
        "public-keystone",
        "Magnum's own requests to Keystone go to its public endpoint",
        f"{DRIVER}/cloud/endpoints.py",
        "            url = self._login() or self.session.get_endpoint(",
        "            url = self.session.get_endpoint(",
        Suite.UNIT,
        ("test_cloud_regions.TestInterface",),
    ),
    Mutant(
        "cinders-region",
        "clouds.yaml names the region of one service's option",
        f"{DRIVER}/reconcile/prerequisites.py",
        "                region=region,",
        "                region=conf.cinder_client.region_name,",
        Suite.UNIT,
        ("test_rotate_credential.TestRotation",),
    ),
)

_CHARTS = (
    Mutant(
        "names-cut",
        "long names are cut without a hash, so two of them become one",
        f"{CLUSTER}/charts/common/templates/_names.tpl",
        '{{ $name | trunc (sub $max 9 | int) | trimSuffix "-" }}-{{ sha256sum $name | trunc 8 }}',
        '{{ $name | trunc $max | trimSuffix "-" }}',
        Suite.CHARTS,
        ("test_names.NameTest",),
    ),
    Mutant(
        "count-ignored",
        "a nodegroup has one machine, whatever its machineCount says",
        f"{CLUSTER}/templates/node-groups/machine-deployment.yaml",
        "replicas: {{ $group.machineCount | int }}",
        "replicas: 1",
        Suite.CHARTS,
        ("test_scenarios.ScenarioTest.test_objects_are_those_on_record",),
    ),
    Mutant(
        "metadata-leaks",
        "server metadata of the first nodegroup reaches all of them",
        f"{CLUSTER}/charts/common/templates/machines/_template.tpl",
        '"values" .group.machineMetadata)',
        '"values" ((index .root.Values.nodeGroups 0).machineMetadata | default dict))',
        Suite.CHARTS,
        ("test_isolation.IsolationTest",),
    ),
    Mutant(
        "hash-ignores-ports",
        "other ports of a group give its machine template no new name",
        f"{CLUSTER}/charts/common/templates/_names.tpl",
        "{{ .base }}-{{ fromYaml .spec | toJson | sha256sum | trunc 8 }}",
        '{{ .base }}-{{ dict "template" (dict "spec" (omit (fromYaml .spec).template.spec '
        '"ports")) | toJson | sha256sum | trunc 8 }}',
        Suite.CHARTS,
        ("test_isolation.IsolationTest",),
    ),
    Mutant(
        "label-cut",
        "the label of a nodegroup has only the beginning of a long name",
        f"{CLUSTER}/charts/common/templates/_names.tpl",
        "{{ $prefix }}/node-group: {{ . | quote }}",
        "{{ $prefix }}/node-group: {{ . | trunc 40 | quote }}",
        Suite.CHARTS,
        ("test_names.NameTest",),
    ),
    Mutant(
        "endless-drain",
        "a drain timeout of 0 is taken, for which Cluster API waits for ever",
        f"{CLUSTER}/charts/common/templates/validate/_common.tpl",
        '(get $values $key)) "0" -}}',
        '(get $values $key)) "never" -}}',
        Suite.CHARTS,
        ("test_refusals.RefusalTest",),
    ),
    Mutant(
        "bootstrap-not-kept",
        "Helm deletes a bootstrap template that machines still refer to",
        f"{CLUSTER}/templates/node-groups/machine-deployment.yaml",
        "    # As above.\n    helm.sh/resource-policy: keep\n",
        "    helm.sh/resource-policy: default\n",
        Suite.CHARTS,
        (
            "test_cluster_objects.ClusterObjectsTest."
            "test_helm_keeps_what_cluster_api_deletes_in_order",
        ),
    ),
    Mutant(
        "defaults-reach-control-plane",
        "the flavor that nodegroups have by default changes the control plane's machines too",
        f"{CLUSTER}/charts/common/templates/machines/_template.tpl",
        "flavor: {{ .values.machineFlavor | quote }}\n{{- end }}",
        "flavor: {{ .root.Values.nodeGroupDefaults.machineFlavor | default .values.machineFlavor | "
        "quote }}\n{{- end }}",
        Suite.CHARTS,
        ("test_scenarios.ScenarioTest.test_objects_are_those_on_record",),
    ),
    Mutant(
        "network-waits-for-nodes",
        "the network addon waits for ready nodes, which wait for the network",
        f"{ADDONS}/files/addons/cni-calico.yaml",
        "bootstrap: true",
        "bootstrap: false",
        Suite.CHARTS,
        ("test_addons.ClusterAddonsTest.test_what_nodes_need_to_become_ready_waits_for_no_node",),
    ),
    Mutant(
        "template-not-kept",
        "Helm deletes a machine template that machines still refer to",
        f"{CLUSTER}/templates/control-plane/kubeadm-control-plane.yaml",
        "of former specs.\n    helm.sh/resource-policy: keep\n",
        "of former specs.\n    helm.sh/resource-policy: default\n",
        Suite.CHARTS,
        (
            "test_cluster_objects.ClusterObjectsTest."
            "test_helm_keeps_what_cluster_api_deletes_in_order",
        ),
    ),
)

_MANAGEMENT = (
    Mutant(
        "tenants-registry",
        "a tenant's label puts its registry before the autoscaler's image",
        f"{CLUSTER}/templates/autoscaler/_wanted.tpl",
        "{{ .Values.autoscaler.image.repository }}:",
        "{{ with (.Values.global | default dict).imageRegistryPrefix }}{{ . }}/{{ end -}}\n"
        "{{ .Values.autoscaler.image.repository }}:",
        Suite.CHARTS,
        ("test_management_cluster.TenantTest",),
    ),
    Mutant(
        "scales-them-all",
        "the autoscaler may scale the groups of the project's other clusters",
        f"{CLUSTER}/templates/autoscaler/rbac.yaml",
        '    resourceNames: {{ include "openstack-cluster.autoscaler.scales" . }}\n',
        "",
        Suite.CHARTS,
        ("test_management_cluster.PodTest",),
    ),
    Mutant(
        "live-image",
        "an image that a tenant's label has brought into a release stays there",
        f"{DRIVER}/values/autoscaler.py",
        "for key, text in deployed_image.items() if key not in IMAGE_KEYS}",
        "for key, text in deployed_image.items()}",
        Suite.UNIT,
        ("test_management_cluster_isolation",),
    ),
    Mutant(
        "hole-kept",
        "a live release keeps the line of its chart that lets a tenant choose the image",
        f"{DRIVER}/values/autoscaler.py",
        'return template.replace(_BEFORE_THE_IMAGE, "")',
        "return template",
        Suite.UNIT,
        ("test_autoscaler_deployment.TestCharts",),
    ),
    Mutant(
        "not-corrected",
        "a release with a tenant's image counts as done, and its health says nothing",
        f"{DRIVER}/reconcile/autoscaler_deployment.py",
        "    return desired != live.values\n",
        "    return False\n",
        Suite.UNIT,
        ("test_autoscaler_deployment.TestMending",),
    ),
    Mutant(
        "stops-pods",
        "a namespace enforces a level with which an autoscaler in it cannot start again",
        f"{DRIVER}/reconcile/prerequisites.py",
        "    if all(pod_security.is_restricted(pod) for pod in pods):\n",
        "    if pods or not pods:\n",
        Suite.UNIT,
        ("test_autoscaler_deployment.TestNamespace",),
    ),
)

_BOUNDS = (
    Mutant(
        "server-without-end",
        "a tenant's API server is read as long as it sends",
        f"{DRIVER}/kube/tenant_channel.py",
        "BYTES, PIECES, LINES = 4 << 20, 4_000, 2_000",
        "BYTES, PIECES, LINES = 1 << 40, 1 << 40, 1 << 40",
        Suite.UNIT,
        ("test_tenant_api_failures",),
    ),
    Mutant(
        "looks-without-bound",
        "looks into the clusters of one tenant take all the room",
        f"{DRIVER}/kube/tenant_budget.py",
        "and self._tenants[tenant] < TENANT",
        "and True",
        Suite.UNIT,
        ("test_tenant_api_failures", "test_addon_check"),
    ),
    Mutant(
        "missing-looked-for-for-ever",
        "what is missing in a cluster is looked for each minute, for ever",
        f"{DRIVER}/reconcile/addon_check.py",
        "_SOON * float(1 << min(last.poor - 1, 10))",
        "_SOON",
        Suite.UNIT,
        ("test_addon_check",),
    ),
    Mutant(
        "first-project-first",
        "a project that has asked first runs helm until it has no more to run",
        f"{DRIVER}/helm/fair_queue.py",
        "first = min(self._waiting, key=self._turn_of)",
        "first = next(iter(self._waiting))",
        Suite.UNIT,
        ("test_helm_fair_queue",),
    ),
    Mutant(
        "helm-without-bound",
        "any number of runs of helm go on at once",
        f"{DRIVER}/helm/fair_queue.py",
        "if self._running >= self._most:",
        "if self._running < 0:",
        Suite.UNIT,
        ("test_helm_fair_queue",),
    ),
    Mutant(
        "labels-without-bound",
        "a cluster may have any number of labels",
        f"{DRIVER}/labels/limits.py",
        "if len(texts) > max_labels:",
        "if not texts and max_labels:",
        Suite.UNIT,
        ("test_labels_limits",),
    ),
    Mutant(
        "each-label-looked-up",
        "every unknown label is compared with all that there are, in each pass",
        f"{DRIVER}/labels/notices.py",
        "for name in unknown[:_NAMED] if",
        "for name in unknown if",
        Suite.UNIT,
        ("test_labels_limits", "test_hostile_tenant_costs"),
    ),
    Mutant(
        "whole-messages",
        "a controller's message is read to its end, however long it is",
        f"{DRIVER}/model/conditions.py",
        "return value[:LONGEST] if isinstance(value, str)",
        "return value if isinstance(value, str)",
        Suite.UNIT,
        ("test_status_long_texts",),
    ),
    Mutant(
        "texts-without-bound",
        "rows are given texts that MySQL does not take",
        f"{DRIVER}/magnum_objects/saving.py",
        "fitted = column_limits.fit(key, value)",
        "fitted = value",
        Suite.UNIT,
        ("test_column_limits",),
    ),
    Mutant(
        "search-from-everywhere",
        "an error of Helm's is searched anew from each of its letters",
        f"{DRIVER}/helm/failures.py",
        '(?<!\\S)\\S+ \\"[^\\"]*\\" is invalid',
        '\\S+ \\"[^\\"]*\\" is invalid',
        Suite.UNIT,
        ("test_regular_expressions",),
    ),
    Mutant(
        "holder-of-another-container",
        "a lock's holder in another container counts as dead where its number is nobody's here",
        f"{DRIVER}/lease/holder.py",
        "if match is None or [match[3], match[4]] != [_namespace(), _boot()]:",
        "if match is None:",
        Suite.UNIT,
        ("test_lock_holder",),
    ),
    Mutant(
        "nobody-has-the-lock",
        "many requests at once leave a lock to each other that nobody holds",
        f"{DRIVER}/lease/lock.py",
        "turns = self.leases.retry_on_conflict(_LAST_RACES, deadline.is_expired)",
        "turns = self.leases.retry_on_conflict(1, deadline.is_expired)",
        Suite.UNIT,
        ("test_release_lease.TestCrowd",),
    ),
    Mutant(
        "holder-looks-not-back",
        "what is asked for while another request holds the lock waits for the status task",
        f"{DRIVER}/reconcile/reconciler.py",
        "_ROUNDS = 4",
        "_ROUNDS = 1",
        Suite.UNIT,
        ("test_requests_at_once.TestHandedOver",),
    ),
    Mutant(
        "holder-by-number-alone",
        "a dead holder of a lock lives on in the process that has got its number",
        f"{DRIVER}/lease/holder.py",
        "return start is not None and start != match[2]",
        "return False",
        Suite.UNIT,
        ("test_lock_holder",),
    ),
    Mutant(
        "unreadable-is-unchanged",
        "what could not be read counts as what it was at the last evaluation",
        f"{DRIVER}/reconcile/evaluation_inputs.py",
        " or Missing.UNREADABLE in versions:",
        ":",
        Suite.UNIT,
        ("test_evaluation_cache",),
    ),
    Mutant(
        "verdict-for-ever",
        "an evaluation holds beyond a deadline, as long as no object changes",
        f"{DRIVER}/reconcile/evaluation_cache.py",
        "return self.since <= now <= self.until",
        "return self.since <= now",
        Suite.UNIT,
        ("test_evaluation_cache",),
    ),
    Mutant(
        "versions-do-not-matter",
        "a pass reads nothing although an object has changed",
        f"{DRIVER}/reconcile/evaluation_cache.py",
        "or found.versions != versions or",
        "or",
        Suite.UNIT,
        ("test_unchanged_passes",),
    ),
    Mutant(
        "end-told-by-everybody",
        "each conductor whose pass meets the end of an operation sends its notification",
        f"{DRIVER}/magnum_objects/refresh.py",
        "    cluster.status = status\n    cluster.obj_reset_changes",
        "    cluster.obj_reset_changes",
        Suite.UNIT,
        ("test_status_task_with_watches",),
    ),
    Mutant(
        "confirmed-beside-magnums-job",
        "the second snapshot is taken while Magnum's own job is at it",
        f"{DRIVER}/handlers/watch_trigger.py",
        "if release in self._running or self._visits[release]:",
        "if release in self._running:",
        Suite.UNIT,
        ("test_status_task_with_watches",),
    ),
    Mutant(
        "confirmed-at-once",
        "the second snapshot follows the first one at once",
        f"{DRIVER}/handlers/watch_trigger.py",
        "self._due[release] = self._clock() + _CONFIRM",
        "self._due[release] = self._clock()",
        Suite.UNIT,
        ("test_status_task_with_watches",),
    ),
    Mutant(
        "first-snapshot-behind",
        "the first of two confirming snapshots comes from watches that are behind the Lease",
        f"{DRIVER}/reconcile/observe.py",
        "    return watched_version != record.version",
        "    return False",
        Suite.UNIT,
        ("test_status_task_with_watches",),
    ),
    Mutant(
        "ends-by-watching",
        "an operation ends by what was watched alone",
        f"{DRIVER}/reconcile/observe.py",
        "    if not view.watched or judgement.changes:\n        return view.watched",
        "    if not view.watched or judgement.changes:\n        return False",
        Suite.UNIT,
        ("test_status_task_with_watches",),
    ),
    Mutant(
        "dead-conductors-nodegroups",
        "a nodegroup of which neither the cluster's row nor the Lease tells is never seen",
        f"{DRIVER}/reconcile/evaluation_cache.py",
        "            if found.inputs.magnum != magnum():\n",
        "            if False:\n",
        Suite.UNIT,
        ("test_unchanged_passes",),
    ),
    Mutant(
        "time-changes-nothing",
        "a verdict is kept for longer than the time lets it hold",
        f"{DRIVER}/reconcile/verdict_duration.py",
        "        return status.evaluate(later, state, now + after) == verdict",
        "        return True",
        Suite.UNIT,
        ("test_unchanged_passes",),
    ),
    Mutant(
        "cloud-not-asked-again",
        "what OpenStack was asked for is not asked for again as long as no object changes",
        f"{DRIVER}/reconcile/verdict_duration.py",
        "        return _SHORTEST\n\n",
        "        return _DURATIONS[0]\n\n",
        Suite.UNIT,
        ("test_unchanged_passes",),
    ),
    Mutant(
        "lease-version-ignored",
        "record and release are used again although another conductor has written the Lease",
        f"{DRIVER}/reconcile/evaluation_cache.py",
        "(found.record.version != version)",
        "False",
        Suite.UNIT,
        ("test_unchanged_passes",),
    ),
    Mutant(
        "stale-first-snapshot",
        "a first snapshot is recorded although the Lease has changed since it was judged",
        f"{DRIVER}/handlers/record_verdict.py",
        "            same_version=evaluation.is_cached,\n",
        "            same_version=False,\n",
        Suite.UNIT,
        ("test_unchanged_passes",),
    ),
    Mutant(
        "verdict-over-requests",
        "a verdict ends operations although a request has been recorded meanwhile",
        f"{DRIVER}/lease/pending_operations.py",
        "    if not is_same or record.operations != expected.operations:\n",
        "    if not is_same:\n",
        Suite.UNIT,
        ("test_release_lease",),
    ),
    Mutant(
        "kept-record-acts",
        "a status task writes statuses by a record that was kept",
        f"{DRIVER}/handlers/status_task.py",
        "if known.is_kept and _is_record_needed(known.record, nodegroups_observed):",
        "if False:",
        Suite.UNIT,
        ("test_late_leases",),
    ),
    Mutant(
        "kept-record-repairs",
        "a health poll repairs by a record that was kept",
        f"{DRIVER}/handlers/health_task.py",
        "if not (evaluation.is_cached and health_repairs.is_record_needed(case)):",
        "if True:",
        Suite.UNIT,
        ("test_late_leases",),
    ),
    Mutant(
        "charts-of-two-deletions",
        "two deletions at once leave the copy of their chart",
        f"{DRIVER}/reconcile/deletion.py",
        "    if step.action is DeletionAction.DONE:\n",
        "    if False:\n",
        Suite.UNIT,
        ("test_delete_ends",),
    ),
    Mutant(
        "pipe-of-eventlet",
        "a child's pipe that is full makes its parent wait under eventlet, whatever the time",
        f"{DRIVER}/helm/process.py",
        "            written: int | None = raw.write(self._rest[:_CHUNK])\n",
        "            written: int | None = os.write(raw.fileno(), self._rest[:_CHUNK])\n",
        Suite.UNIT,
        ("test_eventlet",),
    ),
    Mutant(
        "never-created",
        "a cluster that was never created stays UPDATE_FAILED after a nodegroup request",
        f"{DRIVER}/handlers/health_repairs.py",
        "        and found.record.revisions.last_applied == 0\n",
        "        and False\n",
        Suite.UNIT,
        ("test_health_task",),
    ),
)

_ENVTEST = (
    Mutant(
        "lock-for-everybody",
        "the Lease is taken while somebody else holds it",
        f"{DRIVER}/lease/lock.py",
        "if self._expired(namespace, release, lease):",
        "if True:",
        Suite.ENVTEST,
        ("test_release_lease",),
    ),
)

_FUNCTIONAL = (
    Mutant(
        "no-rights",
        "the driver does not bind its role in the namespaces that it makes",
        f"{DRIVER}/reconcile/prerequisites.py",
        '"subjects": [_own_subject(clients)],',
        '"subjects": [],',
        Suite.FUNCTIONAL,
        ("test_core_young.TestYoung",),
    ),
    Mutant(
        "lease-left",
        "the Lease of a deleted cluster stays behind",
        f"{DRIVER}/handlers/finalize_deletion.py",
        "        run.clients.leases.delete_finished(owner.namespace, owner.release)",
        "        assert owner",
        Suite.FUNCTIONAL,
        ("test_core_young.TestYoung",),
    ),
)

_WORDS = (
    Mutant(
        "addresses-to-tenants",
        "Addresses of the cloud's services stand in what tenants read.",
        f"{DRIVER}/status/redaction.py",
        '        (rf"{_URL}", ""),\n',
        "",
        Suite.UNIT,
        ("test_public_text",),
    ),
    Mutant(
        "health-as-it-came",
        "The health repeats a controller's message word for word.",
        f"{DRIVER}/status/health.py",
        "sentence = first_sentence(condition.message or condition.reason)",
        "sentence = condition.message or condition.reason",
        Suite.UNIT,
        ("test_public_text",),
    ),
    Mutant(
        "services-as-they-came",
        "What a service of OpenStack refused is told with its library's words.",
        f"{DRIVER}/cloud/services.py",
        "_ended(public(str(answer)))",
        "_ended(str(answer))",
        Suite.UNIT,
        ("test_public_text",),
    ),
)

_CLOCKS = (
    Mutant(
        "conductors-clock",
        "How long something lasts is told by the conductor's clock.",
        f"{DRIVER}/status/timestamps.py",
        "    at = observed_at(observed)\n",
        "    at = observed.at\n",
        Suite.UNIT,
        ("test_recordings_wrong_clock",),
    ),
    Mutant(
        "leases-by-the-conductors-clock",
        "The age of a look counts by the conductor's clock in a file that was not to.",
        f"{DRIVER}/reconcile/orphans.py",
        "timestamps.is_older(requested_at, observed, _PORT_PATIENCE)",
        "observed.at - requested_at > _PORT_PATIENCE",
        Suite.UNIT,
        ("test_house_clocks",),
    ),
    Mutant(
        "restarts-forget-faults",
        "What was told is told again only when its time has passed for the new process.",
        f"{DRIVER}/status/scope.py",
        "self.is_reported(text) or timestamps",
        "timestamps",
        Suite.UNIT,
        ("test_recordings_restarted",),
    ),
    Mutant(
        "restarts-forget-silence",
        "A controller that was silent for one process is alive for the next one.",
        f"{DRIVER}/reconcile/controller_check.py",
        " or recorded_stale.get(lease.controller)",
        "",
        Suite.UNIT,
        ("test_recordings_restarted", "test_controller_check"),
    ),
    Mutant(
        "restarts-forget-credentials",
        "A dead credential is a good one for a conductor that has just begun.",
        f"{DRIVER}/reconcile/credential_check.py",
        "last or (now - _SELDOM * self._chance(), recorded_text)",
        'last or (now - _SELDOM * self._chance(), "")',
        Suite.UNIT,
        ("test_conductor_restarted",),
    ),
    Mutant(
        "restarts-forget-addons",
        "What is missing in a cluster is there for a conductor that has just begun.",
        f"{DRIVER}/reconcile/addon_check.py",
        "if recorded_text and known is None:",
        "if not recorded_text:",
        Suite.UNIT,
        ("test_addon_check",),
    ),
    Mutant(
        "watched-edits-handled",
        "An addon that the watch knows is deployed, whatever its spec has become.",
        f"{DRIVER}/model/addons.py",
        '{"spec": short if is_spec_handled(addon) else None}',
        '{"spec": short}',
        Suite.UNIT,
        ("test_kube_cache",),
    ),
    Mutant(
        "objects-compressed-alone",
        "Each watched object is kept with the text that all of its kind have in common.",
        f"{DRIVER}/kube/cache.py",
        "return CachedObject.of(kept, self._dictionary)",
        "return CachedObject.of(kept)",
        Suite.UNIT,
        ("test_kube_cache",),
    ),
    Mutant(
        "history-of-two-moments",
        "The newest revision is read later than the list that says what is newer.",
        f"{DRIVER}/helm/history.py",
        "if secret is None or _version(secret) != _version(newest):",
        "if secret is None:",
        Suite.UNIT,
        ("test_helm_client",),
    ),
    Mutant(
        "histories-read-whole",
        "All revisions of a release are read with their charts each time.",
        f"{DRIVER}/helm/history.py",
        "_SHORT = 2",
        "_SHORT = 200",
        Suite.UNIT,
        ("test_helm_client",),
    ),
    Mutant(
        "texts-in-every-revision",
        "Each revision of each cluster keeps the descriptions of the schema.",
        "tools/compact_chart.py",
        "if key not in _FOR_READERS or not isinstance(value, str)",
        "if key",
        Suite.UNIT,
        ("test_revision_size",),
    ),
    Mutant(
        "authorities-with-comments",
        "Each cluster's Secret has what explains Mozilla's certificates.",
        f"{DRIVER}/reconcile/clients.py",
        "certificates = [] if own else _CERTIFICATE.findall(text)",
        "certificates = []",
        Suite.UNIT,
        ("test_verbs",),
    ),
    Mutant(
        "remediation-forgotten",
        "Why a machine was given up is told no more once it goes.",
        f"{DRIVER}/status/remediation.py",
        "if is_own_fault and conditions.is_terminating(machines_by_name[name]):",
        "if is_own_fault and not conditions.is_terminating(machines_by_name[name]):",
        Suite.UNIT,
        ("test_recordings_restarted.TestRemediation",),
    ),
    Mutant(
        "sightings-for-ever",
        "What no process lives long enough to watch is waited for without end.",
        f"{DRIVER}/reconcile/caches.py",
        "return max(seen, now - created_at - CLOCKS_DIFFER)",
        "return seen",
        Suite.UNIT,
        ("test_first_seen",),
    ),
    Mutant(
        "sightings-by-clocks",
        "The time of a row is held against the clock of another host.",
        f"{DRIVER}/reconcile/caches.py",
        "return max(seen, now - created_at - CLOCKS_DIFFER)",
        "return max(seen, now - created_at)",
        Suite.UNIT,
        ("test_clocks_differ",),
    ),
)

_HOSTILE = (
    Mutant(
        "unseen-text",
        "a refusal shows a terminal's control characters to whoever reads it",
        f"{DRIVER}/errors/column_limits.py",
        "\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f",
        "\\x00",
        Suite.UNIT,
        ("hostile.test_texts", "hostile.test_labels"),
    ),
    Mutant(
        "record-believed",
        "a Lease that somebody has spoiled ends a pass with an error of a library",
        f"{DRIVER}/lease/malformed.py",
        "except _MALFORMED as error:",
        "except OverflowError as error:",
        Suite.UNIT,
        ("hostile.test_answers",),
    ),
    Mutant(
        "label-strays",
        "a label moves another one's path of the values",
        f"{DRIVER}/values/components.py",
        'values["loadBalancerFlavor"] = labels.api_server_lb_flavor',
        'values["loadBalancerProvider"] = labels.api_server_lb_flavor',
        Suite.UNIT,
        ("hostile.test_labels",),
    ),
    Mutant(
        "writes-believed",
        "an empty answer to a write of an object counts as that object",
        f"{DRIVER}/kube/discovery.py",
        'is_object = method != "DELETE" and name is not None',
        'is_object = method == "GET" and name is not None',
        Suite.UNIT,
        ("test_kube_client",),
    ),
    Mutant(
        "halves-of-characters",
        "a keypair's name that is no text reaches the values",
        f"{DRIVER}/magnum_objects/validate_cluster.py",
        "if request.keypair and not request.keypair.isprintable():",
        "if request.keypair and not request.keypair:",
        Suite.UNIT,
        ("test_magnum_objects",),
    ),
    Mutant(
        "any-version-of-a-chart",
        "a template names a version that the operator does not list",
        f"{DRIVER}/chart_store/store.py",
        "if version and self._versions:",
        "if version and not self._versions:",
        Suite.UNIT,
        ("test_chart_source",),
    ),
    Mutant(
        "two-revisions",
        "the first change of a release of another family runs Helm twice",
        f"{DRIVER}/reconcile/changes.py",
        "    values = autoscaler_deployment.with_operators_settings("
        "values, plan.chart, run.settings)\n",
        "",
        Suite.UNIT,
        ("test_autoscaler_deployment",),
    ),
    Mutant(
        "withheld-each-time",
        "the log has the same withheld message after each poll",
        f"{DRIVER}/status/complete_messages.py",
        "    if is_health:\n",
        "    if not is_health:\n",
        Suite.UNIT,
        ("test_health_task",),
    ),
    Mutant(
        "deletes-a-neighbours-credential",
        "a deletion takes credentials whose names begin like the cluster's",
        f"{DRIVER}/model/secrets.py",
        "return re.fullmatch(pattern, text) is not None",
        "return re.match(pattern, text) is not None",
        Suite.UNIT,
        ("test_similar_names",),
    ),
)

_NAMES = (
    Mutant(
        "tls-rolls-early",
        "an upgrade replaces workers for new TLS settings before their turn",
        f"{DRIVER}/values/rollout.py",
        '    "tls",\n',
        "",
        Suite.UNIT,
        ("test_values_deferred.TestRolls",),
    ),
    Mutant(
        "file-owed",
        "A file is called by a word that nobody else uses.",
        f"{DRIVER}/values/owed.py",
        "",
        '# SPDX-License-Identifier: Apache-2.0\n"""What nodegroups are owed."""\n',
        Suite.UNIT,
        ("test_house.TestNames",),
    ),
    Mutant(
        "function-told",
        "A public function is called by a participle.",
        f"{DRIVER}/status/messages.py",
        "from __future__ import annotations\n",
        'from __future__ import annotations\n\n\ndef told() -> None:\n    """What was said."""\n',
        Suite.UNIT,
        ("test_house.TestNames",),
    ),
    Mutant(
        "parameter-one",
        "A parameter at the top of a signature is called by a pronoun.",
        f"{DRIVER}/model/names.py",
        "def release(cluster_name: str)",
        'def release(cluster_name: str, one: str = "")',
        Suite.UNIT,
        ("test_house.TestNames",),
    ),
)

_SITES = (
    Mutant(
        "unwritable-charts",
        "a chart directory that cannot be written stops each creation",
        f"{DRIVER}/chart_store/directory.py",
        "            return _temporary(self._path, error.strerror or str(error))\n",
        "            pass\n",
        Suite.UNIT,
        ("test_chart_directory.UnwritableDirectoryTest",),
    ),
    Mutant(
        "bundled-is-copied",
        "the bundled chart needs a directory that can be written",
        f"{DRIVER}/chart_store/store.py",
        "                if chart_source_used.repository != chart_source.BUNDLED:\n"
        "                    raise\n",
        "                raise\n",
        Suite.UNIT,
        ("test_chart_directory.UnwritableDirectoryTest",),
    ),
    Mutant(
        "proxy-of-the-environment",
        "the environment wins over the proxy of the kubeconfig",
        f"{DRIVER}/kube/proxy.py",
        "        return _proxy(proxy_url)\n",
        '        proxy_url = ""\n',
        Suite.UNIT,
        ("test_management_proxy.ChoiceTest", "test_management_proxy.WayTest"),
    ),
    Mutant(
        "young-group-is-missed",
        "a nodegroup that is being created makes its cluster UNHEALTHY",
        f"{DRIVER}/status/health.py",
        'if not owners and nodegroup.status == "CREATE_IN_PROGRESS":',
        "if False:",
        Suite.UNIT,
        ("test_status_health.MissingGroupTest",),
    ),
    Mutant(
        "helm-at-home",
        "helm keeps indexes of repositories in the home of magnum-conductor",
        f"{DRIVER}/helm/cli.py",
        '            self._environment.setdefault("HELM_CACHE_HOME", f"{place}/cache")\n',
        "",
        Suite.CHARTS,
        ("test_repository.TestRepository",),
    ),
)

MUTANTS = (
    *_NAIVE,
    *_STATUS,
    *_CHANGE,
    *_DELETION,
    *_FOUNDING,
    *_RECORDS,
    *_REGIONS,
    *_CHARTS,
    *_MANAGEMENT,
    *_ENVTEST,
    *_FUNCTIONAL,
    *_WORDS,
    *_CLOCKS,
    *_HOSTILE,
    *_BOUNDS,
    *_NAMES,
    *_SITES,
)
