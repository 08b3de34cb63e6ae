// Command catalog validates folders with file-based catalogs like `opm validate`. It prints a line
// for each folder: `ok`, or why the catalog is rejected.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
)

func validate(folder string) error {
	config, err := declcfg.LoadFS(context.Background(), os.DirFS(folder))
	if err != nil {
		return err
	}
	_, err = declcfg.ConvertToModel(*config)
	return err
}

func main() {
	for _, folder := range os.Args[1:] {
		if err := validate(folder); err != nil {
			fmt.Println(strings.Join(strings.Fields(err.Error()), " "))
			continue
		}
		fmt.Println("ok")
	}
}
