//! Parts of a Chrome trace, where a key may have a value of any type in the events of other tools.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// A number, or anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Any {
    Whole(i128),
    Fraction(f64),
    #[default]
    Other,
}

impl Any {
    pub(super) fn whole(self) -> Option<i128> {
        match self {
            Self::Whole(number) => Some(number),
            Self::Fraction(_) | Self::Other => None,
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "times of a trace")]
    pub(super) fn number(self) -> Option<f64> {
        match self {
            Self::Whole(number) => Some(number as f64),
            Self::Fraction(number) => Some(number),
            Self::Other => None,
        }
    }
}

/// The arguments of a memory event; empty for others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    pub(super) address: Option<u64>,
    pub(super) bytes: Option<i128>,
    pub(super) device: i128,
    pub(super) index: i128,
    pub(super) reserved: Option<i128>,
}

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyVisitor)
    }
}

impl<'de> Deserialize<'de> for Memory {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(MemoryVisitor)
    }
}

/// The methods of a visitor that takes any value, with the same result for those of no interest.
macro_rules! others {
    ($result:expr, $lifetime:lifetime) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a value")
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($result)
        }

        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok($result)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($result)
        }

        fn visit_seq<A: SeqAccess<$lifetime>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            Ok($result)
        }
    };
}

struct AnyVisitor;

impl<'de> Visitor<'de> for AnyVisitor {
    type Value = Any;

    others!(Any::Other, 'de);

    fn visit_u64<E>(self, number: u64) -> Result<Any, E> {
        Ok(Any::Whole(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Any, E> {
        Ok(Any::Whole(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Any, E> {
        Ok(Any::Fraction(number))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Any, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Any::Other)
    }
}

struct MemoryVisitor;

impl<'de> Visitor<'de> for MemoryVisitor {
    type Value = Memory;

    others!(Memory::default(), 'de);

    fn visit_u64<E>(self, _: u64) -> Result<Memory, E> {
        Ok(Memory::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Memory, E> {
        Ok(Memory::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Memory, E> {
        Ok(Memory::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Memory, A::Error> {
        let mut memory = Memory::default();
        while let Some(key) = entries.next_key::<std::borrow::Cow<'de, str>>()? {
            let value = match &*key {
                "Addr" | "Bytes" | "Device Type" | "Device Id" | "Total Reserved" => {
                    entries.next_value::<Any>()?.whole()
                }
                _ => {
                    entries.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            match &*key {
                // Some versions write addresses above 2^63 as negative numbers.
                "Addr" => {
                    let signed =
                        |address: i128| i64::try_from(address).ok().map(i64::cast_unsigned);
                    memory.address =
                        value.and_then(|address| address.try_into().ok().or(signed(address)));
                }
                "Bytes" => memory.bytes = value,
                "Device Type" => memory.device = value.unwrap_or(0),
                "Device Id" => memory.index = value.unwrap_or(0),
                _ => memory.reserved = value,
            }
        }
        Ok(memory)
    }
}
