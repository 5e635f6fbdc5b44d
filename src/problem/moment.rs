//! Times in problem files.

use std::{fmt, slice};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, SeqAccess, Visitor},
};

use crate::Step;

/// A time in a problem file: a step, or, on several streams, a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Step(step) => serializer.serialize_u64(*step),
            Self::Clock(clock) => clock.serialize(serializer),
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

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Moment, A::Error> {
                let mut clock = Vec::new();
                while let Some(step) = list.next_element()? {
                    clock.push(step);
                }
                Ok(Moment::Clock(clock))
            }
        }
        deserializer.deserialize_any(MomentVisitor)
    }
}
