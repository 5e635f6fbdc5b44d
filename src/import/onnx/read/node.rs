//! A node of the graph: an operator of the model.

use rten_onnx::onnx::{AttributeProto, GraphProto, NodeProto, TensorProto};

/// Returns whether a domain is ONNX's own.
pub(crate) fn is_standard(domain: &str) -> bool {
    matches!(domain, "" | "ai.onnx")
}

/// An operator of the model.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a>(pub(crate) &'a NodeProto);

impl<'a> Node<'a> {
    pub(crate) fn name(self) -> &'a str {
        self.0.name.as_deref().unwrap_or("")
    }

    pub(crate) fn kind(self) -> &'a str {
        self.0.op_type.as_deref().unwrap_or("")
    }

    /// The operator's label in messages: `'conv1' (Conv)`.
    pub(crate) fn label(self) -> String {
        match (self.name(), self.0.output.iter().find(|name| !name.is_empty())) {
            ("", Some(output)) => format!("{} (which makes '{output}')", self.kind()),
            ("", None) => self.kind().to_owned(),
            (name, _) => format!("'{name}' ({})", self.kind()),
        }
    }

    pub(crate) fn domain(self) -> &'a str {
        self.0.domain.as_deref().unwrap_or("")
    }

    /// The input at a position, unless it is absent.
    pub(crate) fn input(self, index: usize) -> Option<&'a str> {
        self.0.input.get(index).map(String::as_str).filter(|name| !name.is_empty())
    }

    pub(crate) fn inputs(self) -> impl Iterator<Item = &'a str> {
        self.0.input.iter().map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The outputs that are present, with their positions.
    pub(crate) fn outputs(self) -> impl Iterator<Item = (usize, &'a str)> {
        self.0.output.iter().map(String::as_str).enumerate().filter(|(_, name)| !name.is_empty())
    }

    fn attribute(self, name: &str) -> Option<&'a AttributeProto> {
        self.0.attribute.iter().find(|attribute| attribute.name.as_deref() == Some(name))
    }

    pub(crate) fn int(self, name: &str) -> Option<i64> {
        self.attribute(name)?.i
    }

    pub(crate) fn ints(self, name: &str) -> Option<&'a [i64]> {
        self.attribute(name).map(|attribute| &attribute.ints[..])
    }

    pub(crate) fn float(self, name: &str) -> Option<f32> {
        self.attribute(name)?.f
    }

    pub(crate) fn floats(self, name: &str) -> Option<&'a [f32]> {
        self.attribute(name).map(|attribute| &attribute.floats[..])
    }

    /// The number of entries of an attribute that is a list.
    pub(crate) fn length(self, name: &str) -> Option<usize> {
        let AttributeProto { ints, floats, strings, .. } = self.attribute(name)?;
        Some(ints.len().max(floats.len()).max(strings.len()))
    }

    pub(crate) fn string(self, name: &str) -> Option<&'a str> {
        self.attribute(name)?.s.as_deref()
    }

    pub(crate) fn has_strings(self) -> bool {
        self.attribute("value_string").or(self.attribute("value_strings")).is_some()
    }

    pub(crate) fn tensor(self, name: &str) -> Option<&'a TensorProto> {
        self.attribute(name)?.t.as_ref()
    }

    pub(crate) fn graph(self, name: &str) -> Option<&'a GraphProto> {
        self.attribute(name)?.g.as_ref()
    }

    /// The sub-graphs, in the order of the attributes.
    pub(crate) fn bodies(self) -> impl Iterator<Item = &'a GraphProto> {
        self.0.attribute.iter().filter_map(|attribute| attribute.g.as_ref())
    }
}
