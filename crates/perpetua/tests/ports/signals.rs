//! Filters of signals.

use perpetua::prelude::*;

use crate::harness::everywhere;
use crate::transformers::reals;

// 78: second-order sections

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Section<T> {
    b: [T; 3],
    a: [T; 2],
}

/// A signal a block, a section a lane: section `k` is `k` samples behind the first.
#[kernel(block_size = 16)]
fn sosfilt<T>(sections: &[Section<T>], states: &mut [[T; 2]], signals: &mut [T])
where
    T: GpuType + std::ops::Add<Output = T> + std::ops::Sub<Output = T> + std::ops::Mul<Output = T> + Default,
{
    let passed = shared_array::<[T; 16]>();
    let (lane, count) = (local_id_x(), sections.len());
    let samples = signals.len() / (states.len() / count);
    let signal = &mut signals[group_id_x() * samples..][..samples];
    let own = (lane < count).then(|| group_id_x() * count + lane);
    let mut state = own.map_or([T::default(); 2], |i| states[i]);
    for time in 0..samples + count - 1 {
        let mut out = T::default();
        let sample = time.checked_sub(lane).filter(|t| *t < samples && lane < count);
        if let Some(t) = sample {
            let x = if lane == 0 { signal[t] } else { passed[lane - 1] };
            let Section { b, a } = sections[lane];
            out = b[0] * x + state[0];
            state = [b[1] * x - a[0] * out + state[1], b[2] * x - a[1] * out];
            if lane == count - 1 {
                signal[t] = out;
            }
        }
        sync_threads();
        passed[lane] = out;
        sync_threads();
    }
    if let Some(i) = own {
        states[i] = state;
    }
}

#[test]
fn sections_filter_one_after_the_other() {
    let (signals, samples, count) = (3usize, 50usize, 5usize);
    let sections: Vec<Section<f64>> = reals(count * 5, 78)
        .chunks(5)
        .map(|c| {
            let c: Vec<f64> = c.iter().map(|x| f64::from(*x)).collect();
            Section {
                b: [1.0 + c[0], c[1], c[2]],
                a: [0.5 * c[3], 0.4 * c[4]],
            }
        })
        .collect();
    let x: Vec<f64> = reals(signals * samples, 79)
        .iter()
        .map(|x| f64::from(*x))
        .collect();
    let start: Vec<[f64; 2]> = reals(signals * count * 2, 80)
        .chunks(2)
        .map(|s| [f64::from(s[0]), f64::from(s[1])])
        .collect();
    let (mut y, mut end) = (x.clone(), start.clone());
    for n in 0..signals {
        for (k, s) in sections.iter().enumerate() {
            let [mut p, mut q] = start[n * count + k];
            for v in &mut y[n * samples..(n + 1) * samples] {
                let out = s.b[0] * *v + p;
                p = s.b[1] * *v - s.a[0] * out + q;
                q = s.b[2] * *v - s.a[1] * out;
                *v = out;
            }
            end[n * count + k] = [p, q];
        }
    }
    everywhere(|run| {
        let (found, states) = (run.upload(&x), run.upload(&start));
        let all = run.upload(&sections);
        let args = args![&all, &states, &found];
        run.launch(
            sosfilt::kernel::<f64>(),
            LaunchConfig::new(signals as u32, 16),
            args,
        );
        let near = |x: &[f64], y: &[f64]| {
            x.iter()
                .zip(y)
                .all(|(x, y)| (x - y).abs() <= 1e-12 * y.abs().max(1.0))
        };
        assert!(near(&run.read(&found), &y), "on {}", run.place());
        assert!(
            near(&run.read(&states).concat(), &end.concat()),
            "on {}",
            run.place()
        );
        let singles: Vec<Section<f32>> = sections
            .iter()
            .map(|s| Section {
                b: s.b.map(|v| v as f32),
                a: s.a.map(|v| v as f32),
            })
            .collect();
        let narrow = |x: &[f64]| -> Vec<f32> { x.iter().map(|v| *v as f32).collect() };
        let (found, states) = (run.upload(&narrow(&x)), run.upload(&narrow(&start.concat())));
        let states = states.cast::<[f32; 2]>().unwrap();
        let all = run.upload(&singles);
        let args = args![&all, &states, &found];
        run.launch(
            sosfilt::kernel::<f32>(),
            LaunchConfig::new(signals as u32, 16),
            args,
        );
        run.near(&found, &y, 1e-4);
    });
}
