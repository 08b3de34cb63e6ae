//! Utilities for running other programs. We print commands before they run, and include them in
//! errors.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

/// Variables which are set by cargo, and which describe the package of the running program.
const OF_THIS_PACKAGE: [&str; 7] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_PKG_NAME",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
];

/// Creates a command without the variables that describe this package. The build script of ring
/// reruns whenever one of these changes. If we passed them on, `cargo tour` would have to recompile
/// ring, rustls and kube after a build started by `cargo xtask` or by hand.
fn new_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in OF_THIS_PACKAGE {
        command.env_remove(name);
    }
    command
}

pub fn find_program(name: &str) -> Result<PathBuf> {
    let path = Cmd::new("sh -c").arg(format!("command -v {name}")).read()?;
    Ok(path.trim_end().into())
}

pub fn write_program(path: &Path, script: &str) -> Result<()> {
    fs_err::write(path, script)?;
    Cmd::new("chmod +x").arg(path).run()
}

/// A program to run. This is a wrapper for [`std::process::Command`] whose errors contain the
/// command line and the folder.
pub struct Cmd {
    inner: Command,
    words: Vec<String>,
    dir: Option<PathBuf>,
    echo: bool,
}

impl Cmd {
    /// Creates a command from a line that contains a program's name (which must be on `PATH`) and
    /// its arguments, e.g. `git ls-files --cached`.
    ///
    /// The words are separated by white space, and you can use single quotes if a word contains
    /// spaces. There is no expansion. For paths, versions and other values that are not constant,
    /// use [`arg`](Self::arg) instead.
    pub fn new(line: &str) -> Self {
        let mut words = split_words(line).into_iter();
        Self::program(words.next().unwrap_or_default()).args(words)
    }

    /// Creates a command from a program's path. It has no arguments yet.
    pub fn program(program: impl AsRef<OsStr>) -> Self {
        Self {
            words: vec![quoted(&program.as_ref().to_string_lossy())],
            inner: new_command(program),
            dir: None,
            echo: false,
        }
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.words.push(quoted(&arg.as_ref().to_string_lossy()));
        self.inner.arg(arg);
        self
    }

    /// Adds several arguments to the command.
    pub fn args<S: AsRef<OsStr>>(self, args: impl IntoIterator<Item = S>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// Sets the name to show instead of the program's path.
    pub fn shown_as(mut self, name: &str) -> Self {
        name.clone_into(&mut self.words[0]);
        self
    }

    /// Adds several arguments, which are given as a line. See [`new`](Self::new) for the syntax.
    pub fn words(self, line: &str) -> Self {
        self.args(split_words(line))
    }

    pub fn dir(mut self, dir: &Path) -> Self {
        self.inner.current_dir(dir);
        self.dir = Some(dir.to_owned());
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.inner.env(name, value);
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.inner.env_remove(name);
        self
    }

    /// Runs the program with an empty stdin.
    pub fn without_input(mut self) -> Self {
        self.inner.stdin(Stdio::null());
        self
    }

    /// Prepends a folder to `PATH`, for the program and for everything it starts.
    pub fn path_first(self, folder: &Path) -> Result<Self> {
        let own = self.inner.get_envs().find(|(name, _)| *name == "PATH");
        let path = own.and_then(|(_, path)| Some(path?.to_owned()));
        let path = path.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders).context("cannot extend PATH")?;
        // This does not affect how the program itself is found, because the `PATH` of the parent is
        // used for that. Use the full path if it's in `folder`.
        let program = folder.join(self.inner.get_program());
        let command = match program.is_file() {
            true => self.with_inner(new_command(program)),
            false => self,
        };
        Ok(command.env("PATH", path))
    }

    /// Runs the program and its children with a low priority. Has no effect except on Unix. Note
    /// that this must be called before [`without_input`](Self::without_input).
    pub fn with_low_priority(self) -> Self {
        let mut nice = new_command("nice");
        nice.arg(self.inner.get_program());
        self.with_inner(nice)
    }

    /// Replaces the program, but keeps its arguments, variables and folder.
    fn with_inner(self, mut inner: Command) -> Self {
        inner.args(self.inner.get_args());
        for (name, value) in self.inner.get_envs() {
            match value {
                Some(value) => inner.env(name, value),
                None => inner.env_remove(name),
            };
        }
        if let Some(dir) = &self.dir {
            inner.current_dir(dir);
        }
        Self { inner, ..self }
    }

