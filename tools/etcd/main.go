// etcd, built from its module: what operators are measured on. Distributions package versions from before the API
// server could answer lists of the present state from memory.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
