// Marks the root of this module only. It is built with -modfile, for one version of the official library each:
// go-1.11.mod, go-1.13.mod and go-1.14.mod.
module ichor/tests/peers/config

go 1.26.6
