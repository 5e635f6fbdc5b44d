//! The cases to measure: problems and models, and the phases of planning.

use std::fs;

use memplan::{
    Input, OpSequence, Plan, Planner, Problem, Strategy,
    import::{Format, ImportOptions, read_input},
    lower::{LoweringOptions, lower},
    networks,
    search::{Limits, Observer, lay_out},
    verify::verify,
};

/// A phase of planning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Parse,
    Lower,
    Layout,
    Bound,
    Verify,
}

impl Phase {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Lower => "lower",
            Self::Layout => "layout",
            Self::Bound => "bound",
            Self::Verify => "verify",
        }
    }

    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Parse, Self::Lower, Self::Layout, Self::Bound, Self::Verify]
            .into_iter()
            .find(|phase| phase.name() == name)
    }
}

/// The source of a case's chunks.
enum Source {
    Model { bytes: Vec<u8>, sequence: OpSequence },
    Network(OpSequence),
    Random,
}

pub struct Case {
    name: String,
    source: Source,
    problem: Problem,
}

/// A phase with all its inputs.
pub enum Prepared<'a> {
    Parse(&'a [u8]),
    Lower(&'a OpSequence),
    Layout(&'a Problem),
    Bound(&'a Problem),
    Verify(&'a Problem, Box<Plan>),
}

/// The result of a phase, so that nothing is optimised away.
pub struct Outcome(#[allow(dead_code)] pub u64);

impl Prepared<'_> {
    pub fn run(&self) -> Outcome {
        Outcome(match self {
            Self::Parse(bytes) => match read_model(bytes) {
                Some(sequence) => sequence.operators().len() as u64,
                None => 0,
            },
            Self::Lower(sequence) => lower(sequence, LoweringOptions::default())
                .map_or(0, |lowered| lowered.problem.len() as u64),
            Self::Layout(problem) => {
                lay_out(Strategy::Pushdown, problem, &Limits::default(), Observer::default())
                    .map_or(0, |layout| layout.offsets.len() as u64)
            }
            Self::Bound(problem) => problem.lower_bound(),
            Self::Verify(problem, plan) => verify(*problem, plan).len() as u64,
        })
    }
}

impl Case {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn chunks(&self) -> usize {
        self.problem.len()
    }

    /// The number of chunks by which to divide.
    pub fn divisor(&self) -> f64 {
        u32::try_from(self.chunks().max(1)).map_or(f64::NAN, f64::from)
    }

    pub fn phases(&self) -> &'static [Phase] {
        match self.source {
            Source::Model { .. } => {
                &[Phase::Parse, Phase::Lower, Phase::Layout, Phase::Bound, Phase::Verify]
            }
            Source::Network(_) => &[Phase::Lower, Phase::Layout, Phase::Bound, Phase::Verify],
            Source::Random => &[Phase::Layout, Phase::Bound, Phase::Verify],
        }
    }

    pub fn prepare(&self, phase: Phase) -> Prepared<'_> {
        match (phase, &self.source) {
            (Phase::Parse, Source::Model { bytes, .. }) => Prepared::Parse(bytes),
            (Phase::Lower, Source::Model { sequence, .. } | Source::Network(sequence)) => {
                Prepared::Lower(sequence)
            }
            (Phase::Bound, _) => Prepared::Bound(&self.problem),
            (Phase::Verify, _) => {
                let plan = Planner::new().strategy(Strategy::Pushdown).plan(&self.problem);
                plan.map_or(Prepared::Bound(&self.problem), |plan| {
                    Prepared::Verify(&self.problem, Box::new(plan))
                })
            }
            _ => Prepared::Layout(&self.problem),
        }
    }
}

fn read_model(bytes: &[u8]) -> Option<OpSequence> {
    match read_input(bytes, Format::Onnx, &ImportOptions::default()) {
        Ok(Input::Sequence(sequence)) => Some(sequence),
        _ => None,
    }
}

/// Returns the built-in cases and the ONNX models at these paths; if a path is the name of a
/// built-in case, only that case.
pub fn all(paths: &[String]) -> Vec<Case> {
    let only = |name: &str| match paths {
        [path] if path.starts_with("random") || path.starts_with("MobileNet") => path == name,
        _ => true,
    };
    let mut cases = Vec::new();
    if only("MobileNetV2 built in")
        && let Ok(sequence) = networks::mobilenet_v2(1)
        && let Ok(lowered) = lower(&sequence, LoweringOptions::default())
    {
        cases.push(Case {
            name: "MobileNetV2 built in".to_owned(),
            source: Source::Network(sequence),
            problem: lowered.problem,
        });
    }
    for path in paths {
        let Some(bytes) = fs::read(path).ok() else { continue };
        let Some(sequence) = read_model(&bytes) else { continue };
        if let Ok(lowered) = lower(&sequence, LoweringOptions::default()) {
            let source = Source::Model { bytes, sequence };
            cases.push(Case { name: path.clone(), source, problem: lowered.problem });
        }
    }
    for exponent in 3..=6 {
        for (kind, third) in [("short lives", false), ("a third alive", true)] {
            let name = format!("random 10^{exponent}, {kind}");
            if only(&name)
                && let Some(problem) = random(10_u64.pow(exponent), third)
            {
                cases.push(Case { name, source: Source::Random, problem });
            }
        }
    }
    cases
}

/// Creates chunks that begin anywhere, with up to 4096 bytes. They live for up to 10 steps, or for
/// up to two thirds of all steps, so that a third is alive at once.
fn random(count: u64, third: bool) -> Option<Problem> {
    let mut state = 1_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let longest = if third { count * 2 / 3 } else { 10 };
    let mut problem = Problem::builder();
    for _ in 0..count {
        let begin = next() % count;
        let end = (begin + 1 + next() % longest).min(count);
        problem.chunk(begin..end, 1 + next() % 4096);
    }
    problem.build().ok()
}
