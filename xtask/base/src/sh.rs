//! Running other programs: what is run is shown, and a failure names it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

/// Variables in which cargo describes the package whose program it runs: this one.
const OF_THIS_PACKAGE: [&str; 7] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_PKG_NAME",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
];

/// Returns a command without the variables that describe this package. A build script may ask cargo to run it again when
/// they change. That of ring does: a build that `cargo tour` starts would compile ring, rustls and kube again after one that
/// `cargo xtask` or nobody has started.
fn new_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in OF_THIS_PACKAGE {
        command.env_remove(name);
    }
    command
}

/// Returns the path of a program that is found on `PATH`.
///
/// # Errors
///
/// There is none of this name.
pub fn find_program(name: &str) -> Result<PathBuf> {
    let path = Cmd::new("sh -c").arg(format!("command -v {name}")).read()?;
    Ok(path.trim_end().into())
}

/// Writes a script that can be run.
///
/// # Errors
///
/// The file cannot be written.
pub fn write_program(path: &Path, script: &str) -> Result<()> {
    fs_err::write(path, script)?;
    Cmd::new("chmod +x").arg(path).run()
}

/// A program to run, in the manner of [`std::process::Command`], with errors that say what was run and where.
pub struct Cmd {
    inner: Command,
    words: Vec<String>,
    dir: Option<PathBuf>,
    echo: bool,
}

impl Cmd {
    /// A program, looked up on `PATH`, with its arguments as one line: `git ls-files --cached`.
    ///
    /// Words end at white space; single quotes keep a word with spaces together. Nothing is expanded. What is not known
    /// when this is written (a path, a version) is added with [`arg`](Self::arg), which needs no quotes.
    pub fn new(line: &str) -> Self {
        let mut words = split_words(line).into_iter();
        Self::program(words.next().unwrap_or_default()).args(words)
    }

    /// A program without arguments, by its path.
    pub fn program(program: impl AsRef<OsStr>) -> Self {
        Self {
            words: vec![quoted(&program.as_ref().to_string_lossy())],
            inner: new_command(program),
            dir: None,
            echo: false,
        }
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.words.push(quoted(&arg.as_ref().to_string_lossy()));
        self.inner.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(self, args: impl IntoIterator<Item = S>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// Shows the program under another name.
    pub fn shown_as(mut self, name: &str) -> Self {
        name.clone_into(&mut self.words[0]);
        self
    }

    /// Adds the arguments of a line, as [`new`](Self::new) reads it.
    pub fn words(self, line: &str) -> Self {
        self.args(split_words(line))
    }

    /// Sets the working directory.
    pub fn dir(mut self, dir: &Path) -> Self {
        self.inner.current_dir(dir);
        self.dir = Some(dir.to_owned());
        self
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.inner.env(name, value);
        self
    }

    /// Takes a variable out of the environment.
    pub fn without(mut self, name: &str) -> Self {
        self.inner.env_remove(name);
        self
    }

    /// Gives the program an empty standard input.
    pub fn without_input(mut self) -> Self {
        self.inner.stdin(Stdio::null());
        self
    }

    /// Puts a folder in front of `PATH`, for this program and for what it starts.
    pub fn path_first(self, folder: &Path) -> Result<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders).context("cannot extend PATH")?;
        // The program itself is looked up on the parent's PATH, so it is named by its full path where it is in `folder`.
        let program = folder.join(self.inner.get_program());
        if !program.is_file() {
            return Ok(self.env("PATH", path));
        }
        let mut inner = new_command(program);
        inner.args(self.inner.get_args());
        if let Some(dir) = &self.dir {
            inner.current_dir(dir);
        }
        Ok(Self { inner, ..self }.env("PATH", path))
    }

    /// Makes the program, and what it starts, leave the processor to others that want it; for Unix. Call it before
    /// [`without_input`](Self::without_input).
    pub fn with_low_priority(self) -> Self {
        let mut inner = new_command("nice");
        inner.arg(self.inner.get_program()).args(self.inner.get_args());
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

    /// Shows the command line as a user would type it, before it runs.
    pub fn echo(mut self) -> Self {
        self.echo = true;
        self
    }

    /// Runs the program with this process's output.
    ///
    /// # Errors
    ///
    /// It could not be started, or it failed.
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

    /// Runs the program with its output, and the command line where it is to be shown, written to a file.
    ///
    /// # Errors
    ///
    /// It could not be started, or it failed.
    pub fn run_into(mut self, mut file: &File) -> Result<()> {
        if std::mem::take(&mut self.echo) {
            writeln!(file, "$ {}", self.line())?;
        }
        self.inner.stdout(file.try_clone()?).stderr(file.try_clone()?);
        self.run()
    }

    /// Runs the program and returns what it wrote to its standard output.
    ///
    /// # Errors
    ///
    /// It could not be started, it failed, or its output is not UTF-8.
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

    /// Returns the program as the standard library runs it, and its name for messages.
    pub fn into_parts(self) -> (Command, String) {
        let described = self.described();
        (self.inner, described)
    }

    /// Starts the program with this process's output, and leaves it running.
    ///
    /// # Errors
    ///
    /// It could not be started.
    pub fn spawn(mut self) -> Result<Child> {
        self.inner
            .spawn()
            .with_context(|| format!("cannot run `{}`", self.line()))
    }

    /// Runs the program without its output and returns true when it could be started and succeeded.
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

/// The words of a line: they end at white space, except for that in single quotes.
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

/// An argument as a shell wants it typed.
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

    /// Cargo has set them for this test.
    #[cfg(unix)]
    #[test]
    fn a_program_does_not_see_the_variables_of_this_package() {
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
    fn shows_arguments_as_a_shell_wants_them() {
        let check = |arg: &str, expected: &str| assert_eq!(quoted(arg), expected);
        check("--kind=Memcached", "--kind=Memcached");
        check("", "''");
        check("two words", "'two words'");
        check("it's", r"'it'\''s'");
    }

    #[test]
    fn splits_lines_as_a_shell_does() {
        let check = |line: &str, expected: &[&str]| assert_eq!(split_words(line), expected, "{line}");
        check("git  ls-files --cached", &["git", "ls-files", "--cached"]);
        check("init --owner 'The Crew'", &["init", "--owner", "The Crew"]);
        check("a '' --b=' c'", &["a", "", "--b= c"]);
        check("", &[]);
    }

    #[test]
    fn a_failure_names_the_command() {
        let error = Cmd::new("false").arg("x y").run().unwrap_err().to_string();
        assert!(error.starts_with("`false 'x y'` failed"), "{error}");
        let error = Cmd::new("no-such-program").run().unwrap_err().to_string();
        assert_eq!(error, "cannot run `no-such-program`");
    }
}
