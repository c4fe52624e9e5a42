# SPDX-License-Identifier: Apache-2.0
"""What a port promises, as tests that run on the port in memory and on the real one."""
