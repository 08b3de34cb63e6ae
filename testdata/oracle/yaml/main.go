// Command yaml records how sigs.k8s.io/yaml, with which controller-gen and kubectl print YAML,
// writes awkward values.
//
//	go run . > ../../../crates/generator/tests/yaml/vectors.json
//
// The output is a JSON list of {"input": any JSON, "yaml": what Go prints}.
// `generator/tests/yaml.rs` compares rbuilder's printer with it.
package main

import (
	"encoding/json"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

type vector struct {
	Input any    `json:"input"`
	YAML  string `json:"yaml"`
}

// Words that YAML 1.1 does not parse as strings, and similar ones.
var words = strings.Fields(`y Y n N yes Yes YES yEs no No NO on On ON oN off Off OFF true True TRUE tRue false False FALSE
	null Null NULL nULL ~ .nan .NaN .NAN .Nan .inf .Inf .INF -.inf +.Inf nan inf t f T F o O null~ ~a yes. no! = <<a a<< <= >`)

// Text that looks like a number, or almost.
var numbers = strings.Fields(`0 1 -1 +1 00 01 007 08 09 0o7 0o8 0O7 0x0 0xfF 0xG 0X1f 0b0 0b102 0B1 -0b1 -0x1 +0x1 1_000 1__0 10_ _10 0_1
	0x_f 1.0 1. .5 -.5 +.5 1.5.2 1e3 1E3 1e+3 1e-3 1e 1e+ e3 .e3 1_0.5 685_230.15 6.8523015e+5 1:30 1:60 190:20:30 190:20:30.15
	-1:5 12:34:56 1:2:3:4 0:0 1:a 9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616
	0xffffffffffffffffff 123456789012345678901234567890 -9223372036854775809 1,000 1-1 1/2 50% 10Gi 100m 1k 0d 0.0.0.0
	1.2.3 v1 2x -a -- --- ---a ... ...a - ? : -0 +0 -0.0 +_1 -_1 -1_ 1_. ._1 .1_ . .. .a 1a 1.a 0_ 0x 0b 0o`)

// Text that looks like a timestamp, or almost.
var moments = []string{
	"2001-01-01", "2001-1-1", "2001-13-01", "2001-02-29", "2004-02-29", "2001-02-30", "2001-00-10", "2001-01-00",
	"2001-01-01T00:00:00Z", "2001-01-01t00:00:00z", "2001-01-01t00:00:00Z", "2001-01-01T00:00:00.5Z",
	"2001-01-01T00:00:00+02:00", "2001-01-01T00:00:00+2", "2001-01-01T00:00:00", "2001-01-01 00:00:00",
	"2001-01-01 00:00:00.123", "2001-01-01 00:00:00 Z", "2001-01-01T24:00:00Z", "2001-01-01T1:2:3Z",
	"2001-01-01T00:60:00Z", "2001-01-01T00:00:60Z", "200-01-01", "20010-01-01", "2001-01", "2001-", "2001-01-01-01",
	"2001-01-01T", "2001-001-01", "2001-1-001", "2001-01-01T00:00:00,5Z", "2001-01-01T00:00:00-23:59",
}

// Text with YAML's syntax characters at the start or end, or where they could be ambiguous.
var syntax = []string{
	"", " ", "  ", " a", "a ", "a  b", "#", "# a", "a#", "a #", "a # b", "a# b", ",", ",a", "[", "[]", "[a]", "]", "{", "{}", "{a}", "}",
	"&a", "&", "*", "*a", "a*", "!", "!a", "|", "|-", "||", ">", ">-", "'", "''", "'a'", "it's", "\"", "\"a\"", "a\"b", "%", "%a", "a%",
	"@", "@a", "`", "`a`", "? a", "?a", "a?", "a ? b", ": a", ":a", "a:", "a: b", "a :b", "a:b", "a::b", "a:: b", "- a", "-a", "a -", "a - b",
	"\\", "a\\b", "a\\nb", "$", "$(X)", "${x}", "a=b", "~/x", "/", "//", "a/b", "http://a.b/c?d=e&f#g", "(a)", "a;b", "a|b", "a>b", "a<b",
	"<", "<a>", "+", "++", "+a", "_", "_a", "^[a-z]+$", "^.*$", "[a-z]+", ".spec.x", "self.a <= self.b", "self == oldSelf",
	"!has(oldSelf.a) || has(self.a)", "(has(self.a)?1:0)+(has(self.b)?1:0) == 1", "a, b", "a,b", "a]", "a}", "a[0]", "a{b}", "a'b: c", "a\"b: c",
	"apiVersion", "x-kubernetes-validations", "$ref", "key with spaces", "cache.example.com/v1", "k8s.io/api", "metadata.name",
	"true story", "null and void", "1 apple", "yes: no", "- - -", "---\n", "a'", "'a", "a:\t", "''a: b''", "\"a\": b",
}

// Characters that must be escaped, and text of several lines.
var characters = []string{
	"\t", "\ta", "a\t", "a\tb", "a\tb: c", "\r", "a\rb", "\x00", "\x01", "\a\b\v\f\x1b", "\x7f", "\u0080", "\u00a0", "a\u00a0b", "\u00e9", "caf\u00e9", "\u00fc: x",
	"\u4e2d\u6587", "# \u4e2d", "\u200b", "\u2019", "\u2013", "\ud7ff", "\ue000", "\ufffd", "\U0001F389", "a \U0001F389 b", "\u03b1\u03b2: \u03b3",
	"\n", "\n\n", "a\n", "a\n\n", "\na", "\n\na", "a\nb", "a\nb\n", "a\n\nb", "a\n\n\nb\n\n", " a\nb", "a\n b", "a \nb", "a\nb ", "a\n \nb", "a\n  b\n    c\n",
	"a\tb\nc", "a\n\tb", "# a\nb", "- a\n- b", "a: b\nc: d", "a\n# b", "\"a\"\n'b'", "a\r\nb", "a\u00e9\nb", "\U0001F389\nb", "|\n>", "---\na", "a\n---", "...\n",
	"  a\n  b", "a\n\n  b\n", "1\n2", "y\nn", "\n a", " \na", "~\n", "a\\\nb",
}

func longs() []string {
	word := func(n int) string { return strings.Repeat("x", n) }
	sentence := "The quick brown fox jumps over the lazy dog and then it does so again because it is a long text that needs folding, twice at least, to be of any use here."
	texts := []string{
		sentence, sentence + " " + sentence, "'" + sentence, sentence + ": yes", "# " + sentence, sentence + "\t", "\t" + sentence,
		strings.ReplaceAll(sentence, " ", "  "), "\u00e9 " + strings.ReplaceAll(sentence, "o", "\u00f6"), sentence + " \U0001F389 " + sentence,
		sentence + "\n" + sentence, strings.ReplaceAll("it's "+sentence+": it's", "fox", "fox's"), strings.ReplaceAll(sentence, " ", "  ") + ": x",
		strings.ReplaceAll(sentence, " ", "  ") + "\t", strings.ReplaceAll(sentence, " ", "   ") + "\t", word(200), word(200) + " a", word(90) + "  a b",
		"a " + word(100) + " b", word(90) + " " + word(90) + " " + word(90), word(90) + ": " + word(20) + " c",
		"^" + strings.Repeat("(a|b) ", 30) + "$", strings.Repeat("- ", 60) + "a", strings.Repeat("a: ", 60) + "a", strings.Repeat("\" ", 60) + "\t",
		"!has(oldSelf.aaaaaaaaaaaaaaaaaaaaaaaaa) || has(self.aaaaaaaaaaaaaaaaaaaaaaaaa) || self.size == oldSelf.size && self.x <= self.y",
	}
	for n := 70; n <= 86; n++ {
		texts = append(texts, word(n)+" b c", word(n)+": b c", word(n)+"\t b c")
	}
	return texts
}

var documents = []string{
	`{}`, `[]`, `{"a":{}}`, `{"a":[]}`, `{"a":[[]]}`, `{"a":[{}]}`, `{"a":[[1,2],[3]]}`, `{"a":[[[1]]]}`, `{"a":{"b":{"c":[{"d":1,"e":[1,2]},{"f":{"g":[]}}]}}}`,
	`[{"a":1,"b":2},{"c":[{"d":1}]}]`, `[[{"a":[1]}]]`, `{"a":null,"b":true,"c":false}`, `{"a":1,"b":-1,"c":0,"d":18446744073709551615,"e":-9223372036854775808}`,
	`{"a":1.0,"b":1.5,"c":-0.5,"d":0.1,"e":1e3,"f":1e21,"g":1e-7,"h":123456.789,"i":0.00001,"k":1e20,"l":1.7976931348623157e308,"m":5e-324,"n":1234567.5}`,
	`{"v2":1,"v1":1,"v1beta1":1,"v1alpha1":1,"v1beta10":1,"v1beta2":1}`, `{"b":1,"a":1,"B":1,"A":1,"_":1,"-":1,"1":1,"10":1,"2":1,"a1":1,"a10":1,"a2":1,"a_b":1,"a-b":1,"ab":1,"aB":1,"a.b":1}`,
	`{"x-kubernetes-map-type":1,"xKube":1,"x":1,"x1":1,"x01":1,"x001":1,"x10":1,"x0":1,"a0b":1,"a00b":1,"a1b":1}`,
	`{"é":1,"e":1,"f":1,"ü":1,"z":1,"中":1,"1中":1}`, `{"a":"","b":" "}`, `{"":1}`,
}

func keys() []string {
	return []string{strings.Repeat("k", 127), strings.Repeat("k", 128), strings.Repeat("k", 129), strings.Repeat("k ", 70), strings.Repeat("k: ", 60), strings.Repeat("k ", 50)}
}

func main() {
	var vectors []vector
	record := func(input any) {
		text, err := yaml.Marshal(input)
		if err != nil {
			// Marshal parses the JSON as YAML, which rejects some raw control characters.
			return
		}
		vectors = append(vectors, vector{input, string(text)})
	}
	strings := append(append(append(append(append([]string{}, words...), numbers...), moments...), syntax...), characters...)
	for _, s := range append(strings, longs()...) {
		record(map[string]any{"key": s, "list": []any{s}, "deep": map[string]any{"er": []any{map[string]any{"x": s}}}})
	}
	for _, s := range append(strings, keys()...) {
		record(map[string]any{s: 1})
	}
	for _, k := range keys() {
		record(map[string]any{k: map[string]any{"a": 1, "b": []any{1}}})
		record(map[string]any{k: []any{1, 2}})
	}
	for _, text := range documents {
		record(json.RawMessage(text))
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	os.Stdout.WriteString("[\n")
	for i, v := range vectors {
		if i > 0 {
			os.Stdout.WriteString(",")
		}
		if err := out.Encode(v); err != nil {
			panic(err)
		}
	}
	os.Stdout.WriteString("]\n")
}
