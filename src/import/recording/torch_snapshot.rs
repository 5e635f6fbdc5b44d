//! PyTorch's memory snapshots: a pickle with the segments that the allocator holds, and the events of each device.

use std::collections::HashMap;

use super::{
    Recording, choose,
    log::{Log, Range},
    pickle::{Pickle, Value},
    sites::{Line, Sites},
};
use crate::{
    Bytes,
    import::{Format, ImportError},
};

/// The place of chunks without a stack that no event begins.
const BEFORE: &str = "before the recording";
/// The alignment of the allocator's blocks, in bytes.
const ALIGNMENT: Bytes = 512;
const REMEDY: &str = "; call torch.cuda.memory._record_memory_history() before the step";

pub(super) fn read(bytes: &[u8], device: Option<&str>) -> Result<Recording, ImportError> {
    let pickle = Pickle::read(bytes)?;
    let entry = |name: &'static str| match pickle.get(pickle.root, name) {
        value @ Value::List(_) => Ok(pickle.list(value)),
        _ => Err(ImportError::NotASnapshot { missing: name }),
    };
    let (segments, traces) = (entry("segments")?, entry("device_traces")?);
    let mut reader = Reader { pickle: &pickle, sites: Sites::default(), lines: HashMap::new() };
    let mut logs = Vec::new();
    for (at, &trace) in traces.iter().enumerate() {
        let own = segments
            .iter()
            .copied()
            .filter(|&segment| pickle.number(segment, "device").unwrap_or(0) == at as u64);
        logs.push(reader.log(format!("cuda:{at}"), pickle.list(trace), own.collect())?);
    }
    let (log, _, others) = choose(Log::by_peak(logs), device, REMEDY)?;
    let mut recording = log.finish(&reader.sites, Format::Pickle, ALIGNMENT)?;
    recording.others = others;
    Ok(recording)
}

struct Reader<'a> {
    pickle: &'a Pickle<'a>,
    sites: Sites,
    /// The lines of code that stacks share, by the number of their dictionary.
    lines: HashMap<u32, Line>,
}

impl Reader<'_> {
    fn log(
        &mut self,
        device: String,
        events: &[Value],
        segments: Vec<Value>,
    ) -> Result<Log, ImportError> {
        let pickle = self.pickle;
        let mut log = Log::new(device);
        // The bytes reserved at the end, from which the events are followed back.
        let total = |&segment: &Value| pickle.number(segment, "total_size").unwrap_or(0);
        let mut reserved: i128 = segments.iter().map(|segment| i128::from(total(segment))).sum();
        let (at_end, mut changes) = (reserved, Vec::new());
        for (number, &event) in (1..).zip(events) {
            let action = pickle.text(pickle.get(event, "action")).unwrap_or_default();
            let change = match action {
                "segment_alloc" | "segment_map" => 1,
                "segment_free" | "segment_unmap" => -1,
                "alloc" | "free_completed" => 0,
                // A release that is only requested keeps its bytes until other streams no longer use them.
                _ => continue,
            };
            let needed = |missing| {
                pickle.number(event, missing).ok_or_else(|| ImportError::Event {
                    event: number,
                    device: log.device.clone(),
                    missing,
                })
            };
            let (address, size) = (needed("addr")?, needed("size")?);
            if change != 0 {
                changes.push(change * i128::from(size));
                continue;
            }
            if action == "alloc" {
                let site = self.site(event);
                log.stream(pickle.number(event, "stream").unwrap_or(0));
                log.allocate(Range { address, size, site });
            } else {
                // The place counts only if no event began the chunk.
                let site = self.sites.site(std::iter::empty(), Some(BEFORE));
                log.release(Range { address, size, site });
            }
        }
        let mut most = at_end;
        for change in changes.into_iter().rev() {
            reserved -= change;
            most = most.max(reserved);
        }
        log.reserved = Bytes::try_from(most).ok().filter(|&most| most > 0);
        for segment in segments {
            self.hold(&mut log, segment);
        }
        Ok(log)
    }

    /// Adds the blocks of a segment that are in use and were there before all events.
    fn hold(&mut self, log: &mut Log, segment: Value) {
        let pickle = self.pickle;
        let mut next = pickle.number(segment, "address").unwrap_or(0);
        for &block in pickle.list(pickle.get(segment, "blocks")) {
            let size = pickle.number(block, "size").unwrap_or(0);
            // Older snapshots have no addresses of blocks, which follow each other.
            let address = pickle.number(block, "address").unwrap_or(next);
            next = address.saturating_add(size);
            let state = pickle.text(pickle.get(block, "state")).unwrap_or_default();
            if state.starts_with("active") {
                let has_stack = !pickle.list(pickle.get(block, "frames")).is_empty();
                let site = if has_stack {
                    self.site(block)
                } else {
                    self.sites.site(std::iter::empty(), Some(BEFORE))
                };
                let size = pickle.number(block, "requested_size").unwrap_or(size);
                log.hold(Range { address, size, site });
            }
        }
    }

    /// The place of an event or a block by its `frames`, which begin with the innermost.
    fn site(&mut self, owner: Value) -> u32 {
        let pickle = self.pickle;
        let frames = pickle.list(pickle.get(owner, "frames"));
        let Self { sites, lines, .. } = self;
        let mut stack = Vec::with_capacity(frames.len());
        for &frame in frames {
            let Value::Dict(number) = frame else { continue };
            let line = *lines.entry(number).or_insert_with(|| {
                let text = |key| pickle.text(pickle.get(frame, key)).unwrap_or_default();
                let line = pickle.number(frame, "line").unwrap_or(0);
                sites.line(text("filename"), line, text("name"))
            });
            stack.push(line);
        }
        sites.site(stack.into_iter(), None)
    }
}
