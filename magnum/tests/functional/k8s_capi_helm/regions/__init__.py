# SPDX-License-Identifier: Apache-2.0
"""The driver's cloud port and the clouds.yaml that it writes, on a cloud with several regions."""
