//! Shapes as patterns.

use crate::import::onnx::ops::{
    checks::{Checked, EQUAL, Place, RANK, Size, require},
    op::Op,
};

const MULTIPLE: &str = "the first must be a multiple of the second";
const TIMES: &str = "the operator fixes the ratio of the two";

/// Compares the shapes of the inputs with a pattern, which has their dimensions, separated by blanks, for
/// each input, separated by commas:
///
/// - a letter is a size, the same wherever the letter occurs;
/// - a number before it is a factor: `4H` is four times the size `H`;
/// - a number alone is that size, and `_` any size;
/// - `*` at either end stands for any further dimensions;
/// - `-` alone is any shape.
///
/// Absent inputs and unknown sizes are skipped. `given` are sizes that come from elsewhere, by letter.
pub(super) fn signature(op: &Op, pattern: &str, given: &[(char, Option<Size>)]) -> Checked {
    let known =
        |&(letter, size): &(char, Option<Size>)| Some(Known { letter, factor: 1, size: size? });
    let mut sizes: Vec<Known> = given.iter().filter_map(known).collect();
    for (input, pattern) in pattern.split(',').enumerate() {
        let dims: Vec<&str> = pattern.split_whitespace().collect();
        let Some(shape) = op.shape(input).filter(|_| dims != ["-"]) else { continue };
        let named: Vec<&str> = dims.iter().copied().filter(|&dim| dim != "*").collect();
        let is_open = named.len() < dims.len();
        let rank = Size::new(Place::Rank(input), shape.len() as u64);
        let fits = shape.len() == named.len() || is_open && shape.len() > named.len();
        require(fits, rank, Size::needed(named.len() as u64), RANK)?;
        let first = if dims.first() == Some(&"*") { shape.len() - named.len() } else { 0 };
        for (at, dim) in named.into_iter().enumerate() {
            if let Some(size) = op.dim(input, first + at) {
                compare(dim, size, &mut sizes)?;
            }
        }
    }
    Ok(())
}

/// A size that is a number of times the one that a letter stands for.
struct Known {
    letter: char,
    factor: i128,
    size: Size,
}

/// Compares a size with a part of a pattern.
fn compare(dim: &str, size: Size, sizes: &mut Vec<Known>) -> Checked {
    let letter = dim.chars().last().filter(char::is_ascii_alphabetic);
    let factor = dim.trim_end_matches(|last: char| last.is_ascii_alphabetic()).parse().ok();
    let (Some(letter), factor) = (letter, factor.unwrap_or(1)) else {
        return match factor {
            Some(number) => require(size.number == number, size, Size::needed(number), EQUAL),
            None => Ok(()),
        };
    };
    let needed = Size::needed(factor);
    require(size.number % factor == 0, size, needed, MULTIPLE)?;
    let Some(known) = sizes.iter().find(|known| known.letter == letter) else {
        sizes.push(Known { letter, factor, size });
        return Ok(());
    };
    let rule = if factor == known.factor { EQUAL } else { TIMES };
    let agree = size.number * known.factor == known.size.number * factor;
    require(agree, size, known.size, rule)
}
