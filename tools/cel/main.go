// Command cel checks CEL rules as kube-apiserver does. It reads a file of schemas and a file of
// rules, and prints each rule with its verdict: an error, or the estimated cost of one evaluation
// and the maximum number of evaluations.
//
// It runs the code that validates a CustomResourceDefinition on creation: the validation and CEL
// packages of apiextensions-apiserver, with the environment of a server without emulated version.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"regexp"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// row is a rule with its verdict.
type row struct {
	// Schema is the name of the schema that contains the rule.
	Schema string `json:"schema"`
	// Path is the path of the value with the rule: `.name` is a property, `[]` the items of a list,
	// and `.*` the values of a map.
	Path string `json:"path"`
	Rule string `json:"rule"`
	// Error is the first error, without the excerpt of the rule.
	Error string `json:"error,omitempty"`
	// Cost is the estimated cost of one evaluation.
	Cost *uint64 `json:"cost,omitempty"`
	// Times is the maximum number of evaluations for one object.
	Times *uint64 `json:"times,omitempty"`
}

var environments = environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: cel <schemas.json> <recorded.jsonl>")
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var schemas map[string]json.RawMessage
	if err := json.Unmarshal(text, &schemas); err != nil {
		log.Fatalf("%s: %v", os.Args[1], err)
	}
	file, err := os.Open(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		var each row
		if err := json.Unmarshal(scanner.Bytes(), &each); err != nil {
			log.Fatalf("%s: %v", scanner.Text(), err)
		}
		schema, known := schemas[each.Schema]
		if !known {
			log.Fatalf("there is no schema %q", each.Schema)
		}
		if err := judge(&each, schema); err != nil {
			log.Fatalf("%s: %v", scanner.Text(), err)
		}
		if err := encoder.Encode(each); err != nil {
			log.Fatal(err)
		}
	}
	if err := scanner.Err(); err != nil {
		log.Fatal(err)
	}
}

// judge compiles the rule of a row and sets its verdict.
func judge(row *row, text []byte) error {
	row.Error, row.Cost, row.Times = "", nil, nil
	root, err := readSchema(text)
	if err != nil {
		return err
	}
	context, err := contextOf(root, row.Path, row.Rule)
	if err != nil {
		return err
	}
	info, err := context.TypeInfo()
	if err != nil {
		return err
	}
	results, err := cel.Compile(
		info.Schema, info.DeclType, celconfig.PerCallLimit, environments, cel.NewExpressionsEnvLoader())
	if err != nil {
		return err
	}
	result := results[0]
	if result.Error != nil {
		row.Error = firstError(result.Error.Detail)
		return nil
	}
	row.Cost, row.Times = &result.MaxCost, context.MaxCardinality
	if row.Times == nil {
		// The schema does not limit how often the value occurs, so the size of a request does.
		row.Times = &result.MaxCardinality
	}
	return nil
}

func readSchema(text []byte) (*apiextensions.JSONSchemaProps, error) {
	var written apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(text, &written); err != nil {
		return nil, err
	}
	schema := new(apiextensions.JSONSchemaProps)
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&written, schema, nil)
	return schema, err
}

// contextOf adds a rule to the value at a path, and returns the context in which the validation of
// a CRD compiles the rule. The rule must be added first, because the constructor of a context
// checks whether the value has rules.
func contextOf(schema *apiextensions.JSONSchemaProps, path, rule string) (*validation.CELSchemaContext, error) {
	rules := apiextensions.ValidationRules{{Rule: rule}}
	if path == "" {
		schema.XValidations = rules
	}
	context := validation.RootCELContext(schema)
	for path != "" {
		step, rest, err := firstStep(path)
		if err != nil {
			return nil, err
		}
		child := childOf(schema, step)
		if child == nil {
			return nil, fmt.Errorf("nothing is at %q", path)
		}
		if rest == "" {
			child.XValidations = rules
		}
		switch step {
		case "[]":
			context = context.ChildItemsContext(child)
		case ".*":
			context = context.ChildAdditionalPropertiesContext(child)
		default:
			context = context.ChildPropertyContext(child, step[1:])
		}
		schema, path = child, rest
	}
	return context, nil
}

// firstStep splits a path after its first step.
func firstStep(path string) (string, string, error) {
	if rest, found := strings.CutPrefix(path, "[]"); found {
		return "[]", rest, nil
	}
	if !strings.HasPrefix(path, ".") {
		return "", "", fmt.Errorf("a step is `.name`, `.*` or `[]`, found %q", path)
	}
	if end := strings.IndexAny(path[1:], ".["); end >= 0 {
		return path[:1+end], path[1+end:], nil
	}
	return path, "", nil
}

// childOf returns the schema one step down, or nil if there is none.
func childOf(schema *apiextensions.JSONSchemaProps, step string) *apiextensions.JSONSchemaProps {
	switch {
	case step == "[]" && schema.Items != nil:
		return schema.Items.Schema
	case step == ".*" && schema.AdditionalProperties != nil:
		return schema.AdditionalProperties.Schema
	}
	if property, found := schema.Properties[step[1:]]; found {
		return &property
	}
	return nil
}

// Each compilation generates a new name for the type of `self`.
var selfType = regexp.MustCompile(`selfType[0-9]+`)

// firstError returns the first line of an error, with `line:column:` if the compiler reports it.
func firstError(detail string) string {
	detail = strings.TrimPrefix(detail, "compilation failed: ")
	line, _, _ := strings.Cut(detail, "\n")
	return selfType.ReplaceAllString(strings.TrimPrefix(line, "ERROR: <input>:"), "self")
}
