#!/bin/sh
# The API server is not asked through the proxy; its address is known only on the machine, from kubeadm's file.
set -eu
environment=/etc/kubernetes/proxy.env
for config in /run/kubeadm/kubeadm.yaml /run/kubeadm/kubeadm-join-config.yaml /etc/kubeadm.yml; do
    [ -e "$config" ] || continue
    endpoint=$(sed -n -E 's/^ *(controlPlaneEndpoint|apiServerEndpoint): *"?([^"]*):[0-9]+"?$/\2/p' "$config" \
        | head -n 1 | tr -d '[]')
    [ -z "$endpoint" ] || sed -i -E "s/^(NO_PROXY|no_proxy)=.*/&,$endpoint/" "$environment"
done
