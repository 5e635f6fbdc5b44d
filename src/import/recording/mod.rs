//! Recordings of allocations that a program has made: PyTorch's memory snapshots and profiles, and XLA's buffer
//! assignments. Each allocation becomes a chunk that lives in the order of events, named by the lines of code that
//! made it.
//!
//! | recording | written by | file |
//! | --- | --- | --- |
//! | memory snapshot of PyTorch | `torch.cuda.memory._dump_snapshot` | `.pickle` |
//! | profile of PyTorch | `torch.profiler.profile(profile_memory=True)`, `export_chrome_trace` | `.json` |
//! | program of ExecuTorch | its compiler | `.pte` |
//! | buffer assignment of XLA | `XLA_FLAGS=--xla_dump_to=DIR` | `...-buffer-assignment.txt` |

mod any;
mod buffers;
#[cfg(feature = "tflite")]
mod executorch;
mod log;
mod pickle;
mod sites;
mod torch_profile;
mod torch_snapshot;
mod xla;

use std::cmp::Reverse;

use crate::{
    Bytes, Plan, PlanError, Problem,
    import::{Format, ImportError},
    problem::ChunkId,
};

/// The chunks of a recording of one device, and the facts about it that chunks do not have.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Recording {
    /// The chunks. Step `n` is event `n`, from 1; step 0 is before all events.
    pub problem: Problem,
    /// The format of the file.
    pub format: Format,
    /// The device, such as `cuda:0`.
    pub device: String,
    /// The other devices in the file, which are not in the problem.
    pub others: Vec<String>,
    /// The number of allocations and releases, or of instructions where a compiler has planned.
    pub events: u64,
    /// The number of chunks that were there before the first event.
    pub begun_before: u64,
    /// The number of chunks that are left after the last event.
    pub left: u64,
    /// The number of chunks whose release is missing among the events: their address was allocated again.
    pub lost: u64,
    /// The number of streams that allocated; 0 if they are not recorded.
    pub streams: usize,
    /// The most bytes that the allocator had reserved, if that is recorded.
    pub reserved: Option<Bytes>,
    /// The bytes from the lowest address of a chunk to the highest, if there are chunks.
    pub span: Option<Bytes>,
    /// The bytes that held a chunk at some time, if there are chunks.
    pub touched: Option<Bytes>,
    /// The offset of each chunk at its address, in bytes, if addresses that were never in use are left out.
    pub offsets: Vec<Bytes>,
    /// The line of code of each chunk, by its place in [`line_names`](Self::line_names).
    pub lines: Vec<u32>,
    /// The names of lines of code and operators.
    pub line_names: Vec<Box<str>>,
    /// The number of calls of delegates, whose memory is their own.
    pub delegates: u64,
    /// Memory that is not in the problem, such as XLA's parameters: its kind, and its bytes.
    pub outside: Vec<(String, Bytes)>,
}

impl Recording {
    /// The plan that the program's own allocator made, without the addresses that were never in use.
    ///
    /// # Errors
    ///
    /// If an offset is too large.
    pub fn allocated(&self) -> Result<Plan, PlanError> {
        Plan::from_offsets(&self.problem, &self.offsets)
    }

    /// The line of code that made a chunk, with its operator.
    #[must_use]
    pub fn line(&self, chunk: ChunkId) -> &str {
        let line = self.lines.get(chunk.index()).and_then(|&at| self.line_names.get(at as usize));
        line.map_or("", |line| line)
    }
}

/// Returns whether a file is a recording; a JSON file is one if it is in the format of Chrome's traces.
#[must_use]
pub fn is_recording(bytes: &[u8], format: Format) -> bool {
    match format {
        Format::Pickle | Format::Xla | Format::Pte => true,
        Format::Json => torch_profile::is_profile(bytes),
        Format::Onnx | Format::Tflite | Format::Csv => false,
    }
}

/// Reads the allocations of a device, or those of the device that needs the most bytes.
///
/// ```
/// use memplan::{Planner, import::{Format, recording}};
///
/// let profile = r#"{"traceEvents": [
///     {"ph": "i", "name": "[memory]", "ts": 1, "args": {"Addr": 64, "Bytes": 1000, "Device Type": 0, "Device Id": -1}},
///     {"ph": "i", "name": "[memory]", "ts": 2, "args": {"Addr": 64, "Bytes": -1000, "Device Type": 0, "Device Id": -1}},
///     {"ph": "i", "name": "[memory]", "ts": 3, "args": {"Addr": 4096, "Bytes": 600, "Device Type": 0, "Device Id": -1}}
/// ]}"#;
/// let recording = recording::read(profile.as_bytes(), Format::Json, None)?;
/// assert_eq!(recording.device, "cpu");
/// assert_eq!(recording.allocated()?.pool_size(), 1664);
/// assert_eq!(Planner::new().plan(&recording.problem)?.pool_size(), 1024);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If the file is not a recording, or has no allocations of the device.
pub fn read(bytes: &[u8], format: Format, device: Option<&str>) -> Result<Recording, ImportError> {
    match format {
        Format::Pickle => torch_snapshot::read(bytes, device),
        Format::Xla => xla::read(bytes, device),
        #[cfg(feature = "tflite")]
        Format::Pte => executorch::read(bytes, device),
        #[cfg(not(feature = "tflite"))]
        Format::Pte => Err(ImportError::NoPte),
        _ => torch_profile::read(bytes, device),
    }
}

/// A device's name, the bytes that it needs, and its allocations.
type Device<T> = (String, u128, T);

/// Takes the device asked for, or the one that needs the most bytes; returns its name, and those of the others.
fn choose<T>(
    mut devices: Vec<Device<T>>,
    device: Option<&str>,
    remedy: &'static str,
) -> Result<(T, String, Vec<String>), ImportError> {
    // Of equal needs, the first one counts.
    let needs = devices.iter().enumerate().map(|(at, (_, bytes, _))| (*bytes, Reverse(at)));
    let Some((_, Reverse(largest))) = needs.max() else {
        return Err(ImportError::NothingRecorded { remedy });
    };
    let find = |device| devices.iter().position(|(name, ..)| name == device);
    let at = device.map_or(Some(largest), find).ok_or_else(|| {
        let known: Vec<&str> = devices.iter().map(|(name, ..)| &**name).collect();
        let (device, known) = (device.unwrap_or_default().to_owned(), known.join(", "));
        ImportError::UnknownDevice { device, known }
    })?;
    let (name, _, chosen) = devices.remove(at);
    Ok((chosen, name, devices.into_iter().map(|(name, ..)| name).collect()))
}
