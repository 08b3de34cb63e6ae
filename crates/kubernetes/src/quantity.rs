//! Kubernetes' quantities, e.g. `1.5Gi`, parsed like in `k8s.io/apimachinery/pkg/api/resource`.

use std::cmp::Ordering;

const WRONG_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";
const WRONG_NUMBER: &str = "unable to parse numeric part of quantity";
/// Maximum number of digits that Go stores in 64 bits.
const MAX_DIGITS: i32 = 18;
/// Beyond this, powers of ten are far too large for 128 bits.
const MAX_EXPONENT: i32 = 1000;

/// A parsed quantity.
#[derive(Clone, Debug)]
pub struct Quantity {
    value: Value,
    exponent: i32,
}

/// Go stores small numbers in 64 bits and can only convert those to integers, so track which
/// numbers would be small.
#[derive(Clone, Debug)]
enum Value {
    Small(i64),
    Large(i128),
}

/// Why a text can't be parsed.
#[derive(Debug)]
pub enum Problem {
    /// It's malformed. The text is the API server's.
    Invalid(&'static str),
    /// Too large for our arithmetic.
    TooLarge,
}

struct Parts<'t> {
    is_negative: bool,
    /// Excludes leading zeros.
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
    has_digits: bool,
}

fn split(text: &str) -> Result<Parts<'_>, Problem> {
    let is_negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let rest = unsigned.trim_start_matches('0');
    if rest.is_empty() {
        return Ok(Parts {
            is_negative: false,
            whole: "",
            fraction: "",
            suffix: "",
            has_digits: true,
        });
    }
    let is_digit = |letter: char| letter.is_ascii_digit();
    let after = rest.trim_start_matches(is_digit);
    let whole = &rest[..rest.len() - after.len()];
    let (fraction, suffix) = match after.strip_prefix('.') {
        Some(after) => {
            let suffix = after.trim_start_matches(is_digit);
            (&after[..after.len() - suffix.len()], suffix)
        }
        None => ("", after),
    };
    let letters = suffix.trim_start_matches(|letter| "eEinumkKMGTP".contains(letter));
    let exponent = letters.strip_prefix(['-', '+']).unwrap_or(letters);
    if !exponent.chars().all(is_digit) {
        return Err(Problem::Invalid(WRONG_FORMAT));
    }
    Ok(Parts {
        is_negative,
        whole,
        fraction,
        suffix,
        has_digits: unsigned.starts_with(is_digit) || !fraction.is_empty(),
    })
}

enum Factor {
    Decimal(i32),
    Binary(u32),
}

fn factor(suffix: &str) -> Option<Factor> {
    Some(match suffix {
        "" => Factor::Decimal(0),
        "n" => Factor::Decimal(-9),
        "u" => Factor::Decimal(-6),
        "m" => Factor::Decimal(-3),
        "k" => Factor::Decimal(3),
        "M" => Factor::Decimal(6),
        "G" => Factor::Decimal(9),
        "T" => Factor::Decimal(12),
        "P" => Factor::Decimal(15),
        "E" => Factor::Decimal(18),
        "Ki" => Factor::Binary(10),
        "Mi" => Factor::Binary(20),
        "Gi" => Factor::Binary(30),
        "Ti" => Factor::Binary(40),
        "Pi" => Factor::Binary(50),
        "Ei" => Factor::Binary(60),
        // Go casts the exponent to 32 bits.
        #[allow(clippy::cast_possible_truncation)]
        suffix => Factor::Decimal(suffix.strip_prefix(['e', 'E'])?.parse::<i64>().ok()? as i32),
    })
}

/// Compares two quantities, e.g. `1Gi` and `1000M`. Returns `None` if either is malformed.
#[must_use]
pub fn compare(first: &str, second: &str) -> Option<Ordering> {
    let (first, second) = (parse(first).ok()?, parse(second).ok()?);
    Some(first.compare(&second))
}

/// Adds two quantities, or subtracts the second one if `is_minus` is set. As in Kubernetes, the sum
/// is printed like the first one, unless that's zero. Returns `None` if either is malformed, or if
/// the sum isn't representable.
#[must_use]
pub fn add(first: &str, second: &str, is_minus: bool) -> Option<String> {
    let (one, other) = (parse(first).ok()?, parse(second).ok()?);
    let format = if one.number() == 0 { second } else { first };
    print(&one.plus(&other, is_minus)?, split(format).ok()?.suffix)
}

