//! The values of arguments: sizes, times, steps, shapes and names.

use std::{ops::Range, time::Duration};

use clap::{ValueEnum, builder::RangedU64ValueParser};
use memplan::{
    Step, Strategy,
    import::{Format, InPlace, tflite::Runtime},
    problem::Pool,
    sequence::DimRange,
};

/// The sizes in one argument, by name.
pub(super) type Dimensions = Vec<(String, DimRange)>;

/// Source to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// A C header.
    CHeader,
}

/// A format by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormatName {
    Onnx,
    Tflite,
    Json,
    Csv,
    /// A memory snapshot of PyTorch.
    Pickle,
    /// A buffer assignment of XLA.
    Xla,
    /// A program of ExecuTorch.
    Pte,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Onnx => Self::Onnx,
            FormatName::Tflite => Self::Tflite,
            FormatName::Json => Self::Json,
            FormatName::Csv => Self::Csv,
            FormatName::Pickle => Self::Pickle,
            FormatName::Xla => Self::Xla,
            FormatName::Pte => Self::Pte,
        }
    }
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let (number, scale) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    number
        .parse::<f64>()
        .ok()
        .and_then(|number| Duration::try_from_secs_f64(number * scale).ok())
        .ok_or_else(|| {
            "expected a time, such as 2s or 500ms; a number alone is in seconds".to_owned()
        })
}

/// Parses a number of search nodes.
pub(super) fn nodes(text: &str) -> Result<u64, String> {
    let nodes = text.parse().ok().filter(|&nodes| nodes > 0);
    nodes
        .ok_or_else(|| "expected a number of search nodes of at least 1, such as 100000".to_owned())
}

pub(super) fn steps(text: &str) -> Result<Range<Step>, String> {
    let (from, to) = text.split_once("..").ok_or("expected FROM..TO, such as 2..4")?;
    let number = |text: &str| text.parse().map_err(|_| format!("'{text}' is not a step"));
    let steps = number(from)?..number(to)?;
    if steps.is_empty() {
        return Err("FROM must be less than TO".to_owned());
    }
    Ok(steps)
}

/// Parses a number of columns or lines.
pub(super) fn from_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

pub(super) fn capacity(text: &str) -> Result<u64, String> {
    let expected = "expected a size of at least a byte, such as 1048576, 64KiB or 1.5MiB; units are B, KB, MB, GB, KiB, MiB and GiB";
    size(text).filter(|&bytes| bytes > 0).ok_or_else(|| expected.to_owned())
}

/// Parses a pool such as `sram`, `sram:256KiB`, `psram::20` or `gpu:::4MiB`.
pub(super) fn pool(text: &str) -> Result<Pool, String> {
    let expected =
        "expected NAME[:CAPACITY[:COST[:LARGEST]]], such as sram:256KiB:1 or psram::20:4MiB";
    let mut fields = text.split(':');
    let name = fields.next().filter(|name| !name.is_empty()).ok_or(expected)?;
    let mut pool = Pool::new(name);
    if let Some(bytes) = fields.next().filter(|bytes| !bytes.is_empty()) {
        pool = pool.capacity(size(bytes).filter(|&bytes| bytes > 0).ok_or(expected)?);
    }
    if let Some(cost) = fields.next().filter(|cost| !cost.is_empty()) {
        pool = pool.cost(cost.parse().map_err(|_| expected)?);
    }
    if let Some(bytes) = fields.next() {
        pool = pool.largest(size(bytes).filter(|&bytes| bytes > 0).ok_or(expected)?);
    }
    if fields.next().is_some() { Err(expected.to_owned()) } else { Ok(pool) }
}

/// A tensor or chunk with a fixed place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PinnedName {
    pub(crate) name: String,
    /// Empty if it is not given.
    pub(crate) pool: String,
    pub(crate) offset: u64,
}

/// Parses a pin such as `kv=sram+2048` or `kv=2048`.
pub(super) fn pin(text: &str) -> Result<PinnedName, String> {
    let expected = "expected NAME=[POOL+]OFFSET, such as kv=sram+2048";
    let (name, place) = text.rsplit_once('=').ok_or(expected)?;
    let (pool, offset) = place.rsplit_once('+').unwrap_or(("", place));
    let offset = size(offset).ok_or(expected)?;
    Ok(PinnedName { name: name.to_owned(), pool: pool.to_owned(), offset })
}

