//! Models for several sizes of a dimension, such as every batch from 1 to 128.
//!
//! The model is read once for every shape in the ranges. One sequence holds for all of them: it has the
//! operators of the largest shape, each tensor at the largest size that it has for any shape, and those views,
//! requests to overwrite and gathered inputs that every reading has at the same place. So a plan of it holds
//! for each shape: the distances within a chunk do not depend on the shape, every link is right, and bytes
//! only become fewer.

use rten_onnx::onnx::GraphProto;

use crate::import::{
    ImportOptions, NotInPlace,
    onnx::{OnnxError, Reader, Reading, read::node::Node},
};
use crate::sequence::{
    DimRange,
    widen::{Dropped, Unlike},
};

/// The largest number of shapes times nodes. Reading that many nodes takes ten to twenty seconds.
const MOST_NODES: usize = 1 << 20;

/// The largest number of shapes.
const MOST_SHAPES: usize = 1 << 14;

/// Reads a model for all sizes that the options allow.
///
/// # Errors
///
/// If there are too many shapes, the model is invalid for one of them, or two of them run other operators.
pub(super) fn read(reader: &Reader, options: &ImportOptions) -> Result<Reading, OnnxError> {
    let mut widest = reader.read(options)?;
    let ranges = Ranges::of(options);
    if ranges.0.is_empty() {
        return Ok(widest);
    }
    let most = (MOST_NODES / nodes(reader.graph).max(1)).clamp(1, MOST_SHAPES);
    let shapes = ranges.shapes().filter(|&shapes| shapes <= most);
    let shapes = shapes.ok_or(OnnxError::TooManyShapes { most })?;
    let mut dropped = ranges.widen(&mut widest, reader, options, shapes)?;
    let views = std::mem::take(&mut dropped.views);
    if !views.is_empty() {
        // These outputs now have bytes of their own, so requests to overwrite what they shared are decided again.
        let options = options.clone().copies(views.iter().map(ToString::to_string));
        widest = reader.read(&options)?;
        dropped = ranges.widen(&mut widest, reader, &options, shapes)?;
    }
    widest.sequence.check_sizes()?;
    let dims = ranges.0.iter().map(|&(name, range)| (name.into(), range));
    widest.sequence.set_dims(dims.collect());
    let links = dropped.links.into_iter().chain(views);
    widest.not_in_place.extend(links.map(|name| (name, NotInPlace::Sizes)));
    Ok(widest)
}

/// The number of nodes, those of sub-graphs included.
fn nodes(graph: &GraphProto) -> usize {
    let bodies = graph.node.iter().flat_map(|node| Node(node).bodies());
    graph.node.len() + bodies.map(nodes).sum::<usize>()
}

/// The dimensions that have several sizes, by name.
struct Ranges<'a>(Vec<(&'a str, DimRange)>);

impl<'a> Ranges<'a> {
    fn of(options: &'a ImportOptions) -> Self {
        let ranges = options.dims.iter().filter(|(_, range)| !range.is_exact());
        Self(ranges.map(|(name, &range)| (&**name, range)).collect())
    }

    /// Makes the reading for the largest sizes right for all shapes.
    fn widen(
        &self,
        widest: &mut Reading,
        reader: &Reader,
        options: &ImportOptions,
        shapes: usize,
    ) -> Result<Dropped, OnnxError> {
        let mut dropped = Dropped::default();
        let mut options = options.clone();
        for shape in 1..shapes {
            let sizes = self.sizes(shape);
            let exact = self.named(&sizes).map(|(name, size)| (name.to_owned(), size.into()));
            options.dims.extend(exact);
            let at = |error: OnnxError| {
                let error = Box::new(error);
                OnnxError::WithSizes { sizes: self.written(&sizes), error }
            };
            let reading = reader.read(&options).map_err(at)?;
            let known = reading.known.into_iter().collect();
            widest.sequence.widen(&reading.sequence, &known, &mut dropped).map_err(|unlike| {
                let what = match unlike {
                    Unlike::Operator(name) => format!("operator '{name}' runs"),
                    Unlike::Tensors(name) => format!("operator '{name}' has other tensors"),
                    Unlike::Outputs => "the model has other outputs".to_owned(),
                };
                let (sizes, largest) = (self.written(&sizes), self.written(&self.sizes(0)));
                OnnxError::OtherOperators { what, sizes, largest }
            })?;
            widest.unknown.extend(reading.unknown);
        }
        Ok(dropped)
    }

    /// The number of shapes, if it can be counted.
    fn shapes(&self) -> Option<usize> {
        self.0.iter().try_fold(1_usize, |shapes, (_, range)| {
            let sizes = usize::try_from(range.most - range.least).ok()?.checked_add(1)?;
            shapes.checked_mul(sizes)
        })
    }

    /// The sizes of a shape, by its number. The first shape is the largest.
    fn sizes(&self, shape: usize) -> Vec<u64> {
        let mut left = shape as u64;
        let size = |&(_, DimRange { least, most, .. }): &(&str, DimRange)| {
            let sizes = most - least + 1;
            let below = left % sizes;
            left /= sizes;
            most - below
        };
        self.0.iter().map(size).collect()
    }

    fn named(&self, sizes: &[u64]) -> impl Iterator<Item = (&'a str, u64)> {
        self.0.iter().zip(sizes).map(|(&(name, _), &size)| (name, size))
    }

    /// Formats sizes as the option that sets them: `batch=3,sequence=7`.
    fn written(&self, sizes: &[u64]) -> String {
        let sizes: Vec<String> =
            self.named(sizes).map(|(name, size)| format!("{name}={size}")).collect();
        sizes.join(",")
    }
}
