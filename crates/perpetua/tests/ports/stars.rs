//! What is found from far away: sources in a radio picture, ways over an ellipsoid, a thing that moves in a film.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 165: Högbom's CLEAN

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Peak {
    value: f32,
    index: u32,
}

#[device]
impl Peak {
    /// The one that stands out more, the first of equals.
    fn or(self, other: Self) -> Self {
        let (own, others) = (self.value.abs(), other.value.abs());
        if others > own || (others == own && other.index < self.index) {
            other
        } else {
            self
        }
    }
}

#[kernel(block_size = 128)]
fn find_peaks(picture: &[f32], peaks: &mut [Peak]) {
    let best = shared_array::<[Peak; 128]>();
    let lane = local_id_x();
    let mut own = Peak::default();
    for i in (global_id_x()..picture.len()).step_by(global_size_x()) {
        own = own.or(Peak {
            value: picture[i],
            index: i as u32,
        });
    }
    best[lane] = own;
    sync_threads();
    let mut half = best.len() / 2;
    while half > 0 {
        if lane < half {
            best[lane] = best[lane].or(best[lane + half]);
        }
        sync_threads();
        half /= 2;
    }
    if lane == 0 {
        peaks[group_id_x()] = best[0];
    }
}

#[kernel]
fn take_peak(gain: f32, peaks: &[Peak], peak: &mut Peak, model: &mut [f32]) {
    *peak = peaks.iter().copied().fold(Peak::default(), Peak::or);
    model[peak.index as usize] += gain * peak.value;
}

#[kernel]
fn subtract(width: usize, gain: f32, peak: &Peak, beam: &[f32], residual: &mut [f32]) {
    let (x, y) = (global_id_x(), global_id_y());
    let height = residual.len() / width;
    if x >= width || y >= height {
        return;
    }
    let index = peak.index as usize;
    let (center_x, center_y) = (index % width, index / width);
    let Some(u) = (x + width / 2).checked_sub(center_x).filter(|u| *u < width) else {
        return;
    };
    let Some(v) = (y + height / 2).checked_sub(center_y).filter(|v| *v < height) else {
        return;
    };
    residual[y * width + x] -= gain * peak.value * beam[v * width + u];
}

#[test]
fn sources_are_cleaned_from_a_picture() {
    let mut random = Random(165);
    let (width, height, gain) = (40usize, 30usize, 0.2f32);
    let beam: Vec<f32> = (0..width * height)
        .map(|i| {
            let (x, y) = (i as i32 % 40 - 20, i as i32 / 40 - 15);
            let r = f64::from(x * x + y * y).sqrt();
            ((-r / 3.0).exp() * (r / 1.5).cos()) as f32
        })
        .collect();
    let mut dirty = vec![0.0f32; width * height];
    for _ in 0..6 {
        let (at_x, at_y) = (random.below(width), random.below(height));
        let flux = random.between(1.0, 3.0) as f32;
        for y in 0..height {
            for x in 0..width {
                let (u, v) = (x + 20, y + 15);
                if (at_x..at_x + width).contains(&u) && (at_y..at_y + height).contains(&v) {
                    dirty[y * width + x] += flux * beam[(v - at_y) * width + u - at_x];
                }
            }
        }
    }
    let mut residual: Vec<f64> = dirty.iter().map(|v| f64::from(*v)).collect();
    let mut model = vec![0.0f64; width * height];
    for _ in 0..30 {
        let mut at = 0;
        for i in 0..residual.len() {
            if residual[i].abs() > residual[at].abs() {
                at = i;
            }
        }
        let part = f64::from(gain) * residual[at];
        model[at] += part;
        let (dx, dy) = ((at % width) as i32 - 20, (at / width) as i32 - 15);
        for y in 0..height as i32 {
            for x in 0..width as i32 {
                let (u, v) = (x - dx, y - dy);
                if (0..width as i32).contains(&u) && (0..height as i32).contains(&v) {
                    residual[(y * 40 + x) as usize] -= part * f64::from(beam[(v * 40 + u) as usize]);
                }
            }
        }
    }
    everywhere(|run| {
        let (beam, picture) = (run.upload(&beam), run.upload(&dirty));
        let (peaks, peak) = (run.zeros::<Peak>(3), run.zeros::<Peak>(1));
        let found = run.zeros::<f32>(width * height);
        for _ in 0..30 {
            run.launch(
                find_peaks::kernel(),
                LaunchConfig::new(3, 128),
                args![&picture, &peaks],
            );
            let args = args![gain, &peaks, &peak, &found];
            run.launch(take_peak::kernel(), LaunchConfig::new(1, 1), args);
            let config = LaunchConfig::tiled(width as u32, height as u32, (8, 8));
            run.launch(
                subtract::kernel(),
                config,
                args![width, gain, &peak, &beam, &picture],
            );
        }
        run.near(&found, &model, 1e-4);
        run.near(&picture, &residual, 1e-4);
    });
}

