# SPDX-License-Identifier: Apache-2.0
"""Simulates cluster-api-addon-provider 0.12 for HelmRelease and Manifests objects.

Played: nothing is fetched from a chart repository; a run of Helm is a pause, and what it installs
is a line of a table in :mod:`sandbox.addons.tenant_install`; lifecycle hooks do nothing.

Real: the kopf framework that the addon provider itself is made of, and so its finalizer, its
annotations and its retries; the gates, phases and refusals, each a line of a table in
:mod:`sandbox.addons.rules`; the Secrets and ConfigMaps of values and manifests, which are read and
rendered with Jinja2, from the model of the addon that templates find there
(:mod:`sandbox.addons.model`), so that a broken template is the same error here, which is not
handled, so that kopf retries for ever.

``tox -e addons`` asks the real one the same and compares, where there is a checkout of it.

Source of the rules: https://github.com/azimuth-cloud/cluster-api-addon-provider
"""
