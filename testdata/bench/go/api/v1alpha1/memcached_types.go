// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API of the measured operator, with kubebuilder's layout.
// testdata/bench/rust/operator/src/api.rs contains the same types in Rust.
// +kubebuilder:object:generate=true
// +groupName=bench.example.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	// GroupVersion is the group and version of the types.
	GroupVersion = schema.GroupVersion{Group: "bench.example.com", Version: "v1alpha1"}

	// SchemeBuilder adds Go types to the scheme.
	SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}

	// AddToScheme adds the types of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// MemcachedSpec defines the desired state of Memcached.
type MemcachedSpec struct {
	// Size is the number of instances.
	Size int32 `json:"size"`
	// Image is what each instance runs.
	Image string `json:"image"`
	// ContainerPort is where it listens.
	ContainerPort int32 `json:"containerPort"`
	// MemoryMegabytes is how much it may hold.
	MemoryMegabytes int32 `json:"memoryMegabytes"`
	// Arguments of the program.
	// +optional
	Arguments []string `json:"arguments,omitempty"`
	// NodeSelector says on which nodes it may run.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}

// MemcachedStatus defines the observed state of Memcached.
type MemcachedStatus struct {
	// Conditions say what is known about the instances, one per type.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Memcached is the Schema for the memcacheds API.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Memcached struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MemcachedSpec   `json:"spec,omitempty"`
	Status MemcachedStatus `json:"status,omitempty"`
}

// MemcachedList contains a list of Memcached.
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Memcached `json:"items"`
}

func init() {
	SchemeBuilder.Register(&Memcached{}, &MemcachedList{})
}