// 166: Vincenty's inverse

const MAJOR: f64 = 6_378_137.0;
const FLATTENING: f64 = 1.0 / 298.257_223_563;
const MINOR: f64 = MAJOR * (1.0 - FLATTENING);

/// Radians.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Place {
    latitude: f64,
    longitude: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Way {
    distance: f64,
    azimuth: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(u32)]
enum Outcome {
    Found,
    Same,
    Antipodal,
}

/// Sine and cosine of the latitude on the auxiliary sphere.
#[device]
fn reduced(place: Place) -> (f64, f64) {
    ((1.0 - FLATTENING) * place.latitude.tan()).atan().sin_cos()
}

#[device]
fn inverse(from: Place, to: Place) -> Result<Way, Outcome> {
    let ((sin1, cos1), (sin2, cos2)) = (reduced(from), reduced(to));
    let difference = to.longitude - from.longitude;
    let mut lambda = difference;
    for _ in 0..100 {
        let (sin_lambda, cos_lambda) = lambda.sin_cos();
        let (east, north) = (cos2 * sin_lambda, cos1 * sin2 - sin1 * cos2 * cos_lambda);
        let sin_sigma = east.hypot(north);
        if sin_sigma == 0.0 {
            return Err(Outcome::Same);
        }
        let cos_sigma = sin1 * sin2 + cos1 * cos2 * cos_lambda;
        let sigma = sin_sigma.atan2(cos_sigma);
        let sin_alpha = cos1 * cos2 * sin_lambda / sin_sigma;
        let cos2_alpha = 1.0 - sin_alpha.powi(2);
        let cos_middle = if cos2_alpha > 0.0 {
            cos_sigma - 2.0 * sin1 * sin2 / cos2_alpha
        } else {
            0.0
        };
        let double = 2.0 * cos_middle * cos_middle - 1.0;
        let c = FLATTENING / 16.0 * cos2_alpha * (4.0 + FLATTENING * (4.0 - 3.0 * cos2_alpha));
        let before = lambda;
        lambda = difference
            + (1.0 - c)
                * FLATTENING
                * sin_alpha
                * (sigma + c * sin_sigma * (cos_middle + c * cos_sigma * double));
        if (lambda - before).abs() < 1e-12 {
            let squared = cos2_alpha * (MAJOR.powi(2) - MINOR.powi(2)) / MINOR.powi(2);
            let a = 1.0
                + squared / 16_384.0 * (4_096.0 + squared * (-768.0 + squared * (320.0 - 175.0 * squared)));
            let b = squared / 1_024.0 * (256.0 + squared * (-128.0 + squared * (74.0 - 47.0 * squared)));
            let last =
                b / 6.0 * cos_middle * (4.0 * sin_sigma.powi(2) - 3.0) * (4.0 * cos_middle.powi(2) - 3.0);
            let change = b * sin_sigma * (cos_middle + b / 4.0 * (cos_sigma * double - last));
            return Ok(Way {
                distance: MINOR * a * (sigma - change),
                azimuth: east.atan2(north),
            });
        }
    }
    Err(Outcome::Antipodal)
}

#[kernel]
fn ways(pairs: &[[Place; 2]], found: &mut [Way], outcomes: &mut [Outcome]) {
    let i = global_id_x();
    let Some(&[from, to]) = pairs.get(i) else {
        return;
    };
    outcomes[i] = match inverse(from, to) {
        Ok(way) => {
            found[i] = way;
            Outcome::Found
        }
        Err(outcome) => outcome,
    };
}

