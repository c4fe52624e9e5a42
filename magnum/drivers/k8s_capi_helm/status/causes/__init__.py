# SPDX-License-Identifier: Apache-2.0
"""Why a part is not in place: the cause across all objects, and the reason that is shown."""
