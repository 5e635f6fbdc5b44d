//! Times in problem files.

use std::{fmt, slice};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, SeqAccess, Visitor, value::SeqAccessDeserializer},
};

use crate::Step;

/// A time in a problem file: a step, or, on several streams, a clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Moment {
    /// A step.
    Step(Step),
    /// The steps that are over, by stream.
    Clock(Vec<Step>),
}

impl Moment {
    /// The steps that are over, by stream.
    pub(crate) fn steps(&self) -> &[Step] {
        match self {
            Self::Step(step) => slice::from_ref(step),
            Self::Clock(clock) => clock,
        }
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MomentVisitor;
        impl<'de> Visitor<'de> for MomentVisitor {
            type Value = Moment;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a step from 0, or a list of one per stream")
            }

            fn visit_u64<E: de::Error>(self, step: u64) -> Result<Moment, E> {
                Ok(Moment::Step(step))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Moment, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Moment::Clock)
            }
        }
        deserializer.deserialize_any(MomentVisitor)
    }
}
