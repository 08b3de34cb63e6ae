//! The method chain that builds a controller: `NewControllerManagedBy(mgr).For(…).Owns(…)`.

use super::expression::{TypeRef, find_type, print_tokens};
use super::lexer::{Text, Token};

/// Parsed chain after `NewControllerManagedBy`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Builder {
    /// Line where the chain starts.
    pub line: usize,
    /// Type passed to `For`.
    pub kind: Option<TypeRef>,
    /// Types passed to `Owns`.
    pub owns: Vec<TypeRef>,
    /// Calls of `Watches`.
    pub watches: Vec<GoWatch>,
    /// Name passed to `Named`, if it is a literal.
    pub name: Option<String>,
    /// Whether only a change of the generation triggers a reconcile.
    pub is_by_generation: bool,
    /// `MaxConcurrentReconciles`, if it's a literal.
    pub concurrency: Option<u16>,
    /// Calls and options that we don't convert.
    pub others: Vec<OtherCall>,
}

/// A call of `Watches`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoWatch {
    /// The watched type.
    pub object: TypeRef,
    /// Map function, or name of another handler.
    pub handler: String,
}

/// A call that we don't convert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherCall {
    /// Line of the call.
    pub line: usize,
    /// Name of the method.
    pub name: String,
    /// Arguments as written, with normalized whitespace.
    pub arguments: String,
}

/// Calls that need no counterpart in Rust.
const SILENT: [&str; 4] = ["Complete", "Build", "WithDefaulter", "WithValidator"];

/// Reads the calls of a chain. Nested calls count as arguments of the outer one.
pub(crate) fn read_builder(line: usize, tokens: &[&Token]) -> Builder {
    let mut builder = Builder {
        line,
        ..Builder::default()
    };
    let mut at = skip_arguments(tokens, 1);
    while let (Some(dot), Some(name)) = (tokens.get(at), tokens.get(at + 1)) {
        let Some(name) = name.word().filter(|_| dot.is_sign('.')) else {
            // Go on: the chain may continue in another statement, e.g. `b = b.Owns(…)`.
            at += 1;
            continue;
        };
        let end = skip_arguments(tokens, at + 2);
        if end == at + 2 {
            at = end;
            continue;
        }
        builder.add_call(tokens[at + 1].line, name, &tokens[at + 2..end]);
        at = end;
    }
    builder
}

impl Builder {
    fn add_call(&mut self, line: usize, name: &str, arguments: &[&Token]) {
        let has_word = |word: &str| arguments.iter().any(|token| token.is_word(word));
        let generation =
            has_word("GenerationChangedPredicate") || has_word("TypedGenerationChangedPredicate");
        // Within `Or` or `Not`, the predicate doesn't limit events to generation changes.
        let generation = generation && !has_word("Or") && !has_word("Not");
        let predicates = predicates_of(name, arguments);
        let is_taken = generation && is_generation_alone(predicates) && TAKEN.contains(&name);
        if !predicates.is_empty() && !is_taken {
            let name = if name == "WithEventFilter" {
                name
            } else {
                "WithPredicates"
            };
            self.pass_over(line, name, arguments);
        }
        match name {
            "For" => {
                self.kind = find_type(arguments).or(self.kind.take());
                self.is_by_generation |= generation;
            }
            "Owns" => match find_type(arguments) {
                Some(owned) => self.owns.push(owned),
                None => self.pass_over(line, name, arguments),
            },
            "Watches" => match find_watched_type(arguments) {
                Some(object) => self.watches.push(GoWatch {
                    object,
                    handler: find_handler(arguments),
                }),
                None => self.pass_over(line, name, arguments),
            },
            "Named" => {
                self.name = arguments
                    .iter()
                    .find_map(|token| token.string())
                    .map(str::to_owned)
                    .or(self.name.take())
            }
            "WithEventFilter" => self.is_by_generation |= generation,
            "WithOptions" => self.add_options(line, arguments),
            name if SILENT.contains(&name) => {}
            // Only report these names; others are unrelated calls in the same function.
            name if ["WatchesRawSource", "WatchesMetadata", "WithLogConstructor"].contains(&name) => {
                self.pass_over(line, name, arguments)
            }
            _ => {}
        }
    }

