//! Sizes that are known only at run time.
//!
//! A model finds them while it runs: the number of boxes that it keeps, or of elements that are not
//! 0. Memory is planned for the largest that each can be. To follow these sizes through the graph,
//! the rules of each operator are evaluated for several [`SHAPE_SAMPLES`], each with a guess for every open
//! size. In the first all are at their largest; in the others they are smaller, each independently
//! of the others. The rules compute with numbers, as always, so equal sizes stay equal. If a size
//! is larger in any shape sample than in the first, its largest value is unknown, and the user is asked
//! for it.

use std::rc::Rc;

use rten_onnx::onnx::{DataType, ValueInfoProto};

use crate::import::{
    OpenSize, Trust,
    onnx::{
        OnnxError,
        ops::op::Reason,
        read::{
            context::Context,
            declared::{DeclaredDim, declared_dim, declared_rank, display_declared, not_a_tensor},
            element,
            fact::{Dims, Fact, MAX_ITEMS, Sample, count, written},
            findings::Differing,
            given,
        },
    },
};

/// The number of shape samples: with all open sizes at their largest, all 0, all 1, one half at their
/// largest and the other half 0, the reverse, and with random sizes in between.
pub(crate) const SHAPE_SAMPLES: usize = 9;

/// The stand-in for an open size without a bound, so that the search for others can continue.
const PLACEHOLDER: u64 = 64;

/// The answer of a rule for an output in one shape sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) dims: Option<Dims>,
    /// The largest sizes, for those that are known only at run time.
    pub(crate) at_most: Option<Dims>,
}

impl Answer {
    /// The sizes in the first shape sample, or at most.
    fn most(&self) -> Option<Dims> {
        let (Some(dims), Some(at_most)) = (&self.dims, &self.at_most) else {
            return self.dims.clone().or_else(|| self.at_most.clone());
        };
        if dims.len() != at_most.len() {
            return Some(dims.clone());
        }
        Some(dims.iter().zip(at_most).map(|(size, most)| size.or(*most)).collect())
    }
}

/// Returns the answers in a tensor's samples.
pub(crate) fn answers(fact: &Fact) -> Vec<Answer> {
    let dims = |sample: &Sample| Some(sample.sizes.iter().copied().map(Some).collect());
    fact.samples.iter().map(|sample| Answer { dims: dims(sample), at_most: None }).collect()
}

/// An output whose shape is to be settled.
pub(crate) struct UnresolvedShape<'a> {
    pub(crate) name: &'a str,
    /// Its origin in messages: `made by operator 'conv1' (Conv)`.
    pub(crate) maker: String,
    pub(crate) declared: Option<&'a ValueInfoProto>,
    /// The reason why something is unknown.
    pub(crate) reason: Reason,
}

