//! Vertices on many shortest paths, and rows in windows.

use std::collections::VecDeque;

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 215: betweenness

const UNSEEN: u32 = u32::MAX;

/// From the vertices of a level to those of the next; y says the source.
#[kernel]
fn count_paths(
    level: u32,
    starts: &[u32],
    neighbours: &[u32],
    levels: &mut [u32],
    paths: &mut [u32],
    grown: &mut u32,
) {
    let (vertex, source) = (global_id_x(), global_id_y());
    let count = starts.len() - 1;
    if vertex >= count || source >= levels.len() / count {
        return;
    }
    let first = source * count;
    if atomic_load(&levels[first + vertex]) != level {
        return;
    }
    let own = paths[first + vertex];
    for other in &neighbours[starts[vertex] as usize..starts[vertex + 1] as usize] {
        let at = first + *other as usize;
        match atomic_compare_exchange(&mut levels[at], UNSEEN, level + 1) {
            UNSEEN => {
                atomic_or(grown, 1);
                atomic_add(&mut paths[at], own);
            }
            seen if seen == level + 1 => {
                atomic_add(&mut paths[at], own);
            }
            _ => {}
        }
    }
}

/// Back from the next level: what depends on each vertex of this one.
#[kernel]
fn depend(
    level: u32,
    starts: &[u32],
    neighbours: &[u32],
    levels: &[u32],
    paths: &[u32],
    dependencies: &mut [f32],
    centrality: &mut [f32],
) {
    let (vertex, source) = (global_id_x(), global_id_y());
    let count = starts.len() - 1;
    if vertex >= count || source >= levels.len() / count {
        return;
    }
    let rows = source * count..(source + 1) * count;
    let (levels, paths) = (&levels[rows.clone()], &paths[rows.clone()]);
    if levels[vertex] != level {
        return;
    }
    let dependencies = &mut dependencies[rows];
    let sum: f32 = neighbours[starts[vertex] as usize..starts[vertex + 1] as usize]
        .iter()
        .map(|w| *w as usize)
        .filter(|w| levels[*w] == level + 1)
        .map(|w| paths[vertex] as f32 / paths[w] as f32 * (1.0 + dependencies[w]))
        .sum();
    dependencies[vertex] = sum;
    if level > 0 {
        atomic_add(&mut centrality[vertex], sum);
    }
}

#[test]
fn vertices_between_others() {
    let mut random = Random(215);
    let count = 80usize;
    let mut adjacent = vec![Vec::new(); count];
    for i in 0..150 {
        let (a, b) = (
            if i < 60 { i } else { random.below(count - 5) },
            random.below(count - 5),
        );
        if a != b && !adjacent[a].contains(&(b as u32)) {
            adjacent[a].push(b as u32);
            adjacent[b].push(a as u32);
        }
    }
    let sources = [0usize, 7, 30, 78];
    let mut expected = vec![0.0f64; count];
    for &source in &sources {
        let (mut paths, mut far) = (vec![0.0f64; count], vec![usize::MAX; count]);
        let (mut order, mut queue) = (Vec::new(), VecDeque::from([source]));
        paths[source] = 1.0;
        far[source] = 0;
        while let Some(v) = queue.pop_front() {
            order.push(v);
            for w in adjacent[v].iter().map(|w| *w as usize) {
                if far[w] == usize::MAX {
                    far[w] = far[v] + 1;
                    queue.push_back(w);
                }
                if far[w] == far[v] + 1 {
                    paths[w] += paths[v];
                }
            }
        }
        let mut delta = vec![0.0; count];
        for &w in order.iter().rev() {
            for v in adjacent[w]
                .iter()
                .map(|v| *v as usize)
                .filter(|v| far[*v] + 1 == far[w])
            {
                delta[v] += paths[v] / paths[w] * (1.0 + delta[w]);
            }
            if w != source {
                expected[w] += delta[w];
            }
        }
    }
    let neighbours = adjacent.concat();
    let mut starts = vec![0u32];
    for list in &adjacent {
        starts.push(starts.last().unwrap() + list.len() as u32);
    }
    let (mut levels, mut paths) = (vec![UNSEEN; count * 4], vec![0u32; count * 4]);
    for (k, source) in sources.iter().enumerate() {
        levels[k * count + source] = 0;
        paths[k * count + source] = 1;
    }
    everywhere(|run| {
        let (s, n) = (run.upload(&starts), run.upload(&neighbours));
        let (l, p) = (run.upload(&levels), run.upload(&paths));
        let (d, c) = (run.zeros::<f32>(count * 4), run.zeros::<f32>(count));
        let config = LaunchConfig::tiled(count, 4, (32, 2));
        let mut level = 0u32;
        loop {
            let grown = run.zeros::<u32>(1);
            run.launch(
                count_paths::kernel(),
                config,
                args![level, &s, &n, &l, &p, &grown],
            );
            if run.read(&grown) == [0] {
                break;
            }
            level += 1;
        }
        for level in (0..=level).rev() {
            run.launch(depend::kernel(), config, args![level, &s, &n, &l, &p, &d, &c]);
        }
        run.near(&c, &expected, 1e-4);
    });
}