    fn pass_over(&mut self, line: usize, name: &str, arguments: &[&Token]) {
        let inside = arguments
            .get(1..arguments.len().saturating_sub(1))
            .unwrap_or_default();
        self.others.push(OtherCall {
            line,
            name: name.to_owned(),
            arguments: print_tokens(inside.iter().copied()),
        });
    }

    fn add_options(&mut self, line: usize, arguments: &[&Token]) {
        let Some(open) = arguments.iter().position(|token| token.is_sign('{')) else {
            return self.pass_over(line, "WithOptions", arguments);
        };
        let mut at = open + 1;
        while let Some(name) = arguments.get(at).and_then(|token| token.word()) {
            if !arguments.get(at + 1).is_some_and(|token| token.is_sign(':')) {
                break;
            }
            let value = &arguments[at + 2..];
            let end = value.iter().scan(0_usize, |depth, token| {
                let is_end = *depth == 0 && (token.is_sign(',') || token.is_sign('}'));
                match token.text {
                    Text::Sign('(' | '{' | '[') => *depth += 1,
                    Text::Sign(')' | '}' | ']') => *depth = depth.saturating_sub(1),
                    _ => {}
                }
                Some(is_end)
            });
            let end = end.take_while(|is_end| !is_end).count();
            let number = match &value[..end] {
                // Without a type checker, we only know the values of literals.
                [number] if name == "MaxConcurrentReconciles" => {
                    number.word().and_then(|word| word.parse().ok())
                }
                _ => None,
            };
            match number {
                Some(number) => self.concurrency = Some(number),
                None => self.others.push(OtherCall {
                    line: arguments[at].line,
                    name: name.to_owned(),
                    arguments: print_tokens(value[..end].iter().copied()),
                }),
            }
            at += 2 + end + 1;
        }
    }
}

/// Calls on which a generation predicate has an equivalent in Rust.
const TAKEN: [&str; 2] = ["For", "WithEventFilter"];

/// The predicates of a call, usually wrapped in `builder.WithPredicates(…)`.
fn predicates_of<'a, 't>(name: &str, arguments: &'a [&'t Token]) -> &'a [&'t Token] {
    match name {
        "WithEventFilter" => arguments,
        "For" | "Owns" | "Watches" => {
            let start = arguments.iter().position(|token| token.is_word("WithPredicates"));
            start.map_or(&[], |start| {
                &arguments[start + 1..skip_arguments(arguments, start + 1)]
            })
        }
        _ => &[],
    }
}

/// Whether the generation predicate is the only one.
fn is_generation_alone(predicates: &[&Token]) -> bool {
    let mut words = predicates.iter().filter_map(|token| token.word());
    words.all(|word| {
        ["predicate", "client", "Object"].contains(&word) || word.ends_with("GenerationChangedPredicate")
    })
}

/// End of the argument list at `start`, or `start` itself if there is none.
fn skip_arguments(tokens: &[&Token], start: usize) -> usize {
    if !tokens.get(start).is_some_and(|token| token.is_sign('(')) {
        return start;
    }
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.text {
            Text::Sign('(' | '{' | '[') => depth += 1,
            Text::Sign(')' | '}' | ']') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

fn find_watched_type(tokens: &[&Token]) -> Option<TypeRef> {
    let found = find_type(tokens)?;
    match (found.package.as_str(), found.name.as_str()) {
        // Before controller-runtime 0.15, `Watches` took `&source.Kind{Type: &Type{}}`.
        ("source", "Kind") => {
            let at = tokens.iter().position(|token| token.is_word("Kind"))?;
            find_type(&tokens[at..])
        }
        ("source", _) => None,
        _ => Some(found),
    }
}

/// The argument of `EnqueueRequestsFromMapFunc(`, or the name of another handler.
fn find_handler(tokens: &[&Token]) -> String {
    let known = ["EnqueueRequestsFromMapFunc", "TypedEnqueueRequestsFromMapFunc"];
    if let Some(at) = tokens
        .iter()
        .position(|token| token.word().is_some_and(|word| known.contains(&word)))
    {
        let name = tokens[at + 1..].iter().take_while(|token| !token.is_sign(')'));
        let name = name.filter_map(|token| token.word()).last();
        return name.filter(|name| *name != "func").unwrap_or_default().to_owned();
    }
    let mut words = tokens.iter().filter_map(|token| token.word());
    words
        .find(|word| word.starts_with("EnqueueRequest"))
        .unwrap_or_default()
        .to_owned()
}