impl UnresolvedShape<'_> {
    /// Takes declared sizes where inference finds none, unless they are impossible, and compares
    /// the others. `branches` are shapes that the output can certainly have.
    pub(crate) fn reconcile(
        &self,
        fact: &mut Fact,
        answers: &[Answer],
        branches: Option<&Vec<Dims>>,
        context: &Context,
    ) {
        let Some(declared) = self.declared.and_then(|value| context.declared(value).dims) else {
            return;
        };
        // Exporters declare results of unknown shape so; runtimes warn, and run the model.
        let is_other = |dims: &Dims| dims.len() != declared.len();
        let is_vague = declared.is_empty() || declared.contains(&None);
        if is_vague && fact.dims.as_ref().is_some_and(is_other) {
            return;
        }
        let trust = context.trust();
        let contradicted = contradiction(&declared, fact, answers, branches);
        match (contradicted, trust) {
            (Some(inferred), None) => self.contradict(&declared, inferred, context),
            (Some(_), Some(Trust::Inference)) => {}
            (Some(_), Some(Trust::Declared)) => {
                fact.declared = true;
                fact.samples = Rc::default();
                let inferred = fact.dims.take().filter(|dims| dims.len() == declared.len());
                let merged = (0..).zip(&declared).map(|(axis, declared)| {
                    declared.or_else(|| inferred.as_ref().and_then(|dims| dims[axis]))
                });
                fact.dims = Some(merged.collect());
            }
            (None, _) => {
                let Some(inferred) = &fact.dims else {
                    fact.declared = declared.iter().any(Option::is_some);
                    fact.dims = Some(declared);
                    return;
                };
                let both = || inferred.iter().zip(&declared);
                let alone = both().any(|(known, declared)| known.is_none() && declared.is_some());
                if alone {
                    fact.dims = Some(both().map(|(known, declared)| known.or(*declared)).collect());
                    fact.declared = true;
                    fact.samples = Rc::default();
                }
            }
        }
    }

    /// Notes that the model declares another shape than it has.
    pub(crate) fn contradict(&self, declared: &Dims, inferred: String, context: &Context) {
        context.findings.differs(Differing {
            tensor: self.name.to_owned(),
            maker: self.maker.clone(),
            property: "shape",
            declared: written(declared),
            inferred,
        });
    }

    /// Returns the element type, given a declared and an inferred one. They are compared for
    /// operators of the standard, whose types its own tests confirm.
    pub(crate) fn reconcile_types(
        &self,
        declared: Option<DataType>,
        inferred: Option<DataType>,
        context: &Context,
    ) -> Option<DataType> {
        let (Some(declared), Some(inferred)) = (declared, inferred) else {
            return declared.or(inferred);
        };
        match context.trust() {
            _ if declared == inferred => {}
            Some(Trust::Inference) => return Some(inferred),
            Some(Trust::Declared) => {}
            None => context.findings.differs(Differing {
                tensor: self.name.to_owned(),
                maker: self.maker.clone(),
                property: "element type",
                declared: element::name(declared).into_owned(),
                inferred: element::name(inferred).into_owned(),
            }),
        }
        Some(declared)
    }

    /// Gives the tensor a shape in each shape sample. `answers` is empty if inference found nothing.
    ///
    /// # Errors
    ///
    /// If the user gives a shape that it cannot have.
    pub(crate) fn settle(
        &self,
        fact: &mut Fact,
        answers: &[Answer],
        context: &Context,
    ) -> Result<(), OnnxError> {
        let questions = context.findings.questions();
        let given = context.shape(self.name);
        let first = answers.first().and_then(Answer::most);
        let rank = fact.dims.as_ref().or(first.as_ref()).map(Vec::len);
        let rank = rank.or_else(|| self.declared.and_then(declared_rank));
        let rank = rank.or_else(|| given.map(Vec::len));
        let differs =
            |answer: &Answer| answer.dims.as_ref().is_some_and(|dims| Some(dims.len()) != rank);
        let Some(rank) = rank.filter(|_| !answers.iter().any(differs)) else {
            self.ask(None, context, None, &self.reason);
            return Ok(());
        };
        self.check_given(given, rank, fact.dims.as_ref())?;
        let mut sizes = vec![vec![0; rank]; SHAPE_SAMPLES];
        for axis in 0..rank {
            let known = fact.dims.as_ref().and_then(|dims| dims[axis]);
            let asked = given.and_then(|given| *given.get(axis)?);
            let column = match known {
                Some(size) => vec![size; SHAPE_SAMPLES],
                None => self.open_size((axis, asked), answers, context, fact),
            };
            for (sizes, size) in sizes.iter_mut().zip(column) {
                sizes[axis] = size;
            }
        }
        let most = count(&sizes[0]);
        let grows = |sizes: &Vec<u64>| most.is_some() && count(sizes) > most;
        if given.is_none() && sizes.iter().any(grows) && !context.findings.asks() {
            let why = "it grows where a size known only at run time is not at its largest";
            let shape = fact.dims.clone().unwrap_or_else(|| vec![None; rank]);
            self.ask(None, context, Some(&shape), why);
        }
        if context.keeps_unknown() && context.findings.questions() > questions {
            return Ok(());
        }
        fact.samples = sizes.into_iter().map(|sizes| Sample { sizes, elements: None }).collect();
        Ok(())
    }

    /// Checks that a shape given by the user does not contradict the known sizes.
    fn check_given(
        &self,
        given: Option<&Dims>,
        rank: usize,
        known: Option<&Dims>,
    ) -> Result<(), OnnxError> {
        let Some(given) = given else { return Ok(()) };
        let nothing = vec![None; rank];
        let known = known.unwrap_or(&nothing);
        let wrong = |(given, known): (&Option<u64>, &Option<u64>)| {
            given.zip(*known).is_some_and(|(given, known)| given != known)
        };
        if given.len() == rank && !given.iter().zip(known).any(wrong) {
            return Ok(());
        }
        Err(OnnxError::GivenShape {
            tensor: self.name.to_owned(),
            given: written(given),
            known: written(known),
        })
    }

    /// An open size in each shape sample.
    fn open_size(
        &self,
        (axis, asked): (usize, Option<u64>),
        answers: &[Answer],
        context: &Context,
        fact: &Fact,
    ) -> Vec<u64> {
        let at = |dims: &Option<Dims>| dims.as_ref().and_then(|dims| *dims.get(axis)?);
        let found: Vec<Option<u64>> = answers.iter().map(|answer| at(&answer.dims)).collect();
        let declared = self.declared.and_then(|value| declared_dim(value, axis));
        let (name, named) = match declared {
            Some(DeclaredDim::Name(name)) => (Some(name), context.given(name)),
            _ => (None, None),
        };
        let given = asked.or(named);
        if let Some(Some(most)) = found.first() {
            // In a shape sample where the rules fail, the size may be the largest.
            let sizes = found.iter().map(|size| size.unwrap_or(*most));
            let Some(given) = given else { return sizes.collect() };
            let mut sizes: Vec<u64> = sizes.map(|size| size.min(given)).collect();
            if found.iter().any(|size| *size > Some(*most)) {
                sizes[0] = given;
            }
            return sizes;
        }
        let symbol = match name {
            Some(name) => symbol(name, usize::MAX),
            None => symbol(self.name, axis),
        };
        let limits: Vec<Option<u64>> = answers.iter().map(|answer| at(&answer.at_most)).collect();
        let first = limits.first().copied().flatten();
        let otherwise = match (first, given.or_else(|| context.default_size())) {
            (_, Some(given)) => given,
            (Some(limit), None) => limit,
            (None, None) if name.is_some_and(|name| context.will_follow(name)) => PLACEHOLDER,
            (None, None) => {
                self.ask(Some((axis, name)), context, fact.dims.as_ref(), &self.reason);
                PLACEHOLDER
            }
        };
        let given = given.is_some() || first.is_none();
        (0..SHAPE_SAMPLES)
            .map(|nth| {
                let limit = limits.get(nth).copied().flatten().or(first);
                let most = match limit {
                    Some(limit) if given => limit.min(otherwise),
                    Some(limit) => limit,
                    None => otherwise,
                };
                guess(symbol, nth, most)
            })
            .collect()
    }

    fn ask(
        &self,
        axis: Option<(usize, Option<&str>)>,
        context: &Context,
        dims: Option<&Dims>,
        reason: &str,
    ) {
        context.findings.ask(OpenSize {
            tensor: self.name.to_owned(),
            maker: self.maker.clone(),
            axis: axis.map(|(axis, _)| axis),
            dim: axis.and_then(|(_, name)| name.map(str::to_owned)),
            shape: dims.cloned(),
            reason: reason.to_owned(),
            deciding: Vec::new(),
        });
    }
}

