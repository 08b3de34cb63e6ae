//! The measures of the house's English: how doc comments begin, how functions are called, which words are not used.
//!
//! CONTRIBUTING says how we write; this holds what can be counted. Code is read line by line as rustfmt leaves it: a
//! line that begins at the first column belongs to an item of the file, so no parser is needed.

use std::collections::BTreeMap;

use super::File;

/// The share of doc comments, in percent of a package's, that may begin with one of [`QUESTIONS`].
const MOST_QUESTIONS: usize = 3;

/// The share of single-word names, in percent of all free functions that other modules can call. Over all packages: a small
/// one may have four functions.
const MOST_SINGLE_WORDS: usize = 15;

/// A doc comment that begins with such a word has no subject: "What a key waits for" for "The time a key waits for".
const QUESTIONS: &[&str] = &["What", "Whether", "How", "Who", "Whose", "Whom", "Where"];

/// Words that stood for a term of the field, and the term.
const COINAGES: &[(&str, &str)] = &[
    ("deed", "operation"),
    ("deeds", "operations"),
    ("door", "front end, endpoint or entry point"),
    ("doors", "front ends, endpoints or entry points"),
    ("room", "module, crate or capacity"),
    ("rooms", "modules or crates"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("mending", "fixing"),
    ("wish", "request"),
    ("wishes", "requests"),
    ("wished", "requested"),
    ("temper", "configuration"),
    ("tempers", "configurations"),
    ("how-manieth", "sequence number"),
    ("leave to", "permission to"),
    ("anew", "again"),
    ("at hand", "available"),
    ("but for", "except for"),
    ("by now", "now"),
    ("for certain", "certainly or reliably"),
    ("form of its own", "unrecognized form"),
    ("form of your own", "unrecognized form"),
    ("in silence", "silently"),
    ("in the end", "at the end"),
    ("makes it again", "regenerates it"),
    ("on its way out", "being retired"),
    ("said of", "said about"),
    ("say of", "say about"),
    ("says of", "says about"),
    ("tell of", "report"),
    ("tells of", "reports"),
    ("without a word", "silently"),
    ("fn truth", "fn as_bool"),
    ("beyond_us", "unsupported"),
    ("say_doubts", "report_warnings"),
    ("Surroundings", "a name that says what it holds"),
    ("Wired", "a name that says what it holds"),
    ("Lean", "a name that says what it holds"),
    ("Unsettled", "a name that says what is missing"),
];

/// Words after "is no" and "are no" that do not call for "is not a".
const NEGATED: &[&str] = &[
    "longer", "more", "need", "news", "help", "less", "reason", "wait", "match", "way",
];

/// The counts of one package.
#[derive(Default)]
struct Tally {
    docs: usize,
    questions: Vec<String>,
    functions: usize,
    single_words: Vec<String>,
}

/// Returns each package above a limit, with its places, and every coinage in `files`.
pub(super) fn check_language(files: &[File<'_>]) -> Vec<String> {
    let mut packages: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut complaints = Vec::new();
    for file in files {
        if let Some(package) = rust_package(file.path) {
            packages.entry(package).or_default().count(file);
        }
        complaints.extend(find_coinages(file));
    }
    complaints.extend(packages.iter().filter_map(|(package, tally)| {
        let what = format!("doc comments of {package}/ begin with a question word");
        over_limit(&what, &tally.questions, tally.docs, MOST_QUESTIONS)
    }));
    let functions = packages.values().map(|tally| tally.functions).sum();
    let single_words: Vec<_> = packages
        .values()
        .flat_map(|tally| tally.single_words.clone())
        .collect();
    let what = "functions that other modules call have a name of a single word";
    complaints.extend(over_limit(what, &single_words, functions, MOST_SINGLE_WORDS));
    complaints
}

fn over_limit(what: &str, found: &[String], all: usize, most: usize) -> Option<String> {
    let places = found.join("\n  ");
    (found.len() * 100 > all * most)
        .then(|| format!("{} of {all} {what}, more than {most} %:\n  {places}", found.len()))
}

impl Tally {
    fn count(&mut self, file: &File<'_>) {
        let mut in_docs = false;
        for (index, line) in file.text.lines().enumerate() {
            let place = || format!("{}:{}: {}", file.path, index + 1, line.trim());
            let doc = doc_text(line);
            if let Some(text) = doc.filter(|_| !in_docs) {
                self.docs += 1;
                if QUESTIONS.contains(&first_word(text)) {
                    self.questions.push(place());
                }
            }
            in_docs = doc.is_some();
            if let Some(name) = shared_function(line).filter(|_| file.path.contains("/src/")) {
                self.functions += 1;
                if !name.contains('_') {
                    self.single_words.push(place());
                }
            }
        }
    }
}

/// The folder at the root that a Rust file of ours is in: a package, or `examples`. Templates and test data are input.
fn rust_package(path: &str) -> Option<&str> {
    let (package, _) = path.split_once('/')?;
    let is_ours = !["testdata", "templates/files", "tools"]
        .iter()
        .any(|folder| path.starts_with(folder));
    (is_ours && super::extension(path) == "rs").then_some(package)
}

/// The text of a line of a doc comment.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    text.split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default()
}

/// The name of a function at the top of a file that other modules can call.
fn shared_function(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let (qualifiers, name) = rest.split_once("fn ")?;
    let is_function = qualifiers
        .split_whitespace()
        .all(|word| ["const", "async", "unsafe"].contains(&word));
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    is_function.then(|| &name[..end])
}

/// Coinages in prose, names and messages. Data may hold any word, and so does the list itself.
fn find_coinages(file: &File<'_>) -> Vec<String> {
    let is_prose = ["rs", "md", "tera", "toml", "yml"].contains(&super::extension(file.path));
    if !is_prose || file.path.starts_with("testdata/oracle/") || file.path.ends_with("tidy/language.rs") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let place = format!("{}:{}", file.path, index + 1);
        let coined = COINAGES.iter().filter(|(term, _)| has_term(line, term));
        found.extend(coined.map(|(term, instead)| format!("{place}: write {instead} for `{term}`")));
        if let Some(noun) = negated_noun(line) {
            found.push(format!("{place}: write `not a {noun}` for `no {noun}`"));
        }
    }
    found
}

