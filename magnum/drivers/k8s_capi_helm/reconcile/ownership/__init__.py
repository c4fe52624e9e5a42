# SPDX-License-Identifier: Apache-2.0
"""Whose the objects of a cluster are: the proof, adoption, and a move."""
