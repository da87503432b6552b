//! What moves before a background.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 233: a background as a mixture of Gaussians

const MODES: usize = 4;

/// One Gaussian of a pixel.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Mode<T> {
    weight: f32,
    variance: f32,
    mean: T,
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Mog {
    rate: f32,
    prune: f32,
    background: f32,
    near: f32,
    fits: f32,
    first_variance: f32,
    least_variance: f32,
    most_variance: f32,
    shadow: f32,
}

/// A colour of one or more channels.
#[device]
trait Colour: Copy {
    fn dot(self, other: Self) -> f32;
    fn squared_distance(self, other: Self) -> f32;
    /// `self + (other - self) * part`
    fn towards(self, other: Self, part: f32) -> Self;
    fn scaled(self, by: f32) -> Self;
}

#[device]
impl Colour for f32 {
    fn dot(self, other: f32) -> f32 {
        self * other
    }

    fn squared_distance(self, other: f32) -> f32 {
        (self - other) * (self - other)
    }

    fn towards(self, other: f32, part: f32) -> f32 {
        self + (other - self) * part
    }

    fn scaled(self, by: f32) -> f32 {
        self * by
    }
}

#[device]
impl<const N: usize> Colour for [f32; N] {
    fn dot(self, other: Self) -> f32 {
        self.iter().zip(other).map(|(a, b)| a * b).sum()
    }

    fn squared_distance(self, other: Self) -> f32 {
        self.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum()
    }

    fn towards(mut self, other: Self, part: f32) -> Self {
        for (a, b) in self.iter_mut().zip(other) {
            *a += (b - *a) * part;
        }
        self
    }

    fn scaled(self, by: f32) -> Self {
        self.map(|a| a * by)
    }
}

/// Moves the mode at this index up in front of lighter ones.
#[device]
fn lift<T: Copy>(modes: &mut [Mode<T>], from: usize) {
    let mut at = from;
    while at > 0 && modes[at].weight >= modes[at - 1].weight {
        modes.swap(at, at - 1);
        at -= 1;
    }
}

/// Whether a pixel is a darker version of the background.
#[device]
fn is_shadow<T: Colour>(model: Mog, pixel: T, modes: &[Mode<T>]) -> bool {
    let mut total = 0.0;
    for mode in modes {
        let (across, square) = (pixel.dot(mode.mean), mode.mean.dot(mode.mean));
        if square == 0.0 {
            return false;
        }
        if across <= square && across >= model.shadow * square {
            let part = across / square;
            let distance = mode.mean.scaled(part).squared_distance(pixel);
            if distance < model.near * mode.variance * part * part {
                return true;
            }
        }
        total += mode.weight;
        if total > model.background {
            return false;
        }
    }
    false
}

#[kernel]
fn mog2<T: Colour + Default>(
    model: Mog,
    frame: &[T],
    modes: &mut [[Mode<T>; MODES]],
    counts: &mut [u32],
    mask: &mut [u8],
) {
    let i = global_id_x();
    let Some(pixel) = frame.get(i).copied() else {
        return;
    };
    let mut own = modes[i];
    let mut count = counts[i] as usize;
    let (mut is_background, mut fits, mut total) = (false, false, 0.0);
    for k in 0..MODES {
        if k >= count {
            break;
        }
        let mut mode = own[k];
        mode.weight = (1.0 - model.rate) * mode.weight - model.prune;
        let distance = mode.mean.squared_distance(pixel);
        let fits_now = !fits && distance < model.fits * mode.variance;
        is_background |= !fits && total < model.background && distance < model.near * mode.variance;
        if fits_now {
            fits = true;
            mode.weight += model.rate;
            let part = model.rate / mode.weight;
            mode.mean = mode.mean.towards(pixel, part);
            let variance = mode.variance + part * (distance - mode.variance);
            mode.variance = variance.clamp(model.least_variance, model.most_variance);
        } else if mode.weight < model.prune {
            count = k;
            break;
        }
        total += mode.weight;
        own[k] = mode;
        if fits_now {
            lift(&mut own, k);
        }
    }
    if !fits {
        count = (count + 1).min(MODES);
        total = 0.0;
        for mode in &mut own[..count - 1] {
            mode.weight *= 1.0 - model.rate;
            total += mode.weight;
        }
        let weight = if count == 1 { 1.0 } else { model.rate };
        total += weight;
        own[count - 1] = Mode {
            weight,
            variance: model.first_variance,
            mean: pixel,
        };
        lift(&mut own, count - 1);
    }
    for mode in own.iter_mut().take(count) {
        mode.weight /= total;
    }
    own[count..].fill(Mode::default());
    mask[i] = match is_background {
        true => 0,
        false if is_shadow(model, pixel, &own[..count]) => 127,
        false => 255,
    };
    modes[i] = own;
    counts[i] = count as u32;
}

/// The same on the host: weight, variance and mean of each mode, the heaviest first.
type HostModes = Vec<(f32, f32, Vec<f32>)>;

