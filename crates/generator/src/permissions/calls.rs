//! Which permissions a call needs, and what it returns.

use rbuilder_reader::token::{Cursor, Ident};
use rbuilder_reader::{Span, TypeRef};

use super::follow::Follower;
use super::table::{self, Ask, Of, Part, Returns, Row, Strength};
use super::ty::{Known, Ty, read_path};
use super::{Need, Resource, Unseen, Why};
use crate::place::Place;
use crate::resolve::{FunctionTarget, find_function};

/// Methods that return the receiver, or something containing the same objects, so the type is kept.
const PASSING: &[&str] = &[
    "clone",
    "cloned",
    "copied",
    "unwrap",
    "expect",
    "unwrap_or",
    "unwrap_or_default",
    "unwrap_or_else",
    "ok",
    "ok_or",
    "ok_or_else",
    "or",
    "or_else",
    "context",
    "with_context",
    "map_err",
    "inspect",
    "inspect_err",
    "as_ref",
    "as_mut",
    "as_deref",
    "as_deref_mut",
    "iter",
    "iter_mut",
    "into_iter",
    "to_owned",
    "to_vec",
    "first",
    "last",
    "next",
    "nth",
    "pop",
    "get",
    "find",
    "filter",
    "take",
    "skip",
    "rev",
    "collect",
    "chain",
    "boxed",
    "lock",
    "read",
    "write",
    "borrow",
    "borrow_mut",
    "get_or_insert_with",
    "try_next",
    "max_by_key",
    "min_by_key",
    "default_backoff",
    "applied_objects",
    "touched_objects",
    "reflect",
    "peekable",
    "fuse",
    "into_inner",
    "values",
    "swap_remove",
    "remove",
    "state",
    "wait_until_ready",
    "await_ready",
    "timeout",
];

/// Methods that pass the value to a closure and return its result.
const MAPPING: &[&str] = &[
    "map",
    "and_then",
    "then",
    "filter_map",
    "flat_map",
    "map_ok",
    "is_some_and",
    "map_or",
];

struct Call<'c> {
    on: &'static str,
    known: &'c Known,
    generic: &'c [Ty],
    args: &'c [Ty],
    name: &'c str,
    place: Place,
}

impl Follower<'_, '_> {
    pub(super) fn function_call(
        &mut self,
        segments: &[String],
        of_type: &[TypeRef],
        generic: &[Ty],
        name: Ident<'_>,
        inner: Cursor<'_>,
    ) -> Ty {
        let package = self.functions.package;
        let args = self.arguments(inner);
        let first = args.first().cloned().unwrap_or_default();
        if segments.len() == 1 && matches!(name.text, "Some" | "Ok") {
            return first;
        }
        if let [.., owner, variant] = segments
            && owner == "Patch"
        {
            return match variant.as_str() {
                // Unlike `Patch::Apply`, these never create an object.
                "Merge" | "Strategic" | "Json" => Ty::Change,
                _ => Ty::Unknown,
            };
        }
        let target = find_function(package, self.scope.module, segments);
        let path = match target {
            Some(FunctionTarget::Function(id)) => return self.functions.call(id, generic, &args),
            Some(FunctionTarget::External(path)) => Some(path),
            _ => None,
        };
        if let Some(path) = &path
            && let Some(row) = find_path(path)
        {
            let known = Known::default();
            let place = self.place(name.span);
            return self.call(
                row,
                &Call {
                    on: "",
                    known: &known,
                    generic,
                    args: &args,
                    name: name.text,
                    place,
                },
            );
        }
        let owner = &segments[..segments.len() - 1];
        if !owner.is_empty() {
            if is_pointer(owner) && matches!(name.text, "new" | "clone" | "from" | "pin") {
                return first;
            }
            let ty = read_path(package, owner, of_type, self.scope, 0);
            if ty != Ty::Unknown {
                return self.associated(&ty, name, generic, &args);
            }
        }
        // E.g. `serde_json::from_value::<T>(…)`.
        if matches!(
            name.text,
            "from_value" | "from_str" | "from_slice" | "from_reader"
        ) {
            let result = generic.first().cloned().unwrap_or_default();
            return result.or(|| self.expected.clone());
        }
        if path
            .as_deref()
            .is_none_or(|path| !path.starts_with("kube::discovery"))
        {
            self.note_passed(&args, name.span, name.text);
        }
        Ty::Unknown
    }

