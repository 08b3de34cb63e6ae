//! A Go file, read for what an operator has in it: imports, functions, controllers, markers and flags.

use std::collections::BTreeMap;

use super::lexer::{Text, Token, tokenize};

/// A file of Go source.
#[derive(Debug, Default)]
pub(crate) struct GoFile {
    /// Its path in the project.
    pub(crate) path: String,
    /// The import path of each name that packages have in this file.
    pub(crate) imports: BTreeMap<String, String>,
    pub(crate) functions: Vec<Function>,
    pub(crate) controllers: Vec<Builder>,
    /// Types of the objects of `NewWebhookManagedBy`.
    pub(crate) webhooks: Vec<TypeRef>,
    /// Markers with their lines, without the plus.
    pub(crate) markers: Vec<(usize, String)>,
    /// What `LeaderElectionID` is set to.
    pub(crate) leader_election_ids: Vec<Setting>,
    /// Names of command-line flags with their lines.
    pub(crate) flags: Vec<(usize, String)>,
}

/// A function or method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) line: usize,
    /// The type that it is a method of.
    pub(crate) receiver: Option<String>,
    pub(crate) name: String,
    /// The line in which it ends.
    pub(crate) end: usize,
}

/// A value of a field that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) line: usize,
    /// The expression, as in the source but for white space.
    pub(crate) expression: String,
    /// The string, if the expression is a literal.
    pub(crate) literal: Option<String>,
}

/// A call that was passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtherCall {
    pub(crate) line: usize,
    pub(crate) name: String,
    /// What it is given, as in the source but for white space.
    pub(crate) arguments: String,
}

/// A type, as `&appsv1.Deployment{}` names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TypeRef {
    pub(crate) line: usize,
    /// Name of its package in the file; empty for the package of the file.
    pub(crate) package: String,
    pub(crate) name: String,
}

/// The calls after `NewControllerManagedBy`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Builder {
    pub(crate) line: usize,
    pub(crate) kind: Option<TypeRef>,
    pub(crate) owns: Vec<TypeRef>,
    pub(crate) watches: Vec<GoWatch>,
    pub(crate) name: Option<String>,
    /// True if reconciles follow only changes of the generation.
    pub(crate) is_by_generation: bool,
    pub(crate) concurrency: Option<u16>,
    /// Calls, or options of them, that have been passed over.
    pub(crate) others: Vec<OtherCall>,
}

/// A call of `Watches`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GoWatch {
    pub(crate) object: TypeRef,
    /// The function that maps objects, or the handler.
    pub(crate) handler: String,
}

const BUILDERS: [&str; 2] = ["NewControllerManagedBy", "NewWebhookManagedBy"];

/// Calls of a builder that have no counterpart because there is nothing to say.
const SILENT: [&str; 4] = ["Complete", "Build", "WithDefaulter", "WithValidator"];

impl GoFile {
    /// Reads a file. Whatever the text is, this gives what was recognized in it.
    pub(crate) fn parse(path: &str, source: &str) -> GoFile {
        let (tokens, markers) = tokenize(source);
        let mut file = GoFile {
            path: path.to_owned(),
            markers,
            ..GoFile::default()
        };
        file.read_imports(&tokens);
        file.read_functions(&tokens);
        file.read_builders(&tokens);
        file.read_settings(&tokens);
        file
    }

    fn read_imports(&mut self, tokens: &[Token]) {
        let mut at = 0;
        while at < tokens.len() {
            if !tokens[at].is_word("import") {
                at += 1;
                continue;
            }
            at += 1;
            let is_list = tokens.get(at).is_some_and(|token| token.is_sign('('));
            at += usize::from(is_list);
            let mut alias = None;
            while let Some(token) = tokens.get(at) {
                match &token.text {
                    Text::Word(word) => alias = Some(word.clone()),
                    Text::String(path) => {
                        let name = alias.take().unwrap_or_else(|| default_name(path));
                        self.imports.insert(name, path.clone());
                        if !is_list {
                            break;
                        }
                    }
                    Text::Sign('.') => {}
                    Text::Sign(_) => break,
                }
                at += 1;
            }
        }
    }

