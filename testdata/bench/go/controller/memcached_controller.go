// SPDX-License-Identifier: Apache-2.0

// Package controller manages a Deployment for each Memcached and reports it in the status.
// testdata/bench/rust/operator/src/controller.rs is the same controller in Rust, with the same
// requests and labels.
package controller

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	benchv1alpha1 "rbuilder.dev/bench/go/api/v1alpha1"
)

const (
	// fieldOwner is the field manager of applied objects.
	fieldOwner = client.FieldOwner("memcached")
	// appliedAnnotation contains the generation of the Memcached from which a Deployment was created.
	appliedAnnotation = "bench.example.com/generation"
)

// MemcachedReconciler reconciles a Memcached.
type MemcachedReconciler struct {
	client.Client
	// OnlyMetadata caches only the metadata of Deployments.
	OnlyMetadata bool
	// Concurrency is the maximum number of concurrent reconciles. Defaults to 1.
	Concurrency int
	Latencies   *Latencies
}

// Reconcile applies the Deployment of a Memcached and updates its status.
func (r *MemcachedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	memcached := &benchv1alpha1.Memcached{}
	if err := r.Get(ctx, req.NamespacedName, memcached); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.Latencies.Record(memcached.Annotations)

	generation := strconv.FormatInt(memcached.Generation, 10)
	applied, err := r.appliedGeneration(ctx, req)
	if err != nil {
		return ctrl.Result{}, err
	}
	if applied != generation {
		deployment := deploymentFor(memcached, generation)
		if err := r.Apply(ctx, deployment, fieldOwner, client.ForceOwnership); err != nil {
			return ctrl.Result{}, err
		}
	}

	conditions := append([]metav1.Condition(nil), memcached.Status.Conditions...)
	changed := meta.SetStatusCondition(&conditions, metav1.Condition{
		Type:   "Available",
		Status: metav1.ConditionTrue,
		Reason: "Reconciling",
		Message: fmt.Sprintf("Deployment for custom resource (%s) with %d replicas created successfully",
			memcached.Name, memcached.Spec.Size),
		ObservedGeneration: memcached.Generation,
	})
	if changed {
		status := statusApply(memcached, conditions)
		if err := r.Status().Apply(ctx, status, fieldOwner, client.ForceOwnership); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

// appliedGeneration returns the generation from which the cached Deployment was created, or an
// empty string if there is no Deployment.
func (r *MemcachedReconciler) appliedGeneration(ctx context.Context, req ctrl.Request) (string, error) {
	var deployment client.Object = &appsv1.Deployment{}
	if r.OnlyMetadata {
		partial := &metav1.PartialObjectMetadata{}
		partial.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		deployment = partial
	}
	err := r.Get(ctx, req.NamespacedName, deployment)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	return deployment.GetAnnotations()[appliedAnnotation], err
}

func deploymentFor(memcached *benchv1alpha1.Memcached, generation string) *appsv1ac.DeploymentApplyConfiguration {
	labels := map[string]string{
		"app.kubernetes.io/name":       "memcached",
		"app.kubernetes.io/instance":   memcached.Name,
		"app.kubernetes.io/managed-by": "bench",
	}
	memory := resource.MustParse(fmt.Sprintf("%dMi", memcached.Spec.MemoryMegabytes))
	return appsv1ac.Deployment(memcached.Name, memcached.Namespace).
		WithLabels(labels).
		WithAnnotations(map[string]string{appliedAnnotation: generation}).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(benchv1alpha1.GroupVersion.String()).
			WithKind("Memcached").
			WithName(memcached.Name).
			WithUID(memcached.UID).
			WithController(true).
			WithBlockOwnerDeletion(true)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(memcached.Spec.Size).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(labels).
				WithSpec(corev1ac.PodSpec().
					WithNodeSelector(memcached.Spec.NodeSelector).
					WithSecurityContext(corev1ac.PodSecurityContext().
						WithRunAsNonRoot(true).
						WithSeccompProfile(corev1ac.SeccompProfile().
							WithType(corev1.SeccompProfileTypeRuntimeDefault))).
					WithContainers(corev1ac.Container().
						WithName("memcached").
						WithImage(memcached.Spec.Image).
						WithImagePullPolicy(corev1.PullIfNotPresent).
						WithCommand(append([]string{"memcached"}, memcached.Spec.Arguments...)...).
						WithPorts(corev1ac.ContainerPort().
							WithName("memcached").
							WithContainerPort(memcached.Spec.ContainerPort)).
						WithResources(corev1ac.ResourceRequirements().
							WithLimits(corev1.ResourceList{corev1.ResourceMemory: memory})).
						WithSecurityContext(corev1ac.SecurityContext().
							WithRunAsNonRoot(true).
							WithRunAsUser(1001).
							WithAllowPrivilegeEscalation(false).
							WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))))))
}

// SetupWithManager registers the controller and its watches.
func (r *MemcachedReconciler) SetupWithManager(mgr ctrl.Manager) error {
	var owned []builder.OwnsOption
	if r.OnlyMetadata {
		owned = append(owned, builder.OnlyMetadata)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&benchv1alpha1.Memcached{}).
		Owns(&appsv1.Deployment{}, owned...).
		Named("memcached").
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency}).
		Complete(r)
}
