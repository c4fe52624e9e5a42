// Nothing is built here. A go.mod knows one release of a module only, so that the releases of Helm
// that are tested stand in sandbox/management/helm_releases.py; go.sum pins what they hold.
module sandbox/helmreleases

go 1.26.0
