//! Operators on the CPU at a million elements beside NumPy's (`numpy_side.py`, by the Python that `PERPETUA_PYTHON` names, or `python3`), both on the cores that this process may use, in turns; then what
//! recording, a fused chain and a new kernel take. The ratio is NumPy's shortest time by ours: above 1 we are faster. A part of a name as argument chooses.
//!
//! `taskset -c 0,1 cargo bench --package perpetua-tensor --bench operators`

use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use perpetua_device::{BackendKind, Device};
use perpetua_tensor::{DType, Random, Result, Slice, Statistics, Tensor};

const N: usize = 1_000_000;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(20);

/// What operators compute with, as NumPy's side has it.
struct Given {
    x: Tensor,
    y: Tensor,
    /// From -4 to 4.
    z: Tensor,
    i: Tensor,
    j: Tensor,
    m: Tensor,
    n: Tensor,
    v: Tensor,
    b: Tensor,
    k: Tensor,
    /// True everywhere.
    t: Tensor,
    /// Sorted.
    s: Tensor,
    d: Tensor,
    device: Device,
}

type Case = (&'static str, &'static str, fn(&Given) -> Tensor);

const CASES: &[Case] = &[
    ("add", "x + y", |g| &g.x + &g.y),
    ("multiply by a number", "x * np.float32(2)", |g| &g.x * 2.0),
    ("divide", "x / y", |g| &g.x / &g.y),
    ("pow", "x ** y", |g| g.x.pow(&g.y)),
    ("maximum", "np.maximum(x, y)", |g| g.x.maximum(&g.y)),
    ("fmod", "np.fmod(z, y)", |g| g.z.fmod(&g.y)),
    ("remainder", "np.remainder(z, y)", |g| g.z.remainder(&g.y)),
    ("floor_divide", "z // y", |g| g.z.floor_divide(&g.y)),
    ("hypot", "np.hypot(x, y)", |g| g.x.hypot(&g.y)),
    ("atan2", "np.arctan2(x, y)", |g| g.x.atan2(&g.y)),
    ("copysign", "np.copysign(x, z)", |g| g.x.copysign(&g.z)),
    ("logaddexp", "np.logaddexp(x, y)", |g| g.x.logaddexp(&g.y)),
    ("greater", "x > y", |g| g.x.greater(&g.y)),
    ("add of integers", "i + j", |g| &g.i + &g.j),
    ("divide of integers", "i // j", |g| g.i.floor_divide(&g.j)),
    ("bitwise_xor", "i ^ j", |g| g.i.bitwise_xor(&g.j)),
    ("left_shift", "i << j", |g| g.i.left_shift(&g.j)),
    ("negative", "-x", |g| -&g.x),
    ("abs", "np.abs(z)", |g| g.z.abs()),
    ("floor", "np.floor(z)", |g| g.z.floor()),
    ("round", "np.round(z)", |g| g.z.round()),
    ("sqrt", "np.sqrt(x)", |g| g.x.sqrt()),
    ("reciprocal", "np.reciprocal(x)", |g| g.x.reciprocal()),
    ("exp", "np.exp(z)", |g| g.z.exp()),
    ("expm1", "np.expm1(z)", |g| g.z.expm1()),
    ("log", "np.log(x)", |g| g.x.log()),
    ("log1p", "np.log1p(x)", |g| g.x.log1p()),
    ("log2", "np.log2(x)", |g| g.x.log2()),
    ("sin", "np.sin(z)", |g| g.z.sin()),
    ("cos", "np.cos(z)", |g| g.z.cos()),
    ("tan", "np.tan(z)", |g| g.z.tan()),
    ("asin", "np.arcsin(x)", |g| g.x.asin()),
    ("atan", "np.arctan(z)", |g| g.z.atan()),
    ("sinh", "np.sinh(z)", |g| g.z.sinh()),
    ("tanh", "np.tanh(z)", |g| g.z.tanh()),
    ("atanh", "np.arctanh(x)", |g| g.x.atanh()),
    ("cbrt", "np.cbrt(x)", |g| g.x.cbrt()),
    ("isnan", "np.isnan(x)", |g| g.x.isnan()),
    ("square", "np.square(x)", |g| g.x.square()),
    ("sign", "np.sign(z)", |g| g.z.sign()),
    ("clip", "np.clip(z, -1, 1)", |g| g.z.clip(-1.0, 1.0)),
    ("where", "np.where(b, x, y)", |g| g.b.select(&g.x, &g.y)),
    ("cast to f64", "x.astype(np.float64)", |g| g.x.cast(DType::F64)),
    ("cast to integers", "z.astype(np.int32)", |g| g.z.cast(DType::I32)),
    ("sum", "x.sum()", |g| g.x.sum(..)),
    ("sum of f64", "d.sum()", |g| g.d.sum(..)),
    ("sum along rows", "m.sum(1)", |g| g.m.sum(1)),
    ("sum along columns", "m.sum(0)", |g| g.m.sum(0)),
    ("mean", "m.mean(1)", |g| g.m.mean(1)),
    ("var", "m.var(1)", |g| g.m.var(1)),
    ("prod", "m.prod(1)", |g| g.m.prod(1)),
    ("max", "x.max()", |g| g.x.max(..)),
    ("max along columns", "m.max(0)", |g| g.m.max(0)),
    ("argmax", "m.argmax(1)", |g| g.m.argmax(1)),
    ("all, where all are", "t.all()", |g| g.t.all(..)),
    ("sum of integers", "i.sum(dtype=np.int32)", |g| g.i.sum(..)),
    ("count_nonzero", "np.count_nonzero(b)", |g| g.b.count_nonzero(..)),
    ("cumsum", "x.cumsum()", |g| g.x.cumsum(0)),
    ("cumsum along rows", "m.cumsum(1)", |g| g.m.cumsum(1)),
    ("sort", "np.sort(x, kind='stable')", |g| g.x.sort(0, false)),
    ("argsort", "np.argsort(x, kind='stable')", |g| {
        g.x.argsort(0, false)
    }),
    ("searchsorted", "np.searchsorted(s, y)", |g| {
        g.s.searchsorted(&g.y, false)
    }),
    ("transpose", "m.T.copy()", |g| g.m.transpose()),
    ("flip", "x[::-1].copy()", |g| g.x.flip(0)),
    ("slice in steps", "m[::2, ::2].copy()", |g| {
        g.m.slice([Slice::every(2), Slice::every(2)])
    }),
    ("concat", "np.concatenate([x, y])", |g| g.x.concat(&[&g.y], 0)),
    ("roll", "np.roll(x, 1000)", |g| g.x.roll(1000, 0)),
    ("tile", "np.tile(v, 1000)", |g| g.v.tile(1000, 0)),
    ("pad", "np.pad(m, 1)", |g| g.m.pad([(1, 1), (1, 1)], 0.0)),
    ("tril", "np.tril(m)", |g| g.m.tril(0)),
    ("diff", "np.diff(x)", |g| g.x.diff(0)),
    ("outer", "np.outer(v, v)", |g| g.v.outer(&g.v)),
    ("gather", "x[k]", |g| g.x.gather(0, &g.k)),
    ("bincount", "np.bincount(i, minlength=1000)", |g| {
        g.i.bincount(1000)
    }),
    ("matmul", "m @ n", |g| g.m.matmul(&g.n)),
    ("matmul by a vector", "m @ v", |g| g.m.matmul(&g.v)),
    ("einsum", "np.einsum('ij,ij->i', m, n)", |g| {
        g.m.einsum(&[&g.n], "ij,ij->i")
    }),
    ("rfft", "np.fft.rfft(m)", |g| g.m.rfft(1)),
    (
        "softmax",
        "(lambda e: e / e.sum(1, keepdims=True))(np.exp(m - m.max(1, keepdims=True)))",
        |g| g.m.softmax(1),
    ),
    (
        "layer norm",
        "(lambda c: c / np.sqrt((c * c).mean(1, keepdims=True) + 1e-5))(m - m.mean(1, keepdims=True))",
        |g| g.m.layer_norm(1, 1e-5),
    ),
    ("relu(2x + y)", "np.maximum(2 * x + y, 0)", |g| {
        (&g.x * 2.0 + &g.y).relu()
    }),
    (
        "gelu",
        "0.5 * z * (1 + np.tanh(0.7978846 * (z + 0.044715 * z * z * z)))",
        |g| g.z.gelu(),
    ),
    (
        "normal numbers",
        "rng.standard_normal(N, dtype=np.float32)",
        |g| Random::new(7, &g.device).normal([N]),
    ),
];

