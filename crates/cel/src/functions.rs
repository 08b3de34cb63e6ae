//! The functions in Kubernetes' CEL: the standard library, and the libraries that kube-apiserver
//! enables for CRDs and admission (`k8s.io/apiserver/pkg/cel/environment/base.go`).
//!
//! Each line is a signature. `contains: string.(string) -> bool` is called as `a.contains(b)`, and
//! `size: (string) -> int` as `size(a)`. Single capital letters are type parameters.
//!
//! # Adding a function
//!
//! 1. Add its signatures to the list below. A new type also needs a variant of `Value` in
//!    `evaluate/value.rs` and, unless it is opaque to the checker, one of `Type` in `types.rs`.
//! 2. If a call does not cost 1, add its estimate to `cost/price.rs` and its run-time cost to
//!    `evaluate/cost.rs`.
//! 3. Implement it in `evaluate/standard.rs`, `strings.rs`, `lists.rs` or `kubernetes.rs` there.
//!    `evaluate/call.rs` tries each of them in turn; the functions are not listed again elsewhere.
//! 4. Add its name to the functions used in `tests/random_rules.rs`.
//! 5. Add rules to `tests/recorded.jsonl`, `tests/evaluated/cases.json` and
//!    `crates/generator/tests/mutations/tables/cel.tsv`, and run `cargo xtask cel` and `mutations`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::types::Type;

#[derive(Debug)]
pub(crate) struct Overload {
    /// Whether it's called as a method of its first argument.
    pub(crate) member: bool,
    pub(crate) args: Vec<Type>,
    pub(crate) result: Type,
    /// Number of type parameters, numbered from `Type::Variable(0)`.
    pub(crate) variables: usize,
}

pub(crate) static FUNCTIONS: LazyLock<BTreeMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions: BTreeMap<&'static str, Vec<Overload>> = BTreeMap::new();
    for line in SIGNATURES.lines().filter(|line| !line.is_empty()) {
        let (name, forms) = line.split_once(": ").unwrap_or((line, ""));
        let overloads = functions.entry(name).or_default();
        overloads.extend(forms.split("; ").filter_map(parse_overload));
    }
    functions
});

/// Function names for suggestions, i.e. excluding operators.
pub(crate) fn function_names() -> impl Iterator<Item = &'static str> + Clone {
    FUNCTIONS.keys().copied().filter(|name| {
        name.chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '.')
    })
}

