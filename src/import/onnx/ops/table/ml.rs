//! Operators of classical machine learning: `ai.onnx.ml`.

use rten_onnx::onnx::DataType;

use crate::import::onnx::ops::{
    learning,
    row::Row,
    table::{RESIZES, refused, same, unary},
    types::{FIRST, FLOAT, INT64, STRING, TypeRule},
};

/// The type of labels: that of the list that the model states.
const LABELS: TypeRule =
    TypeRule::ByAttribute(&[("classlabels_strings", DataType::STRING)], &INT64);

/// The type of what a `LabelEncoder` returns; before opset 2, one of the types stands for the other.
const ENCODED: TypeRule = TypeRule::ByAttribute(
    &[
        ("values_floats", DataType::FLOAT),
        ("values_int64s", DataType::INT64),
        ("values_strings", DataType::STRING),
    ],
    &TypeRule::TensorAttribute("values_tensor", &TypeRule::Other(&STRING, &INT64)),
);

const fn classifier(name: &'static str) -> Row {
    Row::new(name, learning::classes).types(&[LABELS, FLOAT]).never(RESIZES).ml()
}

/// The operators of `ai.onnx.ml`.
pub(super) const TABLE: &[Row] = &[
    Row::new("ArrayFeatureExtractor", learning::columns).never(RESIZES).ml(),
    unary("Binarizer").ml(),
    Row::new("FeatureVectorizer", learning::side_by_side).types(&[FLOAT]).never(RESIZES).ml(),
    unary("Imputer").ml(),
    Row::new("LabelEncoder", same).types(&[ENCODED]).never(RESIZES).ml(),
    classifier("LinearClassifier"),
    Row::new("LinearRegressor", |op| learning::targets(op, "targets"))
        .types(&[FLOAT])
        .never(RESIZES)
        .ml(),
    Row::new("Normalizer", same).types(&[FLOAT]).rows().ml(),
    Row::new("OneHotEncoder", learning::one_hot).types(&[FLOAT]).never(RESIZES).ml(),
    Row::new("SVMRegressor", |op| learning::targets(op, "")).types(&[FLOAT]).never(RESIZES).ml(),
    unary("Scaler").types(&[FLOAT]).ml(),
    Row::new("TreeEnsemble", |op| learning::targets(op, "n_targets"))
        .types(&[FIRST])
        .never(RESIZES)
        .ml(),
    classifier("TreeEnsembleClassifier"),
    Row::new("TreeEnsembleRegressor", |op| learning::targets(op, "n_targets"))
        .types(&[FLOAT])
        .never(RESIZES)
        .ml(),
    refused("ZipMap", "a map").ml(),
];
