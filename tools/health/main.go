// Command health determines the health of objects as GitOps tools do. It reads lines of JSON from
// the first file, and prints each with the verdicts of kstatus and of the Argo CD script in the
// second file, which is a ConfigMap.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

const scripts = "resource.customizations.health."

type line struct {
	Object  json.RawMessage `json:"object"`
	Kstatus status.Status   `json:"kstatus"`
	ArgoCD  string          `json:"argocd"`
}

func main() {
	log.SetFlags(0)
	script, err := readScript(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		each, err := judge(scanner.Bytes(), script)
		if err != nil {
			log.Fatalf("%s: %v", scanner.Text(), err)
		}
		if err := encoder.Encode(each); err != nil {
			log.Fatal(err)
		}
	}
	if err := scanner.Err(); err != nil {
		log.Fatal(err)
	}
}

// readScript returns the only script in a ConfigMap.
func readScript(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var configMap struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal(text, &configMap); err != nil {
		return "", err
	}
	for key, script := range configMap.Data {
		if strings.HasPrefix(key, scripts) {
			return script, nil
		}
	}
	return "", fmt.Errorf("%s has no key %s…", path, scripts)
}

func judge(text []byte, script string) (line, error) {
	var each line
	if err := json.Unmarshal(text, &each); err != nil {
		return each, err
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(each.Object); err != nil {
		return each, err
	}
	result, err := status.Compute(&object)
	if err != nil {
		return each, err
	}
	each.Kstatus = result.Status
	each.ArgoCD, err = run(script, object.Object)
	return each, err
}

// run returns the result of a script, which can use the libraries that Argo CD enables by default.
func run(script string, object map[string]any) (string, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}} {
		state.Push(state.NewFunction(library.open))
		state.Push(lua.LString(library.name))
		state.Call(1, 0)
	}
	state.SetGlobal("obj", toLua(state, object))
	if err := state.DoString(script); err != nil {
		return "", err
	}
	verdict, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", fmt.Errorf("the script returns no table")
	}
	if _, ok := verdict.RawGetString("message").(lua.LString); !ok {
		return "", fmt.Errorf("the script returns no message")
	}
	return verdict.RawGetString("status").String(), nil
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, each := range value {
			table.RawSetString(key, toLua(state, each))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, each := range value {
			table.Append(toLua(state, each))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	}
	return lua.LNil
}
