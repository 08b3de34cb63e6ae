package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/fnv"
	"log"
	"math/rand"
	"os"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// row is a body in protobuf, and the JSON of its object. There is no JSON if Go cannot decode it.
type row struct {
	Protobuf []byte          `json:"protobuf"`
	JSON     json.RawMessage `json:"json,omitempty"`
	// Damaged bodies are not what Go makes of their JSON.
	Damaged bool `json:"damaged,omitempty"`
}

// damaged are kinds of which damaged bodies are recorded. They have no quantities, whose grammar is
// not that of protobuf.
var damaged = map[schema.GroupVersionKind]bool{
	{Version: "v1", Kind: "ConfigMap"}:                                                        true,
	{Version: "v1", Kind: "Secret"}:                                                           true,
	{Version: "v1", Kind: "Service"}:                                                          true,
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}:                         true,
	{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}:                              true,
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}:          true,
	{Group: "apps", Version: "v1", Kind: "ControllerRevision"}:                                true,
	{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenReview"}:                      true,
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"}: true,
}

var serializer = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

func record(kinds []kind) {
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	print := func(each row) {
		if err := encoder.Encode(each); err != nil {
			log.Fatal(err)
		}
	}
	filled := map[reflect.Type]int{}
	for _, each := range kinds {
		gvk := each.GroupVersionKind
		if gvk.GroupVersion() == anyVersion {
			gvk = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: gvk.Kind}
		}
		seed := fnv.New64a()
		seed.Write([]byte(gvk.String()))
		random := filler{rand.New(rand.NewSource(int64(seed.Sum64()))), filled, 10}
		empty := reflect.New(each.goType)
		print(encode(gvk, empty.Interface().(message)))
		// The items of lists are recorded as objects.
		if strings.HasSuffix(gvk.Kind, "List") && gvk.Kind != "List" && gvk.Kind != "ConfigMapList" {
			continue
		}
		object := reflect.New(each.goType)
		random.fill(object.Elem(), 0)
		whole := object.Interface().(message)
		print(encode(gvk, whole))
		for range 30 {
			if damaged[gvk] {
				print(decode(gvk, random.damage(random.small(each.goType))))
			}
		}
	}
}

// encode returns an object in protobuf, and its JSON as the API server prints it after it has read
// the former.
func encode(gvk schema.GroupVersionKind, object message) row {
	object.GetObjectKind().SetGroupVersionKind(gvk)
	var body bytes.Buffer
	if err := serializer.Encode(object, &body); err != nil {
		log.Fatalf("%s: %v", gvk, err)
	}
	decoded, err := decodeBody(gvk, body.Bytes())
	if err != nil {
		log.Fatalf("%s: %v", gvk, err)
	}
	return row{Protobuf: body.Bytes(), JSON: decoded}
}

// decode returns the verdict on the bytes of an object.
func decode(gvk schema.GroupVersionKind, raw []byte) row {
	unknown := runtime.Unknown{Raw: raw, TypeMeta: runtime.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}}
	var body bytes.Buffer
	if err := serializer.Encode(&unknown, &body); err != nil {
		log.Fatalf("%s: %v", gvk, err)
	}
	each := row{Protobuf: body.Bytes(), Damaged: true}
	if decoded, err := decodeBody(gvk, body.Bytes()); err == nil {
		each.JSON = decoded
	}
	return each
}

func decodeBody(gvk schema.GroupVersionKind, body []byte) ([]byte, error) {
	object, _, err := serializer.Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	// Go prints raw JSON with any bytes, and times that it cannot read, e.g. in the year 10000.
	if !utf8.Valid(text) {
		return nil, errors.New("expected UTF-8")
	}
	return text, json.Unmarshal(text, reflect.New(reflect.TypeOf(object).Elem()).Interface())
}

type filler struct {
	*rand.Rand
	// filled counts the structs of each type: the first ones get all fields.
	filled map[reflect.Type]int
	// rarity is how many of the other fields there are for one that gets a value.
	rarity int
}

// small returns the bytes of a small object.
func (from filler) small(goType reflect.Type) []byte {
	from.rarity = 3
	for {
		object := reflect.New(goType)
		from.fill(object.Elem(), 0)
		raw, err := object.Interface().(message).Marshal()
		if err != nil {
			log.Fatal(err)
		}
		if len(raw) > 20 && len(raw) < 200 {
			return raw
		}
	}
}

func pick[T any](from filler, values ...T) T {
	return values[from.Intn(len(values))]
}

