// Package workloads runs things in Pods.
// +groupName=oracle.example.com
// +versionName=v1
package workloads

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workload runs things in Pods.
type Workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WorkloadSpec `json:"spec"`
}

// WorkloadSpec runs things in Pods.
type WorkloadSpec struct {
	// JobTemplate is the object that describes the Job.
	JobTemplate batchv1.JobTemplateSpec `json:"jobTemplate"`
	Template    corev1.PodTemplateSpec  `json:"template"`
	// Sidecars run beside.
	// +listType=map
	// +listMapKey=name
	Sidecars  []corev1.Container             `json:"sidecars"`
	Claims    []corev1.PersistentVolumeClaim `json:"claims"`
	Resources *corev1.ResourceRequirements   `json:"resources,omitempty"`
	Probe     corev1.Probe                   `json:"probe"`
	Volumes   map[string]corev1.Volume       `json:"volumes"`
	// Strategy is how Pods are replaced.
	Strategy *appsv1.DeploymentStrategy     `json:"strategy,omitempty"`
	Policy   networkingv1.NetworkPolicySpec `json:"policy"`
	Owner    metav1.OwnerReference          `json:"owner"`
}
