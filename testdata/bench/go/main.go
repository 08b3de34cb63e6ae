// SPDX-License-Identifier: Apache-2.0

// The operator that `cargo xtask bench-operator` measures, with controller-runtime.
// testdata/bench/rust/operator is the same operator in Rust.
package main

import (
	"flag"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	benchv1alpha1 "rbuilder.dev/bench/go/api/v1alpha1"
	"rbuilder.dev/bench/go/controller"
)

// tunedConcurrency is the default concurrency of rbuilder, which the Rust operator uses.
const tunedConcurrency = 4

func main() {
	var metricsAddr, probeAddr, leaseNamespace, latencies string
	var secureMetrics, leaderElect, tuned bool
	flag.StringVar(&metricsAddr, "metrics-bind-address", "0", "Address of the metrics endpoint; 0 for none.")
	flag.BoolVar(&secureMetrics, "metrics-secure", true, "Serve metrics over HTTPS.")
	flag.StringVar(&probeAddr, "health-probe-bind-address", ":8081", "Address of the health probes.")
	flag.BoolVar(&leaderElect, "leader-elect", false, "Run controllers in one process at a time.")
	flag.StringVar(&leaseNamespace, "leader-election-namespace", "", "Namespace of the lease.")
	flag.BoolVar(&tuned, "tuned", false, "Keep no managed fields, of owned objects only metadata; reconcile four at a time. "+
		"GOMEMLIMIT and GOGC come from the environment.")
	flag.StringVar(&latencies, "latencies", "", "File to write latencies to at the end.")
	opts := zap.Options{Development: true}
	opts.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&opts)))
	setupLog := ctrl.Log.WithName("setup")
	check := func(err error, what string) {
		if err != nil {
			setupLog.Error(err, what)
			os.Exit(1)
		}
	}

	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(benchv1alpha1.AddToScheme(scheme))
	options := ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: metricsAddr, SecureServing: secureMetrics},
		HealthProbeBindAddress:  probeAddr,
		LeaderElection:          leaderElect,
		LeaderElectionID:        "5d3f1a2b.bench.example.com",
		LeaderElectionNamespace: leaseNamespace,
	}
	reconciler := &controller.MemcachedReconciler{Latencies: &controller.Latencies{}}
	if tuned {
		options.Cache = cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
		reconciler.OnlyMetadata = true
		reconciler.Concurrency = tunedConcurrency
	}

	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), options)
	check(err, "Failed to make the manager")
	reconciler.Client = mgr.GetClient()
	check(reconciler.SetupWithManager(mgr), "Failed to set up the controller")
	check(mgr.AddHealthzCheck("healthz", healthz.Ping), "Failed to add a health check")
	check(mgr.AddReadyzCheck("readyz", healthz.Ping), "Failed to add a ready check")
	check(mgr.Start(ctrl.SetupSignalHandler()), "Failed to run the manager")
	if latencies != "" {
		check(reconciler.Latencies.Write(latencies), "Failed to write the latencies")
	}
}
