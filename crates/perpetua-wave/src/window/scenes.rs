//! The window's menu of scenes: the built-in ones, and open water to draw in. Must not know how they are drawn.

use crate::{BUILTIN, Medium, Model, Region, Result, Scene, Source, Waveform};

/// Open water with one source, the last in the menu.
pub const POOL: usize = BUILTIN.len();

/// Cells along x of a volume, at most: more than a million cells are slow on small devices.
const MOST_DEEP: usize = 96;

/// Names of the scenes, in the menu's order.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN.into_iter().map(|(name, ..)| name).chain(["pool"])
}

/// A scene by its place in the menu, with so many cells along x.
///
/// # Errors
/// There are too few or too many cells.
pub fn model(index: usize, size: usize) -> Result<Model> {
    if let Some((name, ..)) = BUILTIN.get(index) {
        let scene = Scene::builtin(name)?;
        let cells = if scene.is_deep() {
            size.min(MOST_DEEP)
        } else {
            size
        };
        return scene.model(Some(cells), None);
    }
    let mut model = Model::empty([size, size, 1], 0.01, Medium::of_speed(340.0));
    model.sources.push(Source {
        region: Region::cell([size / 2, size / 2, 0]),
        waveform: Waveform::Sine {
            frequency: 340.0 * 16.0 / (size as f64 * 0.01),
        },
        amplitude: 1.0,
    });
    model.check()?;
    Ok(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scene_of_the_menu_is_sound() {
        for (i, name) in names().enumerate() {
            let model = model(i, 128).map_err(|e| format!("{name}: {e}"));
            assert!(model.is_ok(), "{model:?}");
        }
    }
}
