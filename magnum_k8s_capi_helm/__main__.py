# SPDX-License-Identifier: Apache-2.0
"""``python -m magnum_k8s_capi_helm upgrade check``: the same as the console script."""

import sys

from magnum_k8s_capi_helm import status

if __name__ == "__main__":
    sys.exit(status.main())