    /// Reads the functions of the file. One begins a line, as gofmt has it, outside of all brackets: others are literals, as
    /// the arguments of calls are, or types.
    fn read_functions(&mut self, tokens: &[Token]) {
        let mut depth = 0_usize;
        for (at, token) in tokens.iter().enumerate() {
            let begins_line = at == 0 || tokens[at - 1].line < token.line;
            match token.text {
                Text::Sign('{' | '(') => depth += 1,
                Text::Sign(')') => depth = depth.saturating_sub(1),
                Text::Sign('}') => {
                    depth = depth.saturating_sub(1);
                    if let Some(open) = self
                        .functions
                        .last_mut()
                        .filter(|open| depth == 0 && open.end == 0)
                    {
                        open.end = token.line;
                    }
                }
                _ if depth == 0 && begins_line && token.is_word("func") => {
                    self.functions.extend(read_function(&tokens[at..]))
                }
                _ => {}
            }
        }
        for function in &mut self.functions {
            function.end = function.end.max(function.line);
        }
    }

    fn read_builders(&mut self, tokens: &[Token]) {
        let starts: Vec<usize> = (0..tokens.len())
            .filter(|at| tokens[*at].word().is_some_and(|word| BUILDERS.contains(&word)))
            .collect();
        for (number, start) in starts.iter().enumerate() {
            let limit = starts.get(number + 1).copied().unwrap_or(tokens.len());
            let line = tokens[*start].line;
            let end = self
                .functions
                .iter()
                .find(|function| function.line <= line && line <= function.end);
            let end = end.map_or(line, |function| function.end);
            let own: Vec<&Token> = tokens[*start..limit]
                .iter()
                .take_while(|token| token.line <= end)
                .collect();
            if tokens[*start].is_word(BUILDERS[0]) {
                self.controllers.push(read_builder(line, &own));
            } else {
                self.webhooks.extend(find_type(&own));
            }
        }
    }

    fn read_settings(&mut self, tokens: &[Token]) {
        for (at, token) in tokens.iter().enumerate() {
            let sets = |sign: char| tokens.get(at + 1).is_some_and(|next| next.is_sign(sign));
            // A field of a literal, or an assignment; `==` compares.
            let is_assigned = sets('=') && tokens.get(at + 2).is_some_and(|next| !next.is_sign('='));
            if token.is_word("LeaderElectionID") && (sets(':') || is_assigned) {
                let value = &tokens[at + 2..];
                self.leader_election_ids.push(Setting {
                    line: token.line,
                    expression: print_tokens(expression_of(value, token.line)),
                    literal: value.first().and_then(|value| value.string().map(str::to_owned)),
                });
            }
        }
        for (at, token) in tokens.iter().enumerate() {
            let is_call = token.is_word("flag") && tokens.get(at + 1).is_some_and(|token| token.is_sign('.'));
            let declares = |name: &str| {
                ["String", "Bool", "Int", "Duration", "Float64", "Uint"]
                    .iter()
                    .any(|kind| name.starts_with(kind))
                    || name == "Var"
            };
            if is_call && tokens.get(at + 2).and_then(Token::word).is_some_and(declares) {
                let arguments = tokens[at + 3..]
                    .iter()
                    .take(8)
                    .take_while(|token| !token.is_sign(')'));
                let name = arguments
                    .filter_map(|token| Some((token.line, token.string()?.to_owned())))
                    .next();
                self.flags.extend(name);
            }
        }
    }

    /// Returns whether the file has functions or methods.
    pub(crate) fn has_logic(&self) -> bool {
        !self.functions.is_empty()
    }
}

