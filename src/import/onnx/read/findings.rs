//! Open questions and contradictions that are reported at the end.

use std::cell::{Cell, RefCell};

use crate::import::{OpenSize, onnx::OnnxError};

/// The number of times that bodies of one model may be planned again because a state grew.
const RETRIES: u32 = 256;

/// The findings while a model is read, reported at the end.
#[derive(Default)]
pub(crate) struct Findings {
    /// The open sizes by tensor and axis, in the order found.
    open: RefCell<Vec<OpenSize>>,
    differing: RefCell<Vec<Differing>>,
    retries: RefCell<u32>,
    /// The number of questions, repeated ones included.
    questions: Cell<u32>,
}

/// A shape or element type that the model declares differently.
pub(crate) struct Differing {
    pub(crate) tensor: String,
    pub(crate) maker: String,
    /// The property that differs: shape or type.
    pub(crate) property: &'static str,
    pub(crate) declared: String,
    pub(crate) inferred: String,
}

impl Findings {
    /// Returns whether a body may be planned again.
    pub(crate) fn retry(&self) -> bool {
        let mut retries = self.retries.borrow_mut();
        *retries += 1;
        *retries <= RETRIES
    }

    /// Returns whether the user must supply something.
    pub(crate) fn asks(&self) -> bool {
        !self.open.borrow().is_empty()
    }

    /// The number of questions so far.
    pub(crate) fn questions(&self) -> u32 {
        self.questions.get()
    }

    pub(crate) fn ask(&self, size: OpenSize) {
        self.questions.set(self.questions.get().saturating_add(1));
        let mut open = self.open.borrow_mut();
        let same = |known: &OpenSize| match (&known.dim, &size.dim) {
            (Some(known), Some(name)) => known == name,
            _ => known.tensor == size.tensor && known.axis == size.axis,
        };
        if !open.iter().any(same) {
            open.push(size);
        }
    }

    pub(crate) fn differs(&self, found: Differing) {
        let mut differing = self.differing.borrow_mut();
        if !differing.iter().any(|known| known.tensor == found.tensor) {
            differing.push(found);
        }
    }

    /// Reports the sizes without which nothing can be planned.
    ///
    /// # Errors
    ///
    /// If the user must give sizes.
    pub(crate) fn check_open(&self) -> Result<(), OnnxError> {
        let open = self.open.borrow();
        if open.is_empty() { Ok(()) } else { Err(OnnxError::OpenSizes { open: open.clone() }) }
    }

    /// Reports declarations that differ from the inferred shapes.
    ///
    /// # Errors
    ///
    /// If the user must choose which to trust.
    pub(crate) fn check_differing(&self) -> Result<(), OnnxError> {
        let differing = self.differing.borrow();
        let Some(first) = differing.first() else { return Ok(()) };
        Err(OnnxError::Differs {
            tensor: first.tensor.clone(),
            maker: first.maker.clone(),
            property: first.property,
            declared: first.declared.clone(),
            inferred: first.inferred.clone(),
            others: differing.len() - 1,
        })
    }
}
