//! The options of lowering.

use crate::Bytes;

/// The options of lowering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches")]
#[non_exhaustive]
pub struct LoweringOptions {
    /// True if views share the memory of their input. Otherwise every view is a chunk of its own, except a required
    /// view, and a view through which a required overwrite updates a tensor.
    pub views: bool,
    /// True if requests to overwrite are accepted where possible; otherwise only required ones are.
    pub inplace: bool,
    /// True if inputs lie inside the outputs that gather them where possible, so that nothing is copied.
    pub gathers: bool,
    /// True if inputs lie in the pool, from the first step to their last reader.
    pub inputs_in_pool: bool,
    /// True if weights lie in the pool, for all steps.
    pub weights_in_pool: bool,
    /// The limit of partial overlaps, in bytes: an output may begin below its input only in a step that
    /// would otherwise need more bytes than this, counted with the padding and in multiples of the
    /// alignment of the plan. `None` stands for the bytes that the pool needs even with all overlaps.
    pub overlap_limit: Option<Bytes>,
}

impl Default for LoweringOptions {
    fn default() -> Self {
        Self {
            views: true,
            inplace: true,
            gathers: true,
            inputs_in_pool: false,
            weights_in_pool: false,
            overlap_limit: None,
        }
    }
}

impl LoweringOptions {
    /// Sets whether all views share the memory of their input, or only those that are updated.
    #[must_use]
    pub const fn views(mut self, views: bool) -> Self {
        self.views = views;
        self
    }

    /// Sets whether requests to overwrite are accepted, or only required ones.
    #[must_use]
    pub const fn inplace(mut self, inplace: bool) -> Self {
        self.inplace = inplace;
        self
    }

    /// Sets whether inputs lie inside the outputs that gather them.
    #[must_use]
    pub const fn gathers(mut self, gathers: bool) -> Self {
        self.gathers = gathers;
        self
    }

    /// Sets whether inputs lie in the pool.
    #[must_use]
    pub const fn inputs_in_pool(mut self, inputs_in_pool: bool) -> Self {
        self.inputs_in_pool = inputs_in_pool;
        self
    }

    /// Sets `overlap_limit`, the limit of partial overlaps, in bytes.
    #[must_use]
    pub const fn overlap_limit(mut self, bytes: Option<Bytes>) -> Self {
        self.overlap_limit = bytes;
        self
    }

    /// Sets whether weights lie in the pool.
    #[must_use]
    pub const fn weights_in_pool(mut self, weights_in_pool: bool) -> Self {
        self.weights_in_pool = weights_in_pool;
        self
    }
}