/// The name that a package has without an alias: the last part of its path that is no version.
fn default_name(path: &str) -> String {
    let is_version = |part: &&str| {
        part.len() > 1 && part.starts_with('v') && part[1..].bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or(path);
    match (is_version(&last), parts.next()) {
        // A package `api/v1` is called v1, and a module `x/v2` is called x.
        (true, Some(above))
            if !above.is_empty()
                && path.contains('.')
                && path.matches('/').count() == 2
                && !path.starts_with("k8s.io/") =>
        {
            above.to_owned()
        }
        _ => last.to_owned(),
    }
}

/// Reads `func (r *Type) Name(`.
fn read_function(tokens: &[Token]) -> Option<Function> {
    let mut rest = &tokens[1..];
    let mut receiver = None;
    if rest.first()?.is_sign('(') {
        let close = rest.iter().position(|token| token.is_sign(')'))?;
        receiver = rest[1..close]
            .iter()
            .filter_map(Token::word)
            .nth(if close > 2 { 1 } else { 0 })
            .map(str::to_owned);
        if rest[1..close].iter().filter_map(Token::word).count() == 1 {
            receiver = rest[1..close].iter().find_map(Token::word).map(str::to_owned);
        }
        rest = &rest[close + 1..];
    }
    let name = rest.first()?;
    Some(Function {
        line: name.line,
        receiver,
        name: name.word()?.to_owned(),
        end: 0,
    })
}

/// Reads the calls of a chain: those in parentheses belong to the call around them.
fn read_builder(line: usize, tokens: &[&Token]) -> Builder {
    let mut builder = Builder {
        line,
        ..Builder::default()
    };
    let mut at = skip_arguments(tokens, 1);
    while let (Some(dot), Some(name)) = (tokens.get(at), tokens.get(at + 1)) {
        let Some(name) = name.word().filter(|_| dot.is_sign('.')) else {
            // A chain may go on in another statement: `b = b.Owns(…)`.
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
        let generation = has_word("GenerationChangedPredicate") && !has_word("Or");
        match name {
            "For" => {
                self.kind = find_type(arguments).or(self.kind.take());
                self.is_by_generation |= generation;
            }
            "Owns" => match find_type(arguments) {
                Some(owned) => self.owns.push(owned),
                None => self.pass_over(line, name, arguments),
            },
            "Watches" => match find_type(arguments) {
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
            "WithEventFilter" if generation => self.is_by_generation = true,
            "WithOptions" => self.add_options(line, arguments),
            name if SILENT.contains(&name) => {}
            // What is neither is a call of something else in the same function.
            name if [
                "WithEventFilter",
                "WatchesRawSource",
                "WatchesMetadata",
                "WithLogConstructor",
            ]
            .contains(&name) =>
            {
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

    /// Adds what `WithOptions(controller.Options{…})` sets: the number of reconciles at a time is known, if it is a literal.
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

/// Returns the tokens of an expression: up to the comma or bracket that ends it, or the end of its line.
fn expression_of(tokens: &[Token], line: usize) -> impl Iterator<Item = &Token> {
    let mut depth = 0_usize;
    tokens.iter().take_while(move |token| {
        let is_end = token.line > line || token.is_sign(',') || token.is_sign('}') || token.is_sign(')');
        if depth == 0 && is_end {
            return false;
        }
        match token.text {
            Text::Sign('(' | '{' | '[') => depth += 1,
            Text::Sign(')' | '}' | ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        true
    })
}

/// Longest expression that is shown, in characters.
const LONGEST_EXPRESSION: usize = 80;

/// Prints tokens in one line.
fn print_tokens<'t>(tokens: impl Iterator<Item = &'t Token>) -> String {
    let mut text = String::new();
    let mut is_after_word = false;
    for token in tokens {
        match &token.text {
            Text::Word(word) => {
                if is_after_word {
                    text.push(' ');
                }
                text.push_str(word);
            }
            Text::String(string) => text.push_str(&format!("{string:?}")),
            Text::Sign(sign) => text.push(*sign),
        }
        if token.is_sign(',') || token.is_sign(':') {
            text.push(' ');
        }
        is_after_word = token.word().is_some();
        if text.chars().count() > LONGEST_EXPRESSION {
            text = text.chars().take(LONGEST_EXPRESSION).chain(['…']).collect();
            break;
        }
    }
    text
}

/// Returns the end of the arguments that begin at a place; the place itself if no arguments do.
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

/// Finds `&package.Type{`, `&Type{` or `new(package.Type)`.
fn find_type(tokens: &[&Token]) -> Option<TypeRef> {
    let at = tokens.iter().enumerate().position(|(at, token)| {
        token.is_sign('&')
            || token.is_word("new") && tokens.get(at + 1).is_some_and(|token| token.is_sign('('))
    })?;
    let start = at + if tokens[at].is_sign('&') { 1 } else { 2 };
    let first = tokens.get(start)?.word()?.to_owned();
    let line = tokens[start].line;
    if tokens.get(start + 1).is_some_and(|token| token.is_sign('.')) {
        let name = tokens.get(start + 2)?.word()?.to_owned();
        return Some(TypeRef {
            line,
            package: first,
            name,
        });
    }
    Some(TypeRef {
        line,
        package: String::new(),
        name: first,
    })
}

/// Returns what follows `EnqueueRequestsFromMapFunc(`, or the name of another handler.
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

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROLLER: &str = r#"package controller

import (
	"context"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"example.com/shop/api/v1"
)

// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list
func (r *CupReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

func (r *CupReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1.Cup{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.Deployment{}).
		Owns(new(corev1.Service)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.cupsOf)).
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 3}).
		WatchesRawSource(source).
		Named("cup-brewer").
		Complete(r)
}
"#;

    #[test]
    fn a_controller_is_read() {
        let file = GoFile::parse("a.go", CONTROLLER);
        let names: Vec<(Option<&str>, &str, usize, usize)> = file
            .functions
            .iter()
            .map(|found| {
                (
                    found.receiver.as_deref(),
                    found.name.as_str(),
                    found.line,
                    found.end,
                )
            })
            .collect();
        assert_eq!(
            names,
            [
                (Some("CupReconciler"), "Reconcile", 12, 14),
                (Some("CupReconciler"), "SetupWithManager", 16, 27)
            ]
        );
        assert_eq!(file.imports["appsv1"], "k8s.io/api/apps/v1");
        assert_eq!(file.imports["v1"], "example.com/shop/api/v1");
        assert_eq!(
            file.markers,
            [(
                11,
                "kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list".to_owned()
            )]
        );
        let [builder] = file.controllers.as_slice() else {
            panic!("{:?}", file.controllers)
        };
        let shown = |found: &TypeRef| format!("{}.{}:{}", found.package, found.name, found.line);
        assert_eq!(builder.kind.as_ref().map(shown).as_deref(), Some("v1.Cup:18"));
        assert_eq!(
            builder.owns.iter().map(shown).collect::<Vec<_>>(),
            ["appsv1.Deployment:19", "corev1.Service:20"]
        );
        let watches: Vec<String> = builder
            .watches
            .iter()
            .map(|watch| format!("{} {}", shown(&watch.object), watch.handler))
            .collect();
        assert_eq!(
            watches,
            [
                "corev1.Secret:21 cupsOf",
                "corev1.Node:22 EnqueueRequestForObject"
            ]
        );
        assert_eq!(
            (
                builder.name.as_deref(),
                builder.is_by_generation,
                builder.concurrency
            ),
            (Some("cup-brewer"), true, Some(3))
        );
        let others: Vec<(usize, &str)> = builder
            .others
            .iter()
            .map(|other| (other.line, other.name.as_str()))
            .collect();
        assert_eq!(others, [(24, "WatchesRawSource")]);
    }

    #[test]
    fn literals_and_types_are_no_functions() {
        let source = "var (\n\tBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {\n\t\treturn nil\n\t})\n)\n\n\
                      type Hook func(cup *Cup) error\n\nvar hooks = list(\n\tfunc(cup *Cup) error { return nil },\n)\n\n\
                      func brew(hook func(cup *Cup) error) error {\n\treturn hook(nil)\n}\n";
        let file = GoFile::parse("a.go", source);
        let names: Vec<_> = file
            .functions
            .iter()
            .map(|found| (found.name.as_str(), found.line, found.end))
            .collect();
        assert_eq!(names, [("brew", 13, 15)]);
    }

    #[test]
    fn settings_and_webhooks_are_read() {
        let file = GoFile::parse(
            "m.go",
            "func main() {\n flag.StringVar(&a, \"metrics-bind-address\", \"0\", \"x\")\n flag.Parse()\n ctrl.NewWebhookManagedBy(mgr).For(&v1.Cup{}).Complete()\n o := Options{LeaderElectionID: \"a.b\"}\n}",
        );
        assert_eq!(file.flags, [(2, "metrics-bind-address".to_owned())]);
        assert_eq!(
            file.leader_election_ids,
            [Setting {
                line: 5,
                expression: "\"a.b\"".into(),
                literal: Some("a.b".into()),
            }]
        );
        assert_eq!(
            file.webhooks,
            [TypeRef {
                line: 4,
                package: "v1".into(),
                name: "Cup".into()
            }]
        );
    }

    #[test]
    fn options_are_read_one_by_one() {
        let source = "func setup() {\n ctrl.NewControllerManagedBy(mgr).For(&v1.Cup{}).\n  WithOptions(controller.Options{\n   MaxConcurrentReconciles: 3,\n   RateLimiter: workqueue.NewMaxOf(f(1, 2), x),\n   CacheSyncTimeout: time.Minute,\n  }).\n  WithEventFilter(ignoreStatus(r.Log, \"x\")).\n  Complete(r)\n}\n";
        let file = GoFile::parse("c.go", source);
        let builder = &file.controllers[0];
        assert_eq!(builder.concurrency, Some(3));
        let others: Vec<(usize, &str, &str)> = builder
            .others
            .iter()
            .map(|other| (other.line, other.name.as_str(), other.arguments.as_str()))
            .collect();
        assert_eq!(
            others,
            [
                (5, "RateLimiter", "workqueue.NewMaxOf(f(1, 2), x)"),
                (6, "CacheSyncTimeout", "time.Minute"),
                (8, "WithEventFilter", "ignoreStatus(r.Log, \"x\")"),
            ]
        );
        let source = "func setup() {\n ctrl.NewControllerManagedBy(mgr).For(&v1.Cup{}).WithOptions(opts).Complete(r)\n}\n";
        let others = GoFile::parse("c.go", source).controllers.remove(0).others;
        assert_eq!(
            (others[0].name.as_str(), others[0].arguments.as_str()),
            ("WithOptions", "opts")
        );
    }

    #[test]
    fn settings_of_the_lease_are_found_with_their_lines() {
        let source = "func main() {\n o := Options{\n  LeaderElectionID: config.Name(\"a\"),\n }\n o.LeaderElectionID = \"b\"\n if o.LeaderElectionID == \"\" {}\n}\n";
        let found: Vec<(usize, String, Option<String>)> = GoFile::parse("m.go", source)
            .leader_election_ids
            .into_iter()
            .map(|setting| (setting.line, setting.expression, setting.literal))
            .collect();
        assert_eq!(
            found,
            [
                (3, "config.Name(\"a\")".to_owned(), None),
                (5, "\"b\"".to_owned(), Some("b".to_owned())),
            ]
        );
    }

    #[test]
    fn what_is_no_go_is_read_without_panic() {
        for source in [
            "",
            "func",
            "func (",
            "func (r",
            "import",
            "import (",
            "NewControllerManagedBy",
            "NewControllerManagedBy(",
            "x.NewControllerManagedBy(m).For(",
            "NewControllerManagedBy(m).For(&",
            "flag.String",
            "LeaderElectionID:",
            "}}}}",
            "NewControllerManagedBy(m).Watches(&a.B{}, EnqueueRequestsFromMapFunc",
        ] {
            GoFile::parse("a.go", source);
        }
    }
}
