#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Make the small virtual environment that holds tox: bootstrap.sh DIRECTORY
set -eu

runner=$1
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "Python 3.11 or newer is needed, '$python' is not: name one with PYTHON=..." >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "'$python' has no venv module: install it (Debian: python3-venv)." >&2
    exit 1
fi
start=$(date +%s)
rm -rf "$runner"
"$python" -m venv "$runner"
"$runner/bin/python" -m pip install --quiet --disable-pip-version-check 'tox>=4.20,<5' 'tox-uv>=1.20'
touch "$runner/bin/tox"
size=$(du -sm "$runner" | cut -f1)
echo "tox installed in $runner: $(($(date +%s) - start)) s, $size MiB"
