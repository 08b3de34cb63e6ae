//! Builds the schemas of resolved types, once per item and type arguments.

mod bounds;
mod checks;
mod handwritten;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use rbuilder_reader::{Span, TypeKind, TypeRef};
use rbuilder_schema::{
    Assembled, Schema, SchemaType, Site, Slot, array_of, array_of_length, assemble_with_defaults,
    dropped_object_meta, fill_object_meta, is_bare, known, map_of, or_null, set_of, whole_object_meta,
};
use rbuilder_syntax::{SchemaFunction, Type};
use serde_json::Value;

pub(crate) use self::bounds::{MAX_BYTES, is_too_large};
use self::checks::{span_of, span_of_part};
use self::handwritten::SchemaReader;
use crate::advice;
use crate::defaults::{self, Evaluator};
use crate::nulls::find_types_that_need_option;
use crate::package::{Direction, ModuleId, Package, TypeId, ValueId};
use crate::place::{FileId, Place};
use crate::report::{ErrorId, Report};
use crate::resolve::{
    Associated, Bindings, Owner, Resolver, Scope, Target, Ty, find_schema_function, lookup_path,
};
use crate::root::embedded_schema;
use crate::serde_forms;

type Instance = (TypeId, Vec<Ty>);

type Call = (ValueId, Vec<Ty>);

/// Type arguments can grow indefinitely, as in `struct P<T> { next: P<Vec<T>> }`.
const MAX_DEPTH: usize = 64;

const OBJECT_META: &str = "k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta";

/// A cached result. Its errors are charged to everything that uses it.
#[derive(Clone)]
struct Made<T> {
    result: T,
    errors: Vec<ErrorId>,
}

pub(crate) struct Schemas<'a> {
    resolver: Resolver<'a>,
    /// `None` after an error that has been reported.
    made: BTreeMap<Instance, Made<Option<Slot>>>,
    /// The serde traits that a type implements by hand.
    by_hand: BTreeMap<TypeId, Vec<Direction>>,
    /// Types with a nullable schema, although serde accepts `null` only in an `Option`.
    need_option: BTreeSet<TypeId>,
    /// Keyed by module and spelling, since most fields have one of a few types.
    spelled: HashMap<ModuleId, HashMap<String, Made<Slot>>>,
    /// For types with a handwritten `json_schema`.
    written: BTreeMap<Call, Made<Option<Arc<Schema>>>>,
    /// Items whose schemas are being built, outermost first.
    open: Vec<Instance>,
    open_functions: Vec<Call>,
}

impl<'a> Schemas<'a> {
    pub(crate) fn new(package: &'a Package, report: &'a mut Report) -> Self {
        let associated = Rc::new(defaults::index_associated(package));
        Schemas {
            by_hand: by_hand(package),
            need_option: find_types_that_need_option(package),
            resolver: Resolver::new(package, associated, report),
            made: BTreeMap::new(),
            spelled: HashMap::new(),
            written: BTreeMap::new(),
            open: Vec::new(),
            open_functions: Vec::new(),
        }
    }

    pub(crate) fn associated(&self) -> &Associated {
        &self.resolver.associated
    }

    pub(crate) fn resolve(&mut self, ty: &TypeRef, scope: Scope<'_>) -> Option<Ty> {
        self.resolver.resolve(ty, scope)
    }