    pub(super) fn associated(&mut self, owner: &Ty, name: Ident<'_>, generic: &[Ty], args: &[Ty]) -> Ty {
        match owner {
            Ty::Known(on, known) => {
                let known = Known {
                    // E.g. `Controller::new` in a function that returns a `Controller<K, S>`.
                    kind: known.kind.clone().or(|| match &self.expected {
                        Ty::Known(expected, known) if expected == on => known.kind.clone(),
                        _ => Ty::Unknown,
                    }),
                    ..(**known).clone()
                };
                // A method called by its path, e.g. `Type::method(&value, …)`.
                let (known, args) = match args.split_first() {
                    Some((Ty::Known(of, known), rest)) if of == on => ((**known).clone(), rest),
                    _ => (known, args),
                };
                self.known_call(on, &known, name, generic, args)
            }
            Ty::Own(of) => match self.functions.of_type(of, name.text) {
                Some(id) => self.functions.call(id, generic, args),
                None if name.text == "default" => owner.clone(),
                None => {
                    self.note_passed(args, name.span, name.text);
                    Ty::Unknown
                }
            },
            Ty::Object(_) if matches!(name.text, "new" | "default") => owner.clone(),
            _ => {
                self.note_passed(args, name.span, name.text);
                Ty::Unknown
            }
        }
    }

    pub(super) fn method(&mut self, receiver: &Ty, name: Ident<'_>, generic: &[Ty], inner: Cursor<'_>) -> Ty {
        let is_mapping = MAPPING.contains(&name.text);
        // A closure argument usually gets the receiver, e.g. in `list.iter().map(|object| …)`.
        let outer = match receiver {
            Ty::Known(..) if !is_mapping => std::mem::take(&mut self.hint),
            other => std::mem::replace(&mut self.hint, other.clone()),
        };
        let args = self.arguments(inner);
        self.hint = outer;
        match receiver {
            // A row in the table overrides the general rule for passing methods.
            Ty::Known(_, _)
                if is_mapping || PASSING.contains(&name.text) && self.is_row_free(receiver, name.text) => {}
            Ty::Known("Ctx", known) if table::find_call("Ctx", name.text).is_none() => {
                // The context dereferences to its state.
                let state = known.state.clone();
                if matches!(state, Ty::Own(_)) {
                    return self.own_method(&state, name, generic, args);
                }
                return Ty::Unknown;
            }
            Ty::Known(on, known) => return self.known_call(on, known, name, generic, &args),
            Ty::Own(_) => return self.own_method(receiver, name, generic, args),
            _ => {}
        }
        if is_mapping {
            let result = args.iter().find_map(|arg| match arg {
                Ty::Closure(_, result) => Some((**result).clone()),
                Ty::Function(_) => Some(Ty::Unknown),
                _ => None,
            });
            if let Some(Ty::Function(id)) = args.first() {
                return self.functions.call(*id, &[], std::slice::from_ref(receiver));
            }
            return result.unwrap_or_default();
        }
        if PASSING.contains(&name.text) {
            return receiver.clone();
        }
        self.note_passed(&args, name.span, name.text);
        Ty::Unknown
    }

    fn is_row_free(&self, receiver: &Ty, name: &str) -> bool {
        match receiver {
            Ty::Known(on, _) => table::find_call(on, name).is_none(),
            _ => true,
        }
    }

    fn own_method(&mut self, receiver: &Ty, name: Ident<'_>, generic: &[Ty], args: Vec<Ty>) -> Ty {
        match self.find_method(receiver, name.text) {
            (found, Some(id)) => {
                let mut all = vec![found];
                all.extend(args);
                self.functions.call(id, generic, &all)
            }
            (_, None) if PASSING.contains(&name.text) => receiver.clone(),
            (Ty::Known(on, known), None) => self.known_call(on, &known, name, generic, &args),
            _ => {
                self.note_passed(&args, name.span, name.text);
                Ty::Unknown
            }
        }
    }

    fn known_call(
        &mut self,
        on: &'static str,
        known: &Known,
        name: Ident<'_>,
        generic: &[Ty],
        args: &[Ty],
    ) -> Ty {
        let place = self.place(name.span);
        let call = Call {
            on,
            known,
            generic,
            args,
            name: name.text,
            place,
        };
        match table::find_call(on, name.text) {
            Some(row) => self.call(row, &call),
            None if table::is_builder(on) || PASSING.contains(&name.text) || name.text == "new" => {
                Ty::Known(on, Box::new(known.clone()))
            }
            None => Ty::Unknown,
        }
    }

    fn call(&mut self, row: &Row, call: &Call<'_>) -> Ty {
        let is_remote = call.known.is_remote || call.args.iter().any(|arg| is_remote(row, arg));
        for ask in row.asks {
            self.ask(ask, call, is_remote);
        }
        match row.returns {
            Returns::Nothing => Ty::Unknown,
            Returns::Receiver => Ty::Known(call.on, Box::new(call.known.clone())),
            Returns::Remote => Ty::Known(
                call.on,
                Box::new(Known {
                    is_remote: true,
                    ..call.known.clone()
                }),
            ),
            Returns::Value(of) => self.subject(of, call),
            Returns::Known(name, of) => {
                let kind = match of {
                    Of::Any => Ty::Dynamic,
                    of => self.subject(of, call).or(|| call.known.kind.clone()),
                };
                let is_of_cluster = matches!(call.on, "Cluster" | "Clusters");
                Ty::Known(
                    name,
                    Box::new(Known {
                        kind,
                        state: Ty::Unknown,
                        is_remote: is_remote || is_of_cluster,
                    }),
                )
            }
        }
    }