/// The inferred shape, if the declared one contradicts it.
fn contradiction(
    declared: &Dims,
    fact: &Fact,
    answers: &[Answer],
    branches: Option<&Vec<Dims>>,
) -> Option<String> {
    let differ = |shape: &&Dims| {
        let axis = |(a, b): (&Option<u64>, &Option<u64>)| a.zip(*b).is_some_and(|(a, b)| a != b);
        shape.len() != declared.len() || shape.iter().zip(declared).any(axis)
    };
    let certain = fact.dims.iter().chain(branches.into_iter().flatten());
    if let Some(shape) = certain.clone().find(differ) {
        return Some(written(shape));
    }
    let most = answers.first().and_then(Answer::most)?;
    let exceeds =
        |(most, declared): (&Option<u64>, &Option<u64>)| most.is_some() && declared > most;
    let larger = most.len() != declared.len() || most.iter().zip(declared).any(exceeds);
    larger.then(|| format!("at most {}", written(&most)))
}

/// The origin of a graph input in messages.
pub(crate) const INPUT: &str = "an input of the graph";

/// Returns the facts about a graph input: those given by the user, otherwise those declared.
///
/// # Errors
///
/// If the user gives a shape with another number of dimensions.
pub(crate) fn input(value: &ValueInfoProto, context: &Context) -> Result<Fact, OnnxError> {
    let name = value.name.as_deref().unwrap_or("");
    if let Some(item) = context.declared_item(value) {
        return Ok(sequence_input(item, context.shape(name)));
    }
    let mut fact = context.declared(value);
    let unsettled = UnresolvedShape {
        name,
        maker: INPUT.to_owned(),
        declared: Some(value),
        reason: "the model leaves it open".to_owned(),
    };
    if let Some(given) = context.shape(name) {
        let declared = fact.dims.unwrap_or_else(|| given.clone());
        if declared.len() != given.len() {
            return Err(OnnxError::GivenShape {
                tensor: name.to_owned(),
                given: written(given),
                known: display_declared(value),
            });
        }
        let merged = given.iter().zip(&declared).map(|(given, declared)| given.or(*declared));
        fact.dims = Some(merged.collect());
    }
    if let (Some(dims), Some(default)) = (&mut fact.dims, context.default_size()) {
        for dim in dims {
            *dim = dim.or(Some(default));
        }
    }
    fact.element = given::known_or_given(fact.element, name, context)?;
    given::state(&mut fact, name, context)?;
    let text = fact.element == Some(DataType::STRING);
    if fact.sizes().is_none() && !text && not_a_tensor(value).is_none() {
        unsettled.settle(&mut fact, &[], context)?;
    }
    Ok(fact)
}

