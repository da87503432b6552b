//! The terminal while it is ours, and as it was afterwards: however this program ends, by a key, a signal, an error or a panic. Must
//! not know what is drawn.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::{DefaultTerminal, Frame};

use crate::Failure;

/// The terminal. It is as it was when this is dropped; ratatui's hook sees to it that panics are told after that.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    told_to_end: Arc<AtomicBool>,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn open() -> Result<Screen, Failure> {
        if !io::stdout().is_terminal() {
            return Err("there is no terminal to draw on: take --once or --json".into());
        }
        let told_to_end = Arc::new(AtomicBool::new(false));
        // Before the terminal is taken: what ends this program from then on goes by `drop`.
        #[cfg(unix)]
        for signal in [
            signal_hook::consts::SIGINT,
            signal_hook::consts::SIGTERM,
            signal_hook::consts::SIGHUP,
        ] {
            signal_hook::flag::register(signal, Arc::clone(&told_to_end))?;
        }
        Ok(Screen {
            terminal: ratatui::try_init()?,
            told_to_end,
        })
    }

    /// Whether a signal has said that this is over.
    pub(super) fn is_told_to_end(&self) -> bool {
        self.told_to_end.load(Ordering::Relaxed)
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Where even that fails there is no terminal any more.
        let _ = ratatui::try_restore();
    }
}
