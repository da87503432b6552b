//! The live table: a thread looks at the process, this one draws and listens to keys. Must not know how a look is had, nor what the
//! figures mean.
//!
//! `app` is what is shown and what keys change, `screen` how it looks, `terminal` the terminal while it is ours.

mod app;
mod screen;
mod terminal;

#[cfg(test)]
mod tests;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

use perpetua::actors::telemetry::ProcessReport;
use perpetua::actors::telemetry::observe::{ObserveError, Watcher};
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use self::app::{App, Wish};
use self::terminal::Screen;
use super::column::Column;
use super::gpu::{Gpus, Lines};
use super::sample::{Sample, View};
use crate::Failure;

/// How long a look that has come may wait to be drawn.
const ATTENTION: Duration = Duration::from_millis(50);

type Look = Result<(ProcessReport, Lines), ObserveError>;

/// Shows the process until somebody wants no more, or it ends.
pub(super) fn run(pid: u32, interval: Duration, sort: Column, filter: &str) -> Result<(), Failure> {
    let mut watcher = Watcher::attach(pid)?;
    let first = Sample::now(watcher.report()?);
    let mut app = App::new(View::new(first), interval, sort, filter);
    let mut screen = Screen::open()?;
    let (orders, ordered) = channel();
    let (looks, seen) = channel();
    std::thread::Builder::new()
        .name("look".into())
        .spawn(move || look(watcher, interval, &ordered, &looks))?;
    let lost = watch(&mut screen, &mut app, &orders, &seen)?;
    drop(screen);
    if let Some(error) = lost {
        // That is how programs that are watched end: no failure of this one.
        println!("{error}");
    }
    Ok(())
}

fn watch(
    screen: &mut Screen,
    app: &mut App,
    orders: &Sender<Duration>,
    seen: &Receiver<Look>,
) -> Result<Option<ObserveError>, Failure> {
    loop {
        screen.draw(|frame| screen::draw(frame, app))?;
        // The look that is waited for, or a key, whatever comes first.
        while !event::poll(ATTENTION)? {
            if screen.is_told_to_end() {
                return Ok(None);
            }
            match seen.try_recv() {
                Ok(Ok((report, gpus))) => {
                    app.see(Sample::now(report), gpus);
                    break;
                }
                Ok(Err(error)) => return Ok(Some(error)),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Err("the thread that looks has ended".into()),
            }
        }
        while event::poll(Duration::ZERO)? {
            // Of what a key does its press counts; all else is drawn for: a new size.
            let Event::Key(key) = event::read()? else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            match app.press(key) {
                Wish::Quit => return Ok(None),
                Wish::Interval(interval) => orders.send(interval)?,
                Wish::Nothing => {}
            }
        }
    }
}

// Looks at the process every so often, until nobody wants to know or it is gone.
fn look(mut watcher: Watcher, mut interval: Duration, orders: &Receiver<Duration>, looks: &Sender<Look>) {
    let gpus = Gpus::open();
    loop {
        let pid = watcher.info().pid;
        let look = watcher.report().map(|report| (report, gpus.read(pid)));
        let ended = look.is_err();
        if looks.send(look).is_err() || ended {
            return;
        }
        match orders.recv_timeout(interval) {
            Ok(other) => interval = other,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
