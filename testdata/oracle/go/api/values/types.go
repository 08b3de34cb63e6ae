// Package values has defaults, examples, titles and links.
// +groupName=oracle.example.com
// +versionName=v1
package values

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Value has defaults, examples, titles and links.
type Value struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ValueSpec `json:"spec"`
}

// ValueSpec has defaults, examples, titles and links.
// +kubebuilder:externalDocs:url="https://example.com/values",description="All about values"
// +kubebuilder:title="A value"
type ValueSpec struct {
	// DefaultedString has a default, an example and a title.
	// +kubebuilder:default=forty-two
	// +kubebuilder:example=forty-three
	// +kubebuilder:title=DefaultedString
	DefaultedString string `json:"defaultedString"`
	// +kubebuilder:default=`quoted "text"`
	QuotedDefault string `json:"quotedDefault"`
	// +kubebuilder:default=""
	EmptyDefault string `json:"emptyDefault"`
	// +kubebuilder:default="1"
	NumberLikeDefault string `json:"numberLikeDefault"`
	// +kubebuilder:default=42
	DefaultedNumber int32 `json:"defaultedNumber"`
	// +kubebuilder:default=-1
	// +kubebuilder:example=-2
	NegativeNumber int64 `json:"negativeNumber"`
	// +kubebuilder:default=0.5
	DefaultedFloat float64 `json:"defaultedFloat"`
	// +kubebuilder:default=true
	DefaultedTrue bool `json:"defaultedTrue"`
	// +kubebuilder:default=false
	DefaultedFalse *bool `json:"defaultedFalse,omitempty"`
	// DefaultedSlice has a list.
	// +kubebuilder:default={a,b}
	// +kubebuilder:example={a,b,c}
	DefaultedSlice []string `json:"defaultedSlice"`
	// DefaultedObject has a list of structs.
	// +kubebuilder:default={{nested: {foo: "baz", bar: true}},{nested: {foo: "qux", bar: false}}}
	// +kubebuilder:example={{nested: {foo: "a", bar: true}}}
	DefaultedObject []RootObject `json:"defaultedObject"`
	// +kubebuilder:default={}
	DefaultedEmptySlice []string `json:"defaultedEmptySlice"`
	// +kubebuilder:default={}
	DefaultedEmptyMap map[string]string `json:"defaultedEmptyMap"`
	// +kubebuilder:default={}
	DefaultedEmptyObject EmptiableObject `json:"defaultedEmptyObject"`
	// +kubebuilder:default={"a b": 1, c: 2}
	DefaultedMap map[string]int32 `json:"defaultedMap"`
	// +default="forty-two"
	KubernetesDefaultedString string `json:"kubernetesDefaultedString"`
	// +default=["a","b"]
	KubernetesDefaultedSlice []string `json:"kubernetesDefaultedSlice"`
	// +default=[{"nested": {"foo": "baz", "bar": true}}]
	KubernetesDefaultedObject []RootObject `json:"kubernetesDefaultedObject"`
	// +default=[]
	KubernetesDefaultedEmptySlice []string `json:"kubernetesDefaultedEmptySlice"`
	// +default={}
	KubernetesDefaultedEmptyMap map[string]string `json:"kubernetesDefaultedEmptyMap"`
	// +default={}
	KubernetesDefaultedEmptyObject EmptiableObject `json:"kubernetesDefaultedEmptyObject"`
	// Linked has a page of its own.
	// +kubebuilder:externalDocs:url="https://example.com/linked"
	Linked string `json:"linked"`
	// LinkedAndDescribed has a page, and words about it.
	// +kubebuilder:externalDocs:url="https://example.com/linked",description="More of it"
	LinkedAndDescribed string     `json:"linkedAndDescribed"`
	LinkedByType       LinkedType `json:"linkedByType"`
	// LinkedByBoth has a page in the place of its type's.
	// +kubebuilder:externalDocs:url="https://example.com/field"
	LinkedByBoth LinkedType `json:"linkedByBoth"`
	TitledByType Titled     `json:"titledByType"`
	// +kubebuilder:title=By the field
	TitledByBoth Titled `json:"titledByBoth"`
}

// RootObject holds another.
type RootObject struct {
	Nested NestedObject `json:"nested"`
}

// NestedObject is held.
type NestedObject struct {
	Foo string `json:"foo"`
	Bar bool   `json:"bar"`
}

// EmptiableObject may be empty.
type EmptiableObject struct {
	// +kubebuilder:default=forty-two
	Foo string `json:"foo,omitempty"`
}

// LinkedType has a page.
// +kubebuilder:externalDocs:url="https://example.com/type",description="By the type"
type LinkedType struct {
	A int32 `json:"a"`
}

// Titled has a title.
// +kubebuilder:title="By the type"
type Titled string
