// Package v1alpha1 is a version that is gone.
// +groupName=oracle.example.com
package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VersionedResource has versions.
// +kubebuilder:resource:shortName=vr
// +kubebuilder:unservedversion
type VersionedResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VersionedResourceSpec `json:"spec"`
}

// VersionedResourceSpec is that of v1alpha1.
type VersionedResourceSpec struct {
	Oldest string `json:"oldest"`
}
