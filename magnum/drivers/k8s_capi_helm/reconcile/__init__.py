# SPDX-License-Identifier: Apache-2.0
"""Brings the Helm release of one cluster to what Magnum's objects ask for.

It knows Magnum's objects only through what the handlers hand it."""
