// Package v1beta1 is a version that is going.
// +groupName=oracle.example.com
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rbuilder.dev/oracle/go/api/versions/common"
)

// VersionedResource has versions.
// +kubebuilder:resource:shortName=vr
// +kubebuilder:deprecatedversion:warning="oracle.example.com/v1beta1 VersionedResource is going; use v1"
type VersionedResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VersionedResourceSpec `json:"spec"`
}

// VersionedResourceSpec is that of v1beta1.
type VersionedResourceSpec struct {
	// Shared is in every version.
	Shared common.Shared `json:"shared"`
}
