//! How it looks: which process, its sources and GPUs above, the table, the keys below. Must not know where the figures come from.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as Words, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::app::{App, letter_of};
use crate::top::column::Column;
use crate::top::plain::{columns, summary, title};
use crate::top::sample::Line;

/// The name's column is never narrower.
const NARROWEST_NAME: usize = 12;
/// Nor the others, so that they do not jump as figures grow.
const NARROWEST: usize = 7;

/// Draws all of it. What the keys moved too far is moved back.
pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App) {
    // The table has half of the room at least.
    let mut head = head(app, frame.area().width.into());
    head.truncate(usize::from(frame.area().height / 2));
    let [above, below, keys] = Layout::vertical([
        Constraint::Length(u16::try_from(head.len()).unwrap_or(u16::MAX).saturating_add(1)),
        Constraint::Min(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(head), above);
    app.room = usize::from(below.height.saturating_sub(1));
    table(frame, app, below);
    frame.render_widget(Paragraph::new(foot(app)), keys);
    if app.help {
        help(frame);
    }
}

fn head(app: &App, width: usize) -> Vec<Words<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let sources = app.view.report().sources.iter().map(|source| {
        let style = match source.failure {
            Some(_) => Style::new().fg(Color::Red),
            None => Style::new(),
        };
        (summary(&app.view, source), style)
    });
    let gpus = app.gpus.iter().map(|line| (line.clone(), Style::new()));
    std::iter::once((title(&app.view), bold))
        .chain(sources)
        .chain(gpus)
        .flat_map(|(text, style)| {
            broken(&text, width)
                .into_iter()
                .map(move |line| Words::styled(line, style))
        })
        .collect()
}

/// A text in lines of this width, where its words allow; further lines are indented.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if line.trim().is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines
}

fn table(frame: &mut Frame<'_>, app: &mut App, area: Rect) {
    let lines = app.lines();
    let count = lines.len();
    let top = app.top.min(count.saturating_sub(app.room));
    let shown: Vec<&Line<'_>> = lines.iter().skip(top).take(app.room).collect();
    let columns = fitting(columns(&app.view), &shown, area.width.into());
    let titles = columns.iter().map(|(column, width)| {
        let title = match (*column == app.sort, app.reverse) {
            (false, _) => column.title().to_owned(),
            (true, false) => format!("{}▼", column.title()),
            (true, true) => format!("{}▲", column.title()),
        };
        Span::raw(aligned(*column, &title, *width))
    });
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    let mut text = vec![Words::from_iter(titles).style(reversed)];
    for line in &shown {
        let cells = columns.iter().map(|(column, width)| {
            let cell = aligned(*column, &column.cell(line), *width);
            Span::styled(cell, style(*column, line))
        });
        text.push(Words::from_iter(cells));
    }
    if count == 0 {
        text.push(Words::raw(match app.filter.as_str() {
            "" => "no actors",
            _ => "no actor's name contains the filter",
        }));
    }
    frame.render_widget(Paragraph::new(text), area);
    app.top = top;
}

/// The columns that there is room for, and how wide each is with the blank behind it.
fn fitting(mut columns: Vec<Column>, lines: &[&Line<'_>], width: usize) -> Vec<(Column, usize)> {
    let wide = |column: &Column| {
        let cells = lines.iter().map(|line| column.cell(line).chars().count());
        // The title and the arrow behind it.
        let title = column.title().chars().count() + 1;
        cells.chain([title, NARROWEST]).max().unwrap_or(title) + 1
    };
    let others = |columns: &[Column]| -> usize {
        let others = columns.iter().filter(|column| **column != Column::Name);
        others.map(wide).sum()
    };
    for least in Column::LEAST {
        if others(&columns) + NARROWEST_NAME <= width {
            break;
        }
        columns.retain(|column| *column != least);
    }
    let left = width.saturating_sub(others(&columns));
    // As wide as the names are, where there is room.
    let name = wide(&Column::Name).min(left).max(NARROWEST_NAME);
    let sized = columns.into_iter().map(|column| match column {
        Column::Name => (column, name),
        other => (other, wide(&other)),
    });
    sized.collect()
}

/// A cell as wide as its column, cut where it is wider; the last place is blank.
fn aligned(column: Column, text: &str, width: usize) -> String {
    let room = width.saturating_sub(1);
    let mut text = text.to_owned();
    if text.chars().count() > room {
        text = text.chars().take(room.saturating_sub(1)).chain(['…']).collect();
    }
    match column.is_text() {
        true => format!("{text:<room$} "),
        false => format!("{text:>room$} "),
    }
}

fn style(column: Column, line: &Line<'_>) -> Style {
    let row = line.row;
    match column {
        Column::State if row.state == "Faulted" => Style::new().fg(Color::Red),
        Column::State if row.state != "Active" => Style::new().fg(Color::Yellow),
        Column::Errors if row.errors > 0 => Style::new().fg(Color::Red),
        Column::Dropped if row.dropped > 0 => Style::new().fg(Color::Yellow),
        Column::Name => Style::new().add_modifier(Modifier::BOLD),
        _ => Style::new(),
    }
}

fn foot(app: &App) -> Words<'static> {
    if app.filtering {
        return Words::raw(format!(
            "filter: {}▏  (Enter keeps it, Esc clears it)",
            app.filter
        ));
    }
    let mut text = "q quit  ? help  ←→ sort  r reverse  / filter  ↑↓ scroll  space pause".to_owned();
    text += &format!("  +- every {:?}", app.interval);
    if !app.filter.is_empty() {
        text += &format!("  [filter: {}]", app.filter);
    }
    if app.paused {
        text += "  [paused]";
    }
    Words::styled(text, Style::new().add_modifier(Modifier::DIM))
}

fn help(frame: &mut Frame<'_>) {
    let letters: Vec<String> = Column::ALL
        .iter()
        .map(|column| format!("{} {}", letter_of(*column), column.title()))
        .collect();
    let (first, second) = letters.split_at(6);
    let text = [
        "q, Esc, Ctrl-C   quit".to_owned(),
        "← → or s S       sort by the next column; r reverses".to_owned(),
        format!("sort by a key    {}", first.join(", ")),
        format!("                 {}", second.join(", ")),
        "/                show names that contain a text".to_owned(),
        "↑ ↓ PgUp PgDn    scroll; Home, End".to_owned(),
        "+ -              look twice, half as often".to_owned(),
        "space            let the picture stand still".to_owned(),
        String::new(),
        "Looking reads counters; actors do not stop. A GPU whose actors are resident is".to_owned(),
        "always busy. P50, P99: from sending to the end of the handler.".to_owned(),
    ];
    let size = (84, text.len() as u16 + 2);
    let all = frame.area();
    let (width, height) = (size.0.min(all.width), size.1.min(all.height));
    let area = Rect::new((all.width - width) / 2, (all.height - height) / 2, width, height);
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(" any key goes back ");
    let text: Vec<Words<'_>> = text.into_iter().map(Words::from).collect();
    frame.render_widget(Paragraph::new(text).block(block), area);
}
