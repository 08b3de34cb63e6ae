// Command bundle validates bundles for the Operator Lifecycle Manager with the validators of
// `operator-sdk bundle validate`: the default set, good practices and community rules. It prints
// all errors and warnings, and exits with status 1 if there are any.
package main

import (
	"fmt"
	"os"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/api/pkg/validation/errors"
)

func main() {
	findings := 0
	report := func(folder, level string, found errors.Error) {
		fmt.Printf("%s: %s: %v\n", folder, level, found)
		findings++
	}
	for _, folder := range os.Args[1:] {
		bundle, err := manifests.GetBundleFromDir(folder)
		if err != nil {
			fmt.Printf("%s: %v\n", folder, err)
			os.Exit(1)
		}
		validators := validation.DefaultBundleValidators.WithValidators(
			validation.GoodPracticesValidator,
			validation.CommunityOperatorValidator,
			validation.OperatorHubV2Validator,
			validation.StandardCapabilitiesValidator,
			validation.StandardCategoriesValidator,
		)
		for _, result := range validators.Validate(bundle.ObjectsToValidate()...) {
			for _, found := range result.Errors {
				report(folder, "error", found)
			}
			for _, found := range result.Warnings {
				report(folder, "warning", found)
			}
		}
	}
	if findings > 0 {
		os.Exit(1)
	}
}
