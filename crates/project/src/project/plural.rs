//! Plurals of kinds. They match kubebuilder's, i.e. flect's, as long as flect's plural is correct
//! English.
//!
//! flect mistakes words that look Latin (`area`, `lambda`, `price`) for plurals and leaves them
//! alone; we add an `s`.

const COMPOUNDED: &[(&str, &str)] = &[
    ("agenda", "agendas"),
    ("alumnus", "alumni"),
    ("aircraft", "aircraft"),
    ("analysis", "analyses"),
    ("appendix", "appendices"),
    ("aquarium", "aquaria"),
    ("auditorium", "auditoria"),
    ("basis", "bases"),
    ("buffalo", "buffaloes"),
    ("bureau", "bureaus"),
    ("cactus", "cacti"),
    ("child", "children"),
    ("chassis", "chassis"),
    ("codex", "codices"),
    ("corpus", "corpora"),
    ("crisis", "crises"),
    ("criteria", "criteria"),
    ("criterion", "criteria"),
    ("curriculum", "curriculums"),
    ("data", "data"),
    ("deer", "deer"),
    ("dwarf", "dwarfs"),
    ("ellipsis", "ellipses"),
    ("equipment", "equipment"),
    ("fish", "fish"),
    ("focus", "foci"),
    ("foot", "feet"),
    ("genesis", "geneses"),
    ("genus", "genera"),
    ("goose", "geese"),
    ("helix", "helices"),
    ("human", "humans"),
    ("index", "indices"),
    ("information", "information"),
    ("larva", "larvae"),
    ("locus", "loci"),
    ("man", "men"),
    ("media", "media"),
    ("medium", "media"),
    ("money", "money"),
    ("mouse", "mice"),
    ("news", "news"),
    ("nucleus", "nuclei"),
    ("oasis", "oases"),
    ("person", "people"),
    ("phenomenon", "phenomena"),
    ("police", "police"),
    ("potato", "potatoes"),
    ("quota", "quotas"),
    ("radius", "radii"),
    ("radix", "radices"),
    ("series", "series"),
    ("sheep", "sheep"),
    ("species", "species"),
    ("stadium", "stadiums"),
    ("syllabus", "syllabi"),
    ("symposium", "symposia"),
    ("thesis", "theses"),
    ("thief", "thieves"),
    ("tomato", "tomatoes"),
    ("tooth", "teeth"),
    ("topaz", "topazes"),
    ("vertebra", "vertebrae"),
    ("vertex", "vertices"),
    ("vortex", "vortices"),
];

/// Irregular plurals that don't apply to other words with the same ending, e.g. `ox` to `proxy`.
const ALONE: &[(&str, &str)] = &[
    ("alias", "aliases"),
    ("apex", "apices"),
    ("axis", "axes"),
    ("die", "dice"),
    ("latex", "latices"),
    ("louse", "lice"),
    ("moose", "moose"),
    ("ox", "oxen"),
    ("rice", "rice"),
    ("salmon", "salmon"),
    ("shrimp", "shrimp"),
    ("trout", "trout"),
    ("tuna", "tuna"),
];

/// Singular and plural endings; the first match wins. Otherwise, a word in `s` is a plural already,
/// and any other word gets an `s`.
const ENDINGS: &[(&str, &str)] = &[
    // f and fe
    ("eaf", "eaves"),
    ("oaf", "oaves"),
    ("afe", "aves"),
    ("rf", "rves"),
    ("lf", "lves"),
    ("fe", "ves"),
    // y
    ("ay", "ays"),
    ("ey", "eys"),
    ("oy", "oys"),
    ("quy", "quies"),
    ("uy", "uys"),
    ("y", "ies"),
    // French and Greek
    ("eau", "eaux"),
    ("hedron", "hedra"),
    // Latin: only some words in -um
    ("seum", "seums"),
    ("eum", "ea"),
    ("ium", "ia"),
    ("dum", "da"),
    ("llum", "lla"),
    ("elum", "ela"),
    ("ulum", "ula"),
    ("imum", "ima"),
    ("brum", "bra"),
    ("crum", "cra"),
    ("serum", "sera"),
    ("trum", "tra"),
    ("antum", "anta"),
    ("atum", "ata"),
    ("entum", "enta"),
    ("ctum", "cta"),
    ("ovum", "ova"),
    ("trix", "trices"),
    // Greek
    ("iasis", "iases"),
    ("mesis", "meses"),
    ("kinesis", "kineses"),
    ("resis", "reses"),
    ("gnosis", "gnoses"),
    ("opsis", "opses"),
    ("ysis", "yses"),
    // s and similar sounds
    ("us", "uses"),
    ("ss", "sses"),
    ("sh", "shes"),
    ("ch", "ches"),
    ("x", "xes"),
    ("ez", "ezzes"),
    ("iz", "izzes"),
    ("tz", "tzes"),
    ("zz", "zzes"),
    // o
    ("io", "ios"),
    ("oo", "oos"),
    ("lo", "los"),
    ("to", "tos"),
    ("ano", "anos"),
    ("o", "oes"),
];

/// Returns the plural of a lower-case word. Plurals stay the same.
pub(super) fn pluralize(word: &str) -> String {
    let own = || ALONE.iter().chain(COMPOUNDED);
    if own().any(|(_, plural)| *plural == word) {
        return word.to_owned();
    }
    if let Some((_, plural)) = ALONE.iter().find(|(singular, _)| *singular == word) {
        return (*plural).to_owned();
    }
    let replaced = COMPOUNDED
        .iter()
        .chain(ENDINGS)
        .find_map(|(singular, plural)| Some(format!("{}{plural}", word.strip_suffix(singular)?)));
    replaced.unwrap_or_else(|| match word.ends_with('s') {
        true => word.to_owned(),
        false => format!("{word}s"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that flect 1.0.3 mistakes for a Latin plural or an acronym, or whose plural it
    /// misspells.
    const DIFFERENT: &[(&str, &str)] = &[
        ("alumna", "alumnas"),
        ("area", "areas"),
        ("beta", "betas"),
        ("dns", "dns"),
        ("extra", "extras"),
        ("https", "https"),
        ("idea", "ideas"),
        ("lambda", "lambdas"),
        ("mantra", "mantras"),
        ("nova", "novas"),
        ("octopus", "octopuses"),
        ("panda", "pandas"),
        ("price", "prices"),
        ("supernova", "supernovas"),
        ("tea", "teas"),
    ];

    /// Output of flect's `Pluralize` for typical kind names, and for words that exercise its rules.
    const RECORDED: &str = include_str!("../../tests/plurals.txt");

    #[test]
    fn plurals_match_kubebuilder() {
        for line in RECORDED.lines() {
            let (word, plural) = line.split_once(' ').expect(line);
            let different = DIFFERENT.iter().find(|(other, _)| *other == word);
            let expected = different.map_or(plural, |(_, plural)| plural);
            assert_eq!(pluralize(word), expected, "{word}");
            assert!(
                different.is_none_or(|(_, ours)| *ours != plural),
                "{word} does not differ"
            );
        }
    }

    #[test]
    fn plural_is_its_own_plural() {
        let plurals = [
            "children", "people", "mice", "dice", "statuses", "policies", "boxes", "data",
        ];
        assert_eq!(plurals.map(pluralize), plurals);
    }
}
