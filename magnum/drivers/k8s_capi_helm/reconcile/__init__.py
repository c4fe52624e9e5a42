# SPDX-License-Identifier: Apache-2.0
"""Reconcile the Helm release of one cluster with Magnum's objects.

It knows Magnum's objects only through what the handlers hand it."""
