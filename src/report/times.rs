//! The times of a plan as text. With one stream, a time is a step, which has a name if the operators are known. With
//! several streams, a time is a clock. The plan of a sequence states it as a step, and the plan of a problem as the sum
//! of the clock's entries.

use crate::{
    OpSequence, Plan, Step,
    report::{count, short_step, step_name},
};

/// Names times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times<'a> {
    steps: Option<&'a OpSequence>,
    /// `step` or `clock sum`.
    pub(super) unit: &'static str,
    /// True if one step has the most bytes alive; with several streams, none does.
    pub(super) has_peak: bool,
}

impl<'a> Times<'a> {
    pub(super) fn of(plan: &Plan, steps: Option<&'a OpSequence>) -> Self {
        if plan.peak.is_empty() || !plan.tensors.is_empty() {
            Self { steps, unit: "step", has_peak: plan.peak.is_empty() }
        } else {
            Self { steps: None, unit: "clock sum", has_peak: false }
        }
    }

    /// The operators of the steps, if they are known.
    pub(super) fn steps(&self) -> Option<&'a OpSequence> {
        self.steps
    }

    /// Returns whether times are sums of clocks.
    pub(super) fn is_sum(&self) -> bool {
        self.unit != "step"
    }

    /// Names a time as `step 4 (conv1)`, `step 4` or `clock sum 4`.
    pub(super) fn name(&self, time: Step) -> String {
        match self.unit {
            "step" => step_name(self.steps, time),
            unit => format!("{unit} {time}"),
        }
    }

    /// Names a time as [`name`](Self::name) does, but shortens a long operator name, for text of
    /// limited width.
    pub(super) fn short_name(&self, time: Step) -> String {
        match self.unit {
            "step" => short_step(self.steps, time),
            unit => format!("{unit} {time}"),
        }
    }

    /// Counts times, as `3 steps`.
    pub(super) fn count(&self, times: Step) -> String {
        count(times, self.unit)
    }

    /// Formats a lifetime as `step 4` or, half-open, `steps 4..8`.
    pub(super) fn lifetime(&self, begin: Step, end: Step) -> String {
        match end.saturating_sub(1) {
            last if last <= begin => format!("{} {begin}", self.unit),
            _ => format!("{}s {begin}..{end}", self.unit),
        }
    }
}

/// Formats a lifetime in steps.
pub(super) fn lifetime(begin: Step, end: Step) -> String {
    Times { steps: None, unit: "step", has_peak: true }.lifetime(begin, end)
}
