//! Plans by shape.

use std::borrow::Borrow;

use pyo3::{
    exceptions::{PyKeyError, PyTypeError},
    prelude::*,
    types::{PyIterator, PyList, PyTuple},
};

use crate::{
    numbers::{list, shown},
    plan::Plan,
};

/// A plan that Python owns.
struct Kept(Py<Plan>);

impl Borrow<memplan::Plan> for Kept {
    fn borrow(&self) -> &memplan::Plan {
        &self.0.get().inner
    }
}

/// Plans of one model for several shapes, by the tuple of the sizes of its open dimensions. All of them use one pool,
/// one at a time.
#[pyclass(module = "memplan", subclass)]
#[derive(Default)]
pub(crate) struct PlanCache {
    /// Making a Python object may collect garbage, and finalizers may use the cache, so it is not borrowed meanwhile.
    plans: memplan::planner::PlanCache<Kept>,
}

/// Reads the sizes of a shape. This may run Python code that uses the cache, so nothing may have borrowed it.
fn sizes(shape: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    if shape.try_iter().is_err() {
        let found = shown(shape);
        let words = format!("the shape must be a tuple of sizes, not {found}");
        return Err(PyTypeError::new_err(words));
    }
    list(shape, "the shape")
}

#[pymethods]
impl PlanCache {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// The plan of a shape. If there is none yet, it is `make()`, and is kept.
    fn get_or_plan(
        this: &Bound<'_, Self>,
        shape: &Bound<'_, PyAny>,
        make: &Bound<'_, PyAny>,
    ) -> PyResult<Py<Plan>> {
        let py = this.py();
        let sizes = sizes(shape)?;
        if let Some(plan) = this.borrow().plans.get(&sizes) {
            return Ok(plan.0.clone_ref(py));
        }
        // It may use the cache itself.
        let planned = make.call0()?;
        let plan = planned.cast::<Plan>().map_err(|_| {
            PyTypeError::new_err(format!("make() must return a Plan, not {}", shown(&planned)))
        })?;
        let mut cache = this.borrow_mut();
        let kept =
            cache.plans.get_or_plan(&sizes, || Ok::<_, PyErr>(Kept(plan.clone().unbind())))?;
        Ok(kept.0.clone_ref(py))
    }

    /// The smallest plan of a shape that is at least as large in every dimension, with that shape. It often holds for the
    /// smaller shape as well: `verify(sequence, plan, smaller=True)` decides.
    fn dominating<'py>(
        this: &Bound<'py, Self>,
        shape: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyTuple>, Py<Plan>)>> {
        let py = this.py();
        let sizes = sizes(shape)?;
        let found = this
            .borrow()
            .plans
            .dominating(&sizes)
            .map(|(of, plan)| (of.to_vec(), plan.0.clone_ref(py)));
        let Some((shape, plan)) = found else { return Ok(None) };
        Ok(Some((PyTuple::new(py, shape)?, plan)))
    }

    /// The bytes of a pool for all plans, one at a time.
    #[getter]
    fn pool_size(&self) -> u64 {
        self.plans.pool_size()
    }

    fn __len__(&self) -> usize {
        self.plans.len()
    }

    fn __contains__(this: &Bound<'_, Self>, shape: &Bound<'_, PyAny>) -> bool {
        sizes(shape).is_ok_and(|sizes| this.borrow().plans.get(&sizes).is_some())
    }

    fn __getitem__(this: &Bound<'_, Self>, shape: &Bound<'_, PyAny>) -> PyResult<Py<Plan>> {
        let sizes = sizes(shape)?;
        match this.borrow().plans.get(&sizes) {
            Some(plan) => Ok(plan.0.clone_ref(this.py())),
            // A tuple by itself would be read as the arguments of the exception.
            None => Err(PyKeyError::new_err((shape.clone().unbind(),))),
        }
    }

    /// The shapes in order.
    fn __iter__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyIterator>> {
        let py = this.py();
        let shapes: Vec<_> = this.borrow().plans.iter().map(|(shape, _)| shape.to_vec()).collect();
        let shapes = shapes.into_iter().map(|shape| PyTuple::new(py, shape));
        PyList::new(py, shapes.collect::<PyResult<Vec<_>>>()?)?.try_iter()
    }
}