    /// Prints the command line (in shell syntax) before the program runs.
    pub fn echo(mut self) -> Self {
        self.echo = true;
        self
    }

    /// Runs the program. Its output goes to the output of this process.
    pub fn run(mut self) -> Result<()> {
        if self.echo {
            println!("$ {}", self.line());
        }
        let status = self
            .inner
            .status()
            .with_context(|| format!("cannot run `{}`", self.line()))?;
        if !status.success() {
            bail!("{} failed ({status})", self.described());
        }
        Ok(())
    }

    /// Runs the program, and writes its output to `file`. If [`echo`](Self::echo) is set, the
    /// command line goes there as well.
    pub fn run_into(mut self, mut file: &File) -> Result<()> {
        if std::mem::take(&mut self.echo) {
            writeln!(file, "$ {}", self.line())?;
        }
        self.inner.stdout(file.try_clone()?).stderr(file.try_clone()?);
        self.run()
    }

    /// Runs the program and returns what it wrote to stdout.
    pub fn read(mut self) -> Result<String> {
        if self.echo {
            println!("$ {}", self.line());
        }
        let output = self
            .inner
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot run `{}`", self.line()))?;
        if !output.status.success() {
            bail!("{} failed ({})", self.described(), output.status);
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{}` did not print UTF-8", self.line()))
    }

    /// Returns the underlying [`Command`], and the name to use in messages.
    pub fn into_parts(self) -> (Command, String) {
        let described = self.described();
        (self.inner, described)
    }

    /// Starts the program but does not wait for it. It uses the output of this process.
    pub fn spawn(mut self) -> Result<Child> {
        self.inner
            .spawn()
            .with_context(|| format!("cannot run `{}`", self.line()))
    }

    /// Runs the program and discards the output. Returns false if the program fails, or if it
    /// cannot be started.
    pub fn succeeds(mut self) -> bool {
        self.inner
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    fn line(&self) -> String {
        self.words.join(" ")
    }

    fn described(&self) -> String {
        match &self.dir {
            Some(dir) => format!("`{}` in {}", self.line(), dir.display()),
            None => format!("`{}`", self.line()),
        }
    }
}

/// Splits a line into words. Words are separated by white space, except within single quotes.
fn split_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for letter in line.chars() {
        if letter == '\'' {
            is_quoted = !is_quoted;
            word.get_or_insert_default();
        } else if letter.is_whitespace() && !is_quoted {
            words.extend(word.take());
        } else {
            word.get_or_insert_default().push(letter);
        }
    }
    words.extend(word);
    words
}

/// Quotes an argument for use in a shell. Returns it unchanged if that is not necessary.
fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) {
        arg.to_owned()
    } else {
        format!("'{}'", arg.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn programs_do_not_inherit_package_variables() {
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
        let command = || Cmd::new("env");
        for command in [
            command(),
            command().with_low_priority(),
            command().path_first(Path::new("/usr/bin")).unwrap(),
        ] {
            let variables = command.read().unwrap();
            assert!(!variables.contains("CARGO_PKG_NAME="), "{variables}");
        }
    }

    #[test]
    fn quotes_arguments_for_shell() {
        let check = |arg: &str, expected: &str| assert_eq!(quoted(arg), expected);
        check("--kind=Memcached", "--kind=Memcached");
        check("", "''");
        check("two words", "'two words'");
        check("it's", r"'it'\''s'");
    }

    #[test]
    fn splits_lines_like_shell() {
        let check = |line: &str, expected: &[&str]| assert_eq!(split_words(line), expected, "{line}");
        check("git  ls-files --cached", &["git", "ls-files", "--cached"]);
        check("init --owner 'The Crew'", &["init", "--owner", "The Crew"]);
        check("a '' --b=' c'", &["a", "", "--b= c"]);
        check("", &[]);
    }

    #[test]
    fn error_contains_command() {
        let error = Cmd::new("false").arg("x y").run().unwrap_err().to_string();
        assert!(error.starts_with("`false 'x y'` failed"), "{error}");
        let error = Cmd::new("no-such-program").run().unwrap_err().to_string();
        assert_eq!(error, "cannot run `no-such-program`");
    }
}
