# SPDX-License-Identifier: Apache-2.0
"""What a cloud has to choose from: images, flavors, networks, volume types."""
