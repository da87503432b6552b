//! How far a run has come, as a bar as wide as the terminal. Must not know what a step is.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::say::say;
use crate::whole::counted;

/// With room for a bar, and without.
const WIDE: &str = "{wide_bar} {pos}/{len} steps  {msg}  {eta} left";
const NARROW: &str = "{wide_msg} {eta}";

/// Columns of [`WIDE`] beside its counts: words, rates, and a bar that can be read.
const WORDS: usize = 64;

pub(super) struct Progress {
    bar: ProgressBar,
    is_wide: bool,
    start: Instant,
    from: u64,
    steps: u64,
    cells: usize,
}

fn is_wide(columns: u16, steps: u64) -> bool {
    usize::from(columns) >= WORDS + 2 * steps.to_string().len()
}

impl Progress {
    /// Of a run up to `steps`, of which `from` are done.
    pub(super) fn new(from: u64, steps: u64, cells: usize) -> Progress {
        let columns = console::Term::stderr().size().1;
        let is_wide = is_wide(columns, steps);
        let bar = ProgressBar::new(steps).with_position(from);
        // The templates are constants, tested below.
        if let Ok(style) = ProgressStyle::with_template(if is_wide { WIDE } else { NARROW }) {
            bar.set_style(style);
        }
        bar.reset_eta();
        Progress {
            bar,
            is_wide,
            start: Instant::now(),
            from,
            steps,
            cells,
        }
    }

    fn rate(&self, done: u64) -> String {
        let rate = (done - self.from) as f64 / self.start.elapsed().as_secs_f64();
        format!(
            "{rate:.0} steps/s, {:.3} Gcell/s",
            rate * self.cells as f64 * 1e-9
        )
    }

    /// So many steps are done in all.
    pub(super) fn at(&mut self, done: u64) {
        self.bar.set_position(done);
        let rate = self.rate(done);
        self.bar.set_message(match self.is_wide {
            true => rate,
            false => format!("{}% {done}/{} {rate}", done * 100 / self.steps.max(1), self.steps),
        });
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
            say(format!(
                "{} in {:.2} s{drawn}: {}",
                counted(self.steps - self.from, "step", "steps"),
                self.start.elapsed().as_secs_f64(),
                self.rate(self.steps)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bars_have_sound_templates_that_fit() {
        for template in [WIDE, NARROW] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
        assert!(is_wide(80, 4000) && !is_wide(80, 1 << 40) && !is_wide(20, 1));
    }
}
