# SPDX-License-Identifier: Apache-2.0
"""Earlier releases of Magnum with the driver, and upgrades from one to the next."""
