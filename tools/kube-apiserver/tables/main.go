// Command tables prints objects as tables, like kube-apiserver does for `kubectl get`.
//
//   - `tables columns` prints the columns of all built-in kinds, a kind a line.
//   - `tables record FILE` reads lines of JSON, and prints them with the rows of their tables. A line
//     has an `object` or a `list` of objects and, for custom resources, the `columns` of their
//     definition. Built-in objects are printed as the server returns them, i.e. with defaults.
//
// The clock stands at 2000-01-01T00:00:00Z, so that ages are the same in each run.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"reflect"
	"sort"
	"strings"
	"testing"
	"testing/synctest"

	apiextensionsinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	definitions "k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	apiregistrationinstall "k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	apiservices "k8s.io/kube-aggregator/pkg/registry/apiservice/etcd"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apiserverinternal/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/lifecycle/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"
	printerstorage "k8s.io/kubernetes/pkg/printers/storage"
)

// converters are those of kinds that other servers serve, and of kinds without columns of their own.
var converters = map[schema.GroupKind]rest.TableConvertor{
	{}: rest.NewDefaultTableConvertor(schema.GroupResource{}),
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: definitions.New(),
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             &apiservices.REST{},
	{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}:             rest.NewDefaultTableConvertor(schema.GroupResource{}),
}

func main() {
	log.SetFlags(0)
	apiextensionsinstall.Install(legacyscheme.Scheme)
	apiregistrationinstall.Install(legacyscheme.Scheme)
	task := func() { log.Fatal("usage: tables columns|record FILE") }
	switch {
	case len(os.Args) == 2 && os.Args[1] == "columns":
		task = printColumns
	case len(os.Args) == 3 && os.Args[1] == "record":
		path := os.Args[2]
		task = func() { record(path) }
	}
	// Only tests have a clock that stands still.
	os.Args = os.Args[:1]
	all := func(string, string) (bool, error) { return true, nil }
	inTest := func(t *testing.T) {
		synctest.Test(t, func(*testing.T) {
			task()
			os.Exit(0)
		})
	}
	testing.Main(all, []testing.InternalTest{{Name: "tables", F: inTest}}, nil, nil)
}

// handlers collects the columns of kinds.
type handlers map[schema.GroupKind][]metav1.TableColumnDefinition

// TableHandler implements printers.PrintHandler.
func (all handlers) TableHandler(columns []metav1.TableColumnDefinition, printFunc interface{}) error {
	printed := reflect.New(reflect.TypeOf(printFunc).In(0).Elem()).Interface().(runtime.Object)
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(printed)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		// No server has the group `extensions` any longer.
		if !strings.HasSuffix(kind.Kind, "List") && kind.Group != "extensions" {
			all[kind.GroupKind()] = columns
		}
	}
	return nil
}

func printColumns() {
	all := handlers{}
	internalversion.AddHandlers(all)
	for kind, converter := range converters {
		table, err := converter.ConvertToTable(context.Background(), &metav1.PartialObjectMetadataList{}, nil)
		if err != nil {
			log.Fatal(err)
		}
		all[kind] = table.ColumnDefinitions
	}
	var kinds []schema.GroupKind
	for each := range all {
		kinds = append(kinds, each)
	}
	sort.Slice(kinds, func(i, j int) bool { return kinds[i].String() < kinds[j].String() })
	fmt.Println("# Made by `cargo xtask tables` from the printers of kube-apiserver. Do not edit.")
	fmt.Println("# Below a kind with its group are its columns: name, type, format, priority, description.")
	shared := map[string]string{}
	for _, name := range []string{"name", "creationTimestamp"} {
		text := metav1.ObjectMeta{}.SwaggerDoc()[name]
		shared[text] = "@" + name
		fmt.Printf("@%s\t%q\n", name, text)
	}
	for _, each := range kinds {
		fmt.Printf("=%s\n", each)
		for _, column := range all[each] {
			text, isShared := shared[column.Description]
			if !isShared {
				text = fmt.Sprintf("%q", column.Description)
			}
			fmt.Printf("%s\t%s\t%s\t%d\t%s\n", column.Name, column.Type, column.Format, column.Priority, text)
		}
	}
}

