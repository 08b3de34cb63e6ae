//! Plurals of kinds: those that kubebuilder forms, which has them from flect's rules, where they are English.
//!
//! flect also takes words for plurals that only look like Latin ones, and leaves them (`area`, `lambda`, `price`). Here they
//! get an `s`.

/// Words with a plural of their own, which compounds with them have too: the plural of `database` comes from `base`.
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

/// Words with a plural of their own that other words only happen to end in: `proxy` has nothing of `ox`.
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

/// Ends of words in the singular and in the plural. The first that fits counts; a word that ends in `s` otherwise is a plural already, and
/// any other gets an `s`.
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
    // Latin: not every um is one
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
    // s and what sounds like it
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

/// Returns the plural of a word in lower case; the word itself where it is a plural.
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

    /// Words of which flect 1.0.3 takes a part for a Latin plural, an acronym, or misspells the plural.
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

    /// Answers of flect's `Pluralize` to words that kinds are called, and to words that try its rules.
    const RECORDED: &str = include_str!("../../tests/plurals.txt");

    #[test]
    fn plurals_are_those_of_kubebuilder() {
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
    fn a_plural_stays() {
        let plurals = [
            "children", "people", "mice", "dice", "statuses", "policies", "boxes", "data",
        ];
        assert_eq!(plurals.map(pluralize), plurals);
    }
}
