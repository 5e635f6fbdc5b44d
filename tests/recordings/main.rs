//! Recordings of allocations become chunks that live in the order of events, and hostile files are errors.

use std::fs;

use memplan::{
    Planner, Strategy,
    import::{
        Format, ImportError, ImportOptions, read_input,
        recording::{Recording, is_recording, read},
    },
    problem::ChunkId,
    verify::verify,
};
use rstest::rstest;

/// A MiB.
const M: u64 = 1 << 20;

fn fixture(name: &str) -> Vec<u8> {
    fs::read(format!("tests/recordings/{name}")).unwrap()
}

fn xla() -> Vec<u8> {
    [fixture("loop-buffer-assignment.txt"), fixture("loop-live-range.txt")].concat()
}

/// Writes the pickles of Python's protocol 4, as far as snapshots need them.
#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    stored: u32,
}

impl Writer {
    fn begin() -> Self {
        Self { bytes: b"\x80\x04".to_vec(), stored: 0 }
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes.extend([0x8c, u8::try_from(text.len()).unwrap()]);
        self.bytes.extend(text.as_bytes());
        self
    }

    fn number(&mut self, number: u64) -> &mut Self {
        self.bytes.extend([0x8a, 8]);
        self.bytes.extend(number.to_le_bytes());
        self
    }

    fn code(&mut self, codes: &[u8]) -> &mut Self {
        self.bytes.extend(codes);
        self
    }

    /// Stores the value on top, and returns its number.
    fn store(&mut self) -> u32 {
        self.bytes.push(0x94);
        self.stored += 1;
        self.stored - 1
    }

    fn stored(&mut self, number: u32) -> &mut Self {
        self.bytes.push(b'j');
        self.bytes.extend(number.to_le_bytes());
        self
    }

    fn event(&mut self, action: &str, address: u64, size: u64, frames: u32) {
        self.code(b"}(").text("action").text(action).text("addr").number(address);
        self.text("size").number(size).text("stream").number(0).text("frames").stored(frames);
        self.code(b"u");
    }
}

/// Writes a snapshot without segments, of these events with one stack.
fn snapshot(events: impl Fn(&mut Writer, u32)) -> Vec<u8> {
    let mut out = Writer::begin();
    // The stack is written first, and then used by all events.
    out.code(b"](}(").text("filename").text("net.py").text("line").number(3);
    out.text("name").text("forward").code(b"ue");
    let stack = out.store();
    out.code(b"0}(").text("segments").code(b"]").text("device_traces").code(b"](](");
    events(&mut out, stack);
    out.code(b"eeu.");
    out.bytes
}

#[track_caller]
fn check(recording: &Recording) {
    let problem = &recording.problem;
    let allocated = recording.allocated().unwrap();
    assert_eq!(verify(problem, &allocated), [], "what an allocator did is a right plan");
    let plan = Planner::new().plan(problem).unwrap();
    assert_eq!(verify(problem, &plan), []);
    assert!(plan.pool_size() <= allocated.pool_size());
}

#[test]
fn a_snapshot_has_chunks_of_one_device_with_lines_as_names() {
    let recording = read(&fixture("step.pickle"), Format::Pickle, None).unwrap();
    let problem = &recording.problem;
    let chunk = |at: usize| {
        let id = ChunkId::from_index(at);
        let chunk = problem.chunk(id);
        (chunk.begin, chunk.end, chunk.size, problem.name(id))
    };
    let chunks: Vec<_> = (0..problem.len()).map(chunk).collect();
    let named = |begin, end, size, name: &str| (begin, end, size, name.to_owned());
    assert_eq!(
        chunks,
        [
            named(0, 6, M, "before the recording"),
            named(0, 8, 2 * M, "train.py:2 load"),
            named(1, 3, 3 * M, "net.py:12 forward < train.py:5 step"),
            named(2, 5, 3 * M, "net.py:13 forward < train.py:5 step"),
            named(4, 8, 4 * M, "train.py:6 step"),
            named(7, 8, 1000, "train.py:6 step"),
        ]
    );
    assert_eq!((&*recording.device, &recording.others[..]), ("cuda:0", &["cuda:1".to_owned()][..]));
    assert_eq!((recording.events, recording.begun_before, recording.left), (7, 2, 3));
    // 14 MiB at the end; before the last segment was returned, 2 MiB more.
    assert_eq!(recording.reserved, Some(16 * M));
    assert_eq!(recording.line(ChunkId(3)), "net.py:13 forward");
    check(&recording);
    let other = read(&fixture("step.pickle"), Format::Pickle, Some("cuda:1")).unwrap();
    assert_eq!(other.problem.len(), 1);
}

