//! Scenes as TOML. `docs/book/src/scenes.md` describes the keys. Must not know what becomes of a scene.

mod lines;
mod words;

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::error::{Error, Part, Result};
use super::model::{MOST_MEDIA, Medium};
use super::scene::{Emitter, Form, Listener, Material, Scene, Shape};
use super::waveform::Waveform;
use lines::{Text, above_zero, is_length};
use words::{header, key_of, plain};

/// Materials that every scene knows: name, speed relative to the background, damping in 1/s, colour.
pub(super) fn standard_materials(speed: f64) -> Vec<Material> {
    let material = |name: &str, medium: Medium, color: [u8; 3]| Material {
        name: name.to_owned(),
        medium,
        color,
    };
    vec![
        material("air", Medium::of_speed(speed), [255, 255, 255]),
        material("wall", Medium::WALL, [0, 0, 0]),
        material("slow", Medium::of_speed(0.6 * speed), [0, 0, 255]),
        material("fast", Medium::of_speed(1.5 * speed), [255, 0, 255]),
    ]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SceneText {
    #[serde(default)]
    name: String,
    size: Spanned<Vec<f64>>,
    cells: Option<Spanned<i64>>,
    speed: Option<Spanned<f64>>,
    time_step: Option<Spanned<f64>>,
    duration: Option<Spanned<f64>>,
    border: Option<Spanned<String>>,
    border_width: Option<Spanned<f64>>,
    #[serde(default)]
    materials: BTreeMap<String, Spanned<MaterialText>>,
    #[serde(default)]
    shapes: Vec<Spanned<ShapeText>>,
    #[serde(default)]
    sources: Vec<Spanned<SourceText>>,
    #[serde(default)]
    probes: Vec<Spanned<ProbeText>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MaterialText {
    speed: Option<f64>,
    #[serde(default)]
    damping: f64,
    #[serde(default)]
    reflects: bool,
    color: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShapeText {
    material: Spanned<String>,
    #[serde(rename = "box")]
    cuboid: Option<BoxText>,
    disc: Option<DiscText>,
    lens: Option<LensText>,
    polygon: Option<Vec<[f64; 2]>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoxText {
    from: Vec<f64>,
    to: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiscText {
    center: Vec<f64>,
    radius: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LensText {
    center: Vec<f64>,
    height: f64,
    thickness: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceText {
    at: Option<Vec<f64>>,
    from: Option<Vec<f64>>,
    to: Option<Vec<f64>>,
    wave: Spanned<String>,
    frequency: Option<f64>,
    amplitude: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbeText {
    name: Option<String>,
    at: Vec<f64>,
}

/// `#rrggbb`.
fn color(text: &str) -> Option<[u8; 3]> {
    let digits = text.strip_prefix('#').filter(|d| d.len() == 6 && d.is_ascii())?;
    let value = u32::from_str_radix(digits, 16).ok()?;
    Some([(value >> 16) as u8, (value >> 8) as u8, value as u8])
}

impl Scene {
    /// Reads a scene from TOML.
    ///
    /// # Errors
    /// The line, the key, and what is wrong there.
    pub fn from_toml(text: &str) -> Result<Scene> {
        let source = Text(text);
        let raw: SceneText = match toml::from_str(text) {
            Ok(raw) => raw,
            Err(error) => {
                let at = error.span().map_or(text.len(), |s| s.start);
                let message = plain(error.message());
                let is_of_value = message.contains(" is wrong: ");
                if let Some(remedy) = header(text, at).filter(|_| is_of_value) {
                    return source.error(at, remedy);
                }
                return match key_of(text, at).filter(|_| is_of_value) {
                    Some(key) => source.error(at, format!("`{key}`: {message}")),
                    None => source.error(at, message),
                };
            }
        };
        let size = match raw.size.get_ref()[..] {
            [x, y] if is_length(x) && is_length(y) => [x, y, 0.0],
            [x, y, z] if is_length(x) && is_length(y) && is_length(z) => [x, y, z],
            _ => {
                return source.error(
                    raw.size.span().start,
                    format!(
                        "`size` is {:?}; it must be two or three lengths above 0 m",
                        raw.size.get_ref()
                    ),
                );
            }
        };
        let deep = size[2] > 0.0;
        let cells = match &raw.cells {
            None => 512,
            Some(n) if (8..=1 << 20).contains(n.get_ref()) => *n.get_ref() as usize,
            Some(n) => {
                return source.error(
                    n.span().start,
                    format!("`cells` is {}; it must be from 8 to 1048576", n.get_ref()),
                );
            }
        };
        let speed = source.above_zero("speed", raw.speed.as_ref())?.unwrap_or(343.0);
        let absorbs = match raw
            .border
            .as_ref()
            .map(|b| (b.get_ref().as_str(), b.span().start))
        {
            None | Some(("absorb", _)) => true,
            Some(("reflect", _)) => false,
            Some((other, at)) => {
                return source.error(
                    at,
                    format!("`border` is \"{other}\"; it must be \"absorb\" or \"reflect\""),
                );
            }
        };
        let border_width = source.above_zero("border_width", raw.border_width.as_ref())?;
        if let (Some(width), Some(raw)) = (border_width, &raw.border_width)
            && width > 0.5 * size[0].min(size[1])
        {
            return source.error(
                raw.span().start,
                format!(
                    "`border_width` is {width}; two of them must fit into the scene, which is {} wide",
                    size[0].min(size[1])
                ),
            );
        }
        let mut scene = Scene {
            name: raw.name.clone(),
            size,
            cells,
            time_step: source.above_zero("time_step", raw.time_step.as_ref())?,
            duration: source
                .above_zero("duration", raw.duration.as_ref())?
                .unwrap_or(2.0 * size[0] / speed),
            absorbs,
            border_width: border_width.unwrap_or(size[0].min(size[1]) / 12.0),
            materials: standard_materials(speed)[..2].to_vec(),
            shapes: Vec::new(),
            bitmap: None,
            emitters: Vec::new(),
            listeners: Vec::new(),
        };
        for (name, material) in &raw.materials {
            let added = read_material(&source, name, material, speed)?;
            match scene.materials.iter_mut().find(|m| m.name == *name) {
                Some(known) => *known = added,
                None => scene.materials.push(added),
            }
        }
        for shape in &raw.shapes {
            let shape = read_shape(&source, shape, &mut scene, speed)?;
            scene.shapes.push(shape);
        }
        check_materials(&source, &raw, &scene)?;
        for emitter in &raw.sources {
            scene.emitters.push(read_source(&source, emitter, size, deep)?);
        }
        for (i, probe) in raw.probes.iter().enumerate() {
            let at = probe.span().start;
            let name = probe.get_ref().name.clone();
            let name = name.unwrap_or_else(|| format!("probe {}", i + 1));
            if scene.listeners.iter().any(|known| known.name == name) {
                return source.error(at, format!("there are two probes of the name `{name}`"));
            }
            scene.listeners.push(Listener {
                at: source.place(at, "at", &probe.get_ref().at, size, deep)?,
                name,
            });
        }
        Ok(scene)
    }

    /// An error of a model that was made of the scene in `text`, with the line of the key that it is about. What it says of no key stays
    /// as it is.
    pub fn locate(text: &str, error: Error) -> Error {
        let Ok(raw) = toml::from_str::<SceneText>(text) else {
            return error;
        };
        fn start<T>(value: &Spanned<T>) -> usize {
            value.span().start
        }
        let place = match &error {
            Error::Unstable { .. } => raw.time_step.as_ref().map(|v| (start(v), "`time_step`: ")),
            Error::Range { part, .. } => match part {
                Some(Part::Size) => Some((start(&raw.size), "`size`: ")),
                Some(Part::Cells) => raw.cells.as_ref().map(|v| (start(v), "`cells`: ")),
                Some(Part::Duration) => raw.duration.as_ref().map(|v| (start(v), "`duration`: ")),
                Some(Part::Source(i)) => raw.sources.get(*i).map(|v| (start(v), "")),
                Some(Part::Probe(i)) => raw.probes.get(*i).map(|v| (start(v), "")),
                None => None,
            },
            _ => None,
        };
        match place {
            Some((at, key)) => Text(text).located(at, format!("{key}{error}")),
            None => error,
        }
    }
}

/// What is wrong with the materials in use, one by one sound.
fn check_materials(source: &Text<'_>, raw: &SceneText, scene: &Scene) -> Result<()> {
    let last = raw.materials.values().map(|material| material.span().start).max();
    let Some(last) = last else { return Ok(()) };
    let count = scene.materials.len();
    if count > MOST_MEDIA {
        return source.error(
            last,
            format!(
                "these are {count} materials, with the standard ones in use; up to {MOST_MEDIA} are possible"
            ),
        );
    }
    if scene.materials.iter().all(|material| material.medium.reflects) {
        return source.error(last, "all materials reflect: nothing could move");
    }
    Ok(())
}

fn read_material(source: &Text<'_>, name: &str, raw: &Spanned<MaterialText>, speed: f64) -> Result<Material> {
    let (at, m) = (raw.span().start, raw.get_ref());
    let speed = m.speed.unwrap_or(speed);
    if !is_length(speed) {
        return source.wrong(at, "speed", format!("of material `{name}` {}", above_zero(speed)));
    }
    if !(m.damping.is_finite() && m.damping >= 0.0) {
        return source.wrong(
            at,
            "damping",
            format!("of material `{name}` is {}; it must be 0 or more", m.damping),
        );
    }
    let color = match &m.color {
        None => [0x60, 0x90, 0xb0],
        Some(text) => match color(text) {
            Some(color) => color,
            None => {
                return source.wrong(
                    at,
                    "color",
                    format!("of material `{name}` is \"{text}\"; it must look like \"#4080c0\""),
                );
            }
        },
    };
    Ok(Material {
        name: name.to_owned(),
        medium: Medium {
            speed,
            damping: m.damping,
            reflects: m.reflects,
        },
        color,
    })
}

fn read_shape(source: &Text<'_>, raw: &Spanned<ShapeText>, scene: &mut Scene, speed: f64) -> Result<Shape> {
    let (at, s, deep) = (raw.span().start, raw.get_ref(), scene.is_deep());
    let name = s.material.get_ref();
    // Standard materials come in when they are used: one that is not must not make the time step shorter.
    for standard in standard_materials(speed) {
        if standard.name == *name && scene.material(name).is_err() {
            scene.materials.push(standard);
        }
    }
    let material = match scene.material(name) {
        Ok(index) => index,
        Err(error) => {
            return source.error(
                s.material.span().start,
                format!("`material`: {error}, slow, fast"),
            );
        }
    };
    let mut forms = Vec::new();
    if let Some(b) = &s.cuboid {
        let [a, b] =
            [("box.from", &b.from), ("box.to", &b.to)].map(|(key, p)| source.point(at, key, p, deep));
        let (a, b) = (a?, b?);
        forms.push(Form::Box {
            from: [0, 1, 2].map(|axis| a[axis].min(b[axis])),
            to: [0, 1, 2].map(|axis| a[axis].max(b[axis])),
        });
    }
    if let Some(d) = &s.disc {
        if !is_length(d.radius) {
            return source.wrong(at, "disc.radius", above_zero(d.radius));
        }
        forms.push(Form::Disc {
            center: source.point(at, "disc.center", &d.center, deep)?,
            radius: d.radius,
        });
    }
    if let Some(l) = &s.lens {
        if !(is_length(l.thickness) && is_length(l.height) && l.height >= l.thickness) {
            return source.wrong(at, "lens.thickness", "must be above 0 and at most `lens.height`");
        }
        forms.push(Form::Lens {
            center: source.point(at, "lens.center", &l.center, deep)?,
            height: l.height,
            thickness: l.thickness,
        });
    }
    if let Some(points) = &s.polygon {
        if points.len() < 3 {
            return source.wrong(
                at,
                "polygon",
                format!("has {} corners; it needs three", points.len()),
            );
        }
        for point in points {
            source.point(at, "polygon", point, false)?;
        }
        forms.push(Form::Polygon(points.clone()));
    }
    match (forms.pop(), forms.is_empty()) {
        (Some(form), true) => Ok(Shape { material, form }),
        _ => source.error(at, "a shape is one of `box`, `disc`, `lens` and `polygon`"),
    }
}

fn read_source(source: &Text<'_>, raw: &Spanned<SourceText>, size: [f64; 3], deep: bool) -> Result<Emitter> {
    let (at, s) = (raw.span().start, raw.get_ref());
    let place = |key, p| source.place(at, key, p, size, deep);
    let (from, to) = match (&s.at, &s.from, &s.to) {
        (Some(p), None, None) => (place("at", p)?, place("at", p)?),
        (None, Some(a), Some(b)) => (place("from", a)?, place("to", b)?),
        _ => return source.error(at, "a source has either `at`, or `from` and `to`"),
    };
    let frequency = match s.frequency {
        Some(f) if !is_length(f) => return source.wrong(at, "frequency", above_zero(f)),
        other => other,
    };
    let waveform = match (s.wave.get_ref().as_str(), frequency) {
        ("impulse", None) => Waveform::Impulse,
        ("impulse", Some(_)) => {
            return source.wrong(at, "frequency", "means nothing to an impulse: leave it out");
        }
        ("sine", Some(frequency)) => Waveform::Sine { frequency },
        ("ricker", Some(frequency)) => Waveform::Ricker { frequency },
        ("sine" | "ricker", None) => return source.error(at, "this source needs a `frequency`"),
        (other, _) => {
            return source.error(
                s.wave.span().start,
                format!("`wave` is \"{other}\"; it must be \"impulse\", \"sine\" or \"ricker\""),
            );
        }
    };
    let amplitude = s.amplitude.unwrap_or(1.0);
    if amplitude.is_nan() || amplitude.abs() > 1e30 {
        return source.wrong(
            at,
            "amplitude",
            format!("is {amplitude:e}; it must be finite, and below 1e30"),
        );
    }
    Ok(Emitter {
        from,
        to,
        waveform,
        amplitude,
    })
}

#[cfg(test)]
mod tests;
