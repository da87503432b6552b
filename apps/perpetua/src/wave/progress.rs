//! How far a run has come, as a bar as wide as the terminal. Must not know what a step is.

use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use crate::say::say;
use crate::text;
use crate::whole::counted;

/// With room for a bar, and without.
const WIDE: &str = "{wide_bar} {msg}";
const NARROW: &str = "{msg}";

/// Least columns of a bar that can be read.
const BAR: usize = 12;

pub(super) struct Progress {
    bar: ProgressBar,
    columns: usize,
    start: Instant,
    from: u64,
    steps: u64,
    cells: usize,
}

/// How far a run has come.
struct State {
    done: u64,
    steps: u64,
    /// Steps a second, of those that this run has made.
    rate: f64,
    cells: usize,
}

impl State {
    /// What is left at this rate; none before the first step.
    fn left(&self) -> Option<Duration> {
        let left = self.steps.saturating_sub(self.done) as f64 / self.rate;
        Duration::try_from_secs_f64(left).ok()
    }

    /// In words that fit so many columns; the most important first.
    fn words(&self, columns: usize) -> String {
        let left = self.left().map(|left| format!("{:#} left", HumanDuration(left)));
        let gcells = self.rate * self.cells as f64 * 1e-9;
        let parts = [
            Some(format!("{}%", self.done * 100 / self.steps.max(1))),
            left,
            Some(format!("{}/{} steps", self.done, self.steps)),
            Some(format!("{} steps/s", text::rate(self.rate))),
            Some(format!("{gcells:.3} Gcell/s")),
        ];
        let mut out = String::new();
        for part in parts.into_iter().flatten() {
            let gap = if out.is_empty() { "" } else { "  " };
            if out.len() + gap.len() + part.len() > columns {
                break;
            }
            out += gap;
            out += &part;
        }
        out
    }
}

impl Progress {
    /// Of a run up to `steps`, of which `from` are done.
    pub(super) fn new(from: u64, steps: u64, cells: usize) -> Progress {
        let columns = usize::from(console::Term::stderr().size().1);
        let bar = ProgressBar::new(steps).with_position(from);
        // The templates are constants, tested below.
        if let Ok(style) = ProgressStyle::with_template(NARROW) {
            bar.set_style(style);
        }
        Progress {
            bar,
            columns,
            start: Instant::now(),
            from,
            steps,
            cells,
        }
    }

    fn state(&self, done: u64) -> State {
        State {
            done,
            steps: self.steps,
            rate: (done - self.from) as f64 / self.start.elapsed().as_secs_f64(),
            cells: self.cells,
        }
    }

    /// So many steps are done in all.
    pub(super) fn at(&mut self, done: u64) {
        self.bar.set_position(done);
        // The last column stays free: some terminals break the line behind it.
        let words = self.state(done).words(self.columns.saturating_sub(1));
        let template = match words.len() + BAR < self.columns {
            true => WIDE,
            false => NARROW,
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self.bar.set_message(words);
    }

    /// Takes the bar away: what is said next has a row of its own.
    pub(super) fn abandon(&self) {
        self.bar.finish_and_clear();
    }

    /// All are done, and so many frames were drawn meanwhile.
    pub(super) fn finish(&self, frames: u64) {
        self.bar.finish();
        if self.steps > self.from {
            let drawn = match frames {
                0 => String::new(),
                n => format!(" with {}", counted(n, "frame", "frames")),
            };
            let rate = self.state(self.steps).rate;
            say(format!(
                "{} in {:.2} s{drawn}: {} steps/s, {:.3} Gcell/s",
                counted(self.steps - self.from, "step", "steps"),
                self.start.elapsed().as_secs_f64(),
                text::rate(rate),
                rate * self.cells as f64 * 1e-9
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bars_have_sound_templates() {
        for template in [WIDE, NARROW] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }

    /// A run that goes on at 320 of 11,085 steps and has made 12 of its own in 0.3 s.
    #[test]
    fn what_is_left_is_told_by_this_runs_own_rate() {
        let mut progress = Progress::new(320, 11_085, 4096 * 4096);
        progress.start -= Duration::from_millis(300);
        let state = progress.state(332);
        let left = state.left().unwrap().as_secs();
        assert!((250..300).contains(&left), "{left} s");
        assert_eq!(progress.state(320).left(), None);
    }

    #[test]
    fn words_fit_the_terminal() {
        let state = State {
            done: 430,
            steps: 11_085,
            rate: 35.0,
            cells: 4096 * 4096,
        };
        for (columns, expect) in [
            (100, "3%  5m left  430/11085 steps  35 steps/s  0.587 Gcell/s"),
            (54, "3%  5m left  430/11085 steps  35 steps/s"),
            (40, "3%  5m left  430/11085 steps  35 steps/s"),
            (39, "3%  5m left  430/11085 steps"),
            (10, "3%"),
            (1, ""),
        ] {
            assert_eq!(state.words(columns), expect);
        }
    }
}
