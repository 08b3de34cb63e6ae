//! What makes a Go file part of a program: its commands, its flags, and the controllers that it
//! sets up.
//!
//! Flags may be declared with the package `flag`, with pflag, or with a flag set of either, e.g.
//! `cmd.Flags().StringVar(&level, "log-level", …)` or `fs.Bool("dry-run", …)`. The name may also be
//! a constant or variable in the same file.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::{Text, Token};

/// What makes a file part of a program.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Whether the file has `func main`.
    pub has_main: bool,
    /// Names of cobra commands.
    pub commands: Vec<String>,
    /// Names of command-line flags, with their lines.
    pub flags: Vec<(usize, String)>,
    /// Number of controllers and webhooks registered with a manager.
    pub setups: usize,
}

/// Packages with functions that declare flags.
const PACKAGES: [&str; 3] = ["flag", "pflag", "goflag"];
const SETS: [&str; 4] = [
    "Flags",
    "PersistentFlags",
    "LocalFlags",
    "LocalNonPersistentFlags",
];
/// Prefixes of functions that declare a flag.
const KINDS: [&str; 12] = [
    "Bool", "Bytes", "Count", "Duration", "Float", "Func", "IP", "Int", "String", "Text", "Uint", "Var",
];

/// Maximum number of tokens to search for a name. Without a limit, unterminated calls would take
/// quadratic time.
const MAX_TOKENS: usize = 500;

impl Program {
    pub(crate) fn read(tokens: &[Token]) -> Program {
        let names = find_strings(tokens);
        let sets = find_sets(tokens);
        let mut program = Program::default();
        for (at, token) in tokens.iter().enumerate() {
            let Some(word) = token.word() else { continue };
            let is_next =
                |offset: usize, sign: char| tokens.get(at + offset).is_some_and(|token| token.is_sign(sign));
            let is_method = at > 0 && tokens[at - 1].is_sign('.') && is_next(1, '(');
            program.has_main |= word == "func" && tokens.get(at + 1).is_some_and(|next| next.is_word("main"));
            program.setups +=
                usize::from(is_method && word.starts_with("Setup") && word.ends_with("WithManager"));
            if word == "Use" && is_next(1, ':') {
                let name = tokens.get(at + 2).and_then(Token::string);
                let name = name.and_then(|text| text.split_whitespace().next());
                program.commands.extend(name.map(str::to_owned));
            }
            let is_declared = is_method
                && KINDS.iter().any(|kind| word.starts_with(kind))
                && declares_flags(&tokens[..at - 1], &sets);
            if is_declared {
                let name = find_name(word, &tokens[at + 1..], &names);
                program.flags.extend(name.map(|name| (token.line, name)));
            }
        }
        program
    }
}

/// Whether the tokens end with a package or flag set on which a method is then called.
fn declares_flags(before: &[Token], sets: &BTreeSet<&str>) -> bool {
    match before {
        [.., name, open, close] if open.is_sign('(') && close.is_sign(')') => {
            name.word().is_some_and(|name| SETS.contains(&name))
        }
        [.., name] => name
            .word()
            .is_some_and(|name| PACKAGES.contains(&name) || sets.contains(name)),
        [] => false,
    }
}

/// Variables that hold a flag set, as in `fs := cmd.Flags()`, `fs := flag.NewFlagSet(…)` or `fs
/// *pflag.FlagSet`.
fn find_sets(tokens: &[Token]) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        let Some(word) = token.word() else { continue };
        let line = token.line;
        let before = tokens[..at].iter().rev().take(MAX_TOKENS);
        let before = before.take_while(|token| token.line == line);
        let is_made = word == "NewFlagSet" || SETS.contains(&word);
        let holder = match word {
            "FlagSet" => before.filter_map(Token::word).nth(1),
            _ if is_made => {
                let mut words = before.skip_while(|token| !token.is_sign('='));
                words.find_map(Token::word)
            }
            _ => None,
        };
        found.extend(holder);
    }
    found
}

fn find_strings(tokens: &[Token]) -> BTreeMap<&str, &str> {
    let mut found = BTreeMap::new();
    for window in tokens.windows(3) {
        if let [name, equals, value] = window
            && let (Some(name), true, Some(value)) = (name.word(), equals.is_sign('='), value.string())
        {
            found.insert(name, value);
        }
    }
    for window in tokens.windows(4) {
        if let [name, colon, equals, value] = window
            && let (Some(name), true, Some(value)) = (
                name.word(),
                colon.is_sign(':') && equals.is_sign('='),
                value.string(),
            )
        {
            found.insert(name, value);
        }
    }
    found
}

