//! Sizes of sums of products: a dimension that is summed over has one size.

use crate::import::onnx::ops::{
    checks::{
        Checked, Place, RANK, Size, elements, equal, has_rank, has_rank_of, require, signature,
    },
    op::Op,
    symbolic,
};

const SUMMED: &str = "the dimension that is summed over must have one size";

/// A matrix product with any input as its second factor.
pub(crate) fn matmul(op: &Op, second: usize) -> Checked {
    has_rank_of(op, 0, 1)?;
    has_rank_of(op, second, 1)?;
    let (mut a, mut b) = (op.sizes(0), op.sizes(second));
    symbolic::turn(op, &mut a, &mut b);
    let (Some(row), Some(column)) = (a.pop(), b.pop()) else { return Ok(()) };
    let column = if b.is_empty() { column } else { b.pop().flatten() };
    a.pop();
    if let (Some(row), Some(column)) = (row, column) {
        require(row.number == column.number, row, column, SUMMED)?;
    }
    elements::broadcast(&[a, b])
}

/// `Gemm`: two matrices, and an input that is broadcast to their product.
pub(crate) fn gemm(op: &Op, second: usize, added: usize) -> Checked {
    has_rank(op, 0, 2)?;
    has_rank(op, second, 2)?;
    let transposed = |name| usize::from(op.node.int(name).unwrap_or(0) != 0);
    let (a, b) = (transposed("transA"), transposed("transB"));
    if let (Some(row), Some(column)) = (op.dim(0, 1 - a), op.dim(second, b)) {
        require(row.number == column.number, row, column, SUMMED)?;
    }
    elements::one_way(op, added, &[op.dim(0, a), op.dim(second, 1 - b)], Size::needed(2))
}

/// `MatMulNBits`: the attributes state the shape of the second factor.
pub(crate) fn matmul_n_bits(op: &Op) -> Checked {
    let given = [('K', op.attribute("K")), ('N', op.attribute("N"))];
    signature(op, "* K, N *", &given)
}

/// `Einsum`: a letter of the equation is one size, or 1 in another input; `...` is the same dimensions for each.
pub(crate) fn einsum(op: &Op) -> Checked {
    let Some(equation) = op.node.string("equation") else { return Ok(()) };
    let terms = equation.split("->").next().unwrap_or_default();
    // The size of each letter, and the dimensions of each `...`.
    let mut sizes: Vec<(char, Size)> = Vec::new();
    let mut others: Vec<Vec<Option<Size>>> = Vec::new();
    for (input, term) in terms.split(',').enumerate() {
        let term: String = term.chars().filter(|letter| !letter.is_whitespace()).collect();
        let Some(rank) = op.rank(input) else { continue };
        let (front, back) = term.split_once("...").unwrap_or((&term, ""));
        let letters = (front.chars().count() + back.chars().count()) as u64;
        let letters = Size::new(Place::Other("the number of letters for it"), letters);
        let is_open = term.contains("...");
        let fits = rank.number == letters.number || is_open && rank.number > letters.number;
        require(fits, rank, letters, RANK)?;
        let shape = op.sizes(input);
        let (first, rest) = shape.split_at(front.chars().count());
        let (open, last) = rest.split_at(rest.len() - back.chars().count());
        if let Some(other) = others.first().filter(|other| is_open && other.len() != open.len()) {
            let other = Size::new(
                Place::Other("the number of further dimensions elsewhere"),
                other.len() as u64,
            );
            let open =
                Size::new(Place::Other("the number of further dimensions"), open.len() as u64);
            require(false, other, open, RANK)?;
        }
        if is_open {
            others.push(open.to_vec());
        }
        let named = front.chars().zip(first).chain(back.chars().zip(last));
        let known = sizes.len();
        for (letter, size) in named {
            let Some(size) = *size else { continue };
            let found = sizes.iter().position(|(other, _)| *other == letter);
            match found.map(|at| (at, sizes[at].1)) {
                // In one term, a letter is one size.
                Some((at, other)) if at >= known || other.number != 1 && size.number != 1 => {
                    equal(Some(other), Some(size))?;
                }
                Some((at, other)) if other.number == 1 => sizes[at].1 = size,
                Some(_) => {}
                None => sizes.push((letter, size)),
            }
        }
    }
    elements::broadcast(&others)
}

/// `Det`: square matrices.
pub(crate) fn determinant(op: &Op) -> Checked {
    signature(op, "* M M", &[])
}

/// `CDist`: rows of the same length.
pub(crate) fn distances(op: &Op) -> Checked {
    signature(op, "_ K, _ K", &[])
}
