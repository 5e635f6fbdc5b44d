//! memplan for Python: the native half of the package `memplan`. The Python half in the folder
//! `python` hands out these names, and `_native.pyi` describes them.
//!
//! Integers and bytes cross the boundary. The interpreter lock is released while memplan works. No
//! panic crosses: it becomes a `RuntimeError`.

mod cache;
mod constraints;
mod errors;
mod given;
mod json;
mod lists;
mod numbers;
mod operator;
mod options;
mod output;
mod plan;
mod planning;
mod problem;
mod read;
mod recompute;
mod sequence;
mod values;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::cache::PlanCache;
    #[pymodule_export]
    use super::constraints::Pool;
    #[pymodule_export]
    use super::operator::Operator;
    #[pymodule_export]
    use super::output::Output;
    #[pymodule_export]
    use super::plan::{Plan, restored};
    #[pymodule_export]
    use super::planning::{compare, copied_views, fit, lower, plan, reorder, verify};
    #[pymodule_export]
    use super::problem::Problem;
    #[pymodule_export]
    use super::read::read;
    #[pymodule_export]
    use super::recompute::recompute;
    #[pymodule_export]
    use super::sequence::Sequence;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let names: Vec<&str> = memplan::Strategy::ALL.iter().map(|s| s.name()).collect();
        module.add("STRATEGIES", names)
    }
}
