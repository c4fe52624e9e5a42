#!/bin/sh
# Puts the keys of this machine into the API server's encryption configuration, in the place of @name@.
# The keys go through a pipe: arguments of a program can be read by everybody on the machine.
set -eu
cd "$(dirname "$0")"
for key in keys/*; do
    printf 's|@%s@|%s|\n' "${key#keys/}" "$(tr -d '[:space:]' < "$key")"
done | sed -i -f /dev/stdin configuration.yaml
