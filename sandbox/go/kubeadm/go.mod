// Nothing is built here. A go.mod knows one release of a module only, so that the releases whose
// kubeadm is wanted stand in sandbox/management/kubernetes_releases.py; go.sum pins what they hold.
module sandbox/kubeadm

go 1.26.0
