//! The programs and commands of a Go project. src/main.rs replaces the manager, but none of the
//! others.

use crate::paths::folder_of;
use rbuilder_go_project::GoFile;

/// Flags scaffolded by kubebuilder that the manager supports or no longer needs.
const KNOWN_FLAGS: &[&str] = &[
    "metrics-bind-address",
    "health-probe-bind-address",
    "leader-elect",
    "metrics-secure",
    "webhook-cert-path",
    "webhook-cert-name",
    "webhook-cert-key",
    "webhook-port",
    "metrics-cert-path",
    "metrics-cert-name",
    "metrics-cert-key",
    "enable-http2",
];

pub(super) struct Programs<'a> {
    /// The file that starts the manager.
    manager: Option<&'a GoFile>,
    others: Vec<&'a str>,
}

impl<'a> Programs<'a> {
    pub(super) fn find(files: &'a [GoFile]) -> Programs<'a> {
        let starts_manager = |file: &&GoFile| !file.leader_election_ids.is_empty() || file.program.has_main;
        let mut manager: Option<&GoFile> = None;
        for file in files.iter().filter(starts_manager) {
            // The manager is the program that sets up the most controllers and webhooks.
            if manager.is_none_or(|known| rank(file) > rank(known)) {
                manager = Some(file);
            }
        }
        let own = manager.map_or("", |file| folder_of(&file.path));
        // The manager's `main` may be in another package that imports this one.
        let is_other = |file: &&GoFile| {
            let below = format!("/{own}");
            let mut imports = file.imports.values();
            folder_of(&file.path) != own && !imports.any(|import| import.ends_with(&below))
        };
        let mains = files.iter().filter(|file| has_program(file));
        Programs {
            manager,
            others: mains.filter(is_other).map(|file| folder_of(&file.path)).collect(),
        }
    }

    /// Describes the parts of a program in a file and what to do about them. Empty if there are
    /// none.
    pub(super) fn describe(&self, file: &GoFile) -> String {
        let program = &file.program;
        let other = self.name_other(file);
        let is_root =
            has_program(file) || !program.commands.is_empty() || !file.leader_election_ids.is_empty();
        let mut text = match &other {
            _ if self.is_manager(file) => "It starts the manager, as src/main.rs does; controllers and webhooks are registered in src/controller/mod.rs and src/webhook/mod.rs.\n".to_owned(),
            Some(other) if is_root => format!(
                "It is {other} of the Go project, which src/main.rs does not replace. Port it to a separate binary \
                 in src/bin, or drop it if nothing runs it.\n"
            ),
            _ => String::new(),
        };
        let place = match &other {
            Some(other) => format!("the arguments of {other}"),
            None => "`Args` in src/main.rs".to_owned(),
        };
        for (line, flag) in &program.flags {
            if other.is_some() || !KNOWN_FLAGS.contains(&flag.as_str()) {
                text.push_str(&format!(
                    "- [ ] add the flag `--{flag}` (line {line}) to {place}\n"
                ));
            }
        }
        text
    }

    fn is_manager(&self, file: &GoFile) -> bool {
        self.manager.is_some_and(|manager| manager.path == file.path)
    }

    /// The program or command of a file. `None` for the manager's files and for files outside of
    /// any program.
    fn name_other(&self, file: &GoFile) -> Option<String> {
        let folder = folder_of(&file.path);
        if self.is_manager(file) {
            None
        } else if self.others.contains(&folder) {
            Some(match folder {
                "" => "a program".to_owned(),
                folder => format!("the program `{folder}`"),
            })
        } else if let Some(name) = file.program.commands.first() {
            Some(format!("the command `{name}`"))
        } else {
            (!file.leader_election_ids.is_empty()).then(|| "a command".to_owned())
        }
    }
}

/// Ranks a file by how likely it is to start the manager, with the likeliest highest.
fn rank(file: &GoFile) -> (usize, bool, bool) {
    (
        file.program.setups,
        !file.leader_election_ids.is_empty(),
        file.program.has_main,
    )
}

/// Whether a file has a `func main` with more than one statement.
fn has_program(file: &GoFile) -> bool {
    let mut functions = file.functions.iter();
    file.program.has_main
        // An empty `main` only satisfies some tool.
        && functions.any(|function| function.name == "main" && function.end - function.line > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANAGER: &str = "func init() {\n root.Flags().StringVar(&a, \"log-level\", \"info\", \"x\")\n root.Flags().BoolVar(&b, \"leader-elect\", false, \"x\")\n}\n\
         var root = &cobra.Command{\n Use: \"shop\",\n Run: func() {\n  o := Options{LeaderElectionID: \"shop\"}\n  r.SetupWithManager(m)\n }}\n\
         func main() {\n if err := root.Execute(); err != nil {\n  os.Exit(1)\n }\n}\n";
    const COMMAND: &str = "var cert = &cobra.Command{\n Use: \"cert-controller\",\n Run: func() {\n  o := Options{LeaderElectionID: \"cert\"}\n }}\n\
         func init() {\n cert.Flags().StringVar(&a, \"service\", \"x\", \"x\")\n}\n";

    #[track_caller]
    fn check(files: &[(&str, &str)], path: &str, expected: &str) {
        let files: Vec<GoFile> = files
            .iter()
            .map(|(path, text)| GoFile::parse(path, text))
            .collect();
        let programs = Programs::find(&files);
        let file = files.iter().find(|file| file.path == path).expect("a file");
        assert_eq!(programs.describe(file), expected);
    }

    #[test]
    fn second_command_is_not_the_manager() {
        let files = [("cmd/cert.go", COMMAND), ("cmd/main.go", MANAGER)];
        check(
            &files,
            "cmd/cert.go",
            "It is the command `cert-controller` of the Go project, which src/main.rs does not replace. Port it to \
             a separate binary in src/bin, or drop it if nothing runs it.\n- [ ] add the flag `--service` (line 7) to the arguments of the command `cert-controller`\n",
        );
        check(
            &files,
            "cmd/main.go",
            "It starts the manager, as src/main.rs does; controllers and webhooks are registered in src/controller/mod.rs and src/webhook/mod.rs.\n\
             - [ ] add the flag `--log-level` (line 2) to `Args` in src/main.rs\n",
        );
    }

    #[test]
    fn programs_are_told_apart() {
        let launcher = "func New() {\n o.LeaderElectionID = \"x\"\n r.SetupWithManager(m)\n}\n";
        let main = "import \"example.com/shop/launcher\"\nfunc main() {\n a := flag.String(\"addr\", \"\", \"x\")\n launcher.New(a)\n}\n";
        let tool = "func main() {\n a := flag.String(\"addr\", \"\", \"x\")\n print(a)\n}\n";
        let files = [
            ("launcher/new.go", launcher),
            ("main.go", main),
            ("tool/main.go", tool),
            ("empty/main.go", "func main() {}\n"),
        ];
        check(
            &files,
            "main.go",
            "- [ ] add the flag `--addr` (line 3) to `Args` in src/main.rs\n",
        );
        check(
            &files,
            "tool/main.go",
            "It is the program `tool` of the Go project, which src/main.rs does not replace. Port it to a separate \
             binary in src/bin, or drop it if nothing runs it.\n- [ ] add the flag `--addr` (line 2) to the arguments of the program `tool`\n",
        );
        check(&files, "empty/main.go", "");
    }
}