/// The noun of "is no noun", which is "is not a noun" in the field's English. "There is no noun" is fine.
fn negated_noun(line: &str) -> Option<&str> {
    let mut found = [" is no ", " are no "].into_iter().flat_map(|verb| {
        line.match_indices(verb)
            .map(move |(at, _)| (&line[..at], &line[at + verb.len()..]))
    });
    found.find_map(|(before, after)| {
        let subject = before.rsplit(|c: char| !c.is_alphanumeric()).next()?;
        let noun = first_word(after);
        let is_fine =
            ["there", "There", "where"].contains(&subject) || NEGATED.contains(&noun) || noun.is_empty();
        (!is_fine).then_some(noun)
    })
}

/// True where `term` stands in `line` by itself, not as a part of a longer word or name.
fn has_term(line: &str, term: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(term).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + term.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> usize {
        check_language(&[File { path, text }]).len()
    }

    #[test]
    fn doc_comments_begin_with_a_subject() {
        assert_eq!(complaints("a/src/b.rs", "//! What a key waits for.\n"), 1);
        assert_eq!(
            complaints("a/src/b.rs", "/// A queue.\n/// What is in it waits.\n"),
            0
        );
        assert_eq!(complaints("a/src/b.rs", "/// However it ends.\n"), 0);
        assert_eq!(complaints("testdata/a/src/b.rs", "/// Where it is.\n"), 0);
    }

    #[test]
    fn the_limit_is_a_share_of_the_package() {
        let docs = |questions: usize| {
            let rest = "/// A key.\nstruct A;\n".repeat(100 - questions);
            "/// Whether.\nfn a();\n".repeat(questions) + &rest
        };
        assert_eq!(complaints("a/src/b.rs", &docs(3)), 0);
        assert_eq!(complaints("a/src/b.rs", &docs(4)), 1);
    }

    #[test]
    fn functions_of_other_modules_say_verb_and_object() {
        assert_eq!(complaints("a/src/b.rs", "pub(crate) fn check(a: A) {}\n"), 1);
        assert_eq!(complaints("a/src/b.rs", "pub async fn run<T>() {}\n"), 1);
        assert_eq!(complaints("a/src/b.rs", "pub(super) fn check_columns() {}\n"), 0);
        // Called from nowhere else, or on a receiver.
        assert_eq!(
            complaints("a/src/b.rs", "fn check() {}\n    pub fn add(&self) {}\n"),
            0
        );
        assert_eq!(complaints("a/tests/b.rs", "pub fn check() {}\n"), 0);
    }

    #[test]
    fn coinages_are_whole_words() {
        assert_eq!(complaints("docs/a.md", "two doors of one house\n"), 1);
        assert_eq!(complaints("a/src/b.rs", "// indoors, amended\n"), 0);
        assert_eq!(complaints("a/src/b.rs", "fn say_doubts() {}\n"), 1);
        assert_eq!(complaints("a/tests/b.json", "[\"door\"]\n"), 0);
        assert_eq!(complaints("a/src/b.rs", "// what Go says of it\n"), 1);
    }

    #[test]
    fn a_noun_is_negated_with_an_article() {
        assert_eq!(complaints("a/src/b.rs", "// it is no name\n"), 1);
        assert_eq!(complaints("a/src/b.rs", "// these are no literals\n"), 1);
        assert_eq!(
            complaints(
                "a/src/b.rs",
                "// there is no name, it is no longer one, and is not a name\n"
            ),
            0
        );
    }
}
