//! Plots of what the probes recorded last. Must not know the simulation.

use eframe::egui;
use egui::{Align2, Color32, FontId, Pos2, Rect, Sense, Shape, Stroke};

use super::view::View;

/// The colour of a probe and of its line.
pub(super) fn line_colour(probe: usize) -> Color32 {
    const COLOURS: [Color32; 6] = [
        Color32::from_rgb(120, 220, 130),
        Color32::from_rgb(250, 200, 90),
        Color32::from_rgb(120, 180, 255),
        Color32::from_rgb(240, 130, 200),
        Color32::from_rgb(120, 230, 230),
        Color32::from_rgb(220, 220, 220),
    ];
    COLOURS[probe % COLOURS.len()]
}

/// Draws the field at each probe over the last steps, all on one scale.
pub(super) fn probes(ui: &mut egui::Ui, view: &View) {
    let (_, painter) = ui.allocate_painter(ui.available_size(), Sense::hover());
    let mut rect = painter.clip_rect().shrink2(egui::vec2(44.0, 8.0));
    // Under it stands how many steps it shows.
    rect.max.y -= 14.0;
    let all = view.series.iter().flatten().filter(|v| v.is_finite());
    let most = all.fold(1e-6f32, |most, v| most.max(v.abs()));
    let grey = Color32::from_gray(70);
    painter.line_segment([rect.left_center(), rect.right_center()], Stroke::new(1.0, grey));
    painter.rect_stroke(rect, 0.0, Stroke::new(1.0, grey), egui::StrokeKind::Outside);
    let label = |y: f32, text: String, align| {
        let at = Pos2::new(rect.left() - 6.0, y);
        painter.text(
            at,
            align,
            text,
            FontId::proportional(11.0),
            Color32::from_gray(170),
        );
    };
    let digits = if most < 0.01 {
        format!("{most:.0e}")
    } else {
        format!("{most:.2}")
    };
    label(rect.top(), digits.clone(), Align2::RIGHT_TOP);
    label(rect.center().y, "0".into(), Align2::RIGHT_CENTER);
    label(rect.bottom(), format!("-{digits}"), Align2::RIGHT_BOTTOM);
    let longest = view.series.iter().map(Vec::len).max().unwrap_or(0);
    for (i, series) in view.series.iter().enumerate() {
        painter.add(Shape::line(
            line(series, longest, rect, most),
            Stroke::new(1.5, line_colour(i)),
        ));
    }
    let mut name_at = rect.left() + 8.0;
    for (i, probe) in view.probes.iter().enumerate() {
        let at = Pos2::new(name_at, rect.top() + 4.0);
        let drawn = legible(&painter, at, Align2::LEFT_TOP, &probe.name, line_colour(i));
        name_at = drawn.right() + 14.0;
    }
    let at = rect.right_bottom() + egui::vec2(0.0, 4.0);
    let told = format!("last {longest} steps");
    legible(&painter, at, Align2::RIGHT_TOP, &told, Color32::from_gray(150));
}

/// Text that no line runs through. Gives where it is.
fn legible(painter: &egui::Painter, at: Pos2, align: Align2, text: &str, colour: Color32) -> Rect {
    let text = painter.layout_no_wrap(text.to_owned(), FontId::proportional(11.0), colour);
    let rect = align.anchor_size(at, text.size());
    painter.rect_filled(rect.expand(2.0), 2.0, super::controls::GROUND);
    painter.galley(rect.min, text, colour);
    rect
}

/// A series as points: the newest at the right.
fn line(series: &[f32], longest: usize, rect: Rect, most: f32) -> Vec<Pos2> {
    let step = rect.width() / (longest.max(2) - 1) as f32;
    let start = longest - series.len();
    let values = series.iter().enumerate().filter(|(_, v)| v.is_finite());
    values
        .map(|(i, v)| {
            let x = rect.left() + (start + i) as f32 * step;
            Pos2::new(x, rect.center().y - v / most * 0.5 * rect.height())
        })
        .collect()
}
