//! A cache of plans, one for each shape of a model.

use std::{borrow::Borrow, collections::BTreeMap};

use crate::{Bytes, Plan};

/// Plans of one model for several shapes, by the sizes of its open dimensions.
///
/// The key is the list of sizes itself, never only a hash of it, so two shapes cannot be mistaken for
/// each other. All plans use the same pool, one at a time, so the pool must be as large as the largest
/// of them. Plans may be stored in any type that borrows as one, such as an `Arc`.
///
/// ```
/// use memplan::{PlanError, Planner, Problem, planner::PlanCache};
///
/// let planned = |rows: u64| {
///     let mut problem = Problem::builder();
///     problem.chunk(0..2, rows * 64);
///     problem.chunk(1..3, rows * 64);
///     Planner::new().plan(&problem.build()?)
/// };
/// let mut plans = PlanCache::default();
/// plans.get_or_plan(&[8], || planned(8))?;
/// assert_eq!(plans.get_or_plan(&[2], || planned(2))?.pool_size(), 256);
/// assert_eq!((plans.len(), plans.pool_size()), (2, 1024));
/// // A plan of a larger shape also holds for this one.
/// assert_eq!(plans.dominating(&[5]).map(|(shape, _)| shape), Some(&[8][..]));
/// # Ok::<(), PlanError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PlanCache<P = Plan> {
    plans: BTreeMap<Box<[u64]>, P>,
}

impl<P> Default for PlanCache<P> {
    fn default() -> Self {
        Self { plans: BTreeMap::new() }
    }
}

impl<P: Borrow<Plan>> PlanCache<P> {
    /// The plan of a shape, if it was planned.
    #[must_use]
    pub fn get(&self, shape: &[u64]) -> Option<&P> {
        self.plans.get(shape)
    }

    /// The plan of a shape, which is planned and kept if there is none yet.
    ///
    /// # Errors
    ///
    /// If planning fails; nothing is kept then.
    pub fn get_or_plan<E>(
        &mut self,
        shape: &[u64],
        plan: impl FnOnce() -> Result<P, E>,
    ) -> Result<&P, E> {
        let planned = match self.plans.remove(shape) {
            Some(plan) => plan,
            None => plan()?,
        };
        Ok(self.plans.entry(shape.into()).or_insert(planned))
    }

    /// The smallest plan among the shapes that are at least as large in every dimension, with its shape.
    /// Among plans of equal size, the one whose shape comes first in order.
    ///
    /// Such a plan also holds for the smaller shape if all sizes shrink with the dimensions, and if
    /// chunks, lifetimes, links and distances are the same. It does not hold if a distance depends on
    /// the shape, such as the offset of an input in a concatenation after an open dimension, or if an
    /// output is written over an input that has the same size in only one of the shapes, as in a
    /// broadcast. Call [`verify`](mod@crate::verify) for the smaller shape to decide.
    #[must_use]
    pub fn dominating(&self, shape: &[u64]) -> Option<(&[u64], &P)> {
        let is_larger = |of: &[u64]| {
            of.len() == shape.len() && of.iter().zip(shape).all(|(of, size)| of >= size)
        };
        let larger = self.plans.iter().filter(|(of, _)| is_larger(of));
        larger.min_by_key(|&(_, plan)| size(plan)).map(|(of, plan)| (&**of, plan))
    }

    /// The bytes of a pool for all plans, one at a time.
    #[must_use]
    pub fn pool_size(&self) -> Bytes {
        self.plans.values().map(size).max().unwrap_or(0)
    }

    /// The number of shapes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.plans.len()
    }

    /// Returns whether no shape was planned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.plans.is_empty()
    }

    /// The shapes with their plans, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u64], &P)> {
        self.plans.iter().map(|(shape, plan)| (&**shape, plan))
    }
}

fn size<P: Borrow<Plan>>(plan: &P) -> Bytes {
    plan.borrow().pool_size
}
