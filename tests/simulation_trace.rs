//! `RUST_LOG=memplan::simulate=trace` logs every event of a simulation.
//!
//! It needs its own process: a test beside it that plans without a subscriber may switch off the
//! events of the whole process, while this one listens to its own thread.

use std::{
    fmt::Write,
    sync::{Arc, Mutex},
};

use memplan::{
    Problem, Strategy,
    search::{Limits, Observer, lay_out},
};
use tracing::{
    Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// The messages of all traces, with their chunks.
struct Traces(Mutex<Vec<String>>);

impl Subscriber for Traces {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "memplan::simulate" && *metadata.level() == Level::TRACE
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        #[derive(Default)]
        struct Words(String, Vec<&'static str>);
        impl Visit for Words {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                if ["message", "chunk"].contains(&field.name()) {
                    let _ = write!(self.0, "{value:?} ");
                }
                self.1.push(field.name());
            }
        }
        let mut words = Words::default();
        event.record(&mut words);
        for field in ["step", "size", "memory", "free"] {
            assert!(words.1.contains(&field), "{} without {field}", words.0);
        }
        self.0.lock().unwrap().push(words.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn every_event_is_traced_with_its_chunk() {
    let mut problem = Problem::builder();
    let a = problem.named_chunk("a", 0..2, 8);
    let b = problem.named_chunk("b", 1..3, 4);
    problem.named_chunk("c", 3..4, 9);
    problem.named_chunk("d", 4..5, 2);
    problem.named_chunk("e", 5..6, 9);
    problem.overwrite(b, a, 0);
    let problem = problem.build().unwrap();
    let traces = Arc::new(Traces(Mutex::default()));
    let layout = || lay_out(Strategy::Pushdown, &problem, &Limits::default(), Observer::default());
    tracing::subscriber::with_default(Arc::clone(&traces), layout).unwrap();
    let traced = traces.0.lock().unwrap();
    let events = traced.iter().map(|line| line.trim_end());
    let expected = [
        "alloc (append) \"a\"",
        "alloc_overwrite \"b\"",
        "merge \"b\"",
        "free \"b\"",
        "alloc (grow) \"c\"",
        "free \"c\"",
        "alloc (split) \"d\"",
        "merge \"d\"",
        "free \"d\"",
        "alloc (fit) \"e\"",
        "free \"e\"",
    ];
    assert_eq!(events.collect::<Vec<_>>(), expected);
}
