//! What is shown, and what keys change about it. Must not know how it looks.

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::top::column::Column;
use crate::top::gpu;
use crate::top::plain::columns;
use crate::top::sample::{Line, Sample, View};

/// The least and the longest time between two looks.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(125), Duration::from_secs(64));

/// What a key asks for beyond what is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    Quit,
    /// Another time between two looks.
    Interval(Duration),
}

/// All that is shown.
pub(super) struct App {
    pub(super) view: View,
    pub(super) gpus: gpu::Lines,
    pub(super) interval: Duration,
    pub(super) sort: Column,
    pub(super) reverse: bool,
    pub(super) filter: String,
    /// Keys write the filter.
    pub(super) filtering: bool,
    pub(super) paused: bool,
    pub(super) help: bool,
    /// The first row that is shown.
    pub(super) top: usize,
    /// Rows that the last picture had room for.
    pub(super) room: usize,
}

impl App {
    pub(super) fn new(view: View, interval: Duration, sort: Column, filter: &str) -> App {
        App {
            view,
            gpus: Vec::new(),
            interval,
            sort,
            reverse: false,
            filter: filter.into(),
            filtering: false,
            paused: false,
            help: false,
            top: 0,
            room: 1,
        }
    }

    /// Takes the next look, unless the picture is to stand still.
    pub(super) fn see(&mut self, sample: Sample, gpus: gpu::Lines) {
        if !self.paused {
            self.view.add(sample);
            self.gpus = gpus;
        }
    }

    /// The rows, all of them.
    pub(super) fn lines(&self) -> Vec<Line<'_>> {
        self.view.lines(self.sort, self.reverse, &self.filter)
    }

    /// Does what a key says.
    pub(super) fn press(&mut self, key: KeyEvent) -> Wish {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Wish::Quit;
        }
        if self.filtering {
            self.write_filter(key.code);
            return Wish::Nothing;
        }
        if self.help {
            self.help = false;
            return Wish::Nothing;
        }
        let page = self.room.saturating_sub(1).max(1) as isize;
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Wish::Quit,
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Char('/' | 'f') => self.filtering = true,
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('r') => self.reverse = !self.reverse,
            KeyCode::Char('s') | KeyCode::Right | KeyCode::Char('>') => self.sort_by_neighbour(1),
            KeyCode::Char('S') | KeyCode::Left | KeyCode::Char('<') => self.sort_by_neighbour(-1),
            KeyCode::Char('+') => return self.change_interval(self.interval / 2),
            KeyCode::Char('-') => return self.change_interval(self.interval * 2),
            KeyCode::Down | KeyCode::Char('j') => self.scroll(1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll(-1),
            KeyCode::PageDown => self.scroll(page),
            KeyCode::PageUp => self.scroll(-page),
            KeyCode::Home => self.top = 0,
            KeyCode::End => self.top = usize::MAX,
            KeyCode::Char(letter) => self.sort_by_letter(letter),
            _ => {}
        }
        Wish::Nothing
    }

    fn write_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.filtering = false,
            KeyCode::Esc => {
                self.filter.clear();
                self.filtering = false;
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
        self.top = 0;
    }

    fn scroll(&mut self, rows: isize) {
        self.top = self.top.saturating_add_signed(rows);
    }

    fn sort_by_neighbour(&mut self, step: isize) {
        let columns = columns(&self.view);
        let at = columns
            .iter()
            .position(|column| *column == self.sort)
            .unwrap_or(0);
        let next = (at as isize + step).rem_euclid(columns.len() as isize);
        self.sort = columns[next as usize];
        self.top = 0;
    }

    fn sort_by_letter(&mut self, letter: char) {
        let by = Column::ALL.iter().find(|column| letter_of(**column) == letter);
        if let Some(column) = by {
            self.sort = *column;
            self.reverse = false;
            self.top = 0;
        }
    }

    fn change_interval(&mut self, to: Duration) -> Wish {
        self.interval = to.clamp(INTERVALS.0, INTERVALS.1);
        Wish::Interval(self.interval)
    }
}

/// The key that sorts by a column.
pub(super) fn letter_of(column: Column) -> char {
    match column {
        Column::Name => 'n',
        Column::Id => 'i',
        Column::Source => 'o',
        Column::State => 't',
        Column::Processed => 'p',
        Column::Rate => 'm',
        Column::Queue => 'u',
        Column::Dropped => 'd',
        Column::Errors => 'e',
        Column::P50 => '5',
        Column::P99 => '9',
    }
}
