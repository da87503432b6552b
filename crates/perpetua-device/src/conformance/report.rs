//! What a run of the suite found.

use std::fmt;

/// What became of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passed, with what it has to tell (nothing, for most).
    Passed(String),
    /// It was not run, because the device lacks this.
    Skipped(String),
    /// It failed, with what went wrong.
    Failed(String),
}

/// The cells of a run. `Display` prints remarks, what was skipped and what failed, then cells run over cells in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    outcomes: Vec<(String, Outcome)>,
}

impl Report {
    /// Adds a cell's outcome.
    pub fn add(&mut self, cell: impl Into<String>, outcome: Outcome) {
        self.outcomes.push((cell.into(), outcome));
    }

    /// Every cell with its outcome, in order.
    pub fn outcomes(&self) -> &[(String, Outcome)] {
        &self.outcomes
    }

    /// Whether at least one cell ran and none failed.
    pub fn passed(&self) -> bool {
        self.run() > 0 && self.failures().next().is_none()
    }

    /// Cells in all.
    pub fn total(&self) -> usize {
        self.outcomes.len()
    }

    /// Cells run.
    pub fn run(&self) -> usize {
        let ran = |(_, outcome): &&(String, Outcome)| !matches!(outcome, Outcome::Skipped(_));
        self.outcomes.iter().filter(ran).count()
    }

    /// The cells that failed, with what went wrong.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.outcomes.iter().filter_map(|(name, outcome)| match outcome {
            Outcome::Failed(why) => Some((name.as_str(), why.as_str())),
            _ => None,
        })
    }

    /// The cells that were skipped, with what the device lacks.
    pub fn skips(&self) -> impl Iterator<Item = (&str, &str)> {
        self.outcomes.iter().filter_map(|(name, outcome)| match outcome {
            Outcome::Skipped(what) => Some((name.as_str(), what.as_str())),
            _ => None,
        })
    }

    /// The cells that passed and had something to tell.
    pub fn remarks(&self) -> impl Iterator<Item = (&str, &str)> {
        self.outcomes.iter().filter_map(|(name, outcome)| match outcome {
            Outcome::Passed(remark) if !remark.is_empty() => Some((name.as_str(), remark.as_str())),
            _ => None,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, remark) in self.remarks() {
            writeln!(f, "passed  {name}: {remark}")?;
        }
        for (name, what) in self.skips() {
            writeln!(f, "skipped {name}: the device lacks {what}")?;
        }
        for (name, why) in self.failures() {
            writeln!(f, "FAILED  {name}: {why}")?;
        }
        let failed = self.failures().count();
        write!(f, "{} of {} cells run, {failed} failed", self.run(), self.total())
    }
}
