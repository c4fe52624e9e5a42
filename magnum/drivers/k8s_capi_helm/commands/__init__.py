# SPDX-License-Identifier: Apache-2.0
"""The operator's command ``k8s-capi-helm``: thin commands over questions that return plain rows.

It stands beside ``driver``: another caller of the same floors, with the same clients and options,
so that it can say nothing that the driver does not.
"""