    pub(crate) fn package(&self) -> &'a Package {
        self.resolver.package
    }

    pub(crate) fn report(&mut self) -> &mut Report {
        self.resolver.report
    }

    pub(crate) fn item(&mut self, id: TypeId, place: Place) -> Option<Arc<Schema>> {
        self.report_reserved(id);
        let args = self.resolver.default_args(id, place)?;
        self.instance(&(id, args), place).map(|slot| slot.schema)
    }

    /// Returns true if the schema accepts a `null` that serde only reads in an `Option`.
    pub(crate) fn needs_option(&self, id: TypeId) -> bool {
        self.need_option.contains(&id)
    }

    pub(crate) fn beside(&mut self, id: TypeId, ty: &TypeRef) -> Option<Slot> {
        let item = self.package().item(id);
        let scope = Scope {
            file: item.file,
            module: item.module,
            bindings: &Bindings::new(),
        };
        let outer = std::mem::replace(&mut self.resolver.is_ours, item.is_ours);
        let place = Place {
            file: item.file,
            span: ty.span,
        };
        let around = self.resolver.status.replace(place);
        let slot = self.slot(ty, scope);
        self.resolver.status = around;
        self.resolver.is_ours = outer;
        slot
    }

    pub(crate) fn report_reserved(&mut self, id: TypeId) {
        self.resolver.report_reserved(id);
    }

    fn slot(&mut self, ty: &TypeRef, scope: Scope<'_>) -> Option<Slot> {
        let place = Place {
            file: scope.file,
            span: ty.span,
        };
        // Do not cache types with type parameters: these are instantiated differently each time,
        // and each use reports its own error.
        let spelling = if scope.bindings.is_empty() {
            spelling(ty)
        } else {
            None
        };
        if let Some(spelling) = &spelling
            && let Some(made) = self
                .spelled
                .get(&scope.module)
                .and_then(|known| known.get(spelling))
        {
            self.resolver.report.charge(&made.errors);
            return Some(made.result.clone());
        }
        let errors = self.report().error_count();
        let resolved = self.resolver.resolve(ty, scope)?;
        let slot = self.value(&resolved, place)?;
        if let Some(spelling) = spelling {
            let made = Made {
                result: slot.clone(),
                errors: self.report().errors_since(errors),
            };
            self.spelled
                .entry(scope.module)
                .or_default()
                .insert(spelling, made);
        }
        Some(slot)
    }

    /// Drops cached schemas of types in the file of a finished kind. They are large in total and
    /// rarely used by other kinds, in which case they are rebuilt.
    pub(crate) fn forget(&mut self, id: TypeId) {
        let package = self.package();
        let kind = package.item(id);
        self.made
            .retain(|(other, _), _| package.item(*other).file != kind.file);
        self.spelled.remove(&kind.module);
    }

    /// Returns the schema, and whether a field of the type may be absent.
    pub(crate) fn value(&mut self, ty: &Ty, place: Place) -> Option<Slot> {
        let plain = |schema: Schema| Slot {
            schema: schema.into(),
            optional: false,
        };
        Some(match ty {
            // serde serializes `Some(None)` and `None` alike.
            Ty::Option(inner) => Slot {
                optional: true,
                ..self.value(inner, place)?
            },
            Ty::Item(id, args) => self.instance(&(*id, args.clone()), place)?,
            Ty::Written(function, args) => Slot {
                schema: self.written(*function, args, place)?,
                optional: false,
            },
            Ty::Root(id) => Slot {
                schema: self.embedded_object(*id, place)?,
                optional: false,
            },
            Ty::Known(path) => Slot {
                schema: known(path)?,
                optional: false,
            },
            Ty::Kubernetes(path) => Slot {
                schema: self.kubernetes(path)?,
                optional: false,
            },
            Ty::List(items) => plain(array_of(self.member(items, place)?)),
            Ty::Set(items) => plain(set_of(self.member(items, place)?)),
            Ty::Array(items, length) => plain(array_of_length(self.member(items, place)?, *length)),
            Ty::Map(key, value) => {
                let form = serde_forms::key_form(key);
                // Evaluate both before returning, so that errors in either are reported.
                let (key, value) = (self.value(key, place), self.value(value, place));
                let key = key?.schema;
                self.check_map_key(&key, place)?;
                // Enum keys become fields, and the API server drops a field that is `null`.
                let value = if key.enumeration.is_empty() {
                    inside(value?)
                } else {
                    value?.schema
                };
                plain(Schema {
                    keys: form,
                    ..map_of(&key, value)
                })
            }
        })
    }

    fn embedded_object(&mut self, id: TypeId, place: Place) -> Option<Arc<Schema>> {
        let kind = self.package().item(id).model.as_ref()?.custom_resource.as_ref()?;
        let spec = self.item(id, place)?;
        let status = match &kind.status {
            Some(ty) => Some(self.beside(id, ty)?.schema),
            None => None,
        };
        Some(embedded_schema(kind, &spec, status).into())
    }

    pub(crate) fn written(&mut self, function: ValueId, args: &[Ty], place: Place) -> Option<Arc<Schema>> {
        let key = (function, args.to_vec());
        if let Some(made) = self.written.get(&key) {
            self.resolver.report.charge(&made.errors);
            return made.result.clone();
        }
        if self.open_functions.contains(&key) || self.open_functions.len() >= MAX_DEPTH {
            let help = "put `#[kube(schemaless, preserve_unknown_fields)]` on the field that refers to it: the schema of a CRD cannot be recursive";
            return self.error(place, "the schema of this type contains itself", help);
        }
        let errors = self.report().error_count();
        self.open_functions.push(key.clone());
        let value = SchemaReader::new(self).of_type(function, args);
        self.open_functions.pop();
        let made = value.and_then(|value| {
            self.structural(&value, handwritten::place_of(&self.package().values[function.0]))
        });
        let made = made.map(Arc::new);
        let errors = self.report().errors_since(errors);
        let result = made.clone();
        self.written.insert(key, Made { result, errors });
        made
    }

    fn of_function(&mut self, id: TypeId, function: &SchemaFunction, bindings: &Bindings) -> Option<Slot> {
        let place = Place {
            file: self.package().item(id).file,
            span: function.span,
        };
        if self.open_functions.len() >= MAX_DEPTH {
            return self.error(place, "the schemas of functions are nested too deeply", "");
        }
        // A placeholder that only counts towards the depth.
        self.open_functions.push((ValueId(usize::MAX), Vec::new()));
        let value = SchemaReader::new(self).of_path(id, &function.path, bindings, place);
        self.open_functions.pop();
        let schema = self.structural(&value?, (place.file, place.span))?;
        Some(Slot {
            schema: schema.into(),
            optional: false,
        })
    }

    /// A function must return a structural schema, since nothing else is allowed in a CRD.
    fn structural(&mut self, value: &Value, (file, span): (FileId, Span)) -> Option<Schema> {
        match handwritten::structural_schema(value) {
            Ok(schema) => Some(schema),
            Err(reason) => {
                let message = format!("the schema that this function returns is not structural: {reason}");
                let help = "change the function, or name a type with the same form where the schema is used: `#[schemars(with = \"String\")]`";
                self.error(Place { file, span }, message, help)
            }
        }
    }

    fn kubernetes(&mut self, path: &str) -> Option<Arc<Schema>> {
        let types = &self.package().kubernetes;
        let schema = types.schema(path);
        if let Some(warning) = types.doubt(path) {
            self.report().push(warning);
        }
        schema
    }

    fn member(&mut self, ty: &Ty, place: Place) -> Option<Arc<Schema>> {
        self.value(ty, place).map(inside)
    }

    fn check_map_key(&mut self, key: &Schema, place: Place) -> Option<()> {
        match key.schema_type {
            Some(SchemaType::String | SchemaType::Integer | SchemaType::Boolean) => Some(()),
            _ => self.error(
                place,
                "map keys must be strings in JSON",
                "use `String` or an enum without data",
            ),
        }
    }

    fn instance(&mut self, instance: &Instance, place: Place) -> Option<Slot> {
        if let Some(made) = self.made.get(instance) {
            self.resolver.report.charge(&made.errors);
            return made.result.clone();
        }
        if self.open.contains(instance) {
            return self.refuse_recursion(instance, place);
        }
        if self.open.len() >= MAX_DEPTH {
            return self.refuse_depth(instance, place);
        }
        let errors = self.report().error_count();
        self.open.push(instance.clone());
        let item = self.package().item(instance.0);
        let outer = std::mem::replace(&mut self.resolver.is_ours, item.is_ours);
        let result = self.make(instance, place);
        let result = result.filter(|slot| self.check_size_of(instance, &slot.schema, place).is_some());
        self.resolver.is_ours = outer;
        self.open.pop();
        let made = Made {
            result: result.clone(),
            errors: self.report().errors_since(errors),
        };
        self.made.insert(instance.clone(), made);
        result
    }

    fn make(&mut self, instance: &Instance, used_at: Place) -> Option<Slot> {
        let (id, args) = instance;
        let item = self.package().item(*id);
        let model = item.model.as_ref().filter(|_| !item.is_rewritten)?;
        let params = model.generics.iter().map(|(name, _)| name.clone());
        let bindings: Bindings = params.zip(args.iter().cloned()).collect();
        let scope = Scope {
            file: item.file,
            module: item.module,
            bindings: &bindings,
        };
        if let Some(schema) = self.numbered(*id, model) {
            return Some(Slot {
                schema,
                optional: false,
            });
        }
        if !item.derives_schema
            && let Some(function) = find_schema_function(self.associated(), Owner::Type(*id))
        {
            let place = Place {
                file: item.file,
                span: model.span,
            };
            return self.written(function, args, place).map(|schema| Slot {
                schema,
                optional: false,
            });
        }
        self.check_serde(*id, model)?;
        // Try every slot, so that one error doesn't hide the next.
        let slots = model.slots.iter().enumerate().map(|(position, ty)| {
            match model.schema_functions.get(&position) {
                Some(function) => self.of_function(*id, function, &bindings),
                None => self.slot(ty, scope),
            }
        });
        let slots: Vec<Option<Slot>> = slots.collect();
        let mut slots: Vec<Slot> = slots.into_iter().collect::<Option<_>>()?;
        self.check_slots(instance, &model.container, &slots, used_at)?;
        if !item.is_ours {
            self.keep_object_meta(model, scope, &mut slots);
        }
        for (site, warning) in serde_forms::find_doubts(&model.container, &slots) {
            let place = Place {
                file: item.file,
                span: span_of(model, &site),
            };
            let help = if item.is_ours {
                &warning.help
            } else {
                &warning.help_of_schemars
            };
            self.report().warning(place, warning.message, help);
        }
        self.check_nulls(*id, model, scope);
        self.check_one_way(model, scope)?;
        let absent = self.absent_values(*id, args, model);
        match assemble_with_defaults(&model.container, &slots, &absent) {
            Ok(Assembled { schema, refused }) => Some(Slot {
                schema: {
                    self.warn_of_refused(*id, model, refused);
                    schema.into()
                },
                optional: model.container.transparent && slots.iter().any(|slot| slot.optional),
            }),
            // These errors may be caused by what failed to parse.
            Err(_) if model.is_incomplete => None,
            Err(diagnostics) => {
                // Errors in the markers of a field have already been reported there.
                let untold: Vec<_> = diagnostics
                    .into_iter()
                    .filter(|diagnostic| !self.is_reported(model, &diagnostic.place.site, item.file))
                    .collect();
                for diagnostic in untold {
                    let place = Place {
                        file: item.file,
                        span: span_of_part(model, &diagnostic.place),
                    };
                    self.error::<()>(place, diagnostic.message, &diagnostic.help.unwrap_or_default());
                }
                None
            }
        }
    }

    /// Adds the metadata fields, as kube's derive does. Otherwise such a CRD would lose embedded
    /// metadata that the program's own CRD keeps.
    fn keep_object_meta(&mut self, model: &Type, scope: Scope<'_>, slots: &mut [Slot]) {
        for (slot, ty) in slots.iter_mut().zip(&model.slots) {
            if is_bare(&slot.schema) {
                let resolved = self.resolver.resolve(ty, scope);
                let held = match &resolved {
                    Some(Ty::Option(inner)) => Some(&**inner),
                    other => other.as_ref(),
                };
                if matches!(held, Some(Ty::Known(path)) if path == OBJECT_META) {
                    slot.schema = whole_object_meta().into();
                }
            } else if dropped_object_meta(&slot.schema).is_some() {
                fill_object_meta(Arc::make_mut(&mut slot.schema), &whole_object_meta);
            }
        }
    }

    /// Returns the values that serde uses for absent fields, if the schema uses them as defaults.
    fn absent_values(&mut self, id: TypeId, args: &[Ty], model: &Type) -> Vec<(Site, Option<Value>)> {
        let item = self.package().item(id);
        let fields = model.absent_fields();
        let takes_defaults = item.is_ours || self.package().member(item.module).takes_serde_defaults;
        if fields.is_empty() || !takes_defaults {
            return Vec::new();
        }
        let associated = Rc::clone(&self.resolver.associated);
        // Discard the evaluator's reports, which may not matter here.
        let attempt = self.report().begin_attempt();
        let mut evaluator = Evaluator::new(&mut self.resolver, &associated);
        let values = evaluator.absent_values(id, args, &fields);
        let unread = fields
            .iter()
            .zip(&values)
            .filter(|(_, (_, value))| value.is_none());
        let unread: Vec<_> = unread
            .map(|(field, _)| (field, evaluator.describe_unread(id, args, field)))
            .collect();
        self.report().forget(attempt);
        for (field, reason) in unread {
            self.report_unknown_default(id, field, &reason);
        }
        values
    }

    /// Returns the schema of an enum that `serde_repr` serializes as integers. Only for types with
    /// other derives: `derive(CrdSchema)` can't see that derive.
    fn numbered(&self, id: TypeId, model: &Type) -> Option<Arc<Schema>> {
        let item = self.package().item(id);
        let is_repr = item.serde.other.is_some_and(|other| other.ends_with("_repr"));
        let numbers = model.numbers.as_ref().filter(|_| is_repr && !item.is_ours)?;
        let integer = known(model.repr.as_deref()?)?;
        Some(Arc::new(Schema {
            description: model.container.description.as_deref().map(Arc::from),
            // The `enum` is more specific than the bounds of the integer.
            minimum: None,
            maximum: None,
            enumeration: numbers.iter().map(|number| Value::from(*number)).collect(),
            ..Schema::clone(&integer)
        }))
    }

    fn name(&self, id: TypeId) -> &'a str {
        self.package()
            .item(id)
            .model
            .as_ref()
            .map_or("", |model| &model.ident)
    }

    fn error<T>(&mut self, place: Place, message: impl Into<String>, help: &str) -> Option<T> {
        let help = advice::for_type(help, self.resolver.is_ours);
        self.report().error(place, message, &help);
        None
    }
}

