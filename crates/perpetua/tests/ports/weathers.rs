//! Air and sky: saturation of moist air, and fluxes of sunlight.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 253: saturation adjustment of moist air

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Level {
    pressure: f32,
    exner: f32,
}

/// Temperature, and liquid and frozen water in grams a kilogram.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Air {
    temperature: f32,
    liquid: f32,
    ice: f32,
}

const VAPOUR_HEAT: f32 = 2.501e6;
const ICE_HEAT: f32 = 2.834e6;
const HEAT: f32 = 1004.7;
const VAPOUR_GAS: f32 = 461.5;
const FREEZING: f32 = 273.15;

/// How much moisture air holds over a surface, and the heat of its vapour.
#[device]
trait Surface {
    const HEAT: f32;
    fn pressure(t: f32) -> f32;

    fn saturation(pressure: f32, t: f32) -> f32 {
        let vapour = Self::pressure(t);
        0.622 * vapour / (pressure - 0.378 * vapour)
    }
}

#[derive(Clone, Copy, GpuType)]
struct Water;

#[derive(Clone, Copy, GpuType)]
struct Ice;

#[device]
impl Surface for Water {
    const HEAT: f32 = VAPOUR_HEAT;

    fn pressure(t: f32) -> f32 {
        611.21 * (17.502 * (t - FREEZING) / (t - 32.18)).exp()
    }
}

#[device]
impl Surface for Ice {
    const HEAT: f32 = ICE_HEAT;

    fn pressure(t: f32) -> f32 {
        611.15 * (22.587 * (t - FREEZING) / (t + 0.71)).exp()
    }
}

/// The part of the condensate that is liquid.
#[device]
fn liquid_part(t: f32) -> f32 {
    ((t - 233.15) / 40.0).clamp(0.0, 1.0)
}

/// The saturation of both surfaces together, and the mean heat.
#[device]
fn mixed_saturation(pressure: f32, t: f32) -> (f32, f32) {
    let part = liquid_part(t);
    let mix = |water: f32, ice: f32| part * water + (1.0 - part) * ice;
    (
        mix(Water::saturation(pressure, t), Ice::saturation(pressure, t)),
        mix(Water::HEAT, Ice::HEAT),
    )
}

#[device]
fn adjusted(level: Level, potential: f32, total: f32) -> Option<Air> {
    let first = potential * level.exner;
    let (saturation, _) = mixed_saturation(level.pressure, first);
    if total <= saturation {
        return None;
    }
    let mut t = first;
    for _ in 0..40 {
        let (saturation, heat) = mixed_saturation(level.pressure, t);
        let error = t - first - heat / HEAT * (total - saturation);
        let slope = 1.0 + heat / HEAT * saturation * heat / (VAPOUR_GAS * t * t);
        let change = error / slope;
        t -= change;
        if change.abs() < 2e-3 {
            break;
        }
    }
    let (saturation, _) = mixed_saturation(level.pressure, t);
    let (condensed, part) = (1000.0 * (total - saturation).max(0.0), liquid_part(t));
    Some(Air {
        temperature: t,
        liquid: part * condensed,
        ice: (1.0 - part) * condensed,
    })
}

#[kernel]
fn saturation(
    size: [u32; 2],
    base: &[Level],
    potential: &[f32],
    total: &[f32],
    air: &mut [Air],
    cloudy: &mut [u32],
) {
    let [width, depth] = size.map(|n| n as usize);
    let (x, y, z) = (global_id_x(), global_id_y(), global_id_z());
    if x >= width || y >= depth || z >= base.len() {
        return;
    }
    let i = (z * depth + y) * width + x;
    air[i] = match adjusted(base[z], potential[i], total[i]) {
        Some(air) => {
            atomic_add(&mut cloudy[z], 1);
            air
        }
        None => Air {
            temperature: potential[i] * base[z].exner,
            liquid: 0.0,
            ice: 0.0,
        },
    };
}