/// Two chunks that are the same memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedNames(pub(crate) [String; 2]);

/// Parses a pair such as `prefill/kv=decode/kv`.
pub(super) fn shared(text: &str) -> Result<SharedNames, String> {
    let names = text.split_once('=').filter(|(a, b)| !a.is_empty() && !b.is_empty());
    let (a, b) = names.ok_or("expected NAME=NAME, such as prefill/kv=decode/kv")?;
    Ok(SharedNames([a.to_owned(), b.to_owned()]))
}

/// Parses a number of bytes, with or without a unit; a fraction of a byte is dropped.
fn size(text: &str) -> Option<u64> {
    const UNITS: [(&str, u128); 10] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("B", 1),
    ];
    let unit = UNITS.iter().find_map(|&(name, unit)| Some((text.strip_suffix(name)?, unit)));
    let (number, unit) = unit.unwrap_or((text, 1));
    let number = number.trim_end_matches(' ');
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 18 {
        return None;
    }
    // There is no part of a byte.
    if unit == 1 && part.bytes().any(|digit| digit != b'0') {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(part.len()).ok()?);
    let bytes = u128::from(whole.parse::<u64>().ok()?) * unit
        + u128::from(part.parse::<u64>().ok()?) * unit / scale;
    u64::try_from(bytes).ok()
}

/// Parses sizes such as `batch=1..8,sequence=128`. A name may contain commas.
pub(super) fn dimensions(text: &str) -> Result<Dimensions, String> {
    let mut dimensions = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut ends = rest.match_indices(',').map(|(at, _)| at).chain([rest.len()]);
        let entry = |end: usize| {
            let (name, size) = rest[..end].rsplit_once('=')?;
            Some((end, (name.to_owned(), size.parse().ok()?)))
        };
        let Some((end, dimension)) = ends.find_map(entry) else {
            return Err(format!(
                "'{rest}' is not NAME=N, such as batch=8, or NAME=N..M, such as batch=1..8"
            ));
        };
        dimensions.push(dimension);
        rest = rest[end..].trim_start_matches(',');
    }
    Ok(dimensions)
}

/// Parses a shape such as `x=1x128x768`, `y=?x4`, or `z=` for a scalar.
pub(super) fn shape(text: &str) -> Result<(String, Vec<Option<u64>>), String> {
    let words = "expected TENSOR=SHAPE, such as x=1x128x768, or x=?x768 to leave a size open";
    let (tensor, shape) = text.rsplit_once('=').ok_or(words)?;
    let size = |size: &str| match size {
        "?" => Ok(None),
        _ => size.parse().map(Some).map_err(|_| words.to_owned()),
    };
    let shape = shape.split('x').filter(|_| !shape.is_empty()).map(size);
    Ok((tensor.to_owned(), shape.collect::<Result<_, _>>()?))
}

/// Parses a type or a value with the name of its tensor.
pub(super) fn named(text: &str) -> Result<(String, String), String> {
    let (tensor, value) =
        text.rsplit_once('=').ok_or("expected TENSOR=TYPE or TENSOR=V, such as rate=16000")?;
    Ok((tensor.to_owned(), value.to_owned()))
}

/// Parses strategies, with a line of help for each.
pub(super) fn strategies() -> impl clap::builder::TypedValueParser<Value = Strategy> {
    use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
    let values = Strategy::ALL.iter().map(|s| PossibleValue::new(s.name()).help(s.summary()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Strategy>())
}

/// A runtime by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuntimeName {
    /// One that runs TensorFlow Lite models.
    Tflite(Runtime),
    /// ONNX Runtime.
    Onnxruntime,
}

impl RuntimeName {
    /// The name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tflite(runtime) => runtime.name(),
            Self::Onnxruntime => "onnxruntime",
        }
    }

    const fn summary(self) -> &'static str {
        match self {
            Self::Tflite(runtime) => runtime.summary(),
            Self::Onnxruntime => "ONNX Runtime on the CPU, which takes no plans",
        }
    }
}

