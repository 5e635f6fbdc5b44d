//! Dimensions that follow from others: exporters write `past + seq`, `2*s` or `floor(n/2)` for a name.
//!
//! Numbers are fractions, so that `floor(n/2)` is exact.

/// The longest name that is read as an expression, in bytes.
const MAX_LENGTH: usize = 256;

/// An expression of the names of dimensions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    Number(i128),
    Name(String),
    Of(Function, Vec<Expression>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Plus,
    Minus,
    Times,
    Over,
    Power,
    /// Divides and rounds down.
    FloorOver,
    /// Divides and rounds up.
    CeilOver,
    Remainder,
    Negative,
    Floor,
    Ceil,
    Max,
    Min,
}

/// Functions by their names in small letters.
const FUNCTIONS: [(&str, Function); 10] = [
    ("floor", Function::Floor),
    ("ceil", Function::Ceil),
    ("ceiling", Function::Ceil),
    ("ceiltoint", Function::Ceil),
    ("max", Function::Max),
    ("min", Function::Min),
    ("mod", Function::Remainder),
    ("floordiv", Function::FloorOver),
    ("cleandiv", Function::Over),
    ("ceildiv", Function::CeilOver),
];

/// A fraction; the second number is more than 0.
type Fraction = (i128, i128);

impl Expression {
    /// Reads an expression; `None` if the text is none, or only one name or number.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parser = Parser { rest: text.trim_start() };
        let is_short = text.len() <= MAX_LENGTH;
        let read = is_short.then(|| parser.sum())??;
        (parser.rest.is_empty() && matches!(read, Self::Of(..))).then_some(read)
    }

    /// The names in it.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Self::Number(_) => Vec::new(),
            Self::Name(name) => vec![name],
            Self::Of(_, parts) => parts.iter().flat_map(Self::names).collect(),
        }
    }

    /// Its value, if all names have one, and if it is a size.
    pub(crate) fn size(&self, of_name: &dyn Fn(&str) -> Option<u64>) -> Option<u64> {
        let (number, parts) = self.value(of_name)?;
        (number % parts == 0).then(|| u64::try_from(number / parts).ok())?
    }

    fn value(&self, of_name: &dyn Fn(&str) -> Option<u64>) -> Option<Fraction> {
        match self {
            Self::Number(number) => Some((*number, 1)),
            Self::Name(name) => Some((of_name(name)?.into(), 1)),
            Self::Of(function, parts) => {
                let parts = parts.iter().map(|part| part.value(of_name));
                function.of(&parts.collect::<Option<Vec<_>>>()?)
            }
        }
    }
}

impl Function {
    fn of(self, parts: &[Fraction]) -> Option<Fraction> {
        let times = i128::checked_mul;
        let order = |a: Fraction, b: Fraction| Some(times(a.0, b.1)?.cmp(&times(b.0, a.1)?));
        let floor = |(n, d): Fraction| (n.div_euclid(d), 1);
        let ceil = |(n, d): Fraction| Some((n.checked_neg()?.div_euclid(d).checked_neg()?, 1));
        let product = |a: Fraction, b: Fraction| Some((times(a.0, b.0)?, times(a.1, b.1)?));
        let quotient = |a: Fraction, b: Fraction| match b.0 {
            0 => None,
            number if number < 0 => product(a, (b.1.checked_neg()?, number.checked_neg()?)),
            number => product(a, (b.1, number)),
        };
        let sum = |a: Fraction, b: Fraction| {
            Some((times(a.0, b.1)?.checked_add(times(b.0, a.1)?)?, times(a.1, b.1)?))
        };
        let negative = |a: Fraction| Some((a.0.checked_neg()?, a.1));
        match (self, parts) {
            (Self::Negative, &[a]) => negative(a),
            (Self::Floor, &[a]) => Some(floor(a)),
            (Self::Ceil, &[a]) => ceil(a),
            (Self::Plus, &[a, b]) => sum(a, b),
            (Self::Minus, &[a, b]) => sum(a, negative(b)?),
            (Self::Times, &[a, b]) => product(a, b),
            (Self::Over, &[a, b]) => quotient(a, b),
            (Self::FloorOver, &[a, b]) => quotient(a, b).map(floor),
            (Self::CeilOver, &[a, b]) => quotient(a, b).and_then(ceil),
            (Self::Remainder, &[a, b]) => sum(a, negative(product(floor(quotient(a, b)?), b)?)?),
            (Self::Power, &[(number, 1), (power, 1)]) => {
                Some((number.checked_pow(u32::try_from(power).ok()?)?, 1))
            }
            (Self::Max | Self::Min, &[first, ref rest @ ..]) => {
                rest.iter().try_fold(first, |best, &next| {
                    let next_is_more = order(next, best)?.is_gt();
                    Some(if next_is_more == (self == Self::Max) { next } else { best })
                })
            }
            _ => None,
        }
    }
}