/// A graph input that is a sequence. The first size that the user gives is the number of its
/// tensors; the others, if there are any, are their shape.
fn sequence_input(declared: Fact, given: Option<&Dims>) -> Fact {
    let Some([Some(count), sizes @ ..]) = given.map(Vec::as_slice) else { return Fact::default() };
    let Some(count) = usize::try_from(*count).ok().filter(|&count| count <= MAX_ITEMS) else {
        return Fact::default();
    };
    let dims = match declared.dims.clone() {
        Some(dims) if sizes.is_empty() => dims,
        Some(dims) if dims.len() == sizes.len() => {
            sizes.iter().zip(dims).map(|(given, declared)| given.or(declared)).collect()
        }
        _ => sizes.to_vec(),
    };
    let item = Fact { dims: Some(dims), ..declared };
    Fact { items: Some(vec![item; count].into()), ..Fact::default() }
}

/// Asks the user for a shape that cannot be left open.
pub(crate) fn ask_for_shape(name: &str, maker: &str, fact: &Fact, reason: &str, context: &Context) {
    let reason = reason.to_owned();
    let unsettled = UnresolvedShape { name, maker: maker.to_owned(), declared: None, reason };
    unsettled.ask(None, context, fact.dims.as_ref(), &unsettled.reason);
}

/// A hash of a size's name, so that sizes of one name have the same guesses.
pub(crate) fn symbol(name: &str, axis: usize) -> u64 {
    // FNV-1a.
    let bytes = name.bytes().chain(axis.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// A size of at most `most` for a shape sample.
pub(crate) fn guess(symbol: u64, nth: usize, most: u64) -> u64 {
    let even = (symbol >> 32).is_multiple_of(2);
    match nth {
        0 => most,
        1 => 0,
        2 => most.min(1),
        3 => {
            if even {
                most
            } else {
                0
            }
        }
        4 => {
            if even {
                0
            } else {
                most
            }
        }
        _ => {
            // SplitMix64.
            let mut mixed = symbol.wrapping_add((nth as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let share = u128::from(mixed ^ (mixed >> 31));
            u64::try_from((u128::from(most) * share) >> 64).unwrap_or(most)
        }
    }
}
