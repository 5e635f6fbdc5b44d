//! Models for several sizes of a dimension, such as every batch from 1 to 128.
//!
//! The model is read once for every shape in the ranges. One sequence holds for all of them: it has the
//! operators of the largest shape, each tensor at the largest size that it has for any shape, and those views,
//! requests to overwrite and gathered inputs that every reading has at the same place. So a plan of it holds
//! for each shape: the distances within a chunk do not depend on the shape, every link is right, and bytes
//! only become fewer. Shapes with which the model cannot run are left out.

use std::{
    collections::{BTreeSet, HashSet},
    fmt::{self, Display, Formatter},
};

use rten_onnx::onnx::GraphProto;

use crate::import::{
    ImportOptions, NotInPlace,
    onnx::{
        OnnxError, Reader, Reading,
        read::{
            context::{Context, follow},
            node::Node,
        },
        remedy::with_remedy,
    },
};
use crate::sequence::{
    DimRange,
    widen::{Rejected, Unlike},
};

/// The largest number of shapes times nodes. Reading that many nodes takes ten to twenty seconds.
const MAX_NODES: usize = 1 << 20;

/// The largest number of shapes.
const MAX_SHAPES: usize = 1 << 14;

/// Sizes in ranges with which the model cannot run, because two sizes of an operator then exclude each other.
/// There is no such run, so a plan holds without them.
pub(super) struct Impossible {
    /// The number of combinations of sizes with which the model cannot run.
    combinations: usize,
    /// The number of all combinations.
    all: usize,
    /// One of them, such as `seq=1,total=68`.
    example: String,
    /// The reason why it is impossible.
    reason: String,
}

impl Display for Impossible {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { combinations, all, example, reason } = self;
        write!(
            f,
            "the model cannot run with {combinations} of the {all} combinations of sizes, so the plan leaves them out; with {example}, for example: {reason}"
        )
    }
}

/// Reads a model for all sizes that the options allow.
///
/// # Errors
///
/// If there are too many shapes, the model is invalid for one of them, two of them run other operators, or a
/// size in a range is impossible whatever the others are.
pub(super) fn read(reader: &Reader, options: &ImportOptions) -> Result<Reading, OnnxError> {
    let ranges = Ranges::of(options, &follow(reader.graph, options));
    if ranges.0.is_empty() {
        return reader.read(options).map_err(|error| with_remedy(reader, options, error));
    }
    Context::new(reader, options)?;
    let most = (MAX_NODES / nodes(reader.graph).max(1)).clamp(1, MAX_SHAPES);
    let shapes = ranges.shapes().filter(|&shapes| shapes <= most);
    let shapes = shapes.ok_or(OnnxError::TooManyShapes { most })?;
    let (mut widest, mut dropped) = ranges.widest(reader, options, shapes)?;
    let views = std::mem::take(&mut dropped.views);
    if !views.is_empty() {
        // These outputs now have bytes of their own, so requests to overwrite what they shared are decided again.
        let options = options.clone().copies(views.iter().map(ToString::to_string));
        (widest, dropped) = ranges.widest(reader, &options, shapes)?;
    }
    widest.sequence.check_sizes()?;
    let dims = ranges.0.iter().map(|&(name, range)| (name.into(), range));
    widest.sequence.set_dims(dims.collect());
    let links = dropped.links.into_iter().chain(views);
    widest.not_in_place.extend(links.map(|name| (name, NotInPlace::Sizes.reason())));
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
    /// The ranges given, except those of sizes that follow from others.
    fn of(options: &'a ImportOptions, follow: &BTreeSet<&str>) -> Self {
        let is_own = |name: &str, range: DimRange| !range.is_exact() && !follow.contains(name);
        let ranges = options.dims.iter().filter(|&(name, &range)| is_own(name, range));
        Self(ranges.map(|(name, &range)| (&**name, range)).collect())
    }

    /// Reads the model for the largest sizes with which it can run, and makes the reading right for all others.
    fn widest(
        &self,
        reader: &Reader,
        options: &ImportOptions,
        shapes: usize,
    ) -> Result<(Reading, Rejected), OnnxError> {
        let mut dropped = Rejected::default();
        let mut options = options.clone();
        let mut widest: Option<(usize, Reading)> = None;
        let mut impossible: Vec<(usize, OnnxError)> = Vec::new();
        for shape in 0..shapes {
            let sizes = self.sizes(shape);
            let exact = self.named(&sizes).map(|(name, size)| (name.to_owned(), size.into()));
            options.dims.extend(exact);
            let reading = match reader.read(&options) {
                Ok(reading) => reading,
                Err(error @ (OnnxError::Conflict { .. } | OnnxError::RelatedSize { .. })) => {
                    impossible.push((shape, error));
                    continue;
                }
                Err(error) if shape == 0 => return Err(error),
                Err(error) => return Err(self.at(&sizes, error)),
            };
            let Some((largest, widest)) = &mut widest else {
                widest = Some((shape, reading));
                continue;
            };
            let known = reading.known.into_iter().collect();
            widest.sequence.widen(&reading.sequence, &known, &mut dropped).map_err(|unlike| {
                let what = match unlike {
                    Unlike::Operator(name) => format!("operator '{name}' runs"),
                    Unlike::Tensors(name) => format!("operator '{name}' has other tensors"),
                    Unlike::Outputs => "the model has other outputs".to_owned(),
                };
                let (sizes, largest) = (self.written(&sizes), self.written(&self.sizes(*largest)));
                OnnxError::OtherOperators { what, sizes, largest }
            })?;
            widest.unknown.extend(reading.unknown);
        }
        let Some((_, mut widest)) = widest else {
            let error = impossible.into_iter().next().map(|(_, error)| error);
            let error = error.unwrap_or(OnnxError::TooManyShapes { most: 0 });
            return Err(self.at(&self.sizes(0), with_remedy(reader, &options, error)));
        };
        self.check_each_size(shapes, &impossible)?;
        widest.impossible = impossible.first().map(|(shape, error)| Impossible {
            combinations: impossible.len(),
            all: shapes,
            example: self.written(&self.sizes(*shape)),
            reason: error.to_string(),
        });
        Ok((widest, dropped))
    }

    /// Checks that the model can run with each size in the ranges, for some sizes of the others. Sizes that
    /// depend on each other cannot be stated more narrowly than by ranges.
    fn check_each_size(
        &self,
        shapes: usize,
        impossible: &[(usize, OnnxError)],
    ) -> Result<(), OnnxError> {
        if impossible.is_empty() {
            return Ok(());
        }
        let failed: HashSet<usize> = impossible.iter().map(|&(shape, _)| shape).collect();
        let mut possible: Vec<HashSet<u64>> = vec![HashSet::new(); self.0.len()];
        for shape in (0..shapes).filter(|shape| !failed.contains(shape)) {
            for (sizes, size) in possible.iter_mut().zip(self.sizes(shape)) {
                sizes.insert(size);
            }
        }
        for (shape, error) in impossible {
            for ((name, size), possible) in self.named(&self.sizes(*shape)).zip(&possible) {
                if !possible.contains(&size) {
                    let sizes = format!("{name}={size}");
                    return Err(OnnxError::WithSizes { sizes, error: Box::new(error.clone()) });
                }
            }
        }
        Ok(())
    }

    fn at(&self, sizes: &[u64], error: OnnxError) -> OnnxError {
        OnnxError::WithSizes { sizes: self.written(sizes), error: Box::new(error) }
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
