// Package v1 is the version that is stored.
// +groupName=oracle.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rbuilder.dev/oracle/go/api/versions/common"
)

// VersionedResource has versions.
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=vr
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Size,type=integer,JSONPath=.spec.size
// +kubebuilder:selectablefield:JSONPath=.spec.word
type VersionedResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VersionedResourceSpec `json:"spec"`

	Status VersionedResourceStatus `json:"status,omitempty"`
}

// VersionedResourceSpec is that of v1.
type VersionedResourceSpec struct {
	Size int32  `json:"size"`
	Word string `json:"word"`
	// Shared is in every version.
	// +structType=atomic
	Shared common.Shared `json:"shared"`
}

// VersionedResourceStatus is that of v1.
type VersionedResourceStatus struct {
	Size int32 `json:"size"`
}
