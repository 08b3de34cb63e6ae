// Command protobuf prints what rbuilder needs to read and write objects of built-in kinds in
// protobuf. The second argument is the folder api/discovery of the source of kube-apiserver, which
// lists the versions that it serves.
//
//   - `protobuf table FOLDER` prints the fields of all messages, from the struct tags of their Go
//     types (see table.go).
//   - `protobuf record FOLDER` prints objects of all kinds, in protobuf and in JSON (see record.go).
package main

import (
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// kind is a built-in kind that has a form in protobuf.
type kind struct {
	schema.GroupVersionKind
	goType reflect.Type
}

type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// anyVersion is the version of kinds that are registered in each version.
var anyVersion = schema.GroupVersion{Version: "*"}

var optionKinds = map[string]bool{
	"CreateOptions": true, "DeleteOptions": true, "GetOptions": true, "ListOptions": true,
	"PatchOptions": true, "UpdateOptions": true,
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: protobuf table|record FOLDER")
	}
	kinds := servedKinds(os.Args[2])
	switch os.Args[1] {
	case "table":
		printTable(kinds)
	case "record":
		record(kinds)
	default:
		log.Fatalf("expected `table` or `record`, found %q", os.Args[1])
	}
}

// servedKinds returns the kinds of all versions that kube-apiserver can serve, in order.
func servedKinds(folder string) []kind {
	all := scheme.Scheme
	for _, add := range []func(*runtime.Scheme) error{apiextensions.AddToScheme, apiregistration.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(all); err != nil {
			log.Fatal(err)
		}
	}
	served := servedVersions(folder)
	var kinds []kind
	for gvk, goType := range all.AllKnownTypes() {
		_, isMessage := reflect.New(goType).Interface().(message)
		// Events of watches are no objects.
		if !served[gvk.GroupVersion()] || !isMessage || gvk.Kind == metav1.WatchEventKind {
			continue
		}
		if optionKinds[gvk.Kind] {
			if gvk.GroupVersion() != (schema.GroupVersion{Version: "v1"}) {
				continue
			}
			gvk = anyVersion.WithKind(gvk.Kind)
		}
		kinds = append(kinds, kind{gvk, goType})
	}
	sort.Slice(kinds, func(i, j int) bool {
		return kinds[i].GroupVersionKind.String() < kinds[j].GroupVersionKind.String()
	})
	return kinds
}

func servedVersions(folder string) map[schema.GroupVersion]bool {
	served := map[schema.GroupVersion]bool{metav1.SchemeGroupVersion: true}
	documents, err := filepath.Glob(filepath.Join(folder, "api*__v*.json"))
	if err != nil || len(documents) == 0 {
		log.Fatalf("expected the documents of discovery in %s (%v)", folder, err)
	}
	for _, path := range documents {
		text, err := os.ReadFile(path)
		if err != nil {
			log.Fatal(err)
		}
		var list metav1.APIResourceList
		if err := json.Unmarshal(text, &list); err != nil {
			log.Fatalf("%s: %v", path, err)
		}
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			log.Fatalf("%s: %v", path, err)
		}
		served[version] = true
	}
	return served
}

// fieldsOf returns the fields of a struct that have a number.
func fieldsOf(goType reflect.Type) []field {
	var fields []field
	for i := range goType.NumField() {
		if each, ok := fieldOf(goType.Field(i)); ok {
			fields = append(fields, each)
		}
	}
	sort.Slice(fields, func(i, j int) bool { return fields[i].number < fields[j].number })
	return fields
}

// packageName shortens the path of a package, e.g. to `apps/v1`.
func packageName(path string) string {
	for _, prefix := range []string{"k8s.io/api/", "k8s.io/apiextensions-apiserver/pkg/apis/", "k8s.io/apimachinery/pkg/apis/", "k8s.io/apimachinery/pkg/", "k8s.io/kube-aggregator/pkg/apis/"} {
		if short, ok := strings.CutPrefix(path, prefix); ok {
			return short
		}
	}
	log.Fatalf("expected a package of Kubernetes' API, found %s", path)
	return ""
}