// 219: windows of rows

/// What a window's values become, one after another.
#[device]
trait Aggregate: Copy + Default {
    type Output: GpuType;

    fn with(self, value: i32) -> Self;
    fn result(self, count: u32) -> Self::Output;
}

#[derive(Clone, Copy, Default, GpuType)]
#[repr(C)]
struct Sum {
    total: i64,
}

#[derive(Clone, Copy, Default, GpuType)]
#[repr(C)]
struct Mean {
    total: i64,
}

#[derive(Clone, Copy, Default, GpuType)]
struct Least {
    least: Option<i32>,
}

#[derive(Clone, Copy, Default, GpuType)]
struct Count;

#[device]
impl Aggregate for Sum {
    type Output = i64;

    fn with(self, value: i32) -> Self {
        Sum {
            total: self.total + i64::from(value),
        }
    }

    fn result(self, _count: u32) -> i64 {
        self.total
    }
}

#[device]
impl Aggregate for Mean {
    type Output = f64;

    fn with(self, value: i32) -> Self {
        Mean {
            total: self.total + i64::from(value),
        }
    }

    fn result(self, count: u32) -> f64 {
        self.total as f64 / f64::from(count)
    }
}

#[device]
impl Aggregate for Least {
    type Output = i32;

    fn with(self, value: i32) -> Self {
        Least {
            least: Some(self.least.map_or(value, |least| least.min(value))),
        }
    }

    fn result(self, _count: u32) -> i32 {
        self.least.unwrap_or(i32::MAX)
    }
}

#[device]
impl Aggregate for Count {
    type Output = u32;

    fn with(self, _value: i32) -> Self {
        self
    }

    fn result(self, count: u32) -> u32 {
        count
    }
}

#[device]
fn is_valid(mask: &[u32], row: usize) -> bool {
    mask[row / 32] >> (row % 32) & 1 == 1
}

/// A row's window reaches from `preceding` rows, itself among them, to `following` rows.
#[kernel]
fn rolling<A: Aggregate>(
    preceding: usize,
    following: usize,
    least: u32,
    values: &[i32],
    mask: &[u32],
    out: &mut [A::Output],
    out_valid: &mut [u8],
) {
    let i = global_id_x();
    if i >= values.len() {
        return;
    }
    let window = (i + 1).saturating_sub(preceding)..(i + following + 1).min(values.len());
    let (all, count) = window
        .filter(|row| is_valid(mask, *row))
        .fold((A::default(), 0), |(all, count), row| {
            (all.with(values[row]), count + 1)
        });
    out_valid[i] = u8::from(count >= least);
    if count >= least {
        out[i] = all.result(count);
    }
}

