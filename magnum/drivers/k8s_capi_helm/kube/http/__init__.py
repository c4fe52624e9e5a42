# SPDX-License-Identifier: Apache-2.0
"""Requests and responses of an API server, their time limits and retries."""