/// Where one comes to on the ellipsoid by going straight on, in small steps.
fn go(from: Place, way: Way) -> Place {
    let e2 = FLATTENING * (2.0 - FLATTENING);
    let rates = |[latitude, _, azimuth]: [f64; 3]| {
        let w = (1.0 - e2 * latitude.sin().powi(2)).sqrt();
        let (meridian, normal) = (MAJOR * (1.0 - e2) / w.powi(3), MAJOR / w);
        [
            azimuth.cos() / meridian,
            azimuth.sin() / (normal * latitude.cos()),
            latitude.tan() * azimuth.sin() / normal,
        ]
    };
    let steps = 4_000;
    let h = way.distance / f64::from(steps);
    let mut at = [from.latitude, from.longitude, way.azimuth];
    let ahead = |at: [f64; 3], by: f64, rate: [f64; 3]| std::array::from_fn(|i| at[i] + by * rate[i]);
    for _ in 0..steps {
        let k1 = rates(at);
        let k2 = rates(ahead(at, h / 2.0, k1));
        let k3 = rates(ahead(at, h / 2.0, k2));
        let k4 = rates(ahead(at, h, k3));
        at = std::array::from_fn(|i| at[i] + h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]));
    }
    Place {
        latitude: at[0],
        longitude: at[1],
    }
}

#[test]
fn ways_over_an_ellipsoid_lead_where_they_should() {
    let mut random = Random(166);
    let mut place = || Place {
        latitude: random.between(-55.0, 55.0).to_radians(),
        longitude: random.between(-50.0, 50.0).to_radians(),
    };
    let mut pairs: Vec<[Place; 2]> = (0..70).map(|_| [place(), place()]).collect();
    let here = pairs[0][0];
    pairs.push([here, here]);
    let (latitude, longitude) = (0.0, 0.0);
    let far = Place {
        latitude: 0.5f64.to_radians(),
        longitude: 179.7f64.to_radians(),
    };
    pairs.push([Place { latitude, longitude }, far]);
    everywhere(|run| {
        if run.is_wgpu() {
            // WGSL has no sine of `f64`.
            return;
        }
        let count = pairs.len();
        let uploaded = run.upload(&pairs);
        let (found, outcomes) = (run.zeros::<Way>(count), run.zeros::<Outcome>(count));
        let args = args![&uploaded, &found, &outcomes];
        run.launch(ways::kernel(), LaunchConfig::linear(count, 32), args);
        let outcomes = run.read(&outcomes);
        assert!(
            outcomes[..70].iter().all(|o| *o == Outcome::Found),
            "on {}",
            run.place()
        );
        assert_eq!(
            outcomes[70..],
            [Outcome::Same, Outcome::Antipodal],
            "on {}",
            run.place()
        );
        for (pair, way) in pairs.iter().zip(run.read(&found)).take(70) {
            let end = go(pair[0], way);
            let apart = (end.latitude - pair[1].latitude).hypot(end.longitude - pair[1].longitude);
            assert!(apart < 2e-9, "on {}: {pair:?} {way:?} {apart}", run.place());
        }
    });
}

// 162: Rodinia's particle filter

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Particle {
    x: f32,
    y: f32,
    weight: f32,
}

#[device]
fn pixel(frame: &[u8], width: usize, x: i32, y: i32) -> Option<f32> {
    let (x, y) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
    if x >= width {
        return None;
    }
    frame.get(y * width + x).copied().map(f32::from)
}

#[device]
fn block_sum(shared: &mut [f32; 128], value: f32) -> f32 {
    let lane = local_id_x();
    shared[lane] = value;
    sync_threads();
    let mut half = 64;
    while half > 0 {
        if lane < half {
            shared[lane] += shared[lane + half];
        }
        sync_threads();
        half /= 2;
    }
    shared[0]
}

#[kernel(block_size = 128)]
fn weigh(width: usize, frame: &[u8], offsets: &[[i32; 2]], particles: &mut [Particle], sums: &mut [f32]) {
    let shared = shared_array::<[f32; 128]>();
    let mut weight = 0.0;
    if let Some(particle) = particles.get_mut(global_id_x()) {
        let (x, y) = (particle.x.round() as i32, particle.y.round() as i32);
        let likelihood: f32 = offsets
            .iter()
            .filter_map(|[dx, dy]| pixel(frame, width, x + dx, y + dy))
            .map(|v| ((v - 100.0).powi(2) - (v - 228.0).powi(2)) / 5000.0)
            .sum();
        particle.weight *= (likelihood / offsets.len() as f32).exp();
        weight = particle.weight;
    }
    let sum = block_sum(shared, weight);
    if local_id_x() == 0 {
        sums[group_id_x()] = sum;
    }
}

