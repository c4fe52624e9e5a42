#!/bin/sh
# Moves what containerd keeps, the images of the machine's own image too, to its disk and mounts that. If it fails,
# containerd stays masked until the next boot, so that kubeadm fails as well and no Node runs on the boot disk.
set -eu
disk=LABEL=containerd
kept=/var/lib/containerd
unit=containerd.service

systemctl mask --runtime "$unit"
systemctl stop --job-mode=ignore-dependencies "$unit"
mkdir -p "$kept"
new=$(mktemp -d)
mount "$disk" "$new"
cp -a "$kept/." "$new/"
umount "$new"
rmdir "$new"
find "$kept" -mindepth 1 -delete
printf '%s %s ext4 defaults,nofail,x-systemd.before=%s,x-systemd.required-by=%s 0 2\n' \
    "$disk" "$kept" "$unit" "$unit" >>/etc/fstab
mount "$kept"
systemctl unmask --runtime "$unit"
systemctl daemon-reload
systemctl start "$unit"
