// Package topology says how server-side apply merges.
// +groupName=oracle.example.com
// +versionName=v1
package topology

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Topology says how server-side apply merges.
type Topology struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TopologySpec `json:"spec"`
}

// TopologySpec has each topology on a field, on a type and on both.
type TopologySpec struct {
	// AssociativeList is a list that is a map.
	// +listType=map
	// +listMapKey=name
	// +listMapKey=secondary
	AssociativeList []Associative `json:"associativeList"`
	// +k8s:listType=map
	// +k8s:listMapKey=name
	K8sAssociativeList []Associative `json:"k8sAssociativeList"`
	// +k8s:listType=set
	K8sSetList []string `json:"k8sSetList"`
	// +k8s:listType=atomic
	K8sAtomicList []string `json:"k8sAtomicList"`
	// +listType=set
	SetList []int64 `json:"setList"`
	// +listType=atomic
	AtomicList               []Associative      `json:"atomicList"`
	NestedassociativeList    AssociativeList    `json:"nestedassociativeList"`
	K8sNestedAssociativeList K8sAssociativeList `json:"k8sNestedAssociativeList"`
	// MapOfInfo is merged key by key.
	// +mapType=granular
	MapOfInfo map[string]string `json:"mapOfInfo"`
	// +mapType=atomic
	AtomicMap       map[string]string `json:"atomicMap"`
	NestedMapOfInfo NestedMapOfInfo   `json:"nestedMapOfInfo"`
	// StructWithSeveralFields is merged as a whole.
	// +structType=atomic
	StructWithSeveralFields NestedObject `json:"structWithSeveralFields"`
	// +structType=granular
	GranularStruct                NestedObject                  `json:"granularStruct"`
	NestedStructWithSeveralFields NestedStructWithSeveralFields `json:"nestedStructWithSeveralFields"`
	// NestedStructWithSeveralFieldsDoubleMarked is marked twice.
	// +structType=atomic
	NestedStructWithSeveralFieldsDoubleMarked NestedStructWithSeveralFields `json:"nestedStructWithSeveralFieldsDoubleMarked"`
}

// Associative is an item with a name.
type Associative struct {
	// Name is the first key.
	Name string `json:"name"`
	// Secondary is the second key.
	Secondary int32 `json:"secondary"`
	// Foo is content.
	Foo string `json:"foo,omitempty"`
}

// AssociativeList is a list that is a map by its type.
// +listType=map
// +listMapKey=name
type AssociativeList []Associative

// K8sAssociativeList is the same in the other dialect.
// +k8s:listType=map
// +k8s:listMapKey=name
type K8sAssociativeList []Associative

// NestedMapOfInfo is merged key by key, by its type.
// +mapType=granular
type NestedMapOfInfo map[string]string

// NestedObject is a struct.
type NestedObject struct {
	Foo string `json:"foo"`
	Bar bool   `json:"bar"`
}

// NestedStructWithSeveralFields is merged as a whole, by its type.
// +structType=atomic
type NestedStructWithSeveralFields struct {
	Foo string `json:"foo"`
	Bar bool   `json:"bar"`
}