#[kernel(block_size = 128)]
fn cumulate(particles: &[Particle], sums: &[f32], cumulated: &mut [f32]) {
    let shared = shared_array::<[f32; 128]>();
    let (lane, i) = (local_id_x(), global_id_x());
    shared[lane] = particles.get(i).map_or(0.0, |p| p.weight);
    sync_threads();
    let mut step = 1;
    while step < 128 {
        let before = if lane >= step { shared[lane - step] } else { 0.0 };
        sync_threads();
        shared[lane] += before;
        sync_threads();
        step *= 2;
    }
    let before: f32 = sums[..group_id_x()].iter().sum();
    let total: f32 = sums.iter().sum();
    if i < cumulated.len() {
        cumulated[i] = (before + shared[lane]) / total;
    }
}

#[kernel]
fn resample(start: f32, cumulated: &[f32], particles: &[Particle], drawn: &mut [Particle]) {
    let i = global_id_x();
    let count = drawn.len();
    if i >= count {
        return;
    }
    let at = start + i as f32 / count as f32;
    let found = cumulated.partition_point(|c| *c < at).min(count - 1);
    drawn[i] = Particle {
        weight: 1.0 / count as f32,
        ..particles[found]
    };
}

#[test]
fn particles_gather_where_the_film_is_bright() {
    let mut random = Random(162);
    let (width, height, count) = (48usize, 40usize, 500usize);
    let frame: Vec<u8> = (0..width * height)
        .map(|i| {
            let (x, y) = ((i % width) as f64 - 30.0, (i / width) as f64 - 18.0);
            let mean = if x.hypot(y) < 6.0 { 228.0 } else { 100.0 };
            (mean + random.between(-20.0, 20.0)) as u8
        })
        .collect();
    let offsets: Vec<[i32; 2]> = (-3..=3)
        .flat_map(|y| (-3..=3).map(move |x| [x, y]))
        .filter(|[x, y]| x * x + y * y < 10)
        .collect();
    let particles: Vec<Particle> = (0..count)
        .map(|_| Particle {
            x: random.between(-4.0, 52.0) as f32,
            y: random.between(-4.0, 44.0) as f32,
            weight: 1.0 / count as f32,
        })
        .collect();
    let weights: Vec<f64> = particles
        .iter()
        .map(|p| {
            let mut sum = 0.0;
            for [dx, dy] in &offsets {
                let (x, y) = (
                    p.x.round() as i64 + i64::from(*dx),
                    p.y.round() as i64 + i64::from(*dy),
                );
                if (0..48).contains(&x) && (0..40).contains(&y) {
                    let v = f64::from(frame[(y * 48 + x) as usize]);
                    sum += ((v - 100.0) * (v - 100.0) - (v - 228.0) * (v - 228.0)) / 5000.0;
                }
            }
            f64::from(p.weight) * (sum / offsets.len() as f64).exp()
        })
        .collect();
    let total: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let expected: Vec<f64> = weights
        .iter()
        .map(|w| {
            sum += w / total;
            sum
        })
        .collect();
    everywhere(|run| {
        let (pixels, places) = (run.upload(&frame), run.upload(&offsets));
        let (now, next) = (run.upload(&particles), run.zeros::<Particle>(count));
        let (sums, cumulated) = (run.zeros::<f32>(4), run.zeros::<f32>(count));
        let config = LaunchConfig::linear(count, 128);
        run.launch(
            weigh::kernel(),
            config,
            args![width, &pixels, &places, &now, &sums],
        );
        run.launch(cumulate::kernel(), config, args![&now, &sums, &cumulated]);
        let start = 0.3 / count as f32;
        run.launch(resample::kernel(), config, args![start, &cumulated, &now, &next]);
        run.near(&cumulated, &expected, 1e-4);
        let (found, cumulated) = (run.read(&next), run.read(&cumulated));
        for (i, particle) in found.iter().enumerate() {
            let at = f64::from(start) + i as f64 / count as f64;
            // The number at the place itself may be rounded.
            let near = (0..count).filter(|k| {
                let before = k.checked_sub(1).map_or(-1.0, |k| f64::from(cumulated[k]));
                let last = *k == count - 1;
                before - 1e-6 < at && (at <= f64::from(cumulated[*k]) + 1e-6 || last)
            });
            let [x, y] = [particle.x, particle.y];
            let is = near.map(|k| particles[k]).any(|p| [p.x, p.y] == [x, y]);
            assert!(is, "on {}: {i} {particle:?}", run.place());
        }
        let near = found
            .iter()
            .filter(|p| (p.x - 30.0).hypot(p.y - 18.0) < 7.0)
            .count();
        // Without weights some thirty would be.
        assert!(near > 200, "on {}: {near}", run.place());
    });
}