/// Returns the approximate value of a quantity. Returns `None` if it is malformed.
#[must_use]
pub fn to_float(text: &str) -> Option<f64> {
    Some(parse(text).ok()?.as_float())
}

/// Returns a quantity as Kubernetes prints it: `1024Mi` as `1Gi`, and `0.5` as `500m`. Returns
/// `None` if it is malformed, or needs more digits than Go's own 64 bits.
#[must_use]
pub fn canonical(text: &str) -> Option<String> {
    print(&parse(text).ok()?, split(text).ok()?.suffix)
}

/// Prints a quantity with a suffix of the same kind as `suffix`.
fn print(quantity: &Quantity, suffix: &str) -> Option<String> {
    let mut number = quantity.number();
    if number == 0 {
        return Some("0".to_owned());
    }
    let is_binary = suffix.ends_with('i');
    // Go falls back to decimal suffixes for small numbers and fractions.
    if let Some(bytes) = is_binary.then(|| quantity.as_whole()).flatten()
        && bytes.unsigned_abs() >= 1024
    {
        return Some(print_binary(bytes));
    }
    let mut exponent = quantity.exponent;
    while number % 10 == 0 {
        number /= 10;
        exponent += 1;
    }
    let missing = u32::try_from(exponent.rem_euclid(3)).ok()?;
    number = number.checked_mul(10_i128.pow(missing))?;
    exponent -= i32::try_from(missing).ok()?;
    if suffix.starts_with(['e', 'E']) && suffix.len() > 1 {
        return Some(match exponent {
            0 => number.to_string(),
            exponent => format!("{number}e{exponent}"),
        });
    }
    const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    let suffix = DECIMAL.get(usize::try_from(exponent / 3 + 3).ok()?)?;
    Some(format!("{number}{suffix}"))
}

fn print_binary(mut number: i128) -> String {
    const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let mut power = 0;
    while number % 1024 == 0 && power + 1 < BINARY.len() {
        number /= 1024;
        power += 1;
    }
    format!("{number}{}", BINARY[power])
}

/// Parses a quantity.
///
/// # Errors
///
/// Fails if the text is malformed or a number is too large.
pub fn parse(text: &str) -> Result<Quantity, Problem> {
    if text.is_empty() {
        return Err(Problem::Invalid(WRONG_FORMAT));
    }
    let parts = split(text)?;
    let factor = factor(parts.suffix).ok_or(Problem::Invalid(WRONG_SUFFIX))?;
    let whole = if parts.whole.is_empty() { "0" } else { parts.whole };
    let digits = format!("{whole}{}", parts.fraction);
    let places = i32::try_from(parts.fraction.len()).map_err(|_| Problem::TooLarge)?;
    let length = i32::try_from(digits.len()).map_err(|_| Problem::TooLarge)?;
    let (precision, mut exponent, mantissa) = match factor {
        Factor::Decimal(exponent) => (MAX_DIGITS - length, exponent, 1_i64),
        Factor::Binary(exponent) if places == 0 => {
            let precision = 15 - length - i32::try_from(exponent * 3 / 10).unwrap_or(0) - 1;
            (precision, 0, 1 << exponent)
        }
        Factor::Binary(_) => (-1, 0, 1),
    };
    exponent = exponent.saturating_sub(places);
    if precision >= 0 && exponent >= -9 {
        let value: i64 = digits.parse().map_err(|_| Problem::Invalid(WRONG_NUMBER))?;
        if let Some(value) = value.checked_mul(mantissa) {
            let value = Value::Small(if parts.is_negative { -value } else { value });
            return Ok(Quantity { value, exponent });
        }
    }
    if !parts.has_digits {
        return Err(Problem::Invalid(WRONG_NUMBER));
    }
    large(&digits, places, &factor, parts.is_negative)
}

/// A number that exceeds Go's 64 bits, in billionths (rounded up).
fn large(digits: &str, places: i32, factor: &Factor, is_negative: bool) -> Result<Quantity, Problem> {
    let mut value: i128 = digits.parse().map_err(|_| Problem::TooLarge)?;
    let mut exponent = -places;
    match factor {
        Factor::Decimal(power) => exponent = exponent.saturating_add(*power),
        Factor::Binary(power) => value = value.checked_mul(1 << power).ok_or(Problem::TooLarge)?,
    }
    if exponent < -9 && value != 0 {
        let divisor = power_of_ten(-9 - exponent).unwrap_or(i128::MAX);
        value = value / divisor + i128::from(value % divisor != 0);
        exponent = -9;
    } else if value != 0 {
        let factor = power_of_ten(exponent + 9).ok_or(Problem::TooLarge)?;
        value = value.checked_mul(factor).ok_or(Problem::TooLarge)?;
        exponent = -9;
    }
    if matches!(factor, Factor::Binary(_)) {
        // Go caps binary quantities at 2^63 - 1.
        let most = i128::from(i64::MAX).checked_mul(power_of_ten(-exponent).ok_or(Problem::TooLarge)?);
        value = value.min(most.ok_or(Problem::TooLarge)?);
    }
    Ok(Quantity {
        value: Value::Large(if is_negative { -value } else { value }),
        exponent,
    })
}

