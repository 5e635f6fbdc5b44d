//! The bound of a plan that was read from a file, counted from its input.

use std::collections::HashSet;

use crate::{
    InputRef, Plan, PlanError, PlannedLink, Planner, Problem,
    plan::{PlannedPart, Scope},
    planner::choices,
    problem::{ChunkId, constraints::ChunkConstraints},
};

impl Planner<'_> {
    /// Counts the lower bound of a plan from a file again, in bytes, because a file can claim any. If the file states
    /// another one, that becomes the [claimed bound](Plan::claimed_bound). The plan states the alignment and padding.
    ///
    /// The input is lowered with the choices that a planner makes first. If the plan is one of other choices, it has
    /// other chunks, and only the [content bound](Self::content_bound) holds for it; if that cannot be counted, the
    /// bound is 0.
    ///
    /// ```
    /// use memplan::{Planner, networks};
    ///
    /// let (planner, sequence) = (Planner::new(), networks::mobilenet_v2(1)?);
    /// let plan = planner.plan(&sequence)?;
    /// assert_eq!(planner.count_bound(plan.clone(), &sequence)?, plan);
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`lower`](Self::lower).
    pub fn count_bound<'i>(
        &self,
        plan: Plan,
        input: impl Into<InputRef<'i>>,
    ) -> Result<Plan, PlanError> {
        let input = input.into();
        let planner = self.clone().alignment(plan.alignment).padding(plan.padding);
        let gathers = planner.lowering.gathers && !plan.parts.is_empty();
        let first = planner.clone().lowering(planner.lowering.gathers(gathers));
        let problem = match first.lower(input) {
            Ok(lowered) => Some(lowered.problem),
            Err(error) if choices::may_be_cured(&error) => None,
            Err(error) => return Err(error),
        };
        let problem = problem
            .filter(|problem| has_chunks_of(&plan, problem))
            .and_then(|problem| with_links_of(&plan, problem))
            .filter(|problem| input.sequence().is_none() || !is_finer(&plan, problem));
        // The plan may have other plans of the bodies, which make its workspaces smaller.
        let is_counted = problem.is_some() || plan.bodies.is_empty();
        let of_content = if is_counted { planner.content_bound(input)? } else { None };
        let counted = if let Some(problem) = problem {
            let counted = plan.with_counted_bound(&problem);
            let scope = counted.scope.min(Scope::of(input, planner.lowering));
            Plan { scope, ..counted }
        } else {
            let lower_bound = of_content.unwrap_or(0);
            let claimed_bound = Some(plan.lower_bound).filter(|&stated| stated != lower_bound);
            Plan { lower_bound, proven_optimal: false, claimed_bound, ..plan }
        };
        let is_one = counted.pools.len() < 2;
        Ok(match of_content.filter(|&bound| is_one && bound >= counted.lower_bound) {
            Some(bound) => {
                let claimed_bound = counted.claimed_bound.filter(|&stated| stated != bound);
                choices::of_all_choices(Plan { claimed_bound, ..counted }, bound)
            }
            None => counted,
        })
    }
}

/// Returns whether a plan has the chunks of a problem, and the same ones inside others.
fn has_chunks_of(plan: &Plan, problem: &Problem) -> bool {
    let planned = plan.chunks.iter().map(|chunk| (chunk.size, chunk.begin, chunk.end));
    let lowered = problem.chunks().iter().map(|chunk| (chunk.size, chunk.begin, chunk.end));
    let parts: HashSet<PlannedPart> = plan.parts.iter().copied().collect();
    lowered.eq(planned)
        && parts.len() == problem.parts().len()
        && PlannedPart::all_of(problem).all(|part| parts.contains(&part))
}

/// The problem with the overwrites of a plan: without the requests that the plan gives up. `None` if the plan has
/// others.
fn with_links_of(plan: &Plan, problem: Problem) -> Option<Problem> {
    let link = |chunk: ChunkId| plan.chunks[chunk.index()].overwrites;
    let has_links = |problem: &Problem| {
        problem.ids().all(|chunk| problem.link(chunk).map(PlannedLink::of) == link(chunk))
    };
    if has_links(&problem) {
        return Some(problem);
    }
    let is_given_up = |at: usize| {
        let request = problem.requests()[at];
        !request.required && link(request.overwriter) != Some(PlannedLink::of(request.link()))
    };
    problem.without(is_given_up, |_| false, false).ok().filter(has_links)
}

/// Returns whether a plan shows by its windows, or by its size, that its bytes live for other times than the chunks of
/// a problem.
fn is_finer(plan: &Plan, problem: &Problem) -> bool {
    let is_whole = problem.all_constraints().own.iter().all(ChunkConstraints::is_whole);
    plan.windows.is_empty() != is_whole || plan.pool_size < problem.lower_bound()
}
