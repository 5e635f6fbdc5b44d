//! The ties of a graph, and all choices of them.

use memplan::sequence::{Dependency, TensorId};

use super::model::Model;

/// The most choices that are tried.
const MAX_CHOICES: usize = 1 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    View,
    Over,
    /// At the distance declared, whatever the alignment.
    Overlap,
    /// At a larger distance, where the output is aligned.
    FarOverlap,
    Part,
}

/// A tie that is taken: `tensor` begins `distance` bytes after `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub tensor: usize,
    pub to: usize,
    pub distance: i64,
    pub kind: Kind,
    pub is_optional: bool,
}

/// Returns whether the tie at this place of a dependency's list may be given up.
fn is_optional(dependency: &Dependency<TensorId>, at: usize) -> bool {
    match dependency {
        Dependency::Overwrites(all) => !all[at].required,
        Dependency::Reads { required, .. } => !required,
        Dependency::Gathers(all) => !all[at].required,
        _ => false,
    }
}

/// By question: its answers. A question is which input an output is written over, or whether an input lies inside
/// the output that gathers it, or whether a view is one.
pub type Questions = Vec<Vec<Option<Link>>>;

/// Lists the questions of a graph.
pub fn questions(model: &Model) -> Questions {
    let mut questions = Vec::new();
    for tensor in 0..model.tensors.len() {
        let dependency = &model.tensors[tensor].dependency;
        let is_optional = |at: usize| is_optional(dependency, at);
        let mut ask = |links: Vec<Link>| {
            let is_settled = links.iter().any(|link| !link.is_optional);
            let mut answers: Vec<Option<Link>> = links.into_iter().map(Some).collect();
            if is_settled {
                answers.retain(|link| link.is_some_and(|link| !link.is_optional));
            } else {
                answers.push(None);
            }
            questions.push(answers);
        };
        let link = |to: TensorId, distance: i64, kind: Kind, is_optional: bool| Link {
            tensor,
            to: to.index(),
            distance,
            kind,
            is_optional,
        };
        match dependency {
            Dependency::Reads { input, offset, .. } => {
                ask(vec![link(*input, *offset as i64, Kind::View, is_optional(0))]);
            }
            Dependency::Overwrites(all) => {
                let mut links = Vec::new();
                for (at, one) in all.iter().enumerate() {
                    let (below, optional) = (one.below as i64, is_optional(at));
                    if below == 0 {
                        links.push(link(one.input, one.offset as i64, Kind::Over, optional));
                        continue;
                    }
                    // An output that shares no byte overwrites nothing.
                    let size = model.tensors[tensor].size;
                    if below < size {
                        links.push(link(one.input, -below, Kind::Overlap, optional));
                    }
                    let far = (below + 1..size)
                        .filter(|far| far % model.grid() == 0)
                        .map(|far| link(one.input, -far, Kind::FarOverlap, optional));
                    links.extend(far);
                }
                ask(links);
            }
            Dependency::Gathers(all) => {
                for (at, one) in all.iter().enumerate() {
                    // The distance of the part from the whole.
                    let whole = TensorId(tensor as u32);
                    let part = Link {
                        tensor: one.input.index(),
                        ..link(whole, one.offset as i64, Kind::Part, is_optional(at))
                    };
                    ask(vec![part]);
                }
            }
            _ => {}
        }
    }
    questions
}

/// All choices, each an answer to every question; `None` if there are too many.
pub fn choices(questions: &Questions) -> Option<Vec<Vec<Link>>> {
    let count: usize = questions.iter().map(Vec::len).product();
    if count > MAX_CHOICES {
        return None;
    }
    let choice = |mut number: usize| {
        let mut links = Vec::new();
        for answers in questions {
            links.extend(answers[number % answers.len()]);
            number /= answers.len();
        }
        links
    };
    Some((0..count).map(choice).collect())
}
