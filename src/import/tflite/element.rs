//! The types of tensor elements.

/// The type of a tensor's elements, by its number in the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element(pub(crate) u8);

impl Element {
    pub(crate) const FLOAT32: Self = Self(0);
    pub(crate) const BOOL: Self = Self(6);
    pub(crate) const INT16: Self = Self(7);
    pub(crate) const INT8: Self = Self(9);
    pub(crate) const INT4: Self = Self(17);
    /// A handle of a variable, a number.
    pub(crate) const RESOURCE: Self = Self(13);
    pub(crate) const INT32: Self = Self(2);
    pub(crate) const UINT8: Self = Self(3);
    pub(crate) const UINT32: Self = Self(15);
    pub(crate) const INT64: Self = Self(4);

    /// The bits of an element; `None` for types that are not stored as arrays of numbers.
    pub(crate) fn bits(self) -> Option<u64> {
        Some(match self.0 {
            19 => 2,
            17 | 20 => 4,
            3 | 6 | 9 | 21 | 22 => 8,
            1 | 7 | 16 | 18 => 16,
            0 | 2 | 13 | 15 => 32,
            4 | 8 | 10 | 12 => 64,
            11 => 128,
            _ => return None,
        })
    }

    /// The bytes of a signed integer as it lies in constants that hold axes or sizes.
    pub(crate) fn integer_width(self) -> Option<usize> {
        match self {
            Self::INT32 => Some(4),
            Self::INT64 => Some(8),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> String {
        const NAMES: [&str; 23] = [
            "FLOAT32",
            "FLOAT16",
            "INT32",
            "UINT8",
            "INT64",
            "STRING",
            "BOOL",
            "INT16",
            "COMPLEX64",
            "INT8",
            "FLOAT64",
            "COMPLEX128",
            "UINT64",
            "RESOURCE",
            "VARIANT",
            "UINT32",
            "UINT16",
            "INT4",
            "BFLOAT16",
            "INT2",
            "UINT4",
            "FLOAT8_E4M3FN",
            "FLOAT8_E5M2",
        ];
        NAMES.get(usize::from(self.0)).map_or_else(|| format!("type {}", self.0), |&n| n.to_owned())
    }
}