fn power_of_ten(exponent: i32) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

impl Quantity {
    /// An integer as a quantity.
    #[must_use]
    pub fn of_int(value: i64) -> Quantity {
        Quantity {
            value: Value::Small(value),
            exponent: 0,
        }
    }

    fn number(&self) -> i128 {
        match self.value {
            Value::Small(value) => i128::from(value),
            Value::Large(value) => value,
        }
    }

    /// -1, 0 or 1.
    #[must_use]
    pub fn sign(&self) -> i64 {
        i64::try_from(self.number().signum()).unwrap_or(0)
    }

    /// Returns the value as an integer, or `None` if there's a fractional part, or if Go would need more than 64 bits.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        let Value::Small(value) = self.value else {
            return None;
        };
        match u32::try_from(self.exponent) {
            Ok(0) => Some(value),
            Ok(exponent) => value.checked_mul(10_i64.checked_pow(exponent)?),
            Err(_) => None,
        }
    }

    /// Returns `None` if there's a fraction.
    fn as_whole(&self) -> Option<i128> {
        let power = power_of_ten(self.exponent.abs())?;
        match self.exponent {
            0.. => self.number().checked_mul(power),
            _ => (self.number() % power == 0).then(|| self.number() / power),
        }
    }

    /// Returns the approximate value.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn as_float(&self) -> f64 {
        let number = self.number() as f64;
        match self.exponent {
            0 => number,
            exponent => number * go_power(exponent),
        }
    }

    /// Compares the values.
    #[must_use]
    pub fn compare(&self, other: &Quantity) -> Ordering {
        let sign = self.sign().cmp(&other.sign());
        if sign.is_ne() || self.sign() == 0 {
            return sign;
        }
        let least = self.exponent.min(other.exponent);
        let scaled = |quantity: &Quantity| {
            power_of_ten(quantity.exponent - least).and_then(|power| quantity.number().checked_mul(power))
        };
        match (scaled(self), scaled(other)) {
            (Some(one), Some(other)) => one.cmp(&other),
            // Both have the same sign, so at most one of them is too large to scale.
            (None, _) => {
                if self.sign() > 0 {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            (_, None) => {
                if self.sign() > 0 {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
        }
    }

    /// Adds a quantity, or subtracts it if `is_minus` is set. Returns `None` if the result isn't
    /// representable.
    #[must_use]
    pub fn plus(&self, other: &Quantity, is_minus: bool) -> Option<Quantity> {
        let exponent = self.exponent.min(other.exponent);
        let is_small = matches!((&self.value, &other.value), (Value::Small(_), Value::Small(_)));
        if self.exponent.max(other.exponent) > MAX_EXPONENT {
            return None;
        }
        let scaled = |quantity: &Quantity| match quantity.number() {
            0 => Some(0),
            number => number.checked_mul(power_of_ten(quantity.exponent - exponent)?),
        };
        let (one, other_number) = (scaled(self)?, scaled(other)?);
        let sum = match is_minus {
            true => one.checked_sub(other_number)?,
            false => one.checked_add(other_number)?,
        };
        // If either is zero, Go keeps the other one's scale.
        let (sum, exponent) = match (self.number(), other.number()) {
            (_, 0) if is_small => (self.number(), self.exponent),
            (0, number) if is_small => (if is_minus { -number } else { number }, other.exponent),
            _ => (sum, exponent),
        };
        let value = match i64::try_from(sum) {
            Ok(sum) if is_small => Value::Small(sum),
            _ => Value::Large(sum),
        };
        Some(Quantity { value, exponent })
    }
}

fn go_power(exponent: i32) -> f64 {
    match exponent {
        -323..=308 => format!("1e{exponent}").parse().unwrap_or(0.0),
        exponent if exponent > 0 => f64::INFINITY,
        _ => 0.0,
    }
}
