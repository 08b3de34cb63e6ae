//! Parses the parts of a Go file that matter for an operator: imports, functions, controllers,
//! markers and flags.

use std::collections::BTreeMap;

use super::builder::{Builder, read_builder};
use super::expression::{TypeRef, expression_of, find_type, print_tokens};
use super::lexer::{Text, Token, tokenize};
use super::program::Program;

/// The parts of a Go source file that matter for an operator.
#[derive(Debug, Default)]
pub struct GoFile {
    /// Path in the project.
    pub path: String,
    /// Import paths by package name or alias.
    pub imports: BTreeMap<String, String>,
    /// Functions and methods.
    pub functions: Vec<Function>,
    /// Controllers built in this file.
    pub controllers: Vec<Builder>,
    /// Object types passed to `NewWebhookManagedBy`.
    pub webhooks: Vec<TypeRef>,
    /// Markers without the leading `+`, with their lines.
    pub markers: Vec<(usize, String)>,
    /// Values assigned to `LeaderElectionID`.
    pub leader_election_ids: Vec<Setting>,
    /// What makes the file part of a program.
    pub program: Program,
}

/// A function or method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// First line.
    pub line: usize,
    /// Type of the receiver, for a method.
    pub receiver: Option<String>,
    /// Name.
    pub name: String,
    /// Last line.
    pub end: usize,
}

/// A value assigned to a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Line of the assignment.
    pub line: usize,
    /// Expression as written, with normalized whitespace.
    pub expression: String,
    /// Value of a string literal.
    pub literal: Option<String>,
}

const BUILDERS: [&str; 2] = ["NewControllerManagedBy", "NewWebhookManagedBy"];

impl GoFile {
    /// Parses a file. Never fails, because unrecognized parts are skipped.
    pub fn parse(path: &str, source: &str) -> GoFile {
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
        file.program = Program::read(&tokens);
        file
    }

    pub(crate) fn parse_imports(path: &str, source: &str) -> GoFile {
        // Imports precede all other declarations, so the rest of the file needn't be tokenized.
        let ends = ["\nconst ", "\nfunc ", "\ntype ", "\nvar "];
        let end = ends.iter().filter_map(|word| source.find(word)).min();
        let (tokens, _) = tokenize(&source[..end.unwrap_or(source.len())]);
        let mut file = GoFile {
            path: path.to_owned(),
            ..GoFile::default()
        };
        file.read_imports(&tokens);
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
                    // A dot import.
                    Text::Sign('.') => {}
                    Text::Sign(_) => break,
                }
                at += 1;
            }
        }
    }

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
                // gofmt puts each declaration at the start of a line and outside of brackets. Any
                // other `func` is a literal or a type.
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
            // A chain ends where the next one starts, or with its function.
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
            // A field in a literal or an assignment, but not a comparison.
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
    }

    /// Whether the file has any functions or methods.
    pub fn has_logic(&self) -> bool {
        !self.functions.is_empty()
    }
}

/// Default name of a package in Go: the last segment of its path that isn't a version.
fn default_name(path: &str) -> String {
    let is_version = |part: &&str| {
        part.len() > 1 && part.starts_with('v') && part[1..].bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or(path);
    match (is_version(&last), parts.next()) {
        // `api/v1` is a package named v1, but `x/v2` is version 2 of a module named x.
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
    fn function_literals_and_types_are_ignored() {
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
        assert_eq!(file.program.flags, [(2, "metrics-bind-address".to_owned())]);
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
    fn invalid_go_does_not_panic() {
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
