// Package collections has lists and maps.
// +groupName=oracle.example.com
// +versionName=v1
package collections

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Collection has lists and maps.
type Collection struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CollectionSpec `json:"spec"`
}

// CollectionSpec has lists and maps of every sort.
type CollectionSpec struct {
	// Words is a list of words.
	Words        []string  `json:"words"`
	MaybeWords   []string  `json:"maybeWords,omitempty"`
	PointerWords []*string `json:"pointerWords"`
	Counts       []int64   `json:"counts"`
	Narrow       []int16   `json:"narrow"`
	// Objects is a list of structs.
	Objects        []Entry    `json:"objects"`
	PointerObjects []*Entry   `json:"pointerObjects"`
	Nested         [][]string `json:"nested"`
	NestedObjects  [][]Entry  `json:"nestedObjects"`
	// Array has a length.
	Array          [3]int32          `json:"array"`
	ArrayOfObjects [2]Entry          `json:"arrayOfObjects"`
	Labels         map[string]string `json:"labels"`
	MaybeLabels    map[string]string `json:"maybeLabels,omitempty"`
	Flags          map[string]bool   `json:"flags"`
	// ByName has structs by name.
	ByName              map[string]Entry                        `json:"byName"`
	PointersByName      map[string]*Entry                       `json:"pointersByName"`
	ByteSliceData       map[string][]byte                       `json:"byteSliceData"`
	StringSliceData     map[string][]string                     `json:"stringSliceData"`
	PtrData             map[string]*string                      `json:"ptrData"`
	NestedMap           map[string]map[string]string            `json:"nestedMap"`
	NestedNestedMap     map[string]map[string]map[string]string `json:"nestedNestedMap"`
	MapOfLists          map[string][]Entry                      `json:"mapOfLists"`
	ListOfMaps          []map[string]int32                      `json:"listOfMaps"`
	MapOfArraysOfFloats map[string][]float64                    `json:"mapOfArraysOfFloats"`
	// ByKind has keys of a type of their own.
	ByKind            map[Kind]string `json:"byKind"`
	NestedMapInStruct NestedMap       `json:"nestedMapInStruct"`
	// Set refuses what is there already.
	// +kubebuilder:validation:UniqueItems=true
	Set       []string `json:"set"`
	NamedList Entries  `json:"namedList"`
	NamedMap  Table    `json:"namedMap"`
}

// Entry is what lists and maps hold.
type Entry struct {
	// Name of the entry.
	Name string `json:"name"`
	Size *int32 `json:"size,omitempty"`
}

// Kind is a word that is a key.
type Kind string

// NestedMap holds a map of maps.
type NestedMap struct {
	// InnerMap is a map of maps.
	InnerMap map[string]map[string]string `json:"innerMap,omitempty"`
}

// Entries is a list with a name.
type Entries []Entry

// Table is a map with a name.
type Table map[string]Entry
