// Prints verdicts of Go's regexp, for `cargo xtask patterns`.
//
// `main.go tables` prints the Unicode categories and scripts that regexp supports, one JSON object per line.
// `main.go judge <file>` reads questions, one JSON object per line, and prints an answer to each: whether the pattern
// compiles, and which of the strings it matches.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"regexp/syntax"
	"sort"
	"strings"
	"unicode"
)

type question struct {
	Pattern string   `json:"pattern"`
	Texts   []string `json:"texts"`
}

type answer struct {
	// The error code; empty if the pattern compiles.
	Error string `json:"error,omitempty"`
	// Whether the pattern matches, for each string.
	Matches []bool `json:"matches"`
}

type table struct {
	// The normalized name: in lower case, without ignored characters.
	Name string `json:"name"`
	// The number of bounds of its ranges.
	Bounds int `json:"bounds"`
	// A bit set of its ASCII characters, in hexadecimal.
	ASCII string `json:"ascii"`
	// Whether it contains more letters if case is ignored.
	Folds bool `json:"folds"`
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if os.Args[1] == "tables" {
		for _, table := range tables() {
			check(encoder.Encode(table))
		}
		return
	}
	file, err := os.Open(os.Args[2])
	check(err)
	in := bufio.NewScanner(file)
	in.Buffer(nil, 1<<26)
	for in.Scan() {
		var asked question
		check(json.Unmarshal(in.Bytes(), &asked))
		check(encoder.Encode(judge(asked)))
	}
	check(in.Err())
}

func judge(asked question) answer {
	given := answer{Matches: []bool{}}
	pattern, err := regexp.Compile(asked.Pattern)
	if err != nil {
		given.Error = err.(*syntax.Error).Code.String()
		return given
	}
	for _, text := range asked.Texts {
		given.Matches = append(given.Matches, pattern.MatchString(text))
	}
	return given
}

func tables() []table {
	names := map[string]bool{"Any": true, "Assigned": true, "ASCII": true}
	for name := range unicode.Categories {
		names[name] = true
	}
	for name := range unicode.Scripts {
		names[name] = true
	}
	for name := range unicode.CategoryAliases {
		names[name] = true
	}
	found := map[string]table{}
	for name := range names {
		// Only regexp knows which names in the maps it accepts.
		parsed, err := syntax.Parse(`\p{`+name+`}`, syntax.Perl)
		if err != nil {
			continue
		}
		key := strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
		found[key] = describe(key, name, len(parsed.Rune))
	}
	var all []table
	for _, table := range found {
		all = append(all, table)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

func describe(key, name string, bounds int) table {
	exact := regexp.MustCompile(`^\p{` + name + `}$`)
	folded := regexp.MustCompile(`^(?i:\p{` + name + `})$`)
	has := func(pattern *regexp.Regexp, letter byte) bool { return pattern.MatchString(string(rune(letter))) }
	var high, low uint64
	folds := false
	for letter := byte(0); letter < 128; letter++ {
		if has(exact, letter) {
			if letter < 64 {
				low |= 1 << letter
			} else {
				high |= 1 << (letter - 64)
			}
		}
		folds = folds || has(exact, letter) != has(folded, letter)
	}
	for letter := byte(0); letter < 128; letter++ {
		other := letter
		if 'a' <= letter && letter <= 'z' || 'A' <= letter && letter <= 'Z' {
			other ^= 0x20
		}
		expected := has(exact, letter) || folds && has(exact, other)
		if has(folded, letter) != expected {
			check(fmt.Errorf("%s without case is more than its letters in both cases", name))
		}
	}
	return table{key, max(bounds, 2), fmt.Sprintf("%016x%016x", high, low), folds}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
