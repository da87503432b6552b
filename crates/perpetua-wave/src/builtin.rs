//! The scenes that come with the program: the TOML files of `scenes`, compiled in. Must not know what reads them.

use super::error::{Error, Result};
use super::scene::Scene;

/// Names of the built-in scenes, what they show, and their text.
pub const BUILTIN: [(&str, &str, &str); 5] = [
    (
        "double-slit",
        "a plane wave meets a wall with two slits",
        include_str!("scenes/double-slit.toml"),
    ),
    (
        "lens",
        "a lens gathers a plane wave in its focus",
        include_str!("scenes/lens.toml"),
    ),
    (
        "room",
        "a clap in one of two rooms with a door between them",
        include_str!("scenes/room.toml"),
    ),
    (
        "harbour",
        "swell runs into a harbour between two piers",
        include_str!("scenes/harbour.toml"),
    ),
    (
        "ball",
        "in space: a ball gathers a plane wave behind it",
        include_str!("scenes/ball.toml"),
    ),
];

impl Scene {
    /// A built-in scene by its name in [`BUILTIN`].
    ///
    /// # Errors
    /// There is none of this name.
    pub fn builtin(name: &str) -> Result<Scene> {
        let Some((_, _, text)) = BUILTIN.iter().find(|(known, ..)| *known == name) else {
            return Err(Error::Unknown {
                kind: "scene",
                name: name.to_owned(),
                known: BUILTIN.map(|(known, ..)| known).join(", "),
            });
        };
        Scene::from_toml(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scene_is_sound_and_resolves_its_waves() {
        for (name, ..) in BUILTIN {
            let scene = Scene::builtin(name).unwrap();
            let (model, remarks) = scene.model_with_remarks(None, None).unwrap();
            let resolved = remarks.cells_per_wavelength.unwrap();
            assert!(resolved > 6.0, "{name}: {resolved} cells in a wavelength");
            assert!(!model.probes.is_empty(), "{name}");
        }
        let error = Scene::builtin("moon").unwrap_err().to_string();
        assert!(
            error.contains("double-slit, lens, room, harbour, ball"),
            "{error}"
        );
    }
}