/// Python with NumPy, which answers.
struct NumPy {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl NumPy {
    fn new() -> std::io::Result<NumPy> {
        let program = std::env::var("PERPETUA_PYTHON").unwrap_or_else(|_| "python3".into());
        let mut child = Command::new(program)
            .args(["-u", "-c", include_str!("numpy_side.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let missing = || std::io::Error::other("it has no input and output");
        let ask = child.stdin.take().ok_or_else(missing)?;
        let answers = child.stdout.take().ok_or_else(missing)?;
        let mut numpy = NumPy {
            child,
            ask,
            answers: BufReader::new(answers),
        };
        let version = numpy.answer()?;
        println!(
            "NumPy {version} beside us, on {} cores",
            std::thread::available_parallelism()?
        );
        Ok(numpy)
    }

    fn answer(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line)? {
            0 => Err(std::io::Error::other("it has ended")),
            _ => Ok(line.trim().to_owned()),
        }
    }

    fn time(&mut self, expression: &str) -> std::io::Result<f64> {
        writeln!(self.ask, "{expression}")?;
        self.answer()?.parse().map_err(std::io::Error::other)
    }
}

impl Drop for NumPy {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// The shortest of some runs, in seconds.
fn shortest(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    run()?;
    let (mut best, begin) = (f64::INFINITY, Instant::now());
    while begin.elapsed() < ROUND {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

fn given(device: &Device) -> Result<Given> {
    let random = Random::new(3, device);
    let uniform = || random.uniform([N]) * 0.98 + 0.01;
    let (x, y) = (uniform(), uniform());
    let whole = |scale: f64| (random.uniform([N]) * scale).cast(DType::I32);
    let given = Given {
        z: (&x - 0.5) * 8.0,
        i: whole(1000.0),
        j: whole(29.0) + 1,
        m: x.reshape([1000, 1000]),
        n: y.reshape([1000, 1000]),
        v: x.slice([Slice::from(..1000)]) + 0.0,
        b: x.greater(0.5),
        t: x.greater(0.0),
        k: whole(N as f64 - 1.0),
        s: x.sort(0, false),
        d: x.cast(DType::F64),
        device: device.clone(),
        x,
        y,
    };
    let all = [
        &given.x, &given.y, &given.z, &given.i, &given.j, &given.m, &given.n, &given.v, &given.b, &given.t,
        &given.k, &given.s, &given.d,
    ];
    Tensor::realize_all(&all)?;
    Ok(given)
}

fn beside(given: &Given, chosen: &[String]) -> Result<()> {
    let mut numpy = match NumPy::new() {
        Ok(numpy) => Some(numpy),
        Err(error) => {
            println!("without NumPy: {error}");
            None
        }
    };
    let mut ratios: Vec<(f64, &str)> = Vec::new();
    println!("{:<22} {:>10} {:>10} {:>6}", "", "ours, us", "NumPy, us", "ratio");
    for (name, expression, run) in CASES {
        if !(chosen.is_empty() || chosen.iter().any(|part| name.contains(part.as_str()))) {
            continue;
        }
        let (mut own, mut other) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            let time = shortest(|| {
                run(given).realize()?;
                given.device.synchronize().map_err(Into::into)
            })?;
            own = own.min(time);
            if let Some(Ok(time)) = numpy.as_mut().map(|numpy| numpy.time(expression)) {
                other = other.min(time);
            }
        }
        let micros = |time: f64| format!("{:.1}", time * 1e6);
        match other.is_finite() {
            true => {
                ratios.push((other / own, name));
                println!(
                    "{name:<22} {:>10} {:>10} {:>6.2}",
                    micros(own),
                    micros(other),
                    other / own
                );
            }
            false => println!("{name:<22} {:>10} {:>10} {:>6}", micros(own), "-", "-"),
        }
    }
    if !ratios.is_empty() {
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mean = ratios.iter().map(|(ratio, _)| ratio.ln()).sum::<f64>() / ratios.len() as f64;
        println!(
            "{} operators: geometric mean {:.2}; the worst:",
            ratios.len(),
            mean.exp()
        );
        for (ratio, name) in ratios.iter().take(8) {
            println!("  {name} {ratio:.2}");
        }
    }
    Ok(())
}

fn small(device: &Device) -> Result<()> {
    let x = Tensor::ones([64], DType::F32, device) + 0.0;
    let y = &x * 2.0;
    Tensor::realize_all(&[&x, &y])?;
    let each = |times: usize, time: f64| time * 1e6 / times as f64;
    let recorded = shortest(|| {
        for _ in 0..1000 {
            black_box(x.add(&y));
        }
        Ok(())
    })?;
    println!("recording one small operator: {:.3} us", each(1000, recorded));
    let chain = || (((((&x + &y) * 0.5).exp() - &y) * &x).relu() + 1.0).realize();
    let issued = shortest(|| {
        for _ in 0..100 {
            chain()?;
        }
        Ok(())
    })?;
    device.synchronize()?;
    println!(
        "a chain of six, from the first operator to the device: {:.2} us",
        each(100, issued)
    );
    // New kernels: chains of six in orders that were not there before, each then again.
    let steps: [fn(&Tensor) -> Tensor; 6] = [
        |x| x.sin(),
        |x| x.exp(),
        |x| x.abs(),
        |x| x.sqrt(),
        |x| x.tanh(),
        |x| x.square(),
    ];
    let (mut new, mut again) = (f64::INFINITY, f64::INFINITY);
    let before = Statistics::of(device).compiled;
    for order in 0..24 {
        let mut left: Vec<usize> = (0..steps.len()).collect();
        let (mut at, mut result) = (order, x.clone());
        while !left.is_empty() {
            let step = left.remove(at % left.len());
            at /= left.len().max(1);
            result = steps[step](&result);
        }
        let chain = |x: &Tensor| {
            x.realize()
                .and_then(|()| device.synchronize().map_err(Into::into))
        };
        let start = Instant::now();
        chain(&result)?;
        new = new.min(start.elapsed().as_secs_f64());
        let mut left: Vec<usize> = (0..steps.len()).collect();
        let (mut at, mut result) = (order, x.clone());
        while !left.is_empty() {
            let step = left.remove(at % left.len());
            at /= left.len().max(1);
            result = steps[step](&result);
        }
        let start = Instant::now();
        chain(&result)?;
        again = again.min(start.elapsed().as_secs_f64());
    }
    let compiled = Statistics::of(device).compiled - before;
    println!(
        "a fused kernel of six operators, {compiled} new ones: {:.2} ms until its result, {:.1} us when it is known",
        new * 1e3,
        again * 1e6
    );
    Ok(())
}

fn main() -> Result<()> {
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|text| !text.starts_with('-'))
        .collect();
    let device = Device::new(BackendKind::Cpu, 0)?;
    let given = given(&device)?;
    beside(&given, &chosen)?;
    small(&device)
}
