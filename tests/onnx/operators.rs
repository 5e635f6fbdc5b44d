//! The book's page of all ONNX operators is the importer's table. `SNAPSHOTS=overwrite cargo test
//! --test onnx operators` rewrites it.

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use memplan::import::onnx::operators;
use snapbox::{Data, data::DataFormat};

const TRY_IT: &str = "
**Try it.** Run `memplan ops` on a model of yours. Which of its operators take new memory, and what does
this table say of them?
";

const INTRODUCTION: &str = "\
# ONNX operators

What memplan knows of each operator. A shape that is *known* follows from the operator's inputs and
attributes, as far as those are known; where it is *at most*, only the run knows it, and memplan plans
for the most that it can be; one that is *known only in the run* must be given. A view shares
the memory of the first input. An output that may be written over an input needs one of the
same shape and element width, which nothing reads later, and a [kernel](kernels.md) that allows it.

The page is made from the table by which models are read; an operator that is not here must have its
outputs declared in the model, and gets memory of its own for each.

| operator | domain | shape | view of the first input | may be written over an input |
| --- | --- | --- | --- | --- |
";

#[test]
fn the_books_page_lists_every_operator() {
    let mut rows: Vec<String> = operators()
        .map(|operator| {
            let domains: Vec<&str> = operator.domains().collect();
            let domains = domains.join(", ");
            let (shape, in_place) = match operator.refused() {
                Some(what) => (format!("refused: it makes {what}"), String::new()),
                None => (operator.shape().to_owned(), operator.in_place()),
            };
            let view = operator.view().unwrap_or("no");
            format!("| {} | {domains} | {shape} | {view} | {in_place} |", operator.name())
        })
        .collect();
    rows.sort();
    let mut page = INTRODUCTION.to_owned();
    for row in rows {
        writeln!(page, "{row}").unwrap();
    }
    page.push_str(TRY_IT);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/book/src/onnx-operators.md");
    snapbox::Assert::new()
        .action_env(snapbox::assert::DEFAULT_ACTION_ENV)
        .eq(page, Data::read_from(Path::new(path), Some(DataFormat::Text)).raw());
}

#[test]
fn every_operator_has_one_row() {
    let mut seen = BTreeSet::new();
    for operator in operators() {
        for domain in operator.domains() {
            assert!(seen.insert((operator.name(), domain)), "{operator:?} of {domain}");
        }
    }
    assert!(seen.len() > 200, "{}", seen.len());
}
