// Package enums has values out of a few.
// +groupName=oracle.example.com
// +versionName=v1
package enums

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Enum has values out of a few.
type Enum struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec EnumSpec `json:"spec"`
}

// EnumSpec has an enum in every place.
type EnumSpec struct {
	// ConcurrencyPolicy says what happens to runs that overlap.
	ConcurrencyPolicy      ConcurrencyPolicy  `json:"concurrencyPolicy"`
	MaybeConcurrencyPolicy *ConcurrencyPolicy `json:"maybeConcurrencyPolicy,omitempty"`
	// K8sConcurrencyPolicy has its values from constants.
	K8sConcurrencyPolicy K8sConcurrencyPolicy `json:"k8sConcurrencyPolicy"`
	// Policies is a list of them.
	Policies       []ConcurrencyPolicy          `json:"policies"`
	PoliciesByName map[string]ConcurrencyPolicy `json:"policiesByName"`
	// Written has its values on the field.
	// +kubebuilder:validation:Enum=A;B;C
	Written string `json:"written"`
	// Quoted has values that need quotes.
	// +kubebuilder:validation:Enum="";"with space";"y";"1"
	Quoted string `json:"quoted"`
	// Number is one of three.
	// +kubebuilder:validation:Enum=1;2;4
	Number int32 `json:"number"`
	// Narrowed allows fewer than its type.
	// +kubebuilder:validation:Enum=Allow;Forbid
	Narrowed ConcurrencyPolicy `json:"narrowed"`
	// EnumSlice has items out of three.
	// +kubebuilder:validation:items:Enum=0;1;3
	EnumSlice []int32 `json:"enumSlice"`
	// Protocol has a default.
	// +kubebuilder:default=TCP
	Protocol Protocol `json:"protocol"`
}

// ConcurrencyPolicy is what happens to runs that overlap.
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

// K8sConcurrencyPolicy has its values from constants.
// +k8s:enum
type K8sConcurrencyPolicy string

const (
	// K8sAllow lets them overlap.
	K8sAllow K8sConcurrencyPolicy = "Allow"
	// K8sForbid skips the next.
	K8sForbid K8sConcurrencyPolicy = "Forbid"
	// K8sReplace stops the last.
	K8sReplace K8sConcurrencyPolicy = "Replace"
)

// Protocol is how to talk.
// +kubebuilder:validation:Enum=SCTP;TCP;UDP
type Protocol string
