//! Colour maps, as tables of 256 colours from the lowest value to the highest, and the colours of media. Must not know
//! how a picture is made of them.

/// A colour: red, green, blue, from 0 to 255.
pub type Rgb = [u8; 3];

/// How the field's values become colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Palette {
    /// Blue below zero, red above, black at rest.
    #[default]
    Ember,
    /// Cyan below zero, magenta above, black at rest.
    Neon,
    /// Blue, white, red.
    Diverging,
    /// Grey in the middle, as water lit from the side.
    Grey,
}

impl Palette {
    /// All, in the order of menus.
    pub const ALL: [Palette; 4] = [Palette::Ember, Palette::Neon, Palette::Diverging, Palette::Grey];

    /// Its name in menus.
    pub fn name(self) -> &'static str {
        match self {
            Palette::Ember => "Ember",
            Palette::Neon => "Neon",
            Palette::Diverging => "Diverging",
            Palette::Grey => "Grey",
        }
    }

    /// Colours at equal distances from the lowest value to the highest.
    fn stops(self) -> &'static [Rgb] {
        match self {
            Palette::Ember => &[
                [190, 235, 255],
                [70, 160, 255],
                [25, 70, 190],
                [10, 24, 74],
                [8, 9, 14],
                [78, 18, 12],
                [196, 60, 12],
                [255, 150, 30],
                [255, 240, 180],
            ],
            Palette::Neon => &[
                [200, 255, 250],
                [30, 230, 225],
                [8, 110, 120],
                [6, 10, 16],
                [120, 10, 110],
                [245, 50, 190],
                [255, 215, 250],
            ],
            Palette::Diverging => &[
                [18, 52, 120],
                [60, 120, 190],
                [160, 200, 226],
                [246, 246, 244],
                [240, 178, 150],
                [204, 84, 70],
                [118, 14, 34],
            ],
            Palette::Grey => &[[6, 8, 12], [84, 92, 104], [236, 240, 244]],
        }
    }

    /// 256 colours from the lowest value to the highest.
    pub fn table(self) -> [Rgb; 256] {
        let stops = self.stops();
        std::array::from_fn(|i| {
            let at = i as f32 / 255.0 * (stops.len() - 1) as f32;
            let left = (at as usize).min(stops.len() - 2);
            blend(stops[left], stops[left + 1], at - left as f32)
        })
    }
}

/// The colour a part of the way from one to another.
pub fn blend(from: Rgb, to: Rgb, part: f32) -> Rgb {
    std::array::from_fn(|c| {
        let (a, b) = (f32::from(from[c]), f32::from(to[c]));
        (a + (b - a) * part).round() as u8
    })
}

/// The colour of a value, where `gain` times it reaches from -1 to 1.
pub fn colour(table: &[Rgb; 256], value: f32, gain: f32) -> Rgb {
    let at = (value * gain * 0.5 + 0.5).clamp(0.0, 1.0);
    // Not a number becomes 0 here.
    table[(at * 255.0) as usize]
}

/// What is laid over cells of a medium, with its opacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tint {
    /// The colour.
    pub colour: Rgb,
    /// 0 shows the field alone, 1 hides it.
    pub opacity: f32,
}

impl Tint {
    /// For cells where nothing stands.
    pub const NONE: Tint = Tint {
        colour: [0; 3],
        opacity: 0.0,
    };
    /// For walls.
    pub const WALL: Tint = Tint {
        colour: [150, 156, 168],
        opacity: 1.0,
    };
    /// For media that take energy from waves.
    pub const ABSORBER: Tint = Tint {
        colour: [40, 150, 90],
        opacity: 0.45,
    };
    /// For media with another speed than the first's.
    pub const OTHER: Tint = Tint {
        colour: [120, 130, 210],
        opacity: 0.28,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_goes_from_its_first_colour_to_its_last_and_rests_in_the_middle() {
        for palette in Palette::ALL {
            let (table, stops) = (palette.table(), palette.stops());
            let check = |value: f32, expect: Rgb| {
                let found = colour(&table, value, 1.0);
                let near = found.iter().zip(expect).all(|(a, b)| a.abs_diff(b) <= 2);
                assert!(near, "{palette:?} at {value}: {found:?}, expected {expect:?}");
            };
            check(-1.0, stops[0]);
            check(-7.0, stops[0]);
            check(0.0, stops[stops.len() / 2]);
            check(1.0, stops[stops.len() - 1]);
            check(f32::INFINITY, stops[stops.len() - 1]);
            assert_eq!(colour(&table, f32::NAN, 1.0), table[0]);
        }
    }
}
