#!/bin/sh
# Makes containerd read the hosts of registries in certs.d and the fragments in conf.d, however its image set it up.
# Argument: the prefix of a registry that has the pause image below its whole name, if there is one.
set -eu
config=/etc/containerd/config.toml
hosts=/etc/containerd/certs.d
fragments='"/etc/containerd/conf.d/*.toml"'
pause_from=${1:-}

# Flatcar's own containerd reads a file that cannot be written, until it is told of another one.
if [ ! -e "$config" ]; then
    mkdir -p /etc/containerd /etc/systemd/system/containerd.service.d
    if [ -e /usr/share/containerd/config.toml ]; then
        cp /usr/share/containerd/config.toml "$config"
    else
        containerd config default >"$config"
    fi
    printf '[Service]\nEnvironment=CONTAINERD_CONFIG=%s\n' "$config" \
        >/etc/systemd/system/containerd.service.d/20-config.conf
fi

if grep -Eq '^imports *=' "$config"; then
    grep -Fq '/etc/containerd/conf.d/' "$config" || sed -i -E "s|^imports *= *\[|&$fragments, |" "$config"
else
    sed -i "1i imports = [$fragments]" "$config"
fi

# The registry's section is called otherwise since version 3 of the file, that is containerd 2.
plugin='io.containerd.grpc.v1.cri'
if grep -Eq '^version *= *3' "$config"; then
    plugin='io.containerd.cri.v1.images'
fi
section="^ *\[plugins\.[\"']$plugin[\"']\.registry\]"
if grep -Eq '^ *config_path *=' "$config"; then
    grep -Eq "^ *config_path *=.*$hosts" "$config" || sed -i -E "s|^( *config_path *=).*|\1 \"$hosts\"|" "$config"
elif grep -Eq "$section" "$config"; then
    sed -i -E "s|$section|&\nconfig_path = \"$hosts\"|" "$config"
else
    printf '\n[plugins."%s".registry]\nconfig_path = "%s"\n' "$plugin" "$hosts" >>"$config"
fi

if [ -n "$pause_from" ]; then
    grep -Fq "$pause_from/" "$config" \
        || sed -i -E "s|^( *sandbox(_image)? *= *[\"'])([^\"']*/pause[:@])|\1$pause_from/\3|" "$config"
fi
