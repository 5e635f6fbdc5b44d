//! Tensors that ties hold together, and the contents of their bytes.

use memplan::sequence::Dependency;

use super::{
    model::{Model, Steps},
    ties::{Kind, Link},
};

/// Bytes that are the same value in all of these tensors.
struct Content {
    tensors: Vec<usize>,
    /// The tensor whose operator writes it.
    writer: usize,
    uses: Steps,
}

/// A content as other bodies see it: the step that writes it, if it is not supplied, and the steps that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    pub writer: Option<usize>,
    pub uses: Steps,
}

/// A run of bytes with the same contents.
#[derive(Debug)]
pub struct Segment {
    pub low: i64,
    pub high: i64,
    pub needs: Vec<Need>,
}

/// Tensors that move as one.
#[derive(Debug)]
pub struct Body {
    /// The tensors, with their distances from the lowest byte.
    pub tensors: Vec<(usize, i64)>,
    pub segments: Vec<Segment>,
    pub extent: i64,
    /// The remainder of the address of the lowest byte, divided by the alignment.
    pub residue: i64,
    /// The bytes that operators move to and from its tensors.
    pub traffic: u128,
    /// The tensor outside the pools in whose memory it lies.
    pub outside: Option<usize>,
}

/// A choice of ties in an order of the operators.
pub struct Chosen<'m> {
    model: &'m Model,
    links: &'m [Link],
}

/// The bodies of a choice, those outside the pools included; `None` if no plan has these ties.
pub fn bodies(model: &Model, links: &[Link]) -> Option<Vec<Body>> {
    let chosen = Chosen { model, links };
    if !chosen.updates_land() {
        return None;
    }
    let mut is_seen = vec![false; model.tensors.len()];
    let mut bodies = Vec::new();
    for first in 0..model.tensors.len() {
        if !is_seen[first] && model.tensors[first].size > 0 {
            let body = chosen.body(first)?;
            for &(tensor, _) in &body.tensors {
                is_seen[tensor] = true;
            }
            bodies.push(body);
        }
    }
    Some(bodies)
}