#[test]
fn a_profile_has_operators_and_lines_as_names() {
    let recording = read(&fixture("step.json"), Format::Json, None).unwrap();
    let problem = &recording.problem;
    assert_eq!((recording.events, problem.len()), (26, 15));
    assert_eq!((recording.begun_before, recording.left, recording.lost), (0, 4, 0));
    assert_eq!(problem.alignment(), 64);
    let names: Vec<_> = problem.ids().map(|id| recording.line(id)).collect();
    assert!(names.contains(&"mlp.py:6 step, AddmmBackward0"), "{names:?}");
    check(&recording);
}

#[test]
fn the_buffers_of_xla_are_written_over_each_other_as_xla_does() {
    let recording = read(&xla(), Format::Xla, None).unwrap();
    let problem = &recording.problem;
    assert_eq!(recording.events, 21);
    assert_eq!(recording.reserved, Some(256 + 32_792));
    assert!(problem.links_taken() > 0);
    assert_eq!(recording.outside[1], ("parameters".to_owned(), 16_384));
    check(&recording);
    let without = read(&fixture("loop-buffer-assignment.txt"), Format::Xla, None);
    assert!(matches!(without, Err(ImportError::NoLiveRanges)));
}

/// The arena of a program with three layers, and one of a condition with a moved result.
#[rstest]
#[case("mlp.pte", 6144, 10, "forward, arena 1")]
#[case("cond.pte", 1296, 13, "forward, arena 1")]
fn the_arena_of_a_program_is_a_right_plan(
    #[case] name: &str,
    #[case] arena: u64,
    #[case] instructions: u64,
    #[case] device: &str,
) {
    let recording = read(&fixture(name), Format::Pte, None).unwrap();
    assert_eq!((recording.reserved, recording.events), (Some(arena), instructions));
    assert_eq!(recording.device, device);
    let lines: Vec<_> = recording.problem.ids().map(|id| recording.line(id)).collect();
    assert!(lines.contains(&"aten::permute_copy.out"), "{lines:?}");
    check(&recording);
}

/// Bytes of each file are changed in turn, and the file is cut: it is read, or it is an error.
#[rstest]
#[case(fixture("step.pickle"), Format::Pickle)]
#[case(fixture("step.json"), Format::Json)]
#[case(fixture("cond.pte"), Format::Pte)]
#[case(xla(), Format::Xla)]
fn a_damaged_file_is_read_or_refused(#[case] bytes: Vec<u8>, #[case] format: Format) {
    for at in (0..bytes.len()).step_by(1 + bytes.len() / 1000) {
        for value in [0, 1, b'9', b'e', 0x7f, 0x94, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            let _ = read(&damaged, format, None);
        }
        let _ = read(&bytes[..at], format, None);
    }
}

#[test]
fn another_file_is_no_program() {
    let error = read(b"12345678", Format::Pte, None).unwrap_err().to_string();
    assert!(error.contains("not an ExecuTorch program"), "{error}");
}

#[rstest]
#[case("step.pickle", Format::Pickle, true)]
#[case("step.json", Format::Json, true)]
#[case("../../book/src/figures/example.json", Format::Json, false)]
fn a_recording_is_an_input_like_any_other(
    #[case] name: &str,
    #[case] format: Format,
    #[case] recording: bool,
) {
    let bytes = fixture(name);
    assert_eq!(is_recording(&bytes, format), recording);
    read_input(&bytes, format, &ImportOptions::default()).unwrap();
}

/// The release of a chunk that was there before, two allocations at one address, and one that stays.
#[test]
fn events_that_lack_a_partner_are_counted() {
    let bytes = snapshot(|out, stack| {
        out.event("free_completed", 4096, 100, stack);
        out.event("alloc", 8192, 200, stack);
        out.event("alloc", 8192, 300, stack);
        out.event("free_completed", 8192, 300, stack);
        out.event("alloc", 4096, 50, stack);
    });
    let recording = read(&bytes, Format::Pickle, None).unwrap();
    let problem = &recording.problem;
    let lives: Vec<_> = problem.chunks().iter().map(|of| (of.begin, of.end, of.size)).collect();
    assert_eq!(lives, [(0, 1, 100), (2, 3, 200), (3, 4, 300), (5, 6, 50)]);
    assert_eq!((recording.begun_before, recording.left, recording.lost), (1, 1, 1));
    assert_eq!(recording.line(ChunkId(1)), "net.py:3 forward");
}

