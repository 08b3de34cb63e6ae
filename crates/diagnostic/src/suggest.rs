//! "Did you mean …?" suggestions, based on edit distance.

const MIN_ABBREVIATION: usize = 3;

/// Returns the candidate nearest to `word`, if they differ in at most a third of its letters. A
/// transposition of two letters counts as one difference. Case and underscores are ignored.
pub fn find_nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = normal(word);
    candidates
        .into_iter()
        .map(|candidate| (distance(&plain, &normal(candidate)), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= candidate.chars().count().div_ceil(3))
        .map(|(_, candidate)| candidate)
}

/// Returns the nearest candidate, or else the shortest one that starts with `word`: `minimum` for
/// `min`.
///
/// Use this for keywords, which users are likely to abbreviate, and not for names that people
/// choose.
pub fn find_keyword<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    find_nearest(word, candidates.clone()).or_else(|| {
        let plain = normal(word);
        let is_abbreviated =
            |candidate: &&str| plain.len() >= MIN_ABBREVIATION && normal(candidate).starts_with(&plain);
        candidates
            .into_iter()
            .filter(is_abbreviated)
            .min_by_key(|candidate| candidate.len())
    })
}

/// Returns whether two words differ so little that one must be a misspelling of the other. Up to a
/// quarter of the letters may differ, and one always may. With another first letter it's another
/// word (e.g. `read` and `head`), unless letters are transposed, missing or added. A suggestion may
/// be further away, because a person decides about it.
pub fn is_misspelling(word: &str, other: &str) -> bool {
    let (mut word, mut other) = (normal(word), normal(other));
    let most = (other.len() / 4).max(1);
    if distance(&word, &other) > most {
        return false;
    }
    let is_replaced = word.len() == other.len() && word.first() != other.first();
    // The same letters in another order are a transposition, even at the start.
    word.sort_unstable();
    other.sort_unstable();
    !is_replaced || word == other
}

/// Returns the candidate that `word` is a misspelling of, if there is exactly one. Candidates that
/// differ from it only in case and underscores take precedence.
pub fn find_misspelled<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let find = |is_like: &dyn Fn(&str) -> bool| {
        let mut found = candidates.clone().into_iter().filter(|other| is_like(other));
        let first = found.next();
        (first, found.next().is_some())
    };
    match find(&|other| normal(other) == normal(word)) {
        (None, _) => match find(&|other| is_misspelling(word, other)) {
            (found, false) => found,
            _ => None,
        },
        (found, false) => found,
        _ => None,
    }
}

/// Returns whether two words differ by one typo: an inserted, missing or wrong letter, or two
/// letters transposed.
pub fn is_one_slip(word: &str, other: &str) -> bool {
    let (word, other) = (word.as_bytes(), other.as_bytes());
    if word.len().abs_diff(other.len()) > 1 {
        return false;
    }
    // Only compare the middle, which differs. For most words, the first letter is enough.
    let same_start = word.iter().zip(other).take_while(|(one, two)| one == two).count();
    let (word, other) = (&word[same_start..], &other[same_start..]);
    let same_end = word
        .iter()
        .rev()
        .zip(other.iter().rev())
        .take_while(|(one, two)| one == two)
        .count();
    match (&word[..word.len() - same_end], &other[..other.len() - same_end]) {
        ([], [_]) | ([_], [] | [_]) => true,
        ([first, second], [one, two]) => first == two && second == one,
        _ => false,
    }
}

/// Returns the help for an unknown name: `did you mean …?` if a candidate is similar, or else the
/// list of all candidates.
pub fn describe_candidates<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match find_keyword(word, candidates.clone()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("use one of: {}", list_names(candidates)),
    }
}

/// Lists names in backticks, separated by commas.
pub fn list_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names
        .into_iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// People don't distinguish `minLength`, `MinLength` and `min_length`.
fn normal(word: &str) -> Vec<char> {
    word.chars()
        .filter(|letter| *letter != '_')
        .flat_map(char::to_lowercase)
        .collect()
}

fn distance(left: &[char], right: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for i in 0..left.len() {
        let mut row = vec![i + 1];
        for j in 0..right.len() {
            let mut cost = (above[j] + usize::from(left[i] != right[j]))
                .min(above[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && left[i] == right[j - 1] && left[i - 1] == right[j] {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_single_typos() {
        for (word, other, expected) in [
            ("apps", "apps", false),
            ("app", "apps", true),
            ("appss", "apps", true),
            ("aaps", "apps", true),
            ("apsp", "apps", true),
            ("paps", "apps", true),
            ("asp", "apps", false),
            ("bpas", "apps", false),
            ("", "a", true),
            ("", "", false),
        ] {
            assert_eq!(is_one_slip(word, other), expected, "{word} {other}");
        }
    }

    #[test]
    fn distinguishes_misspellings_from_guesses() {
        for (word, other, expected) in [
            ("wacth", "watch", true),
            ("minLength", "min_length", true),
            ("deployment", "deployments", true),
            ("servce_nmae", "service_name", true),
            ("sise", "size", true),
            ("ilst", "list", true),
            ("ist", "list", true),
            ("read", "head", false),
            ("scope", "scale", false),
            ("min", "minimum", false),
        ] {
            assert_eq!(is_misspelling(word, other), expected, "{word} {other}");
        }
    }

    #[test]
    fn finds_the_only_misspelled_word() {
        for (word, known, expected) in [
            ("sise", &["size", "colour"][..], Some("size")),
            ("Size", &["size", "sizes"], Some("size")),
            ("sixe", &["size", "six"], None),
            ("SIZE", &["size", "Size"], None),
            ("form", &["from", "shape"], Some("from")),
            ("colour", &["size"], None),
        ] {
            assert_eq!(find_misspelled(word, known.iter().copied()), expected, "{word}");
        }
    }

    #[test]
    fn suggests_similar_words() {
        let known = ["minimum", "maximum", "min_length", "pattern"];
        for (word, expected) in [
            ("minimun", Some("minimum")),
            ("minLength", Some("min_length")),
            ("Pattern", Some("pattern")),
            ("pattren", Some("pattern")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(find_nearest(word, known), expected, "{word}");
        }
    }

    #[test]
    fn suggests_abbreviated_keywords() {
        let known = ["min_length", "minimum", "maximum", "pattern"];
        for (word, expected) in [
            ("minimun", Some("minimum")),
            ("min", Some("minimum")),
            ("max", Some("maximum")),
            ("minLen", Some("min_length")),
            ("mi", None),
        ] {
            assert_eq!(find_keyword(word, known), expected, "{word}");
        }
    }
}