    fn subject(&self, of: Of, call: &Call<'_>) -> Ty {
        let arg = |position: usize| call.args.get(position).cloned().unwrap_or_default();
        let generic = || call.generic.first().cloned().unwrap_or_default();
        match of {
            Of::Receiver => call.known.kind.clone(),
            Of::Generic(position) => generic().or(|| arg(position)),
            Of::Argument(position) => arg(position),
            Of::Inside(position) => arg(position).kind(),
            Of::Mapped(position) => {
                let mapped = match arg(position) {
                    Ty::Closure(parameters, _) => parameters.first().cloned().unwrap_or_default(),
                    Ty::Function(id) => self.functions.parameter(id, 0),
                    _ => Ty::Unknown,
                };
                // A watch has its kind as the first type argument, even in `Watch::<W, _>::mapped`.
                mapped.or(generic).or(|| call.known.kind.clone())
            }
            Of::Fixed(group, plural) => Ty::Object(Resource {
                group: group.to_owned(),
                plural: plural.to_owned(),
                is_namespaced: matches!(plural, "events" | "secrets" | "leases"),
            }),
            Of::Any => Ty::Dynamic,
        }
    }

    fn ask(&mut self, ask: &Ask, call: &Call<'_>, is_remote: bool) {
        // Among patches, only an apply creates objects.
        if call.on == "Api" && ask.verbs == ["create"] && call.args.contains(&Ty::Change) {
            return;
        }
        let strength = if is_remote {
            Strength::Possible
        } else {
            ask.strength
        };
        let subject = self.subject(ask.of, call);
        let part = match ask.part {
            Part::Whole => Some(None),
            Part::Subresource(name) => Some(Some(name.to_owned())),
            Part::Named(position) => match call.args.get(position) {
                Some(Ty::Text(name)) => Some(Some(name.clone())),
                _ => None,
            },
        };
        let why = match (&subject, &part) {
            (Ty::Object(_), None) => Why::Type,
            (Ty::Object(_), Some(_)) => {
                let Ty::Object(resource) = subject else { return };
                self.known.push(Need {
                    place: call.place,
                    call: call.name.to_owned(),
                    resource,
                    part: part.flatten(),
                    verbs: ask.verbs,
                    strength,
                });
                return;
            }
            (Ty::Dynamic, _) if strength == Strength::Possible => Why::AnyKind,
            (Ty::Dynamic, _) => Why::Dynamic,
            (Ty::Foreign(path), _) => Why::Foreign(path.clone()),
            _ => Why::Type,
        };
        if strength == Strength::Optional {
            return;
        }
        let why = if strength == Strength::Possible {
            Why::AnyKind
        } else {
            why
        };
        let resource = match subject {
            Ty::Object(resource) => Some(resource),
            _ => None,
        };
        self.unseen.push(Unseen {
            place: call.place,
            call: call.name.to_owned(),
            resource,
            verbs: ask.verbs,
            why,
        });
    }

    /// Records clients that are passed to code that isn't followed.
    pub(super) fn note_passed(&mut self, args: &[Ty], span: Span, to: &str) {
        for arg in args.iter().filter(|arg| arg.can_send()) {
            let resource = match arg {
                Ty::Known("Api", known) => match &known.kind {
                    Ty::Object(resource) => Some(resource.clone()),
                    _ => None,
                },
                _ => None,
            };
            self.unseen.push(Unseen {
                place: self.place(span),
                call: to.to_owned(),
                resource,
                verbs: &[],
                why: Why::Passed,
            });
        }
    }

    fn place(&self, span: Span) -> Place {
        Place {
            file: self.item.file,
            // The span is relative to the body, which is what was lexed.
            span: span.shifted(self.item.start),
        }
    }
}

fn is_remote(row: &Row, arg: &Ty) -> bool {
    let depends =
        row.on == "Api" || row.on.is_empty() || row.on == "Recorder" || matches!(row.name, "watch" | "with");
    depends && matches!(arg, Ty::Known(_, known) if known.is_remote)
}

/// Finds the row of a free or associated function, as opposed to a method.
fn find_path(path: &str) -> Option<&'static Row> {
    // Programs may depend on kube-runtime directly.
    let path = path.replace("kube_runtime::", "kube::runtime::");
    table::find_call("", &path)
}

fn is_pointer(owner: &[String]) -> bool {
    matches!(
        owner.last().map(String::as_str),
        Some("Arc" | "Rc" | "Box" | "Pin" | "Mutex" | "RwLock" | "RefCell")
    )
}
