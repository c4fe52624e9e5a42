// Nothing is built here. Each program is built in its own module, with the versions that its release
// pins; the releases stand in sandbox/management/cloud_programs.py, and go.sum pins what they hold.
module sandbox/cloudprograms

go 1.26.0
