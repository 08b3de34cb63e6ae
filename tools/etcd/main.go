// Command etcd is etcd, built from its module for benchmarks of operators. The packages of
// distributions are older than version 3.5, with which the API server can answer lists of the
// current state from memory.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