// fill assigns random values. Only fields that protobuf has get any.
func (from filler) fill(value reflect.Value, depth int) {
	switch into := value.Addr().Interface().(type) {
	case *resource.Quantity:
		*into = resource.MustParse(pick(from, "100m", "1Gi", "1500Mi", "0", "2", "12e6", "-3", "1.5k"))
		return
	case *metav1.Time:
		*into = metav1.Unix(pick[int64](from, 1, 1_700_000_000, -5_000_000_000, 0, 951_782_400, 253_402_300_799), 0)
		return
	case *metav1.MicroTime:
		*into = metav1.NewMicroTime(time.Unix(1_700_000_000, pick[int64](from, 0, 1000, 999_999_000)))
		return
	case *intstr.IntOrString:
		*into = pick(from, intstr.FromInt32(8080), intstr.FromString("25%"), intstr.FromInt32(-1))
		return
	case *runtime.RawExtension:
		into.Raw = []byte(pick(from, `{"apiVersion":"example.com/v1","kind":"Example"}`, `{}`, `[1,"a"]`))
		return
	case *metav1.FieldsV1:
		into.Raw = []byte(`{"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`)
		return
	case *apiextensions.JSON:
		into.Raw = []byte(pick(from, `"text"`, `1.5`, `{"a":[null,true]}`, `[]`))
		return
	case *apiextensions.JSONSchemaPropsOrArray:
		if from.Intn(2) == 0 {
			into.JSONSchemas = []apiextensions.JSONSchemaProps{{Type: "string"}, {}}
		} else {
			into.Schema = &apiextensions.JSONSchemaProps{Type: "string"}
		}
		return
	case *apiextensions.JSONSchemaPropsOrBool:
		if into.Allows = from.Intn(2) == 0; from.Intn(2) == 0 {
			into.Allows, into.Schema = true, &apiextensions.JSONSchemaProps{Type: "string"}
		}
		return
	case *apiextensions.JSONSchemaPropsOrStringArray:
		if from.Intn(2) == 0 {
			into.Property = []string{"a", "b"}
		} else {
			into.Schema = &apiextensions.JSONSchemaProps{Type: "string"}
		}
		return
	}
	switch value.Kind() {
	case reflect.Bool:
		value.SetBool(from.Intn(2) == 0)
	case reflect.Int32:
		value.SetInt(pick[int64](from, 0, 1, 443, -1, -1<<31, 1<<31-1))
	case reflect.Int64:
		value.SetInt(pick[int64](from, 0, 1, 300, -1, -1<<63, 1<<63-1))
	case reflect.Float64:
		value.SetFloat(pick(from, 0, 1, -2.5, 1e21, 0.1, 1e-7))
	case reflect.String:
		value.SetString(pick(from, "", "a", "name", "app.kubernetes.io/name", "é<&>", "\"\\\n\x01\u2028"))
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		from.fill(value.Elem(), depth+1)
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			// JSON does not tell empty bytes from none.
			value.SetBytes([]byte(pick(from, "a", "ab", "abc", "\x00\xff\xfe>?")))
			return
		}
		value.Set(reflect.MakeSlice(value.Type(), 1+from.Intn(2), 2))
		for i := range value.Len() {
			from.fill(value.Index(i), depth+1)
		}
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
		for range 1 + from.Intn(2) {
			key, item := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
			from.fill(key, depth+1)
			from.fill(item, depth+1)
			value.SetMapIndex(key, item)
		}
	case reflect.Struct:
		isFirst := from.filled[value.Type()] < 2
		from.filled[value.Type()]++
		for _, each := range fieldsOf(value.Type()) {
			isStruct := each.goType.Kind() == reflect.Struct
			if isStruct || isFirst && depth < 16 || depth < 12 && from.Intn(from.rarity) == 0 {
				from.fill(value.FieldByIndex(each.index), depth+1)
			}
		}
	default:
		log.Fatalf("cannot fill %s", value.Type())
	}
}

// damage changes bytes in one or two places.
func (from filler) damage(raw []byte) []byte {
	raw = bytes.Clone(raw)
	for range 1 + from.Intn(2) {
		if len(raw) == 0 {
			return raw
		}
		at := from.Intn(len(raw))
		switch from.Intn(5) {
		case 0:
			raw[at] ^= 1 << from.Intn(8)
		case 1:
			raw[at] = byte(from.Intn(256))
		case 2:
			raw = raw[:at]
		case 3:
			raw = append(raw[:at:at], raw[min(at+1+from.Intn(4), len(raw)):]...)
		case 4:
			raw = append(raw[:at:at], append([]byte{pick[byte](from, 0x0a, 0x12, 0x08, 0xa2, 0x00)}, raw[at:]...)...)
		}
	}
	return raw
}
