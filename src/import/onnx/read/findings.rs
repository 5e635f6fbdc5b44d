//! What must be asked or said at the end, because it cannot be known or does not agree.

use std::cell::{Cell, RefCell};

use crate::import::onnx::{OnnxError, error::OpenSize};

/// How often bodies may be planned again, because a state grew, in one model.
const RETRIES: u32 = 256;

/// What turns up while a model is read, for the end.
#[derive(Default)]
pub(crate) struct Findings {
    /// By tensor and axis, in the order found.
    open: RefCell<Vec<OpenSize>>,
    differing: RefCell<Vec<Differing>>,
    retries: RefCell<u32>,
    /// How often something was asked, the same again counted anew.
    questions: Cell<u32>,
}

/// A shape that the model declares otherwise than it is.
pub(crate) struct Differing {
    pub(crate) tensor: String,
    pub(crate) maker: String,
    pub(crate) declared: String,
    pub(crate) inferred: String,
}

impl Findings {
    /// Whether a body may be planned once more.
    pub(crate) fn retry(&self) -> bool {
        let mut retries = self.retries.borrow_mut();
        *retries += 1;
        *retries <= RETRIES
    }

    /// Whether something must be asked of the user.
    pub(crate) fn asks(&self) -> bool {
        !self.open.borrow().is_empty()
    }

    /// How often something was asked.
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

    /// What must be said before anything can be planned.
    ///
    /// # Errors
    ///
    /// If the user must give sizes.
    pub(crate) fn check_open(&self) -> Result<(), OnnxError> {
        let open = self.open.borrow();
        if open.is_empty() { Ok(()) } else { Err(OnnxError::OpenSizes { open: open.clone() }) }
    }

    /// Declarations that differ from what is inferred.
    ///
    /// # Errors
    ///
    /// If the user must say which to trust.
    pub(crate) fn check_differing(&self) -> Result<(), OnnxError> {
        let differing = self.differing.borrow();
        let Some(first) = differing.first() else { return Ok(()) };
        Err(OnnxError::Differs {
            tensor: first.tensor.clone(),
            maker: first.maker.clone(),
            declared: first.declared.clone(),
            inferred: first.inferred.clone(),
            others: differing.len() - 1,
        })
    }
}
