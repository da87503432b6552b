//! Pictures of the live table, as text beside this file (`PERPETUA_BLESS=1` writes them anew), and what keys do.

use std::time::{Duration, Instant};

use perpetua::actors::telemetry::{ActorRow, LatencySummary, ProcessInfo, ProcessReport, SourceReport};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::{App, Wish};
use super::screen;
use crate::top::column::Column;
use crate::top::plain;
use crate::top::sample::{Sample, View};

fn row(name: &str, id: u32, state: &str, processed: u64, p50: u64) -> ActorRow {
    let latency = LatencySummary {
        count: processed,
        p50,
        p99: p50 * 12,
        ..LatencySummary::default()
    };
    ActorRow {
        name: name.into(),
        id,
        actors: 1,
        in_state: 1,
        state: state.into(),
        processed,
        queue_depth: processed % 7,
        latency,
        ..ActorRow::default()
    }
}

/// A process that has handled messages for so many seconds.
fn report(seconds: u64) -> ProcessReport {
    let crowd = ActorRow {
        actors: 1_000_000,
        in_state: 999_998,
        ..row("crowd", 12, "Active", 400_000_000 + 3_000_000 * seconds, 2_100)
    };
    let mut faulty = row("checker", 3, "Faulted", 17, 23_456_000);
    (faulty.errors, faulty.dropped) = (1, 4);
    let gateway = row("gateway", 0, "Active", 1000 + 250 * seconds, 12_000);
    let mut actors = vec![gateway, faulty, crowd];
    actors.extend((0..8).map(|at| {
        let name = format!("book of a symbol with a long name [{at}]");
        row(&name, 4 + at, "Deactivated", 0, 0)
    }));
    let totals = ActorRow {
        actors: 1_000_010,
        ..row("market", 0, "", 400_001_017 + 3_000_250 * seconds, 2_100)
    };
    ProcessReport {
        process: ProcessInfo {
            pid: 4711,
            name: "exchange".into(),
            program: "/usr/bin/exchange".into(),
            perpetua: "0.1.0".into(),
            uptime_ms: 3_723_000,
        },
        sources: vec![
            SourceReport {
                name: "market".into(),
                backend: "CUDA".into(),
                stays: true,
                dead_letters: 5,
                failure: None,
                totals,
                actors,
            },
            SourceReport {
                name: "wave".into(),
                backend: "CPU".into(),
                stays: false,
                totals: row("wave", 0, "", 77, 0),
                actors: vec![row("tile", 0, "Paused", 77, 0)],
                ..SourceReport::default()
            },
        ],
    }
}

fn app() -> App {
    let at = Instant::now();
    let sample = |second: u64| Sample {
        at: at + Duration::from_secs(second),
        report: report(second),
    };
    let mut app = App::new(View::new(sample(0)), Duration::from_secs(1), Column::Rate, "");
    let gpus = vec!["GPU 0: NVIDIA H200, 100 % busy, memory 3.2 GiB of 139.8 GiB".into()];
    app.see(sample(1), gpus);
    app
}

fn press(app: &mut App, keys: &[KeyCode]) -> Wish {
    let presses = keys
        .iter()
        .map(|key| app.press(KeyEvent::new(*key, KeyModifiers::NONE)));
    presses.last().unwrap()
}

fn check_text(name: &str, text: &str) {
    let path = format!("{}/src/top/live/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("PERPETUA_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == expected,
        "{name} looks otherwise (PERPETUA_BLESS=1 takes it):\n{text}"
    );
}

fn check(name: &str, width: u16, height: u16, app: &mut App) {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen::draw(frame, app)).unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content.chunks(width.into());
    let lines = rows.map(|row| {
        let line: String = row.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned() + "\n"
    });
    check_text(name, &lines.collect::<String>());
}

#[test]
fn the_table_looks_so() {
    check("wide", 130, 20, &mut app());
}

#[test]
fn a_narrow_terminal_has_fewer_columns() {
    check("narrow", 60, 12, &mut app());
    // However small it is, it is drawn.
    for (width, height) in [(1, 1), (5, 3), (20, 2), (300, 1)] {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let mut app = app();
        app.help = true;
        terminal.draw(|frame| screen::draw(frame, &mut app)).unwrap();
    }
}

#[test]
fn keys_choose_what_is_shown() {
    let mut app = app();
    let letters = "/boo".chars().map(KeyCode::Char);
    let rest = [
        KeyCode::Enter,
        KeyCode::Char('i'),
        KeyCode::Char('r'),
        KeyCode::Down,
        KeyCode::Char(' '),
    ];
    press(&mut app, &letters.chain(rest).collect::<Vec<_>>());
    assert_eq!((app.sort, app.reverse, app.paused), (Column::Id, true, true));
    check("filtered", 110, 12, &mut app);
    // It cannot be scrolled beyond the end, and paused it sees nothing.
    press(&mut app, &[KeyCode::End]);
    let before = app.view.report().clone();
    app.see(Sample::now(report(9)), Vec::new());
    assert_eq!(*app.view.report(), before);
    check("end", 110, 12, &mut app);
}

#[test]
fn keys_ask_for_what_is_not_shown() {
    let mut app = app();
    let second = Duration::from_secs(1);
    assert_eq!(press(&mut app, &[KeyCode::Char('-')]), Wish::Interval(second * 2));
    let twice = [KeyCode::Char('+'), KeyCode::Char('+')];
    assert_eq!(press(&mut app, &twice), Wish::Interval(second / 2));
    press(&mut app, &[KeyCode::Char('+'); 20]);
    assert_eq!(app.interval, Duration::from_millis(125));
    assert_eq!(press(&mut app, &[KeyCode::Char('q')]), Wish::Quit);
    assert_eq!(press(&mut app, &[KeyCode::Esc]), Wish::Quit);
    // While a filter is written, they are letters.
    let filter = [KeyCode::Char('/'), KeyCode::Char('q')];
    assert_eq!(press(&mut app, &filter), Wish::Nothing);
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(app.press(control_c), Wish::Quit);
}

#[test]
fn help_names_all_keys() {
    let mut app = app();
    press(&mut app, &[KeyCode::Char('?')]);
    check("help", 100, 22, &mut app);
    assert_eq!(press(&mut app, &[KeyCode::Char('q')]), Wish::Nothing);
    assert!(!app.help);
}

#[test]
fn sorting_goes_through_all_columns() {
    let mut app = app();
    let mut met = Vec::new();
    for _ in Column::ALL {
        met.push(app.sort);
        press(&mut app, &[KeyCode::Char('s')]);
    }
    assert_eq!(app.sort, Column::Rate);
    assert!(Column::ALL.iter().all(|column| met.contains(column)));
    press(&mut app, &[KeyCode::Char('S')]);
    assert_eq!(app.sort, Column::Processed);
}

#[test]
fn the_same_as_text() {
    let app = app();
    let text = plain::table(&app.view, &app.gpus, Column::Name, "");
    check_text("plain", &text);
}
