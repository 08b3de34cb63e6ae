// Package kubernetes uses types of Kubernetes itself.
// +groupName=oracle.example.com
// +versionName=v1
package kubernetes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kubernetes uses types of Kubernetes itself.
// +kubebuilder:subresource:status
type Kubernetes struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec KubernetesSpec `json:"spec"`

	Status KubernetesStatus `json:"status,omitempty"`
}

// KubernetesSpec uses types of Kubernetes itself.
type KubernetesSpec struct {
	// Quantity is how much.
	Quantity      resource.Quantity            `json:"quantity"`
	MaybeQuantity *resource.Quantity           `json:"maybeQuantity,omitempty"`
	Quantities    map[string]resource.Quantity `json:"quantities"`
	Time          metav1.Time                  `json:"time"`
	// MaybeTime is a moment.
	MaybeTime     *metav1.Time         `json:"maybeTime,omitempty"`
	MicroTime     metav1.MicroTime     `json:"microTime"`
	Duration      metav1.Duration      `json:"duration"`
	MaybeDuration *metav1.Duration     `json:"maybeDuration,omitempty"`
	Metadata      metav1.ObjectMeta    `json:"metadata"`
	Selector      metav1.LabelSelector `json:"selector"`
	// MaybeSelector selects.
	MaybeSelector *metav1.LabelSelector           `json:"maybeSelector,omitempty"`
	Requirement   metav1.LabelSelectorRequirement `json:"requirement"`
	PullSecrets   []corev1.LocalObjectReference   `json:"pullSecrets"`
	Secret        corev1.SecretKeySelector        `json:"secret"`
	Config        *corev1.ConfigMapKeySelector    `json:"config,omitempty"`
}

// KubernetesStatus says what was seen.
type KubernetesStatus struct {
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Active are the runs.
	Active []string `json:"active,omitempty"`
	// LastScheduleTime is when.
	LastScheduleTime      *metav1.Time      `json:"lastScheduleTime,omitempty"`
	LastScheduleMicroTime *metav1.MicroTime `json:"lastScheduleMicroTime,omitempty"`
}
