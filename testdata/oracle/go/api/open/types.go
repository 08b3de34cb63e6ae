// Package open has values of no fixed form.
// +groupName=oracle.example.com
// +versionName=v1
package open

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Open has values of no fixed form.
type Open struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OpenSpec `json:"spec"`
}

// OpenSpec has values of no fixed form.
type OpenSpec struct {
	// EmbeddedResource is a whole object.
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	EmbeddedResource runtime.RawExtension `json:"embeddedResource"`
	// +kubebuilder:validation:XEmbeddedResource
	// +kubebuilder:validation:XPreserveUnknownFields
	XEmbeddedResource runtime.RawExtension `json:"xEmbeddedResource"`
	// UnprunedEmbeddedResource keeps what it does not name.
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	UnprunedEmbeddedResource *unstructured.Unstructured `json:"unprunedEmbeddedResource,omitempty"`
	// UnprunedJSON keeps what it does not name.
	// +kubebuilder:pruning:PreserveUnknownFields
	UnprunedJSON     NestedObject `json:"unprunedJSON"`
	UnprunedFromType Preserved    `json:"unprunedFromType"`
	// +kubebuilder:pruning:PreserveUnknownFields
	UnprunedFromTypeAndField Preserved             `json:"unprunedFromTypeAndField"`
	Raw                      runtime.RawExtension  `json:"raw"`
	MaybeRaw                 *runtime.RawExtension `json:"maybeRaw,omitempty"`
	// JSON is anything.
	JSON      apiextensionsv1.JSON  `json:"json"`
	MaybeJSON *apiextensionsv1.JSON `json:"maybeJson,omitempty"`
	// Schemaless is not looked at.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Schemaless NestedObject `json:"schemaless"`
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	SchemalessObject NestedObject `json:"schemalessObject"`
	// NoReallySuspend is written by hand.
	NoReallySuspend *TotallyABool `json:"noReallySuspend,omitempty"`
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=5
	Retyped     *TotallyABool       `json:"retyped,omitempty"`
	Amount      intstr.IntOrString  `json:"amount"`
	MaybeAmount *intstr.IntOrString `json:"maybeAmount,omitempty"`
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern="^((100|[0-9]{1,2})%|[0-9]+)$"
	IntOrStringWithAPattern *intstr.IntOrString `json:"intOrStringWithAPattern,omitempty"`
	// +kubebuilder:validation:Enum=0;1;half
	IntOrStringWithEnum *intstr.IntOrString `json:"intOrStringWithEnum,omitempty"`
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4
	IntOrStringWithLength *intstr.IntOrString `json:"intOrStringWithLength,omitempty"`
	// +kubebuilder:validation:items:XIntOrString
	// +kubebuilder:validation:items:Pattern="^((100|[0-9]{1,2})%|[0-9]+)$"
	IntOrStringArrayWithAPattern []*intstr.IntOrString `json:"intOrStringArrayWithAPattern,omitempty"`
	// +kubebuilder:validation:items:Enum=0;1;half
	IntOrStringWithEnumSlice []intstr.IntOrString `json:"intOrStringWithEnumSlice,omitempty"`
}

// NestedObject is a struct.
type NestedObject struct {
	Foo string `json:"foo"`
	Bar bool   `json:"bar"`
}

// Preserved keeps what it does not name.
// +kubebuilder:pruning:PreserveUnknownFields
type Preserved struct {
	ConcreteField string `json:"concreteField"`
}

// TotallyABool is a bool in a word.
// +kubebuilder:validation:Type=string
type TotallyABool struct {
	Value bool `json:"-"`
}

// UnmarshalJSON reads by hand.
func (t *TotallyABool) UnmarshalJSON([]byte) error { return nil }

// MarshalJSON writes by hand.
func (t TotallyABool) MarshalJSON() ([]byte, error) { return []byte(`""`), nil }