/// The value some rows further on, or back; `otherwise` beyond the ends.
#[kernel]
fn shifted<T: Copy + Default>(
    by: i32,
    otherwise: T,
    values: &[T],
    mask: &[u32],
    out: &mut [T],
    out_valid: &mut [u8],
) {
    let i = global_id_x();
    if i >= values.len() {
        return;
    }
    let row = i
        .checked_add_signed(by as isize)
        .filter(|row| *row < values.len());
    let found = match row {
        Some(row) => is_valid(mask, row).then_some(values[row]),
        None => Some(otherwise),
    };
    out[i] = found.unwrap_or_default();
    out_valid[i] = found.is_some().into();
}

#[test]
fn rows_are_seen_in_windows() {
    let mut random = Random(219);
    let rows = 200usize;
    let values: Vec<Option<i32>> = (0..rows)
        .map(|_| (random.below(4) > 0).then(|| random.bits() as i32 >> 4))
        .collect();
    let plain: Vec<i32> = values.iter().map(|v| v.unwrap_or(77)).collect();
    let mut mask = vec![0u32; rows.div_ceil(32)];
    for (i, v) in values.iter().enumerate() {
        mask[i / 32] |= u32::from(v.is_some()) << (i % 32);
    }
    let windows: Vec<Option<Vec<i64>>> = (0..rows)
        .map(|i| {
            let window = &values[i.saturating_sub(4)..(i + 3).min(rows)];
            let some: Vec<i64> = window.iter().flatten().map(|v| i64::from(*v)).collect();
            (some.len() >= 4).then_some(some)
        })
        .collect();
    let valid: Vec<u8> = windows.iter().map(|w| u8::from(w.is_some())).collect();
    everywhere(|run| {
        let (v, m) = (run.upload(&plain), run.upload(&mask));
        let config = LaunchConfig::linear(rows, 64);
        let known = run.zeros::<u8>(rows);
        let least = |w: &Vec<i64>| *w.iter().min().unwrap() as i32;

        let out = run.zeros::<i64>(rows);
        run.launch(
            rolling::kernel::<Sum>(),
            config,
            args![5usize, 2usize, 4u32, &v, &m, &out, &known],
        );
        run.holds(&known, &valid);
        let sums: Vec<i64> = windows
            .iter()
            .map(|w| w.as_ref().map_or(0, |w| w.iter().sum()))
            .collect();
        run.holds(&out, &sums);

        let out = run.zeros::<f64>(rows);
        run.launch(
            rolling::kernel::<Mean>(),
            config,
            args![5usize, 2usize, 4u32, &v, &m, &out, &known],
        );
        let mean = |w: &Vec<i64>| w.iter().sum::<i64>() as f64 / w.len() as f64;
        let means: Vec<f64> = windows.iter().map(|w| w.as_ref().map_or(0.0, mean)).collect();
        run.near(&out, &means, 1e-12);

        let out = run.zeros::<i32>(rows);
        run.launch(
            rolling::kernel::<Least>(),
            config,
            args![5usize, 2usize, 4u32, &v, &m, &out, &known],
        );
        run.holds(
            &out,
            &windows
                .iter()
                .map(|w| w.as_ref().map_or(0, least))
                .collect::<Vec<_>>(),
        );

        let out = run.zeros::<u32>(rows);
        run.launch(
            rolling::kernel::<Count>(),
            config,
            args![5usize, 2usize, 4u32, &v, &m, &out, &known],
        );
        run.holds(
            &out,
            &windows
                .iter()
                .map(|w| w.as_ref().map_or(0, |w| w.len() as u32))
                .collect::<Vec<_>>(),
        );

        for by in [3i32, -7] {
            let out = run.zeros::<i32>(rows);
            run.launch(
                shifted::kernel::<i32>(),
                config,
                args![by, -1i32, &v, &m, &out, &known],
            );
            let moved: Vec<Option<i32>> = (0..rows as i32)
                .map(|i| match i + by {
                    k if k < 0 || k >= rows as i32 => Some(-1),
                    k => values[k as usize],
                })
                .collect();
            run.holds(&out, &moved.iter().map(|v| v.unwrap_or(0)).collect::<Vec<_>>());
            run.holds(
                &known,
                &moved.iter().map(|v| u8::from(v.is_some())).collect::<Vec<_>>(),
            );
        }
    });
}
