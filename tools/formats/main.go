// Command formats validates strings against formats as the API server does. It reads lines of JSON
// from a file and prints each with the verdict of k8s.io/kube-openapi.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

type line struct {
	Format   string `json:"format"`
	Text     string `json:"text"`
	Accepted bool   `json:"accepted"`
}

func main() {
	log.SetFlags(0)
	file, err := os.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		var each line
		if err := json.Unmarshal(scanner.Bytes(), &each); err != nil {
			log.Fatalf("%s: %v", scanner.Text(), err)
		}
		if !strfmt.Default.ContainsName(each.Format) {
			log.Fatalf("there is no format %q", each.Format)
		}
		each.Accepted = strfmt.Default.Validates(each.Format, each.Text)
		if err := encoder.Encode(each); err != nil {
			log.Fatal(err)
		}
	}
	if err := scanner.Err(); err != nil {
		log.Fatal(err)
	}
}