/// The name in a flag declaration, e.g. in `(&level, "log-level", …)`. It is the second argument if
/// the first one is the variable.
fn find_name(function: &str, arguments: &[Token], names: &BTreeMap<&str, &str>) -> Option<String> {
    let position = usize::from(function.contains("Var"));
    let mut depth = 0_usize;
    let mut arguments_before = 0;
    let mut name = Vec::new();
    for token in arguments.iter().take(MAX_TOKENS) {
        match token.text {
            Text::Sign('(' | '{' | '[') => depth += 1,
            Text::Sign(')' | '}' | ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_end = depth == 0 || depth == 1 && token.is_sign(',');
        if is_end && arguments_before == position {
            break;
        }
        if depth == 0 {
            return None;
        }
        if is_end {
            arguments_before += 1;
        } else if arguments_before == position {
            name.push(token);
        }
    }
    // The first argument still has the opening parenthesis.
    let name = match name.as_slice() {
        [open, rest @ ..] if open.is_sign('(') => rest,
        name => name,
    };
    match name {
        [only] => match &only.text {
            Text::String(text) => Some(text.clone()),
            Text::Word(word) => names.get(word.as_str()).map(|text| (*text).to_owned()),
            Text::Sign(_) => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::lexer::tokenize;
    use super::*;

    fn read(source: &str) -> Program {
        Program::read(&tokenize(source).0)
    }

    #[track_caller]
    fn check_flags(source: &str, expected: &[(usize, &str)]) {
        let flags = read(source).flags;
        let found: Vec<(usize, &str)> = flags.iter().map(|(line, name)| (*line, name.as_str())).collect();
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn flags_of_all_packages_are_found() {
        check_flags(
            "flag.StringVar(&a, \"addr\", \":0\", \"x\")\nflag.Parse()\n",
            &[(1, "addr")],
        );
        check_flags("x := flag.Bool(\"dry-run\", false, \"x\")", &[(1, "dry-run")]);
        check_flags(
            "var levelName = \"log-level\"\nrootCmd.PersistentFlags().StringVar(&level, levelName, \"info\", \"one of: \"+\n\"a\")\n\
             root.Flags().DurationVarP(&d, \"sync\", \"s\", 10*time.Hour, \"x\")",
            &[(2, "log-level"), (4, "sync")],
        );
        check_flags(
            "func (o *Options) AddFlags(fs *pflag.FlagSet) {\n fs.IntVar(&o.Port, \"port\", f(1, 2), \"x\")\n}",
            &[(2, "port")],
        );
        check_flags(
            "flags := cmd.Flags()\nflags.Var(&list, \"list\", \"x\")\nfs := flag.NewFlagSet(\"x\", 0)\nfs.Func(\"f\", \"x\", nil)",
            &[(2, "list"), (4, "f")],
        );
    }

    #[test]
    fn other_calls_are_not_flags() {
        check_flags(
            "viper.GetString(\"a\")\nlog.String(\"a\")\nx.IntVar(&a, \"b\")",
            &[],
        );
        check_flags(
            "flag.StringVar(&a, name(), \"x\")\nflag.StringVar(&a, prefix+\"x\", \"x\")",
            &[],
        );
        check_flags("cmd.Flags().Lookup(\"a\")\nrootCmd.Flags().StringVar(", &[]);
    }

    /// An unterminated call must not be slower to read.
    #[test]
    fn unterminated_calls_take_linear_time() {
        for part in ["flag.String(", "NewFlagSet ", "cmd.Flags().Int("] {
            let start = std::time::Instant::now();
            check_flags(&part.repeat(30_000), &[]);
            assert!(start.elapsed().as_secs() < 10, "{part}");
        }
    }

    #[test]
    fn commands_and_controllers_are_found() {
        let source = "var c = &cobra.Command{\n Use: \"cert-controller [flags]\",\n}\nfunc main() {\n err = (&R{}).SetupWithManager(mgr)\n \
                      err = w.SetupCupWebhookWithManager(mgr)\n}\nfunc (r *R) SetupWithManager(mgr M) {}\n";
        let program = read(source);
        assert_eq!(program.commands, ["cert-controller"]);
        assert_eq!((program.has_main, program.setups), (true, 2));
    }
}