#[test]
fn saturation_balances_heat_and_moisture() {
    let mut random = Random(253);
    let (width, depth, height) = (13usize, 11usize, 9usize);
    let base: Vec<Level> = (0..height)
        .map(|z| {
            let pressure = 100_000.0 - 8_000.0 * z as f32;
            Level {
                pressure,
                exner: (pressure / 100_000.0).powf(0.2857),
            }
        })
        .collect();
    let n = width * depth * height;
    let potential: Vec<f32> = (0..n).map(|_| random.within(285.0, 300.0)).collect();
    let total: Vec<f32> = (0..n)
        .map(|i| 0.02 * (-0.35 * (i / (width * depth)) as f32).exp() * random.within(0.3, 1.2))
        .collect();
    // Over water or ice, in `f64`.
    let over = |heat: [f64; 4], p: f64, t: f64| {
        let e = heat[0] * (heat[1] * (t - f64::from(FREEZING)) / (t + heat[2])).exp();
        0.622 * e / (p - 0.378 * e)
    };
    let water = [611.21, 17.502, -32.18, f64::from(VAPOUR_HEAT)];
    let ice = [611.15, 22.587, 0.71, f64::from(ICE_HEAT)];
    let part = |t: f64| ((t - 233.15) / 40.0).clamp(0.0, 1.0);
    let holds = |p: f64, t: f64| part(t) * over(water, p, t) + (1.0 - part(t)) * over(ice, p, t);
    let (mut expected, mut cloudy) = (vec![], vec![0u32; height]);
    for i in 0..n {
        let z = i / (width * depth);
        let (p, q) = (f64::from(base[z].pressure), f64::from(total[i]));
        let first = f64::from(potential[i]) * f64::from(base[z].exner);
        if q <= holds(p, first) {
            expected.extend([first, 0.0, 0.0]);
            continue;
        }
        cloudy[z] += 1;
        // By halves.
        let (mut low, mut high) = (first, first + 60.0);
        for _ in 0..60 {
            let t = (low + high) / 2.0;
            let heat = part(t) * water[3] + (1.0 - part(t)) * ice[3];
            if t - first < heat / f64::from(HEAT) * (q - holds(p, t)) {
                low = t;
            } else {
                high = t;
            }
        }
        let condensed = 1000.0 * (q - holds(p, low));
        expected.extend([low, part(low) * condensed, (1.0 - part(low)) * condensed]);
    }
    assert!(cloudy.iter().sum::<u32>() > 100 && cloudy.iter().sum::<u32>() < n as u32 - 100);
    everywhere(|run| {
        let (levels, heat, moist) = (run.upload(&base), run.upload(&potential), run.upload(&total));
        let (out, counts) = (run.zeros::<f32>(3 * n), run.zeros::<u32>(height));
        let air = out.clone().cast::<Air>().unwrap();
        let size = [width as u32, depth as u32];
        let config = LaunchConfig::volume(
            (width as u32, depth as u32, height as u32).into(),
            (8, 4, 2).into(),
        );
        run.launch(
            saturation::kernel(),
            config,
            args![size, &levels, &heat, &moist, &air, &counts],
        );
        run.holds(&counts, &cloudy);
        // Temperatures are off by some 1e-4, and moisture by 1 g/kg for each kelvin of that.
        run.near(&out, &expected, 1e-3);
    });
}

// 254: fluxes of sunlight through layers

/// What a layer does with diffuse light, and with a beam that meets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Layer {
    reflected: f32,
    passed: f32,
    beam_reflected: f32,
    beam_scattered: f32,
    beam_passed: f32,
}

#[device]
impl Layer {
    fn new(depth: f32, albedo: f32, asymmetry: f32, sun: f32) -> Self {
        let gamma1 = (8.0 - albedo * (5.0 + 3.0 * asymmetry)) * 0.25;
        let gamma2 = 3.0 * albedo * (1.0 - asymmetry) * 0.25;
        let gamma3 = (2.0 - 3.0 * sun * asymmetry) * 0.25;
        let gamma4 = 1.0 - gamma3;
        let alpha1 = gamma1 * gamma4 + gamma2 * gamma3;
        let alpha2 = gamma1 * gamma3 + gamma2 * gamma4;
        let k = ((gamma1 - gamma2) * (gamma1 + gamma2)).max(1e-12).sqrt();
        let once = (-k * depth).exp();
        let twice = once * once;
        let beam_passed = (-depth / sun).exp();
        let term = (k * (1.0 + twice) + gamma1 * (1.0 - twice)).recip();
        let steep = k * sun;
        let scale = albedo * term / (1.0 - steep * steep);
        let beam_reflected = scale
            * ((1.0 - steep) * (alpha2 + k * gamma3)
                - (1.0 + steep) * (alpha2 - k * gamma3) * twice
                - 2.0 * (k * gamma3 - alpha2 * steep) * once * beam_passed);
        let beam_scattered = -scale
            * ((1.0 + steep) * (alpha1 + k * gamma4) * beam_passed
                - (1.0 - steep) * (alpha1 - k * gamma4) * twice * beam_passed
                - 2.0 * (k * gamma4 + alpha1 * steep) * once);
        Layer {
            reflected: term * gamma2 * (1.0 - twice),
            passed: term * 2.0 * k * once,
            beam_reflected,
            beam_scattered,
            beam_passed,
        }
    }
}