#[rstest]
#[case::empty(b"", "byte 0: this is not a pickle of protocol 2 or later")]
#[case::zip(b"PK\x03\x04", "not a pickle")]
#[case::protocol(b"\x80\x09.", "protocol 9 is unknown")]
#[case::ends(b"\x80\x04]", "the file ends too early")]
#[case::system(
    b"\x80\x02cos\nsystem\nX\x02\0\0\0idR.",
    "byte 2: instruction 0x63 imports a Python object"
)]
#[case::global(b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "imports a Python object")]
#[case::call(b"\x80\x04])R.", "calls a Python object")]
#[case::new(b"\x80\x04])\x81.", "calls a Python object")]
#[case::state(b"\x80\x04]}b.", "sets the state of a Python object")]
#[case::persistent(b"\x80\x04]Q.", "refers to a Python object")]
#[case::extension(b"\x80\x04\x82\x01.", "refers to a Python object")]
#[case::text_protocol(b"\x80\x02I1\n.", "instruction 0x49 makes no list")]
#[case::long_text(b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f", "the file ends too early")]
#[case::not_text(b"\x80\x04\x8c\x01\xff.", "a text is not UTF-8")]
#[case::nothing(b"\x80\x04.", "too few values")]
#[case::no_mark(b"\x80\x04]e.", "no mark")]
#[case::below_mark(b"\x80\x04](a.", "too few values")]
#[case::not_a_list(b"\x80\x04}]a.", "no list")]
#[case::half_a_pair(b"\x80\x04}(]u.", "no dict")]
#[case::unknown(b"\x80\x04h\x05.", "nobody has stored")]
#[case::far(b"\x80\x04]r\xff\xff\xff\x7f.", "an impossible number")]
#[case::a_list(b"\x80\x04].", "it has no segments")]
#[case::no_events(
    b"\x80\x04}(\x8c\x08segments]\x8c\rdevice_traces]u.",
    "no allocations are recorded; call torch.cuda.memory._record"
)]
fn a_hostile_pickle_is_an_error(#[case] bytes: &[u8], #[case] words: &str) {
    let error = read(bytes, Format::Pickle, None).unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
}

/// A list that contains itself, and one of lists of lists that would have 2^64 items if it were copied.
#[test]
fn what_a_pickle_mentions_often_is_stored_once() {
    let mut own = Writer::begin();
    own.code(b"]");
    let list = own.store();
    own.stored(list).code(b"a.");
    let mut deep = Writer::begin();
    deep.code(b"]");
    let mut inner = deep.store();
    for _ in 0..64 {
        deep.code(b"](").stored(inner).stored(inner).code(b"e");
        inner = deep.store();
    }
    deep.code(b".");
    for bytes in [own.bytes, deep.bytes] {
        let error = read(&bytes, Format::Pickle, None).unwrap_err().to_string();
        assert!(error.contains("it has no segments"), "{error}");
    }
}

#[rstest]
#[case("{\"traceEvents\": []}", "no allocations are recorded; record with torch.profiler")]
#[case("[]", "no allocations are recorded")]
#[case("{\"traceEvents\": 5}", "invalid type")]
#[case(
    "{\"traceEvents\": [{\"name\": \"[memory]\", \"ts\": \"soon\", \"args\": [1]}]}",
    "no allocations"
)]
#[case(
    "{\"traceEvents\": [{\"name\": \"[memory]\", \"ts\": 1, \"args\": {\"Addr\": 1e9, \"Bytes\": \"x\"}}]}",
    "no allocations"
)]
fn a_wrong_profile_is_an_error(#[case] text: &str, #[case] words: &str) {
    let error = read(text.as_bytes(), Format::Json, None).unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
}

#[rstest]
#[case("allocation 0: size x, preallocated-temp:", "line 1: expected an allocation such as")]
#[case(
    "allocation 0: size 18446744073709551615, preallocated-temp:\nallocation 1: size 300, preallocated-temp:",
    "line 2: expected an allocation"
)]
#[case(
    "allocation 0: size 8, preallocated-temp:\n value: <1 a @0> (size=8): f32[2]",
    "line 2: expected a value such as"
)]
#[case("  BufferLiveRange:\n    a{}:5-2\n", "line 2: expected a live range such as")]
#[case("  BufferLiveRange:\n    a{}:1-2\n", "no allocations are recorded")]
#[case("", "there are no live ranges")]
fn a_wrong_buffer_assignment_is_an_error(#[case] text: &str, #[case] words: &str) {
    let error = read(text.as_bytes(), Format::Xla, None).unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
}

#[test]
fn an_unknown_device_is_an_error_that_lists_all() {
    let error = read(&fixture("step.pickle"), Format::Pickle, Some("cuda:7")).unwrap_err();
    assert_eq!(error.to_string(), "there is no device 'cuda:7'; recorded are cuda:0, cuda:1");
}

/// 10^6 events, of which each allocation uses the address that was released last.
#[test]
fn a_million_events_are_read_in_seconds() {
    let bytes = snapshot(|out, stack| {
        for at in 0..500_000 {
            let address = at % 100 * 4096;
            out.event("alloc", address, 512 + at % 7 * 512, stack);
            out.event("free_completed", address, 0, stack);
        }
    });
    let start = std::time::Instant::now();
    let recording = read(&bytes, Format::Pickle, None).unwrap();
    assert_eq!((recording.problem.len(), recording.events), (500_000, 1_000_000));
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
    let plan = Planner::new().strategy(Strategy::FirstFit).plan(&recording.problem).unwrap();
    assert_eq!(plan.pool_size(), 7 * 512);
}