/// Parses runtimes, with a line of help for each.
pub(super) fn runtimes() -> impl clap::builder::TypedValueParser<Value = RuntimeName> {
    use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
    let of_tflite = Runtime::ALL.iter().map(|&runtime| RuntimeName::Tflite(runtime));
    let all: Vec<RuntimeName> = of_tflite.chain([RuntimeName::Onnxruntime]).collect();
    let values = all.iter().map(|r| PossibleValue::new(r.name()).help(r.summary()));
    PossibleValuesParser::new(values).try_map(move |name| {
        let known = all.iter().copied().find(|runtime| runtime.name() == name);
        known.ok_or_else(|| format!("no runtime is called '{name}'"))
    })
}

/// Parses profiles, with a line of help for each.
pub(super) fn profiles() -> impl clap::builder::TypedValueParser<Value = InPlace> {
    use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
    let values = InPlace::ALL.iter().map(|p| PossibleValue::new(p.name()).help(p.summary()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<InPlace>())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use memplan::sequence::DimRange;

    use super::{dimensions, named, shape, size};

    #[rstest]
    #[case("batch=8", &[("batch", 8)])]
    #[case("a=1,b=2", &[("a", 1), ("b", 2)])]
    #[case("max(a, 1)=4,b=2", &[("max(a, 1)", 4), ("b", 2)])]
    #[case("a=b=3", &[("a=b", 3)])]
    #[case("=3", &[("", 3)])]
    fn dimensions_are_read(#[case] text: &str, #[case] expected: &[(&str, u64)]) {
        let sizes = |(name, size): &(&str, u64)| ((*name).to_owned(), DimRange::from(*size));
        let expected: Vec<_> = expected.iter().map(sizes).collect();
        assert_eq!(dimensions(text), Ok(expected));
    }

    #[test]
    fn ranges_are_read() {
        let expected = [("a", 1..=8), ("b", 2..=2), ("c,d", 1..=3)];
        let expected = expected.map(|(name, sizes)| (name.to_owned(), DimRange::from(sizes)));
        assert_eq!(dimensions("a=1..8,b=2,c,d=1..3"), Ok(expected.to_vec()));
    }

    #[rstest]
    #[case("batch")]
    #[case("batch=1..")]
    #[case("batch=..4")]
    #[case("batch=1..2..3")]
    #[case("batch=")]
    #[case("batch=-1")]
    #[case("a=1,b")]
    #[case("a=1,b=N")]
    fn malformed_dimensions_are_refused(#[case] text: &str) {
        assert!(dimensions(text).is_err());
    }

    #[rstest]
    #[case("x=1x128x768", "x", &[Some(1), Some(128), Some(768)])]
    #[case("a/b=?x4", "a/b", &[None, Some(4)])]
    #[case("x=", "x", &[])]
    #[case("x=y=3", "x=y", &[Some(3)])]
    fn shapes_are_read(#[case] text: &str, #[case] tensor: &str, #[case] expected: &[Option<u64>]) {
        assert_eq!(shape(text), Ok((tensor.to_owned(), expected.to_vec())));
    }

    #[rstest]
    #[case("rate=16000", Some(("rate", "16000")))]
    #[case("a=b=[1,2]", Some(("a=b", "[1,2]")))]
    #[case("rate", None)]
    fn named_values_are_read(#[case] text: &str, #[case] expected: Option<(&str, &str)>) {
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(named(text).ok(), expected);
    }

    #[rstest]
    #[case("x")]
    #[case("x=1x")]
    #[case("x=Nx4")]
    #[case("x=1*4")]
    fn malformed_shapes_are_refused(#[case] text: &str) {
        assert!(shape(text).is_err());
    }

    #[rstest]
    #[case("0", Some(0))]
    #[case("1048576", Some(1 << 20))]
    #[case("1MiB", Some(1 << 20))]
    #[case("1.5 KiB", Some(1536))]
    #[case("2MB", Some(2_000_000))]
    #[case("7 B", Some(7))]
    #[case("7.0", Some(7))]
    #[case("1.5", None)]
    #[case("1.5B", None)]
    #[case("18446744073709551615", Some(u64::MAX))]
    #[case("18446744073709551616", None)]
    #[case("16777216TiB", None)]
    #[case("-1", None)]
    #[case("1e6", None)]
    #[case("1.", None)]
    #[case(".5MiB", None)]
    #[case("1.0000000000000000001MiB", None)]
    #[case("1mib", None)]
    #[case("MiB", None)]
    #[case("", None)]
    fn sizes_are_read(#[case] text: &str, #[case] bytes: Option<u64>) {
        assert_eq!(size(text), bytes);
    }
}