fn by_hand(package: &Package) -> BTreeMap<TypeId, Vec<Direction>> {
    let mut found: BTreeMap<TypeId, Vec<Direction>> = BTreeMap::new();
    for one in &package.by_hand {
        let TypeKind::Path(segments, _) = &one.self_type.kind else {
            continue;
        };
        if let Target::Type(id) = lookup_path(package, one.module, segments) {
            found.entry(id).or_default().push(one.direction);
        }
    }
    found
}

fn spelling(ty: &TypeRef) -> Option<String> {
    // Large enough for most types, so this rarely reallocates.
    let mut out = String::with_capacity(48);
    spell(ty, &mut out).then_some(out)
}

fn spell(ty: &TypeRef, out: &mut String) -> bool {
    match &ty.kind {
        TypeKind::Path(segments, args) => {
            for segment in segments {
                out.push_str(segment);
                out.push(':');
            }
            args.iter().all(|arg| {
                out.push('<');
                spell(arg, out)
            }) && {
                out.push('>');
                true
            }
        }
        TypeKind::Array(item, length) => {
            out.push('[');
            out.extend(length.map(|length| length.to_string()));
            out.push(';');
            spell(item, out)
        }
        TypeKind::Tuple(_) | TypeKind::Other(_) => false,
    }
}

/// The API server does not drop a `null` in a list or map, so the schema has to accept it.
fn inside(slot: Slot) -> Arc<Schema> {
    if slot.optional {
        or_null(slot.schema)
    } else {
        slot.schema
    }
}
