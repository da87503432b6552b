//! The double slit: where the wall stands, where waves are absorbed, where they start. Cells and time steps are
//! the units; knows nothing of devices.

use std::f32::consts::TAU;

/// Courant number `c Δt / Δx` of the free medium; the 2-D five-point scheme is stable up to `1/√2`.
pub(crate) const COURANT: f32 = 0.5;

/// Smallest side length that leaves room for the two slits.
pub(crate) const MIN_SIZE: usize = 64;

/// A square room with a wall in it.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    /// Cells a side.
    pub(crate) size: usize,
    /// Wavelength in cells.
    pub(crate) wavelength: f32,
    /// Column from which the plane wave starts.
    pub(crate) source: usize,
    /// `(c Δt / Δx)²` of each cell: 0 in the wall.
    pub(crate) stiffness: Vec<f32>,
    /// Damping of each cell per step: grows towards the borders.
    pub(crate) damping: Vec<f32>,
}

impl Scene {
    /// A plane wave of wavelength `size / 32` that meets a wall with two slits, five wavelengths apart.
    ///
    /// # Errors
    /// If `size` is below [`MIN_SIZE`].
    pub(crate) fn double_slit(size: usize) -> Result<Scene, String> {
        if size < MIN_SIZE {
            return Err(format!(
                "a double slit needs at least {MIN_SIZE} cells a side, found {size}"
            ));
        }
        let wavelength = (size as f32 / 32.0).max(6.0);
        let border = size / 10;
        let wall = size * 3 / 8..size * 3 / 8 + (wavelength / 2.0).ceil() as usize;
        let center = (size as f32 - 1.0) / 2.0;
        let open = |y: usize| ((y as f32 - center).abs() - 2.5 * wavelength).abs() <= 0.5 * wavelength;
        let mut stiffness = vec![COURANT * COURANT; size * size];
        let mut damping = vec![0.0; size * size];
        for y in 0..size {
            for x in 0..size {
                let i = y * size + x;
                if wall.contains(&x) && !open(y) {
                    stiffness[i] = 0.0;
                }
                let edge = x.min(y).min(size - 1 - x).min(size - 1 - y);
                let depth = border.saturating_sub(edge) as f32 / border as f32;
                damping[i] = 0.25 * depth * depth;
            }
        }
        Ok(Scene {
            size,
            wavelength,
            source: border + 2,
            stiffness,
            damping,
        })
    }

    /// What is added to the source column at a step: a sine that swells over three periods.
    pub(crate) fn drive(&self, step: u64) -> f32 {
        let period = self.wavelength / COURANT;
        let t = step as f32 / period;
        let swell = (t / 3.0).min(1.0);
        swell * swell * (TAU * t.fract()).sin() * 2.0 * COURANT / self.wavelength * TAU
    }

    /// Steps after which the wave has crossed the room and the fringes stand.
    pub(crate) fn default_steps(&self) -> u64 {
        (self.size as f32 * 2.4 / COURANT / 1.2) as u64
    }

    /// Which cells are wall.
    pub(crate) fn solid(&self) -> Vec<bool> {
        self.stiffness.iter().map(|s| *s == 0.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_has_two_openings_of_a_wavelength() {
        let scene = Scene::double_slit(512).unwrap();
        let column: Vec<bool> = (0..512)
            .map(|y| scene.stiffness[y * 512 + 512 * 3 / 8] > 0.0)
            .collect();
        let openings = column.windows(2).filter(|w| !w[0] && w[1]).count();
        assert_eq!((openings, column.iter().filter(|open| **open).count()), (2, 32));
    }

    #[test]
    fn a_room_too_small_is_refused_with_the_limit() {
        assert_eq!(
            Scene::double_slit(10).unwrap_err(),
            "a double slit needs at least 64 cells a side, found 10"
        );
    }
}