#[kernel]
fn two_stream<const LAYERS: usize>(
    suns: &[f32],
    grounds: &[f32],
    optics: &[[f32; 3]],
    up: &mut [f32],
    down: &mut [f32],
) {
    let (i, columns) = (global_id_x(), suns.len());
    let Some((sun, ground)) = suns.get(i).copied().zip(grounds.get(i).copied()) else {
        return;
    };
    let layers: [Layer; LAYERS] = std::array::from_fn(|l| {
        let [depth, albedo, asymmetry] = optics[l * columns + i];
        Layer::new(depth, albedo, asymmetry, sun)
    });
    let mut beams = [0.0f32; LAYERS];
    let mut beam = 1.0;
    for (slot, layer) in beams.iter_mut().zip(&layers) {
        *slot = beam;
        beam *= layer.beam_passed;
    }
    // What is below each layer: how much it reflects, and how much comes up from there by itself.
    let mut below = [(0.0f32, 0.0f32); LAYERS];
    let (mut albedo, mut source) = (ground, ground * beam);
    for (l, layer) in layers.iter().enumerate().rev() {
        below[l] = (albedo, source);
        let many = (1.0 - layer.reflected * albedo).recip();
        source = layer.beam_reflected * beams[l]
            + layer.passed * many * (source + albedo * layer.beam_scattered * beams[l]);
        albedo = layer.reflected + layer.passed * layer.passed * albedo * many;
    }
    let mut diffuse = 0.0;
    up[i] = source;
    down[i] = 1.0;
    for (l, (layer, (albedo, source))) in layers.iter().zip(below).enumerate() {
        let many = (1.0 - layer.reflected * albedo).recip();
        diffuse =
            (layer.passed * diffuse + layer.reflected * source + layer.beam_scattered * beams[l]) * many;
        let at = (l + 1) * columns + i;
        up[at] = albedo * diffuse + source;
        down[at] = diffuse + beams[l] * layer.beam_passed;
    }
}

#[test]
fn two_stream_fluxes_balance() {
    const LAYERS: usize = 11;
    let mut random = Random(254);
    let columns = 203;
    let suns: Vec<f32> = (0..columns).map(|_| random.within(0.2, 0.6)).collect();
    let grounds: Vec<f32> = (0..columns).map(|_| random.within(0.05, 0.7)).collect();
    let optics: Vec<[f32; 3]> = (0..columns * LAYERS)
        .map(|_| {
            [
                random.within(0.05, 1.5),
                random.within(0.5, 0.98),
                random.within(0.0, 0.85),
            ]
        })
        .collect();
    let (mut ups, mut downs) = (
        vec![0.0; columns * (LAYERS + 1)],
        vec![0.0; columns * (LAYERS + 1)],
    );
    for i in 0..columns {
        let mu = f64::from(suns[i]);
        let mut beam = [1.0f64; LAYERS + 1];
        let mut parts = vec![];
        for l in 0..LAYERS {
            let [tau, w, g] = optics[l * columns + i].map(f64::from);
            let (g1, g2) = (2.0 - w * (1.25 + 0.75 * g), 0.75 * w * (1.0 - g));
            let g3 = 0.5 - 0.75 * mu * g;
            let g4 = 1.0 - g3;
            let (a1, a2) = (g1 * g4 + g2 * g3, g1 * g3 + g2 * g4);
            let k = (g1 * g1 - g2 * g2).sqrt();
            let (sinh, cosh) = ((k * tau).sinh(), (k * tau).cosh());
            let whole = k * cosh + g1 * sinh;
            let straight = (-tau / mu).exp();
            // Everything times half of exp(k tau).
            let (grow, fall) = ((k * tau).exp() / 2.0, (-k * tau).exp() / 2.0);
            let factor = w / (whole * (1.0 - k * k * mu * mu));
            let reflected = factor
                * ((1.0 - k * mu) * (a2 + k * g3) * grow
                    - (1.0 + k * mu) * (a2 - k * g3) * fall
                    - k * (g3 - a2 * mu) * straight);
            let passed = factor
                * (k * (g4 + a1 * mu)
                    - straight
                        * ((1.0 + k * mu) * (a1 + k * g4) * grow - (1.0 - k * mu) * (a1 - k * g4) * fall));
            parts.push([
                g2 * sinh / whole,
                k / whole,
                reflected * beam[l],
                passed * beam[l],
            ]);
            beam[l + 1] = beam[l] * straight;
        }
        // Light that goes to and fro until nothing changes.
        let (mut up, mut down) = ([0.0; LAYERS + 1], [0.0; LAYERS + 1]);
        for _ in 0..400 {
            for l in 0..LAYERS {
                let [r, t, _, s] = parts[l];
                down[l + 1] = t * down[l] + r * up[l + 1] + s;
            }
            up[LAYERS] = f64::from(grounds[i]) * (down[LAYERS] + beam[LAYERS]);
            for l in (0..LAYERS).rev() {
                let [r, t, s, _] = parts[l];
                up[l] = t * up[l + 1] + r * down[l] + s;
            }
        }
        for l in 0..=LAYERS {
            ups[l * columns + i] = up[l];
            downs[l * columns + i] = down[l] + beam[l];
        }
    }
    everywhere(|run| {
        let (sun, ground, light) = (run.upload(&suns), run.upload(&grounds), run.upload(&optics));
        let (up, down) = (run.zeros::<f32>(ups.len()), run.zeros::<f32>(downs.len()));
        let config = LaunchConfig::linear(columns, 64);
        run.launch(
            two_stream::kernel::<LAYERS>(),
            config,
            args![&sun, &ground, &light, &up, &down],
        );
        // Fluxes of at most 1; thin layers scatter a difference that is twenty times smaller than its terms.
        run.near(&up, &ups, 5e-5);
        run.near(&down, &downs, 5e-5);
    });
}
