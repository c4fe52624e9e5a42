# SPDX-License-Identifier: Apache-2.0
"""What is desired of a cluster's release beside what is there, and what a change rolls."""