impl Chosen<'_> {
    fn size(&self, tensor: usize) -> i64 {
        self.model.tensors[tensor].size
    }

    /// The tie of a tensor as a view or an overwriter, if it is taken.
    fn link(&self, tensor: usize) -> Option<&Link> {
        self.links.iter().find(|link| link.tensor == tensor && link.kind != Kind::Part)
    }

    fn is_view(&self, tensor: usize) -> bool {
        self.link(tensor).is_some_and(|link| link.kind == Kind::View)
    }

    /// Returns whether a tensor, or a view of all its bytes, is a part.
    fn is_part(&self, tensor: usize) -> bool {
        let size = self.size(tensor);
        self.links.iter().any(|link| match link.kind {
            Kind::Part => link.tensor == tensor,
            Kind::View => {
                link.to == tensor && self.size(link.tensor) == size && self.is_part(link.tensor)
            }
            _ => false,
        })
    }

    /// Returns whether no required update goes through a copy: it would not change what the copy is of.
    fn updates_land(&self) -> bool {
        let is_copied = |tensor: usize| {
            let tensor_is_view =
                matches!(self.model.tensors[tensor].dependency, Dependency::Reads { .. });
            tensor_is_view && !self.is_view(tensor)
        };
        self.links.iter().filter(|link| link.kind == Kind::Over && !link.is_optional).all(|link| {
            let base = |&tensor: &usize| {
                self.link(tensor).filter(|link| link.kind == Kind::View).map(|link| link.to)
            };
            std::iter::successors(Some(link.to), base).all(|tensor| !is_copied(tensor))
        })
    }

    /// The body of a tensor; `None` if it cannot be.
    fn body(&self, first: usize) -> Option<Body> {
        let mut tensors: Vec<(usize, i64)> = vec![(first, 0)];
        let mut at = 0;
        while at < tensors.len() {
            let (from, address) = tensors[at];
            at += 1;
            for link in self.links {
                let (next, of_next) = match from {
                    from if from == link.tensor => (link.to, address - link.distance),
                    from if from == link.to => (link.tensor, address + link.distance),
                    _ => continue,
                };
                match tensors.iter().find(|(tensor, _)| *tensor == next) {
                    Some(&(_, known)) if known != of_next => return None,
                    Some(_) => {}
                    None => tensors.push((next, of_next)),
                }
            }
        }
        let low = tensors.iter().map(|&(_, at)| at).min()?;
        for (_, at) in &mut tensors {
            *at -= low;
        }
        let all = tensors.iter().map(|&(tensor, _)| tensor);
        let outside: Vec<usize> =
            all.filter(|&tensor| self.model.tensors[tensor].is_outside).collect();
        if outside.len() > 1 || !outside.is_empty() && !self.may_be_outside(&tensors) {
            return None;
        }
        let extent = tensors.iter().map(|&(tensor, at)| at + self.size(tensor)).max()?;
        if let Some(&outside) = outside.first()
            && (extent > self.size(outside) || !tensors.contains(&(outside, 0)))
        {
            return None;
        }
        Some(Body {
            segments: self.segments(&tensors)?,
            extent,
            residue: self.residue(&tensors)?,
            traffic: self.traffic(&tensors),
            outside: outside.first().copied(),
            tensors,
        })
    }

    /// Returns whether a body holds only supplied bytes, views of them and required updates.
    fn may_be_outside(&self, tensors: &[(usize, i64)]) -> bool {
        let is_inside = |tensor: usize| tensors.iter().any(|&(other, _)| other == tensor);
        let here = self.links.iter().filter(|link| is_inside(link.tensor));
        here.into_iter().all(|link| match link.kind {
            Kind::View => true,
            Kind::Over => !link.is_optional,
            _ => false,
        })
    }

    /// The remainder that aligns all tensors that overwrite nothing and are no parts.
    fn residue(&self, tensors: &[(usize, i64)]) -> Option<i64> {
        let is_aligned = |tensor: usize| {
            let is_free = self.link(tensor).is_none_or(|link| link.kind == Kind::FarOverlap);
            is_free && !self.is_part(tensor)
        };
        let all = tensors.iter().filter(|(tensor, _)| is_aligned(*tensor));
        let mut residues = all.map(|&(_, at)| (-at).rem_euclid(self.model.alignment));
        let first = residues.next().unwrap_or(0);
        residues.all(|residue| residue == first).then_some(first)
    }

    /// The bytes that are written and read. A view that is taken is not written.
    fn traffic(&self, tensors: &[(usize, i64)]) -> u128 {
        let accesses = |tensor: usize| {
            let reads = self.model.operators.iter().filter(|one| one.inputs.contains(&tensor));
            let is_made = self.model.tensors[tensor].step.is_some() && tensor < self.model.named;
            (reads.count() + usize::from(is_made && !self.is_view(tensor))) as u128
        };
        let bytes = |&(tensor, _): &(usize, i64)| self.size(tensor) as u128 * accesses(tensor);
        tensors.iter().map(bytes).sum()
    }

    /// The contents of all bytes of a body; `None` if two of them disturb each other.
    fn segments(&self, tensors: &[(usize, i64)]) -> Option<Vec<Segment>> {
        let mut cuts: Vec<i64> =
            tensors.iter().flat_map(|&(tensor, at)| [at, at + self.size(tensor)]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut segments: Vec<Segment> = Vec::new();
        for pair in cuts.windows(2) {
            let (low, high) = (pair[0], pair[1]);
            let covers =
                |&&(tensor, at): &&(usize, i64)| at <= low && high <= at + self.size(tensor);
            let here: Vec<(usize, i64)> = tensors.iter().filter(covers).copied().collect();
            let contents = self.contents(&here);
            for (at, one) in contents.iter().enumerate() {
                if !contents[..at].iter().all(|other| self.get_along(one, other, &here)) {
                    return None;
                }
            }
            let need = |content: &Content| Need {
                writer: self.model.tensors[content.writer].step,
                uses: content.uses,
            };
            let needs: Vec<Need> = contents.iter().map(need).collect();
            match segments.last_mut() {
                Some(last) if last.high == low && last.needs == needs => last.high = high,
                _ if needs.is_empty() => {}
                _ => segments.push(Segment { low, high, needs }),
            }
        }
        Some(segments)
    }

    /// The contents of a byte that these tensors have.
    fn contents(&self, here: &[(usize, i64)]) -> Vec<Content> {
        let is_here = |tensor: usize| here.iter().any(|&(other, _)| other == tensor);
        let same = |link: &&Link| {
            matches!(link.kind, Kind::View | Kind::Part) && is_here(link.tensor) && is_here(link.to)
        };
        let same: Vec<&Link> = self.links.iter().filter(same).collect();
        let mut contents: Vec<Vec<usize>> = here.iter().map(|&(tensor, _)| vec![tensor]).collect();
        for link in &same {
            let holder = |contents: &[Vec<usize>], tensor: usize| {
                contents.iter().position(|content| content.contains(&tensor)).unwrap()
            };
            let (one, other) = (holder(&contents, link.tensor), holder(&contents, link.to));
            if one != other {
                let moved = std::mem::take(&mut contents[one]);
                contents[other].extend(moved);
                contents.swap_remove(one);
            }
        }
        let is_writer = |tensor: usize| {
            let holds_part = same.iter().any(|link| link.kind == Kind::Part && link.to == tensor);
            !self.is_view(tensor) && !holds_part
        };
        let content = |tensors: Vec<usize>| {
            let writer = tensors.iter().copied().find(|&tensor| is_writer(tensor)).unwrap();
            let uses = tensors.iter().fold(0, |uses, &tensor| {
                uses | self.model.uses(tensor, |output| self.is_view(output))
            });
            Content { writer, uses: self.model.or_first(uses, writer), tensors }
        };
        contents.into_iter().map(content).collect()
    }

    /// Returns whether two contents may have the same byte.
    fn get_along(&self, one: &Content, other: &Content, here: &[(usize, i64)]) -> bool {
        let is_over = |old: &Content, new: &Content| {
            self.model.are_over(old.uses, self.model.tensors[new.writer].step)
        };
        is_over(one, other)
            || is_over(other, one)
            || self.is_overwritten(one, other, here)
            || self.is_overwritten(other, one, here)
    }

    /// Returns whether the operator that writes a content may destroy another one, which it reads last.
    fn is_overwritten(&self, old: &Content, new: &Content, here: &[(usize, i64)]) -> bool {
        let Some(link) = self.link(new.writer) else { return false };
        let Some(step) = self.model.tensors[new.writer].step else { return false };
        if link.kind == Kind::View || old.uses & !(self.model.before[step] | 1 << step) != 0 {
            return false;
        }
        let operator = &self.model.operators[step];
        let place = |tensor: usize| {
            let at = here.iter().find(|&&(other, _)| other == tensor).map(|&(_, at)| at);
            (at, self.size(tensor))
        };
        old.tensors.iter().all(|&tensor| {
            let is_same = link.kind == Kind::Over && place(tensor) == place(new.writer);
            !operator.outputs.contains(&tensor)
                && (!operator.inputs.contains(&tensor) || tensor == link.to || is_same)
        })
    }
}
