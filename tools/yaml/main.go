// Command yaml converts YAML to JSON as kubectl does. It reads lines of JSON from a file, each with a
// text, and prints each with the JSON that sigs.k8s.io/yaml makes of the text, or whether it fails.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	"sigs.k8s.io/yaml"
)

type line struct {
	Text   string          `json:"text"`
	Value  json.RawMessage `json:"value,omitempty"`
	Failed bool            `json:"failed,omitempty"`
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
		each.Value, err = yaml.YAMLToJSON([]byte(each.Text))
		each.Failed = err != nil
		if err := encoder.Encode(each); err != nil {
			log.Fatal(err)
		}
	}
	if err := scanner.Err(); err != nil {
		log.Fatal(err)
	}
}