/// Reads from the front of a text. What has been read is followed by no blank.
struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest[bytes..].trim_start();
    }

    fn takes(&mut self, sign: &str) -> bool {
        let found = self.rest.starts_with(sign);
        if found {
            self.skip(sign.len());
        }
        found
    }

    fn sum(&mut self) -> Option<Expression> {
        let mut left = self.product()?;
        loop {
            let function = match () {
                () if self.takes("+") => Function::Plus,
                () if self.takes("-") => Function::Minus,
                () => return Some(left),
            };
            left = Expression::Of(function, vec![left, self.product()?]);
        }
    }

    fn product(&mut self) -> Option<Expression> {
        let mut left = self.negative()?;
        loop {
            let function = match () {
                () if self.takes("//") => Function::FloorOver,
                () if self.takes("*") => Function::Times,
                () if self.takes("/") => Function::Over,
                () if self.takes("%") => Function::Remainder,
                () => return Some(left),
            };
            left = Expression::Of(function, vec![left, self.negative()?]);
        }
    }

    fn negative(&mut self) -> Option<Expression> {
        if self.takes("-") {
            return Some(Expression::Of(Function::Negative, vec![self.negative()?]));
        }
        let base = self.atom()?;
        if self.takes("**") || self.takes("^") {
            return Some(Expression::Of(Function::Power, vec![base, self.negative()?]));
        }
        Some(base)
    }

    fn atom(&mut self) -> Option<Expression> {
        if self.takes("(") {
            let inner = self.sum()?;
            return self.takes(")").then_some(inner);
        }
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        let first = word.chars().next()?;
        self.skip(end);
        if first.is_ascii_digit() {
            return word.parse().ok().map(Expression::Number);
        }
        if !self.takes("(") {
            return Some(Expression::Name(word.to_owned()));
        }
        let word = word.to_ascii_lowercase();
        let (_, function) = FUNCTIONS.iter().find(|(name, _)| *name == word)?;
        let mut parts = vec![self.sum()?];
        while self.takes(",") {
            parts.push(self.sum()?);
        }
        self.takes(")").then_some(Expression::Of(*function, parts))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::Expression;

    #[rstest]
    #[case("past + seq", Some(9))]
    #[case("2*seq", Some(4))]
    #[case("past-seq", Some(5))]
    #[case("floor(past/2)", Some(3))]
    #[case("ceiling(past/2) + 1", Some(5))]
    #[case("past // seq", Some(3))]
    #[case("past % 4", Some(3))]
    #[case("Mod(past, 4)", Some(3))]
    #[case("-1 + past", Some(6))]
    #[case("past + -seq", Some(5))]
    #[case("2 * (past + 1) / 4", Some(4))]
    #[case("Max(1, seq, past)", Some(7))]
    #[case("min(past, seq)", Some(2))]
    #[case("seq**3", Some(8))]
    #[case("floor(past/2 - 1/2) + 1", Some(4))]
    #[case("FloorDiv(past, seq)", Some(3))]
    #[case("CeilDiv(past, seq)", Some(4))]
    // No size.
    #[case("past / 2", None)]
    #[case("seq - past", None)]
    #[case("past / (seq - 2)", None)]
    #[case("past + other", None)]
    // No expression.
    #[case("past", None)]
    #[case("7", None)]
    #[case("past +", None)]
    #[case("(past + seq", None)]
    #[case("what(past)", None)]
    #[case("past seq", None)]
    #[case("", None)]
    fn expressions_are_evaluated(#[case] text: &str, #[case] expected: Option<u64>) {
        let of_name = |name: &str| match name {
            "past" => Some(7),
            "seq" => Some(2),
            _ => None,
        };
        let found = Expression::parse(text).and_then(|read| read.size(&of_name));
        assert_eq!(found, expected);
    }
}