fn host_mog(m: &Mog, modes: &mut HostModes, pixel: &[f32]) -> u8 {
    let distance = |mean: &[f32], pixel: &[f32]| {
        mean.iter()
            .zip(pixel)
            .map(|(a, b)| (a - b) * (a - b))
            .sum::<f32>()
    };
    let (mut background, mut hit, mut total) = (false, None, 0.0);
    for k in 0..modes.len() {
        let (weight, variance, mean) = &mut modes[k];
        *weight = (1.0 - m.rate) * *weight - m.prune;
        let d = distance(mean, pixel);
        if hit.is_none() {
            background |= total < m.background && d < m.near * *variance;
        }
        if hit.is_none() && d < m.fits * *variance {
            hit = Some(k);
            *weight += m.rate;
            let part = m.rate / *weight;
            for (a, b) in mean.iter_mut().zip(pixel) {
                *a += part * (b - *a);
            }
            *variance = (*variance + part * (d - *variance)).clamp(m.least_variance, m.most_variance);
        } else if *weight < m.prune {
            modes.truncate(k);
            break;
        }
        total += modes[k].0;
    }
    let moved = match hit {
        Some(k) => modes.remove(k),
        None => {
            modes.truncate(3);
            modes.iter_mut().for_each(|mode| mode.0 *= 1.0 - m.rate);
            (
                if modes.is_empty() { 1.0 } else { m.rate },
                m.first_variance,
                pixel.to_vec(),
            )
        }
    };
    // Those behind the one that fits are not heavier than it was.
    let place = modes
        .iter()
        .take(hit.unwrap_or(4))
        .position(|mode| moved.0 >= mode.0);
    modes.insert(place.unwrap_or(hit.unwrap_or(modes.len())), moved);
    let all: f32 = modes.iter().map(|mode| mode.0).sum();
    modes.iter_mut().for_each(|mode| mode.0 /= all);
    let mut so_far = 0.0;
    let mut shadow = false;
    for (weight, variance, mean) in modes.iter() {
        let across: f32 = mean.iter().zip(pixel).map(|(a, b)| a * b).sum();
        let square: f32 = mean.iter().map(|a| a * a).sum();
        if square == 0.0 {
            break;
        }
        let part = across / square;
        let scaled: Vec<f32> = mean.iter().map(|a| a * part).collect();
        if part <= 1.0 && part >= m.shadow && distance(&scaled, pixel) < m.near * variance * part * part {
            shadow = true;
            break;
        }
        so_far += weight;
        if so_far > m.background {
            break;
        }
    }
    if background {
        0
    } else if shadow {
        127
    } else {
        255
    }
}

#[test]
fn what_moves_stands_out_of_the_background() {
    let mut random = Random(233);
    let (pixels, frames) = (131usize, 9usize);
    let model = Mog {
        rate: 0.07,
        prune: 0.035,
        background: 0.83,
        near: 16.3,
        fits: 9.1,
        first_variance: 15.3,
        least_variance: 4.1,
        most_variance: 75.7,
        shadow: 0.51,
    };
    // Each pixel has a colour of its own, noise, sometimes a shadow and sometimes something else.
    let base: Vec<[f32; 3]> = (0..pixels)
        .map(|_| [0; 3].map(|_: u32| 60.0 + (random.bits() % 180) as f32))
        .collect();
    let video: Vec<Vec<[f32; 3]>> = (0..frames)
        .map(|_| {
            let pixel = |colour: &[f32; 3]| match random.bits() % 10 {
                0 => colour.map(|c| (c * 0.7).floor()),
                1 | 2 => [3.0 + (random.bits() % 9) as f32, 17.0, 250.0],
                _ => colour.map(|c| c + (random.bits() % 9) as f32 - 4.0),
            };
            base.iter().map(pixel).collect()
        })
        .collect();
    let mut states: [Vec<HostModes>; 2] = [vec![vec![]; pixels], vec![vec![]; pixels]];
    let masks: Vec<[Vec<u8>; 2]> = video
        .iter()
        .map(|frame| {
            [0, 1].map(|grey| {
                let channels = if grey == 1 { 1 } else { 3 };
                let step =
                    |(pixel, modes): (&[f32; 3], &mut HostModes)| host_mog(&model, modes, &pixel[..channels]);
                frame.iter().zip(&mut states[grey]).map(step).collect()
            })
        })
        .collect();
    assert!(
        [0u8, 127, 255]
            .iter()
            .all(|kind| masks[frames - 1][0].contains(kind) || masks[frames - 2][0].contains(kind))
    );
    let counts_of =
        |grey: usize| -> Vec<u32> { states[grey].iter().map(|modes| modes.len() as u32).collect() };
    everywhere(|run| {
        let none = [Mode::<[f32; 3]>::default(); MODES];
        let modes = run.upload(&vec![none; pixels]);
        let grey_modes = run.upload(&vec![[Mode::<f32>::default(); MODES]; pixels]);
        let (counts, grey_counts) = (run.zeros::<u32>(pixels), run.zeros::<u32>(pixels));
        let mask = run.zeros::<u8>(pixels);
        let config = || LaunchConfig::linear(pixels, 64);
        for (frame, masks) in video.iter().zip(&masks) {
            let colours = run.upload(frame);
            run.launch(
                mog2::kernel::<[f32; 3]>(),
                config(),
                args![model, &colours, &modes, &counts, &mask],
            );
            run.holds(&mask, &masks[0]);
            let greys: Vec<f32> = frame.iter().map(|pixel| pixel[0]).collect();
            let greys = run.upload(&greys);
            run.launch(
                mog2::kernel::<f32>(),
                config(),
                args![model, &greys, &grey_modes, &grey_counts, &mask],
            );
            run.holds(&mask, &masks[1]);
        }
        run.holds(&counts, &counts_of(0));
        run.holds(&grey_counts, &counts_of(1));
        for (found, expected) in run
            .read(&modes)
            .iter()
            .flatten()
            .zip(states[0].iter().flat_map(|modes| {
                modes
                    .iter()
                    .cloned()
                    .chain(std::iter::repeat((0.0, 0.0, vec![0.0; 3])))
                    .take(MODES)
            }))
        {
            // Nine frames of a dozen roundings each.
            let near = |a: f32, b: f32| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
            assert!(
                near(found.weight, expected.0) && near(found.variance, expected.1),
                "on {}",
                run.place()
            );
            assert!(
                found.mean.iter().zip(&expected.2).all(|(a, b)| near(*a, *b)),
                "on {}",
                run.place()
            );
        }
    });
}
