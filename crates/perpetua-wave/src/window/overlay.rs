//! What is drawn over and beside the field: sources, probes, the legend. Must not know the simulation.

use eframe::egui;
use egui::{Align2, Color32, FontId, Pos2, Rect, Stroke, StrokeKind, vec2};

use super::canvas::Look;
use super::plot;
use super::view::View;

/// Sources as rings, probes as crosses with their names.
pub(super) fn marks(painter: &egui::Painter, rect: Rect, scale: f32, view: &View) {
    let painter = painter.with_clip_rect(rect);
    let at = |x: f32, y: f32| rect.min + vec2(x, y) * scale;
    for source in &view.sources {
        let (from, to) = (source.region.from, source.region.to);
        let (low, high) = (at(from[0] as f32, from[1] as f32), at(to[0] as f32, to[1] as f32));
        let stroke = Stroke::new(1.5, Color32::from_rgba_unmultiplied(255, 255, 255, 150));
        if (high - low).length() > 24.0 {
            painter.rect_stroke(Rect::from_min_max(low, high), 0.0, stroke, StrokeKind::Middle);
        } else {
            painter.circle_stroke(low + (high - low) * 0.5, 5.0, stroke);
        }
    }
    for (i, probe) in view.probes.iter().enumerate() {
        let middle = at(probe.at[0] as f32 + 0.5, probe.at[1] as f32 + 0.5);
        let colour = plot::line_colour(i);
        for arm in [vec2(6.0, 0.0), vec2(0.0, 6.0)] {
            painter.line_segment([middle - arm, middle + arm], Stroke::new(2.0, colour));
        }
        painter.text(
            middle + vec2(7.0, -7.0),
            Align2::LEFT_BOTTOM,
            &probe.name,
            FontId::proportional(13.0),
            colour,
        );
    }
}

/// The legend beside the field: colours from the lowest value to the highest.
pub(super) fn colour_bar(painter: &egui::Painter, rect: Rect, look: Look) {
    let bar = Rect::from_min_size(
        rect.right_top() + vec2(14.0, 18.0),
        vec2(14.0, (rect.height() - 36.0).max(40.0)),
    );
    let table = look.palette.table();
    let mut mesh = egui::Mesh::default();
    for (i, colour) in table.iter().step_by(5).enumerate() {
        let y = bar.bottom() - bar.height() * (i * 5) as f32 / 255.0;
        let colour = Color32::from_rgb(colour[0], colour[1], colour[2]);
        mesh.colored_vertex(Pos2::new(bar.left(), y), colour);
        mesh.colored_vertex(Pos2::new(bar.right(), y), colour);
        if i > 0 {
            let at = 2 * i as u32;
            mesh.add_triangle(at - 2, at - 1, at);
            mesh.add_triangle(at - 1, at, at + 1);
        }
    }
    painter.add(mesh);
    painter.rect_stroke(
        bar,
        0.0,
        Stroke::new(1.0, Color32::from_gray(90)),
        StrokeKind::Outside,
    );
    let font = FontId::proportional(11.0);
    let most = 1.0 / look.gain;
    for (y, value) in [(bar.top(), most), (bar.center().y, 0.0), (bar.bottom(), -most)] {
        painter.text(
            Pos2::new(bar.right() + 4.0, y),
            Align2::LEFT_CENTER,
            format!("{value:.1}"),
            font.clone(),
            Color32::from_gray(190),
        );
    }
    painter.text(
        Pos2::new(bar.left(), bar.top() - 6.0),
        Align2::LEFT_BOTTOM,
        "u",
        font,
        Color32::from_gray(190),
    );
}
