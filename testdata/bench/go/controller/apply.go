// SPDX-License-Identifier: Apache-2.0

package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	benchv1alpha1 "rbuilder.dev/bench/go/api/v1alpha1"
)

// memcachedStatusApply is an apply configuration for the status of a Memcached.
type memcachedStatusApply struct {
	metav1ac.TypeMetaApplyConfiguration    `json:",inline"`
	*metav1ac.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`

	Status benchv1alpha1.MemcachedStatus `json:"status"`
}

func statusApply(memcached *benchv1alpha1.Memcached, conditions []metav1.Condition) *memcachedStatusApply {
	apply := &memcachedStatusApply{
		ObjectMetaApplyConfiguration: metav1ac.ObjectMeta().
			WithName(memcached.Name).
			WithNamespace(memcached.Namespace),
		Status: benchv1alpha1.MemcachedStatus{Conditions: conditions},
	}
	apply.WithKind("Memcached").WithAPIVersion(benchv1alpha1.GroupVersion.String())
	return apply
}

// IsApplyConfiguration marks the type as an apply configuration.
func (memcachedStatusApply) IsApplyConfiguration() {}

// GetKind returns the kind.
func (a *memcachedStatusApply) GetKind() *string { return a.Kind }

// GetAPIVersion returns group and version.
func (a *memcachedStatusApply) GetAPIVersion() *string { return a.APIVersion }

// GetName returns the object's name.
func (a *memcachedStatusApply) GetName() *string { return a.Name }

// GetNamespace returns the object's namespace.
func (a *memcachedStatusApply) GetNamespace() *string { return a.Namespace }
