//! Checked arithmetic on elements: a result that overflows or has no value is unknown.

use crate::import::onnx::read::fact::Scalar;

/// A function of one element.
#[derive(Clone, Copy)]
pub(crate) struct Unary {
    pub(crate) ints: fn(i64) -> Option<i64>,
    pub(crate) floats: fn(f64) -> Option<f64>,
}

/// A function of two elements of one type. Truth values are whole numbers.
#[derive(Clone, Copy)]
pub(crate) struct Binary {
    pub(crate) ints: fn(i64, i64) -> Option<i64>,
    pub(crate) floats: fn(f64, f64) -> Option<Scalar>,
}

impl Unary {
    pub(crate) fn of(self, scalar: Scalar) -> Scalar {
        let result = match scalar {
            Scalar::Int(a) => (self.ints)(a).map(Scalar::Int),
            Scalar::Float(a) => (self.floats)(a).map(Scalar::Float),
            Scalar::Unknown => None,
        };
        result.unwrap_or(Scalar::Unknown)
    }
}

impl Binary {
    pub(crate) fn of(self, a: Scalar, b: Scalar) -> Scalar {
        let result = match (a, b) {
            (Scalar::Int(a), Scalar::Int(b)) => (self.ints)(a, b).map(Scalar::Int),
            (Scalar::Float(a), Scalar::Float(b)) => (self.floats)(a, b),
            _ => None,
        };
        result.unwrap_or(Scalar::Unknown)
    }
}

const fn no_int(_: i64) -> Option<i64> {
    None
}

const fn no_float(_: f64) -> Option<f64> {
    None
}

const fn no_floats(_: f64, _: f64) -> Option<Scalar> {
    None
}

#[allow(clippy::unnecessary_wraps, reason = "the type of all comparisons")]
fn truth(value: bool) -> Option<i64> {
    Some(value.into())
}

fn float_truth(value: bool) -> Option<Scalar> {
    truth(value).map(Scalar::Int)
}

#[allow(clippy::unnecessary_wraps, reason = "the type of all arithmetic")]
fn float(value: f64) -> Option<Scalar> {
    Some(Scalar::Float(value))
}

/// Returns whether runtimes compute a power exactly: they use 64-bit floats, which are exact up to
/// 2^53.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "as filters ask")]
fn is_exact(power: &i64) -> bool {
    power.unsigned_abs() <= 1 << 53
}

pub(super) const ABS: Unary = Unary { ints: i64::checked_abs, floats: |a| Some(a.abs()) };
pub(super) const CEIL: Unary = Unary { ints: no_int, floats: |a| Some(a.ceil()) };
pub(super) const FLOOR: Unary = Unary { ints: no_int, floats: |a| Some(a.floor()) };
pub(super) const NEG: Unary = Unary { ints: i64::checked_neg, floats: |a| Some(-a) };
pub(super) const NOT: Unary = Unary { ints: |a| truth(a == 0), floats: no_float };
pub(super) const RECIPROCAL: Unary = Unary { ints: no_int, floats: |a| Some(a.recip()) };
pub(super) const ROUND: Unary = Unary { ints: no_int, floats: |a| Some(a.round_ties_even()) };
pub(super) const SIGN: Unary = Unary { ints: |a| Some(a.signum()), floats: no_float };
pub(super) const SQRT: Unary = Unary { ints: no_int, floats: |a| Some(a.sqrt()) };

pub(super) const ADD: Binary = Binary { ints: i64::checked_add, floats: |a, b| float(a + b) };
pub(super) const SUB: Binary = Binary { ints: i64::checked_sub, floats: |a, b| float(a - b) };
pub(super) const MUL: Binary = Binary { ints: i64::checked_mul, floats: |a, b| float(a * b) };
pub(super) const DIV: Binary = Binary { ints: i64::checked_div, floats: |a, b| float(a / b) };
/// The result has the sign of the divisor.
pub(super) const MOD: Binary = Binary {
    ints: |a, b| a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r }),
    floats: no_floats,
};
pub(super) const POW: Binary = Binary {
    ints: |a, b| a.checked_pow(u32::try_from(b).ok()?).filter(is_exact),
    floats: no_floats,
};
pub(super) const MIN: Binary =
    Binary { ints: |a, b| Some(a.min(b)), floats: |a, b| float(a.min(b)) };
pub(super) const MAX: Binary =
    Binary { ints: |a, b| Some(a.max(b)), floats: |a, b| float(a.max(b)) };
pub(super) const AND: Binary = Binary { ints: |a, b| truth(a != 0 && b != 0), floats: no_floats };
pub(super) const OR: Binary = Binary { ints: |a, b| truth(a != 0 || b != 0), floats: no_floats };
pub(super) const XOR: Binary =
    Binary { ints: |a, b| truth((a != 0) != (b != 0)), floats: no_floats };
pub(super) const EQUAL: Binary = Binary { ints: |a, b| truth(a == b), floats: no_floats };
pub(super) const GREATER: Binary =
    Binary { ints: |a, b| truth(a > b), floats: |a, b| float_truth(a > b) };
pub(super) const GREATER_OR_EQUAL: Binary =
    Binary { ints: |a, b| truth(a >= b), floats: |a, b| float_truth(a >= b) };
pub(super) const LESS: Binary =
    Binary { ints: |a, b| truth(a < b), floats: |a, b| float_truth(a < b) };
pub(super) const LESS_OR_EQUAL: Binary =
    Binary { ints: |a, b| truth(a <= b), floats: |a, b| float_truth(a <= b) };
