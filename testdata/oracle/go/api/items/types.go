// Package items has every constraint on the items of lists.
// +groupName=oracle.example.com
// +versionName=v1
package items

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Item has every constraint on the items of lists.
type Item struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ItemSpec `json:"spec"`
}

// ItemSpec has every constraint on the items of lists.
type ItemSpec struct {
	// Hosts are names.
	// +listType=set
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9.-]+$`
	// +kubebuilder:validation:MaxItems=8
	Hosts []string `json:"hosts"`
	// HostsAlias are names by their type.
	HostsAlias Hosts `json:"hostsAlias"`
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=9
	// +kubebuilder:validation:items:MultipleOf=2
	Numbers []int64 `json:"numbers"`
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:ExclusiveMinimum=true
	// +kubebuilder:validation:items:Maximum=9
	// +kubebuilder:validation:items:ExclusiveMaximum=true
	Exclusive []int32 `json:"exclusive"`
	// +kubebuilder:validation:items:Enum=a;b
	Letters []string `json:"letters"`
	// +kubebuilder:validation:items:Format=ipv4
	Addresses []string `json:"addresses"`
	// +kubebuilder:validation:items:MinItems=1
	// +kubebuilder:validation:items:MaxItems=2
	Lists [][]string `json:"lists"`
	// +kubebuilder:validation:items:MinProperties=1
	// +kubebuilder:validation:items:MaxProperties=2
	Maps []map[string]string `json:"maps"`
	// +kubebuilder:validation:items:XValidation:rule="self.size() > 1",message="too short"
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=8
	Checked []string `json:"checked"`
	// +kubebuilder:validation:items:XPreserveUnknownFields
	Loose []Loose `json:"loose"`
	// +kubebuilder:validation:items:XEmbeddedResource
	// +kubebuilder:validation:items:XPreserveUnknownFields
	Resources []runtime.RawExtension `json:"resources"`
	// +kubebuilder:validation:items:XIntOrString
	// +kubebuilder:validation:items:Pattern=`^[0-9]+%?$`
	Amounts []intstr.IntOrString `json:"amounts"`
	// +kubebuilder:validation:items:Type=string
	Retyped []Raw `json:"retyped"`
}

// Hosts are names.
// +listType=set
// +kubebuilder:validation:MaxItems=8
// +kubebuilder:validation:items:MinLength=1
// +kubebuilder:validation:items:MaxLength=253
// +kubebuilder:validation:items:Pattern=`^[a-z0-9.-]+$`
type Hosts []string

// Loose keeps more than it names.
type Loose struct {
	Known string `json:"known"`
}

// Raw is read and written by hand.
// +kubebuilder:validation:Type=string
type Raw struct {
	Inner int32 `json:"inner"`
}

// UnmarshalJSON reads by hand.
func (r *Raw) UnmarshalJSON([]byte) error { return nil }

// MarshalJSON writes by hand.
func (r Raw) MarshalJSON() ([]byte, error) { return []byte(`""`), nil }
