#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# devstack plugin: installs the driver beside Magnum, Helm, and the kubeconfig of an existing
# management cluster (https://docs.openstack.org/devstack/latest/plugins.html). devstack sources
# this file with a mode and a phase; each phase can be repeated. What devstack and Magnum's own
# plugin define is used from there: DEST, STACK_USER, MAGNUM_CONF_DIR, MAGNUM_CONF, iniset and so on.

# Without this, stack.sh would stop at "set -o errexit" with no word about which value is missing.
function _capi_helm_require_kubeconfig {
    if ! sudo test -s "$MAGNUM_CAPI_HELM_KUBECONFIG"; then
        die $LINENO "MAGNUM_CAPI_HELM_KUBECONFIG is $MAGNUM_CAPI_HELM_KUBECONFIG, which is no file" \
            "with content. Set it in local.conf to the kubeconfig of the management cluster."
    fi
}

function install_capi_helm_driver {
    setup_develop "${GITDIR[magnum-k8s-capi-helm]:-$DEST/magnum-k8s-capi-helm}"
}

# The archive is unpacked only after its digest was compared.
function install_capi_helm_helm {
    local archive
    archive=$(get_extra_file "$MAGNUM_CAPI_HELM_HELM_URL")
    if ! echo "$MAGNUM_CAPI_HELM_HELM_SHA256  $archive" | sha256sum --check --status; then
        die $LINENO "$archive does not have the SHA-256 $MAGNUM_CAPI_HELM_HELM_SHA256." \
            "Remove it, or set MAGNUM_CAPI_HELM_HELM_SHA256 to the digest of this release."
    fi
    sudo tar -xzf "$archive" -C "$MAGNUM_CAPI_HELM_BIN_DIR" --strip-components=1 linux-amd64/helm
}

# Only Magnum's user may read the file: it can create and delete every cluster.
function configure_capi_helm {
    local kubeconfig=$MAGNUM_CONF_DIR/kubeconfig
    sudo install -D -o "$STACK_USER" -m 0600 "$MAGNUM_CAPI_HELM_KUBECONFIG" "$kubeconfig"
    iniset "$MAGNUM_CONF" capi_helm kubeconfig_file "$kubeconfig"
    iniset "$MAGNUM_CONF" cluster_template kubernetes_allowed_network_drivers calico,cilium
    iniset "$MAGNUM_CONF" cluster_template kubernetes_default_network_driver calico
}

# A failure (2 and more) ends the run, a warning (1) is printed.
function check_capi_helm {
    local status=0
    "$(get_python_exec_prefix)"/magnum-k8s-capi-helm-status \
        --config-file "$MAGNUM_CONF" upgrade check || status=$?
    if [[ $status -gt 1 ]]; then
        die $LINENO "The installation of magnum-k8s-capi-helm has the failures listed above."
    fi
}

function cleanup_capi_helm {
    sudo rm -f "$MAGNUM_CONF_DIR/kubeconfig"
    pip_uninstall magnum-k8s-capi-helm
}

MAGNUM_CONF_DIR=${MAGNUM_CONF_DIR:-/etc/magnum}
MAGNUM_CONF=${MAGNUM_CONF:-$MAGNUM_CONF_DIR/magnum.conf}

if is_service_enabled magnum-api magnum-cond; then
    if [[ "$1" == "stack" && "$2" == "pre-install" ]]; then
        _capi_helm_require_kubeconfig
    elif [[ "$1" == "stack" && "$2" == "install" ]]; then
        echo_summary "Installing magnum-k8s-capi-helm and Helm"
        install_capi_helm_driver
        install_capi_helm_helm
    elif [[ "$1" == "stack" && "$2" == "post-config" ]]; then
        # After Magnum's plugin, which writes magnum.conf anew.
        echo_summary "Configuring magnum-k8s-capi-helm"
        configure_capi_helm
    elif [[ "$1" == "stack" && "$2" == "extra" ]]; then
        echo_summary "Checking magnum-k8s-capi-helm"
        check_capi_helm
    elif [[ "$1" == "clean" ]]; then
        cleanup_capi_helm
    fi
fi
