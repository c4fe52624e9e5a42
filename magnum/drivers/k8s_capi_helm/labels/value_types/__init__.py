# SPDX-License-Identifier: Apache-2.0
"""Types of labels: what their texts may be, and what these mean."""
