package main

import (
	"encoding/json"
	"fmt"
	"log"
	"reflect"
	"sort"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// specials are the types whose JSON is not an object with their fields.
var specials = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():                          "Quantity",
	reflect.TypeFor[metav1.Time]():                                "Time",
	reflect.TypeFor[metav1.MicroTime]():                           "MicroTime",
	reflect.TypeFor[intstr.IntOrString]():                         "IntOrString",
	reflect.TypeFor[runtime.RawExtension]():                       "JSON",
	reflect.TypeFor[metav1.FieldsV1]():                            "JSON",
	reflect.TypeFor[apiextensions.JSON]():                         "JSON",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       "SchemaOrArray",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        "SchemaOrBool",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): "SchemaOrStrings",
}

var (
	marshaler = reflect.TypeFor[json.Marshaler]()
	typeMeta  = reflect.TypeFor[metav1.TypeMeta]()
)

// specialMessages are the messages of the special types and of lists that are messages. `raw` is JSON
// as bytes.
const specialMessages = `package special
message IntOrString
1 type int64
2 intVal int32
3 strVal string
message JSON
1 raw raw
message MicroTime
1 seconds int64
2 nanos int32
message Quantity
1 string *string
message SchemaOrArray
1 schema *apiextensions/v1.JSONSchemaProps
2 schemas? []apiextensions/v1.JSONSchemaProps
message SchemaOrBool
1 allows bool
2 schema? *apiextensions/v1.JSONSchemaProps
message SchemaOrStrings
1 schema? *apiextensions/v1.JSONSchemaProps
2 property? []string
message Strings
1 items? []string
message Time
1 seconds int64
2 nanos int32
`

type field struct {
	number int
	name   string
	index  []int
	// flags are `?` for omitempty, `~` for omitzero and `<` for a struct whose fields become those of
	// its parent in JSON.
	flags  string
	goType reflect.Type
}

// fieldOf reads the tags of a field. It returns false if the field has no number.
func fieldOf(from reflect.StructField) (field, bool) {
	tag, hasNumber := from.Tag.Lookup("protobuf")
	name, options, _ := strings.Cut(from.Tag.Get("json"), ",")
	if !hasNumber || tag == "-" {
		if name != "-" && from.Type != typeMeta && !strings.HasPrefix(from.Name, "XXX_") {
			log.Fatalf("expected a number for the field %s, which has JSON", from.Name)
		}
		return field{}, false
	}
	number, err := strconv.Atoi(strings.Split(tag, ",")[1])
	if err != nil {
		log.Fatalf("%s: %v", tag, err)
	}
	flags := ""
	for _, option := range strings.Split(options, ",") {
		switch option {
		case "omitempty":
			// Go never omits structs.
			if from.Type.Kind() != reflect.Struct {
				flags += "?"
			}
		case "omitzero":
			flags += "~"
		case "inline", "":
		default:
			log.Fatalf("unknown option %q of the field %s", option, from.Name)
		}
	}
	if name == "" && from.Anonymous {
		flags, name = "<", from.Name
	}
	if name == "" {
		log.Fatalf("expected a name in JSON for the field %s", from.Name)
	}
	return field{number: number, name: name, index: from.Index, flags: flags, goType: from.Type}, true
}

// table collects the messages that kinds refer to.
type table struct {
	messages map[string]map[string]string
}

func printTable(kinds []kind) {
	all := table{messages: map[string]map[string]string{}}
	byVersion := map[string][]string{}
	for _, each := range kinds {
		message := all.add(each.goType)
		local := strings.TrimPrefix(message, packageOf(kinds, each)+".")
		if local != each.Kind {
			local = each.Kind + "=" + message
		}
		header := each.GroupVersion().String() + " " + packageOf(kinds, each)
		byVersion[header] = append(byVersion[header], local)
	}
	fmt.Println("# Made by `cargo xtask protobuf` from the struct tags of Kubernetes' Go types. Do not edit.")
	fmt.Println("# `kinds`: a version, the package of its types, and its kinds. `*` is each version.")
	fmt.Println("# Below a package and a message are its fields: number, name in JSON, type.")
	fmt.Println("# `?` is omitempty, `~` is omitzero, `<` puts the fields into the parent.")
	for _, header := range sortedKeys(byVersion) {
		fmt.Println("kinds", header, strings.Join(byVersion[header], " "))
	}
	for _, name := range sortedKeys(all.messages) {
		fmt.Println("package", name)
		for _, message := range sortedKeys(all.messages[name]) {
			fmt.Print("message ", message, "\n", all.messages[name][message])
		}
	}
	fmt.Print(specialMessages)
}

// packageOf returns the package with most kinds of a version.
func packageOf(kinds []kind, of kind) string {
	counts, most := map[string]int{}, ""
	for _, each := range kinds {
		if each.GroupVersion() == of.GroupVersion() {
			name := packageName(each.goType.PkgPath())
			counts[name]++
			if counts[name] > counts[most] {
				most = name
			}
		}
	}
	return most
}

func sortedKeys[T any](of map[string]T) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// add collects a struct and all that it refers to, and returns its name.
func (all *table) add(goType reflect.Type) string {
	inside := packageName(goType.PkgPath())
	name := inside + "." + goType.Name()
	if all.messages[inside] == nil {
		all.messages[inside] = map[string]string{}
	}
	if _, known := all.messages[inside][goType.Name()]; known {
		return name
	}
	all.messages[inside][goType.Name()] = ""
	if reflect.PointerTo(goType).Implements(marshaler) {
		log.Fatalf("%s has JSON of its own; add it to the special types", name)
	}
	var lines strings.Builder
	for _, each := range fieldsOf(goType) {
		fmt.Fprintf(&lines, "%d %s%s %s\n", each.number, each.name, each.flags, all.typeName(inside, each.goType))
	}
	all.messages[inside][goType.Name()] = lines.String()
	return name
}

// typeName returns the name of a type as a field of a package has it.
func (all *table) typeName(inside string, goType reflect.Type) string {
	if special, ok := specials[goType]; ok {
		return special
	}
	isWrapped := reflect.PointerTo(goType).Implements(reflect.TypeFor[interface{ Unmarshal([]byte) error }]())
	switch goType.Kind() {
	case reflect.Bool:
		return "bool"
	case reflect.Int32:
		return "int32"
	case reflect.Int64:
		return "int64"
	case reflect.Float64:
		return "double"
	case reflect.String:
		return "string"
	case reflect.Pointer:
		return "*" + all.typeName(inside, goType.Elem())
	case reflect.Slice:
		if goType.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		// Lists that are types, e.g. `Verbs`, are messages with the field `items`.
		if isWrapped {
			if goType.Elem().Kind() != reflect.String {
				log.Fatalf("expected %s to be a list of strings", goType)
			}
			return "Strings"
		}
		return "[]" + all.typeName(inside, goType.Elem())
	case reflect.Map:
		if goType.Key().Kind() != reflect.String {
			log.Fatalf("expected %s to have strings as keys", goType)
		}
		return "{}" + all.typeName(inside, goType.Elem())
	case reflect.Struct:
		if name, ok := strings.CutPrefix(all.add(goType), inside+"."); ok {
			return "." + name
		} else {
			return name
		}
	}
	log.Fatalf("%s has no form in the table", goType)
	return ""
}