const SIGNATURES: &str = "
_?_:_: (bool, A, A) -> A
_&&_: (bool, bool) -> bool
_||_: (bool, bool) -> bool
!_: (bool) -> bool
@not_strictly_false: (bool) -> bool
_==_: (A, A) -> bool
_!=_: (A, A) -> bool
_+_: (bytes, bytes) -> bytes; (double, double) -> double; (duration, duration) -> duration; (duration, timestamp) -> timestamp; (timestamp, duration) -> timestamp; (int, int) -> int; (list<A>, list<A>) -> list<A>; (string, string) -> string; (uint, uint) -> uint
_-_: (double, double) -> double; (duration, duration) -> duration; (int, int) -> int; (timestamp, duration) -> timestamp; (timestamp, timestamp) -> duration; (uint, uint) -> uint
_*_: (double, double) -> double; (int, int) -> int; (uint, uint) -> uint
_/_: (double, double) -> double; (int, int) -> int; (uint, uint) -> uint
_%_: (int, int) -> int; (uint, uint) -> uint
-_: (double) -> double; (int) -> int
_<_: (bool, bool) -> bool; (int, int) -> bool; (int, double) -> bool; (int, uint) -> bool; (uint, uint) -> bool; (uint, double) -> bool; (uint, int) -> bool; (double, double) -> bool; (double, int) -> bool; (double, uint) -> bool; (string, string) -> bool; (bytes, bytes) -> bool; (timestamp, timestamp) -> bool; (duration, duration) -> bool
_[_]: (list<A>, int) -> A; (map<A, B>, A) -> B; (optional<list<A>>, int) -> optional<A>; (optional<map<A, B>>, A) -> optional<B>
_[?_]: (list<A>, int) -> optional<A>; (optional<list<A>>, int) -> optional<A>; (map<A, B>, A) -> optional<B>; (optional<map<A, B>>, A) -> optional<B>
@in: (A, list<A>) -> bool; (A, map<A, B>) -> bool
size: (bytes) -> int; bytes.() -> int; (list<A>) -> int; list<A>.() -> int; (map<A, B>) -> int; map<A, B>.() -> int; (string) -> int; string.() -> int
type: (A) -> type
bool: (bool) -> bool; (string) -> bool
bytes: (bytes) -> bytes; (string) -> bytes
double: (double) -> double; (int) -> double; (string) -> double; (uint) -> double
duration: (duration) -> duration; (int) -> duration; (string) -> duration
dyn: (A) -> dyn
int: (int) -> int; (double) -> int; (duration) -> int; (string) -> int; (timestamp) -> int; (uint) -> int
string: (string) -> string; (bool) -> string; (bytes) -> string; (double) -> string; (duration) -> string; (int) -> string; (timestamp) -> string; (uint) -> string; (ip) -> string; (cidr) -> string
timestamp: (timestamp) -> timestamp; (int) -> timestamp; (string) -> timestamp
uint: (uint) -> uint; (double) -> uint; (int) -> uint; (string) -> uint
contains: string.(string) -> bool
endsWith: string.(string) -> bool
startsWith: string.(string) -> bool
matches: (string, string) -> bool; string.(string) -> bool
getFullYear: timestamp.() -> int; timestamp.(string) -> int
getMonth: timestamp.() -> int; timestamp.(string) -> int
getDayOfYear: timestamp.() -> int; timestamp.(string) -> int
getDayOfMonth: timestamp.() -> int; timestamp.(string) -> int
getDate: timestamp.() -> int; timestamp.(string) -> int
getDayOfWeek: timestamp.() -> int; timestamp.(string) -> int
getHours: timestamp.() -> int; timestamp.(string) -> int; duration.() -> int
getMinutes: timestamp.() -> int; timestamp.(string) -> int; duration.() -> int
getSeconds: timestamp.() -> int; timestamp.(string) -> int; duration.() -> int
getMilliseconds: timestamp.() -> int; timestamp.(string) -> int; duration.() -> int
charAt: string.(int) -> string
indexOf: string.(string) -> int; string.(string, int) -> int; list<A>.(A) -> int
lastIndexOf: string.(string) -> int; string.(string, int) -> int; list<A>.(A) -> int
lowerAscii: string.() -> string
upperAscii: string.() -> string
replace: string.(string, string) -> string; string.(string, string, int) -> string
split: string.(string) -> list<string>; string.(string, int) -> list<string>
substring: string.(int) -> string; string.(int, int) -> string
trim: string.() -> string
format: string.(list<dyn>) -> string
join: list<string>.() -> string; list<string>.(string) -> string
strings.quote: (string) -> string
find: string.(string) -> string
findAll: string.(string) -> list<string>; string.(string, int) -> list<string>
isSorted: list<int>.() -> bool; list<uint>.() -> bool; list<double>.() -> bool; list<bool>.() -> bool; list<duration>.() -> bool; list<timestamp>.() -> bool; list<string>.() -> bool; list<bytes>.() -> bool
sum: list<int>.() -> int; list<uint>.() -> uint; list<double>.() -> double; list<duration>.() -> duration
min: list<int>.() -> int; list<uint>.() -> uint; list<double>.() -> double; list<bool>.() -> bool; list<duration>.() -> duration; list<timestamp>.() -> timestamp; list<string>.() -> string; list<bytes>.() -> bytes
max: list<int>.() -> int; list<uint>.() -> uint; list<double>.() -> double; list<bool>.() -> bool; list<duration>.() -> duration; list<timestamp>.() -> timestamp; list<string>.() -> string; list<bytes>.() -> bytes
slice: list<A>.(int, int) -> list<A>
flatten: list<list<A>>.() -> list<A>; list<dyn>.(int) -> list<dyn>
sort: list<A>.() -> list<A>
@sortByAssociatedKeys: list<A>.(list<B>) -> list<A>
lists.range: (int) -> list<int>
reverse: list<A>.() -> list<A>
distinct: list<A>.() -> list<A>
first: list<A>.() -> optional<A>
last: list<A>.() -> optional<A>
sets.contains: (list<A>, list<A>) -> bool
sets.equivalent: (list<A>, list<A>) -> bool
sets.intersects: (list<A>, list<A>) -> bool
cel.@mapInsert: (map<A, B>, A, B) -> map<A, B>; (map<A, B>, map<A, B>) -> map<A, B>
optional.of: (A) -> optional<A>
optional.ofNonZeroValue: (A) -> optional<A>
optional.none: () -> optional<A>
optional.unwrap: (list<optional<A>>) -> list<A>
unwrapOpt: list<optional<A>>.() -> list<A>
value: optional<A>.() -> A
hasValue: optional<A>.() -> bool
or: optional<A>.(optional<A>) -> optional<A>
orValue: optional<A>.(A) -> A
url: (string) -> url
isURL: (string) -> bool
getScheme: url.() -> string
getHost: url.() -> string
getHostname: url.() -> string
getPort: url.() -> string
getEscapedPath: url.() -> string
getQuery: url.() -> map<string, list<string>>
quantity: (string) -> quantity
isQuantity: (string) -> bool
sign: (quantity) -> int
isGreaterThan: quantity.(quantity) -> bool; semver.(semver) -> bool
isLessThan: quantity.(quantity) -> bool; semver.(semver) -> bool
compareTo: quantity.(quantity) -> int; semver.(semver) -> int
asApproximateFloat: quantity.() -> double
asInteger: quantity.() -> int
isInteger: quantity.() -> bool
add: quantity.(quantity) -> quantity; quantity.(int) -> quantity
sub: quantity.(quantity) -> quantity; quantity.(int) -> quantity
ip: (string) -> ip; cidr.() -> ip
isIP: (string) -> bool
ip.isCanonical: (string) -> bool
family: ip.() -> int
isUnspecified: ip.() -> bool
isLoopback: ip.() -> bool
isLinkLocalMulticast: ip.() -> bool
isLinkLocalUnicast: ip.() -> bool
isGlobalUnicast: ip.() -> bool
cidr: (string) -> cidr
isCIDR: (string) -> bool
containsIP: cidr.(string) -> bool; cidr.(ip) -> bool
containsCIDR: cidr.(string) -> bool; cidr.(cidr) -> bool
prefixLength: cidr.() -> int
masked: cidr.() -> cidr
format.named: (string) -> optional<format>
validate: format.(string) -> optional<list<string>>
format.dns1123Label: () -> format
format.dns1123Subdomain: () -> format
format.dns1035Label: () -> format
format.qualifiedName: () -> format
format.dns1123LabelPrefix: () -> format
format.dns1123SubdomainPrefix: () -> format
format.dns1035LabelPrefix: () -> format
format.labelValue: () -> format
format.uri: () -> format
format.uuid: () -> format
format.byte: () -> format
format.date: () -> format
format.datetime: () -> format
semver: (string) -> semver; (string, bool) -> semver
isSemver: (string) -> bool; (string, bool) -> bool
major: semver.() -> int
minor: semver.() -> int
patch: semver.() -> int
path: authorizer.(string) -> pathcheck
check: pathcheck.(string) -> decision; resourcecheck.(string) -> decision
serviceAccount: authorizer.(string, string) -> authorizer
group: authorizer.(string) -> groupcheck
resource: groupcheck.(string) -> resourcecheck
subresource: resourcecheck.(string) -> resourcecheck
namespace: resourcecheck.(string) -> resourcecheck
name: resourcecheck.(string) -> resourcecheck
fieldSelector: resourcecheck.(string) -> resourcecheck
labelSelector: resourcecheck.(string) -> resourcecheck
allowed: decision.() -> bool
reason: decision.() -> string
error: decision.() -> string
errored: decision.() -> bool
";

