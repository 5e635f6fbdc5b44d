//! PyTorch's profiles in the format of Chrome's traces: events named `[memory]`, each with an address and the bytes that
//! are allocated (positive) or released (negative) there. The operators and, if stacks are recorded, the lines of
//! Python are events with a duration, which nest.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;

use super::{
    Recording,
    any::{Any, Memory},
    choose,
    log::{Log, Range},
    sites::Sites,
};
use crate::{
    Bytes,
    import::{Format, ImportError},
};

const REMEDY: &str = "; record with torch.profiler.profile(profile_memory=True, with_stack=True) and write with export_chrome_trace(FILE)";
/// The alignments of PyTorch's allocators, in bytes.
const CPU_ALIGNMENT: Bytes = 64;
const DEVICE_ALIGNMENT: Bytes = 512;

#[derive(Deserialize)]
#[serde(expecting = "an object with the key `traceEvents`")]
struct Object<'a> {
    #[serde(borrow, rename = "traceEvents")]
    events: Vec<Event<'a>>,
}

/// An event. Those without a time are of no interest.
#[derive(Deserialize)]
#[serde(expecting = "an object that describes an event of a profile")]
struct Event<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    cat: Cow<'a, str>,
    #[serde(default)]
    ts: Any,
    #[serde(default)]
    dur: Any,
    #[serde(default)]
    tid: Any,
    #[serde(default)]
    args: Memory,
}

/// The first bytes of a file, in which the key of the events stands.
const HEAD: usize = 1 << 16;

/// Returns whether JSON is in the format of Chrome's traces.
pub(super) fn is_profile(bytes: &[u8]) -> bool {
    let key = b"\"traceEvents\"";
    let head = &bytes[..bytes.len().min(HEAD)];
    let start = head.iter().find(|byte| !byte.is_ascii_whitespace());
    start == Some(&b'[') || head.windows(key.len()).any(|window| window == key)
}

/// A moment of a thread.
enum Moment {
    /// An operator or a line of Python begins; it has an end.
    Begin(usize, f64),
    Memory(usize),
}

pub(super) fn read(bytes: &[u8], device: Option<&str>) -> Result<Recording, ImportError> {
    let head = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let events = match head {
        Some(b'[') => serde_json::from_slice(bytes)?,
        _ => serde_json::from_slice::<Object<'_>>(bytes)?.events,
    };
    let mut sites = Sites::default();
    let order = sorted(&events);
    let mut logs: BTreeMap<(i128, i128), Log> = BTreeMap::new();
    // The operators and lines that are running on each thread, with their ends.
    let mut running: BTreeMap<i128, Vec<(usize, f64)>> = BTreeMap::new();
    for (time, moment) in order {
        let at = match moment {
            Moment::Begin(at, _) | Moment::Memory(at) => at,
        };
        let thread = running.entry(events[at].tid.whole().unwrap_or(-1)).or_default();
        while thread.pop_if(|(_, end)| *end <= time).is_some() {}
        match moment {
            Moment::Begin(at, end) => thread.push((at, end)),
            Moment::Memory(at) => {
                let memory = &events[at].args;
                let (Some(address), Some(bytes)) = (memory.address, memory.bytes) else { continue };
                let key = (memory.device, memory.index);
                let log = logs.entry(key).or_insert_with(|| Log::new(device_name(key)));
                let reserved = memory.reserved.and_then(|bytes| bytes.try_into().ok());
                let reserved = reserved.filter(|&bytes: &Bytes| bytes > 0);
                log.reserved = log.reserved.max(reserved);
                let Ok(size) = Bytes::try_from(bytes.unsigned_abs()) else { continue };
                if bytes >= 0 {
                    let site = site(&mut sites, thread, &events);
                    log.allocate(Range { address, size, site });
                } else {
                    let site = sites.site(std::iter::empty(), None);
                    log.release(Range { address, size, site });
                }
            }
        }
    }
    let (log, _, others) = choose(Log::by_peak(logs.into_values()), device, REMEDY)?;
    let alignment = if log.device == "cpu" { CPU_ALIGNMENT } else { DEVICE_ALIGNMENT };
    let mut recording = log.finish(&sites, Format::Json, alignment)?;
    recording.others = others;
    Ok(recording)
}

/// The memory events, operators and lines in the order of their times; of those that begin together, the longest first.
fn sorted(events: &[Event<'_>]) -> Vec<(f64, Moment)> {
    let mut order = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let Some(time) = event.ts.number() else { continue };
        match (&*event.name, &*event.cat) {
            ("[memory]", _) => order.push((time, Moment::Memory(at))),
            (_, "cpu_op" | "python_function" | "user_annotation") => {
                let end = time + event.dur.number().unwrap_or(0.0);
                order.push((time, Moment::Begin(at, end)));
            }
            _ => {}
        }
    }
    let length = |(time, moment): &(f64, Moment)| match moment {
        Moment::Begin(_, end) => end - time,
        Moment::Memory(_) => 0.0,
    };
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| length(b).total_cmp(&length(a))));
    order
}

/// The place that allocates: the lines of Python that run, and the outermost operator.
fn site(sites: &mut Sites, running: &[(usize, f64)], events: &[Event<'_>]) -> u32 {
    let mut operator = None;
    let mut stack = Vec::new();
    for &(at, _) in running.iter().rev() {
        let Event { name, cat, .. } = &events[at];
        match &**cat {
            "cpu_op" => operator = Some(&**name),
            "python_function" => {
                // Such as `net.py(12): forward`. Built-in functions have no file.
                let parts = name.split_once("): ").and_then(|(place, function)| {
                    let (file, line) = place.rsplit_once('(')?;
                    Some((file, line.parse().ok()?, function))
                });
                stack.extend(parts.map(|(file, line, function)| sites.line(file, line, function)));
            }
            _ => {}
        }
    }
    let short = |name: &'_ str| -> usize { name.rfind(": ").map_or(0, |at| at + 2) };
    // The engine runs each operator of the backward pass under a long name.
    let operator = operator
        .map(|name| if name.starts_with("autograd::") { &name[short(name)..] } else { name });
    sites.site(stack.into_iter(), operator)
}

/// The name of a device by its number in PyTorch.
fn device_name((device, index): (i128, i128)) -> String {
    let name = match device {
        0 => return "cpu".to_owned(),
        1 => "cuda",
        6 => "hip",
        9 => "xla",
        12 => "xpu",
        13 => "mps",
        20 => "privateuseone",
        other => return format!("device {other}:{index}"),
    };
    format!("{name}:{index}")
}
