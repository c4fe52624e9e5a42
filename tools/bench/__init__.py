# SPDX-License-Identifier: Apache-2.0
"""What ``make bench`` measures, each as a program: passes, verbs, charts, waiting, memory."""