/// All comparisons share the overloads of `_<_`.
pub(crate) fn find_overloads(function: &str) -> Option<&'static [Overload]> {
    let function = match function {
        "_<=_" | "_>_" | "_>=_" => "_<_",
        function => function,
    };
    FUNCTIONS.get(function).map(Vec::as_slice)
}

fn parse_overload(form: &'static str) -> Option<Overload> {
    let (call, result) = form.rsplit_once(" -> ")?;
    let (target, args) = call.split_once('(')?;
    let args = args.strip_suffix(')')?;
    let mut reader = Reader::default();
    let mut types = Vec::new();
    let target = target.strip_suffix('.');
    for name in target.into_iter().chain(split_parameters(args)) {
        types.push(reader.read(name));
    }
    let result = reader.read(result);
    Some(Overload {
        member: target.is_some(),
        args: types,
        result,
        variables: reader.letters.len(),
    })
}

fn split_parameters(parameters: &'static str) -> Vec<&'static str> {
    let mut depth = 0;
    let mut parts: Vec<&str> = parameters
        .split(|letter| {
            match letter {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            letter == ',' && depth == 0
        })
        .map(str::trim)
        .collect();
    parts.retain(|part| !part.is_empty());
    parts
}

/// Numbers type parameters in order of appearance.
#[derive(Default)]
struct Reader {
    letters: Vec<char>,
}

impl Reader {
    fn read(&mut self, name: &'static str) -> Type {
        if let Some((outer, inner)) = name.split_once('<') {
            let mut inner = split_parameters(inner.strip_suffix('>').unwrap_or(inner))
                .into_iter()
                .map(|part| self.read(part))
                .collect::<Vec<_>>()
                .into_iter();
            let mut next = || inner.next().unwrap_or(Type::Dyn);
            return match outer {
                "list" => Type::list(next()),
                "optional" => Type::optional(next()),
                _ => Type::map(next(), next()),
            };
        }
        match name {
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "duration" => Type::Duration,
            "timestamp" => Type::Timestamp,
            "type" => Type::Kind,
            "dyn" => Type::Dyn,
            _ => match name.chars().next() {
                Some(letter) if letter.is_ascii_uppercase() => {
                    let known = self.letters.iter().position(|known| *known == letter);
                    Type::Variable(known.unwrap_or_else(|| {
                        self.letters.push(letter);
                        self.letters.len() - 1
                    }))
                }
                _ => Type::Opaque(name),
            },
        }
    }
}