// line is a case, and what was recorded for it.
type line struct {
	Columns []apiextensions.CustomResourceColumnDefinition `json:"columns,omitempty"`
	Object  json.RawMessage                                `json:"object,omitempty"`
	List    []json.RawMessage                              `json:"list,omitempty"`
	Rows    []row                                          `json:"rows"`
	// Headers are the columns of custom resources.
	Headers []metav1.TableColumnDefinition `json:"headers,omitempty"`
}

type row struct {
	Cells      []any                      `json:"cells"`
	Conditions []metav1.TableRowCondition `json:"conditions,omitempty"`
}

func record(path string) {
	file, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var each line
		err := json.Unmarshal(scanner.Bytes(), &each)
		if err == nil {
			err = each.record()
		}
		if err != nil {
			log.Fatalf("%s: %v", scanner.Text(), err)
		}
		printLine(each)
	}
	if err := scanner.Err(); err != nil {
		log.Fatal(err)
	}
}

func printLine(value any) {
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		log.Fatal(err)
	}
}

// record replaces the answers of a line.
func (each *line) record() error {
	var table *metav1.Table
	var err error
	if each.Columns != nil {
		table, err = each.printCustom()
		each.Headers = table.ColumnDefinitions
	} else {
		table, err = each.printBuiltIn()
	}
	if err != nil {
		return err
	}
	each.Rows = nil
	for _, printed := range table.Rows {
		each.Rows = append(each.Rows, row{printed.Cells, printed.Conditions})
	}
	return nil
}

func (each *line) printCustom() (*metav1.Table, error) {
	// A column that cannot be parsed, and those after it, are missing.
	converter, _ := tableconvertor.New(each.Columns)
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(each.Object); err != nil {
		return &metav1.Table{}, err
	}
	return converter.ConvertToTable(context.Background(), &object, nil)
}

func (each *line) printBuiltIn() (*metav1.Table, error) {
	if each.Object != nil {
		object, group, err := each.read(&each.Object)
		if err != nil {
			return nil, err
		}
		return printTable(group, object)
	}
	var list runtime.Object
	var items reflect.Value
	var group schema.GroupKind
	for i := range each.List {
		object, kind, err := each.read(&each.List[i])
		if err != nil {
			return nil, err
		}
		if list == nil {
			list, err = legacyscheme.Scheme.New(schema.GroupVersionKind{Group: kind.Group, Version: runtime.APIVersionInternal, Kind: kind.Kind + "List"})
			if err != nil {
				return nil, err
			}
			group, items = kind, reflect.ValueOf(list).Elem().FieldByName("Items")
		}
		items.Set(reflect.Append(items, reflect.ValueOf(object).Elem()))
	}
	return printTable(group, list)
}

// read decodes an object, and replaces its text by that which the server returns.
func (each *line) read(text *json.RawMessage) (runtime.Object, schema.GroupKind, error) {
	object, kind, err := legacyscheme.Codecs.UniversalDecoder(legacyscheme.Scheme.PrioritizedVersionsAllGroups()...).Decode(*text, nil, nil)
	if err != nil {
		return nil, schema.GroupKind{}, err
	}
	internal, err := legacyscheme.Scheme.ConvertToVersion(object, schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		return nil, schema.GroupKind{}, err
	}
	returned, err := runtime.Encode(legacyscheme.Codecs.LegacyCodec(kind.GroupVersion()), internal)
	*text = []byte(strings.TrimSpace(string(returned)))
	return internal, kind.GroupKind(), err
}

func printTable(kind schema.GroupKind, object runtime.Object) (*metav1.Table, error) {
	all := handlers{}
	internalversion.AddHandlers(all)
	converter, isSpecial := converters[kind]
	if _, known := all[kind]; known && !isSpecial {
		converter = printerstorage.TableConvertor{TableGenerator: printers.NewTableGenerator().With(internalversion.AddHandlers)}
	} else if !isSpecial {
		converter = converters[schema.GroupKind{}]
	}
	table, err := converter.ConvertToTable(context.Background(), object, &metav1.TableOptions{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return table, nil
}
