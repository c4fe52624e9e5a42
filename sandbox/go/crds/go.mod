// Nothing is built here. A go.mod knows one release of a module only, so that the releases whose
// CRDs are wanted stand in sandbox/management/releases.py; go.sum pins what they hold.
module sandbox/crds

go 1.26.0
