// Prints the doc comments and markers of types in Go modules as JSON. The arguments are the modules
// in k8s.io and their folders, as in `api=/folder`.
package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"log"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
)

// Name consists of a package, such as k8s.io/api/core/v1, and the name of a type.
type Name [2]string

// Comment is a doc comment.
type Comment struct {
	// Text is processed in the same way as controller-gen does it.
	Text string `json:"text"`
	// Markers are the lines that start with `+`, but without the `+`.
	Markers []string `json:"markers,omitempty"`
}

type Type struct {
	Name Name `json:"name"`
	Comment
	Fields []Field `json:"fields,omitempty"`
	// Embedded types are those whose fields also belong to this type, either because they are
	// embedded or because this is an alias.
	Embedded []Name `json:"embedded,omitempty"`
}

type Field struct {
	// Name is the one in JSON.
	Name string `json:"name"`
	Comment
	// Items is the type of the items of a list, or of the values of a map.
	Items *Name `json:"items,omitempty"`
}

func main() {
	all := []Type{}
	for _, argument := range os.Args[1:] {
		module, folder, _ := strings.Cut(argument, "=")
		check(filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
			name := entry.Name()
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
				strings.Contains(name, "generated") {
				return err
			}
			parent, err := filepath.Rel(folder, filepath.Dir(file))
			check(err)
			all = append(all, readFile(path.Join("k8s.io", module, filepath.ToSlash(parent)), file)...)
			return nil
		}))
	}
	check(json.NewEncoder(os.Stdout).Encode(all))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func readFile(pkg, file string) (found []Type) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	check(err)
	imports := map[string]string{}
	for _, spec := range parsed.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		alias := path.Base(imported)
		if spec.Name != nil {
			alias = spec.Name.Name
		}
		imports[alias] = imported
	}
	full := func(goType string) Name {
		goType = strings.TrimLeft(goType, "*")
		if alias, name, ok := strings.Cut(goType, "."); ok {
			if imported := imports[alias]; imported != "" {
				alias = imported
			}
			return Name{alias, name}
		}
		return Name{pkg, goType}
	}
	for _, decl := range parsed.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok || general.Tok != token.TYPE || general.Lparen.IsValid() {
			continue
		}
		spec := general.Specs[0].(*ast.TypeSpec)
		read := Type{Name: Name{pkg, spec.Name.Name}, Comment: readComment(general.Doc)}
		switch expr := spec.Type.(type) {
		case *ast.StructType:
			for _, field := range expr.Fields.List {
				read.addField(field, full)
			}
		case *ast.Ident, *ast.SelectorExpr:
			read.Embedded = append(read.Embedded, full(types.ExprString(expr)))
		}
		found = append(found, read)
	}
	return found
}

func (t *Type) addField(field *ast.Field, full func(string) Name) {
	if field.Tag == nil {
		return
	}
	tag, ok := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Lookup("json")
	if !ok {
		return
	}
	goType := types.ExprString(field.Type)
	name, _, _ := strings.Cut(tag, ",")
	if name == "" {
		t.Embedded = append(t.Embedded, full(goType))
		return
	}
	read := Field{Name: name, Comment: readComment(field.Doc)}
	list := strings.TrimPrefix(strings.TrimLeft(goType, "*"), "map")
	if _, member, ok := strings.Cut(list, "]"); ok && strings.HasPrefix(list, "[") {
		items := full(member)
		read.Items = &items
	}
	t.Fields = append(t.Fields, read)
}

func readComment(group *ast.CommentGroup) (comment Comment) {
	if group == nil {
		return comment
	}
	kept := []string{}
	isFenced, isOver := false, false
	for _, line := range group.List {
		text := strings.TrimPrefix(line.Text, "//")
		// These are directives for tools. They don't have a space after `//`.
		if strings.HasPrefix(text, "nolint:") || strings.HasPrefix(text, "go:") {
			continue
		}
		text = strings.TrimRight(strings.TrimPrefix(text, " "), " \t")
		words := strings.TrimSpace(text)
		if marker, ok := strings.CutPrefix(words, "+"); ok {
			comment.Markers = append(comment.Markers, marker)
			continue
		}
		if strings.HasPrefix(words, "```") || strings.HasPrefix(words, "~~~") {
			isFenced = !isFenced
		}
		if !isFenced {
			isOver = isOver || strings.HasPrefix(text, "---")
			if strings.HasPrefix(words, "TODO") {
				continue
			}
		}
		// Skip blank lines if there's more than one in a row.
		isDoublyBlank := text == "" && (len(kept) == 0 || kept[len(kept)-1] == "")
		if !isOver && !isDoublyBlank {
			kept = append(kept, text)
		}
	}
	comment.Text = strings.TrimRight(strings.Join(kept, "\n"), " \t\n")
	return comment
}
