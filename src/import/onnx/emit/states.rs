//! Caches: tensors that are made in the memory of an input of the model.

use crate::{
    Bytes,
    import::onnx::{
        OnnxError,
        emit::Emitter,
        read::{fact::Fact, node::Node},
    },
};

impl<'a> Emitter<'a> {
    /// The input of the model in whose memory an output is made: a cache whose next state it is.
    pub(super) fn updated(
        &self,
        next: &str,
        fact: &Fact,
        node: Node<'a>,
    ) -> Result<Option<&'a str>, OnnxError> {
        let Some(input) = self.context.input_of_state(next).filter(|_| !self.is_body) else {
            return Ok(None);
        };
        let wrong =
            |why: String| OnnxError::State { input: input.to_owned(), next: next.to_owned(), why };
        if !self.inputs.contains(input) {
            return Err(wrong(format!("'{input}' is no input of the model")));
        }
        if node.bodies().next().is_some() {
            return Err(wrong(format!("operator {} makes it in a graph of its own", node.label())));
        }
        let bytes = self.scope.get(input).and_then(Fact::bytes);
        if bytes != fact.bytes() {
            let size =
                |bytes: Option<Bytes>| bytes.map_or("unknown".to_owned(), |of| of.to_string());
            let (cache, next) = (size(bytes), size(fact.bytes()));
            return Err(wrong(format!(
                "the input has {cache} bytes, but the next state {next}; a cache that grows needs room for its largest state"
            )));
        }
        Ok(Some(input))
    }

    /// Checks that operators make the next states.
    ///
    /// # Errors
    ///
    /// If one is not made in the run.
    pub(super) fn check_states(&self) -> Result<(), OnnxError> {
        for (input, next) in self.context.states() {
            if !self.is_produced(next) {
                let why = format!("no operator that runs makes '{next}'");
                let (input, next) = (input.to_owned(), next.to_owned());
                return Err(OnnxError::State { input, next, why });
            }
        }
        Ok(())
    }
}
