//! Markets: bonds with their dates, a model of interest rates, and numbers to draw paths with.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 113: bonds

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Date {
    year: u16,
    month: u8,
    day: u8,
}

#[device]
const fn is_leap(year: u16) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

#[device]
impl Date {
    const LENGTHS: [u8; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

    fn month_length(year: u16, month: u8) -> u8 {
        match month {
            2 if is_leap(year) => 29,
            1..=12 => Self::LENGTHS[month as usize - 1],
            _ => unreachable!("months go from 1 to 12"),
        }
    }

    /// Days since the end of 1899.
    fn serial(self) -> u32 {
        let years: u32 = (1900..self.year)
            .map(|y| if is_leap(y) { 366 } else { 365 })
            .sum();
        let months: u32 = (1..self.month)
            .map(|m| u32::from(Self::month_length(self.year, m)))
            .sum();
        years + months + u32::from(self.day)
    }

    fn plus_months(self, months: i32) -> Self {
        let all = i32::from(self.year) * 12 + i32::from(self.month) - 1 + months;
        let (year, month) = (all.div_euclid(12) as u16, all.rem_euclid(12) as u8 + 1);
        Self {
            year,
            month,
            day: self.day.min(Self::month_length(year, month)),
        }
    }

    /// In years of 360 days, with months of thirty.
    fn years_until(self, later: Self) -> f64 {
        let (d1, mut d2, mut m2) = (i32::from(self.day), i32::from(later.day), i32::from(later.month));
        if d2 == 31 && d1 < 30 {
            (d2, m2) = (1, m2 + 1);
        }
        let years = i32::from(later.year) - i32::from(self.year);
        let months = m2 - i32::from(self.month) - 1;
        f64::from(360 * years + 30 * months + (30 - d1).max(0) + d2.min(30)) / 360.0
    }
}

#[device]
impl PartialOrd for Date {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        let key = |d: &Self| (d.year, d.month, d.day);
        key(self).partial_cmp(&key(other))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(u32)]
enum Compounding {
    Simple,
    Compounded,
    Continuous,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Rate {
    rate: f64,
    frequency: f64,
    compounding: Compounding,
}

#[device]
impl Rate {
    fn growth(&self, years: f64) -> f64 {
        let Rate {
            rate,
            frequency,
            compounding,
        } = *self;
        match compounding {
            Compounding::Simple => 1.0 + rate * years,
            Compounding::Compounded => (1.0 + rate / frequency).powf(frequency * years),
            Compounding::Continuous => (rate * years).exp(),
        }
    }

    /// Of the discount by the rate.
    fn slope(&self, years: f64) -> f64 {
        let discount = self.growth(years).recip();
        -years
            * match self.compounding {
                Compounding::Simple => discount * discount,
                Compounding::Compounded => discount / (1.0 + self.rate / self.frequency),
                Compounding::Continuous => discount,
            }
    }
}

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Bond {
    issue: Date,
    maturity: Date,
    today: Date,
    compounding: Compounding,
    coupon: f64,
    clean_price: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Flow {
    start: Date,
    end: Date,
    amount: f64,
}

/// Newton's steps within a bracket that shrinks by bisection.
#[device]
fn root(mut low: f64, mut high: f64, accuracy: f64, f: impl Fn(f64) -> (f64, f64)) -> Option<f64> {
    let (at_low, _) = f(low);
    if at_low * f(high).0 > 0.0 {
        return None;
    }
    let mut x = 0.5 * (low + high);
    for _ in 0..100 {
        let (value, slope) = f(x);
        if (value < 0.0) == (at_low < 0.0) {
            low = x;
        } else {
            high = x;
        }
        let newton = x - value / slope;
        let next = if low < newton && newton < high {
            newton
        } else {
            0.5 * (low + high)
        };
        if (next - x).abs() < accuracy {
            return Some(next);
        }
        x = next;
    }
    None
}

const MOST: usize = 12;

#[kernel]
fn bonds(bonds: &[Bond], results: &mut [[f64; 3]]) {
    let i = global_id_x();
    let Some(bond) = bonds.get(i) else { return };
    let coupon = Rate {
        rate: bond.coupon,
        frequency: 2.0,
        compounding: Compounding::Simple,
    };
    let mut flows = [Flow {
        start: bond.issue,
        end: bond.issue,
        amount: 0.0,
    }; MOST];
    let mut count = 0;
    let mut end = bond.maturity;
    while end > bond.issue && count < MOST {
        let start = bond.maturity.plus_months(-6 * (count as i32 + 1));
        let amount = 100.0 * (coupon.growth(start.years_until(end)) - 1.0);
        flows[count] = Flow { start, end, amount };
        count += 1;
        end = start;
    }
    let flows = &mut flows[..count];
    flows[0].amount += 100.0;
    flows.reverse();
    let due = &flows[flows.partition_point(|flow| flow.end <= bond.today)..];
    let accrued = due.first().map_or(0.0, |flow| {
        let until = if flow.start < bond.today {
            bond.today
        } else {
            flow.start
        };
        100.0 * (coupon.growth(flow.start.years_until(until)) - 1.0)
    });
    let dirty = bond.clean_price + accrued;
    let found = root(-0.05, 1.0, 1e-10, |rate| {
        let rate = Rate {
            rate,
            frequency: 2.0,
            compounding: bond.compounding,
        };
        due.iter().fold((-dirty, 0.0), |(value, slope), flow| {
            let years = bond.today.years_until(flow.end);
            (
                value + flow.amount / rate.growth(years),
                slope + flow.amount * rate.slope(years),
            )
        })
    });
    let days = bond.maturity.serial() - bond.today.serial();
    results[i] = [accrued, found.unwrap_or(f64::NAN), f64::from(days)];
}

#[test]
fn bonds_have_the_yield_of_their_price() {
    let mut random = Random(113);
    let date = |days: i64| {
        // By eras of 400 years.
        let z = days + 719_468 + 59;
        let (era, day) = (z.div_euclid(146_097), z.rem_euclid(146_097));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let left = day - (365 * year + year / 4 - year / 100);
        let month = (5 * left + 2) / 153;
        let (d, m) = (
            left - (153 * month + 2) / 5 + 1,
            if month < 10 { month + 3 } else { month - 9 },
        );
        Date {
            year: (year + era * 400 + i64::from(m < 3)) as u16,
            month: m as u8,
            day: d as u8,
        }
    };
    let months = |d: Date, by: i32| {
        let all = i32::from(d.year) * 12 + i32::from(d.month) - 1 + by;
        let (y, m) = (all / 12, all % 12 + 1);
        let length = [
            31,
            if y % 4 == 0 { 29 } else { 28 },
            31,
            30,
            31,
            30,
            31,
            31,
            30,
            31,
            30,
            31,
        ][m as usize - 1];
        Date {
            year: y as u16,
            month: m as u8,
            day: d.day.min(length),
        }
    };
    let thirty = |a: Date, b: Date| {
        let (mut d2, mut m2) = (i32::from(b.day), i32::from(b.month));
        if d2 == 31 && a.day < 30 {
            d2 = 1;
            m2 += 1;
        }
        let days = 360 * (i32::from(b.year) - i32::from(a.year)) + 30 * (m2 - i32::from(a.month) - 1);
        f64::from(days + (30 - i32::from(a.day)).max(0) + d2.min(30)) / 360.0
    };
    let (mut bonds, mut expected) = (Vec::new(), Vec::new());
    let kinds = [
        Compounding::Simple,
        Compounding::Compounded,
        Compounding::Continuous,
    ];
    for k in 0..100usize {
        let issue = 9000 + random.below(1500) as i64;
        let maturity = issue + 400 + random.below(1600) as i64;
        let today = issue + random.below((maturity - issue) as usize - 100) as i64;
        let (compounding, rate) = (kinds[k % 3], random.between(0.01, 0.12));
        let coupon = random.between(0.01, 0.1);
        let mut bond = Bond {
            issue: date(issue),
            maturity: date(maturity),
            today: date(today),
            compounding,
            coupon,
            clean_price: 0.0,
        };
        // The price of a known yield, so that the yield is known.
        let key = |d: Date| (d.year, d.month, d.day);
        let (mut price, mut accrued, mut back, mut end) = (0.0, 0.0, 0, bond.maturity);
        while key(end) > key(bond.issue) {
            back += 1;
            let start = months(bond.maturity, -6 * back);
            if key(end) > key(bond.today) {
                let t = thirty(bond.today, end);
                let growth = match compounding {
                    Compounding::Simple => 1.0 + rate * t,
                    Compounding::Compounded => (2.0 * t * (1.0 + rate / 2.0).ln()).exp(),
                    Compounding::Continuous => (rate * t).exp(),
                };
                let amount = 100.0 * coupon * thirty(start, end) + if back == 1 { 100.0 } else { 0.0 };
                price += amount / growth;
                if key(start) < key(bond.today) {
                    accrued = 100.0 * coupon * thirty(start, bond.today);
                }
            }
            end = start;
        }
        bond.clean_price = price - accrued;
        bonds.push(bond);
        expected.extend([accrued, rate, (maturity - today) as f64]);
    }
    everywhere(|run| {
        // WGSL has no powers of f64.
        if run.is_wgpu() {
            return;
        }
        let (list, y) = (run.upload(&bonds), run.zeros::<[f64; 3]>(bonds.len()));
        run.launch(
            bonds::kernel(),
            LaunchConfig::linear(bonds.len(), 32),
            args![&list, &y],
        );
        run.near(&y.cast::<f64>().unwrap(), &expected, 1e-7);
    });
}

// 114: LIBOR

const RATES: usize = 16;
/// Steps of a path, and rates that live longer.
const STEPS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Swaption {
    maturity: u32,
    rate: f32,
}

/// All rates after each step.
type Path = [[f32; RATES]; STEPS + 1];

#[device]
fn simulate(first: f32, delta: f32, lambda: &[f32], noise: &[f32]) -> Path {
    let mut path = [[first; RATES]; STEPS + 1];
    for (n, z) in noise.iter().enumerate().take(STEPS) {
        let (shock, mut drift) = (delta.sqrt() * z, 0.0);
        path[n + 1] = path[n];
        for (rate, lambda) in path[n + 1].iter_mut().skip(n + 1).zip(lambda) {
            let con = delta * lambda;
            drift += con * *rate / (1.0 + delta * *rate);
            *rate *= (con * drift + lambda * (shock - 0.5 * con)).exp();
        }
    }
    path
}

/// The portfolio's value, and its slope by each rate at the end.
#[device]
fn portfolio(rates: &[f32; RATES], delta: f32, options: &[Swaption]) -> (f32, [f32; RATES]) {
    const LATER: usize = RATES - STEPS;
    let (now, later) = rates.split_at(STEPS);
    let (mut b, mut s) = (1.0, 0.0);
    let (mut bonds, mut swaps) = ([0.0f32; LATER], [0.0f32; LATER]);
    for ((bond, swap), rate) in bonds.iter_mut().zip(&mut swaps).zip(later) {
        b /= 1.0 + delta * rate;
        s += delta * b;
        (*bond, *swap) = (b, s);
    }
    let mut value = 0.0;
    let (mut bond_slopes, mut swap_slopes) = ([0.0f32; LATER], [0.0f32; LATER]);
    for Swaption { maturity, rate } in options {
        let m = *maturity as usize - 1;
        let swap = bonds[m] + rate * swaps[m] - 1.0;
        if swap < 0.0 {
            value -= 100.0 * swap;
            swap_slopes[m] -= 100.0 * rate;
            bond_slopes[m] -= 100.0;
        }
    }
    let mut slopes = [0.0; RATES];
    for m in (0..LATER).rev() {
        bond_slopes[m] += delta * swap_slopes[m];
        let factor = 1.0 / (1.0 + delta * later[m]);
        slopes[STEPS + m] = -bond_slopes[m] * bonds[m] * delta * factor;
        if let Some(before) = m.checked_sub(1) {
            swap_slopes[before] += swap_slopes[m];
            bond_slopes[before] += bond_slopes[m] * factor;
        }
    }
    let discount = now.iter().fold(1.0, |b, rate| b / (1.0 + delta * rate));
    value *= discount;
    for (slope, rate) in slopes.iter_mut().zip(now) {
        *slope = -value * delta / (1.0 + delta * rate);
    }
    slopes[STEPS..].iter_mut().for_each(|slope| *slope *= discount);
    (value, slopes)
}

#[kernel]
fn libor(
    first: f32,
    delta: f32,
    lambda: &[f32],
    options: &[Swaption],
    noise: &[f32],
    values: &mut [f32],
    deltas: &mut [f32],
) {
    let id = global_id_x();
    if id >= values.len() {
        return;
    }
    let path = simulate(first, delta, lambda, &noise[id * STEPS..(id + 1) * STEPS]);
    let (value, mut slopes) = portfolio(path.last().unwrap(), delta, options);
    for n in (0..STEPS).rev() {
        let mut sum = 0.0;
        for i in (n + 1..RATES).rev() {
            let (before, after, lambda) = (path[n][i], path[n + 1][i], lambda[i - n - 1]);
            sum += lambda * after * slopes[i];
            let factor = delta / (1.0 + delta * before);
            slopes[i] = slopes[i] * after / before + sum * lambda * factor * factor;
        }
    }
    values[id] = value;
    deltas[id] = slopes[RATES - 1];
}

#[test]
fn libor_sensitivities_are_slopes_of_the_value() {
    let mut random = Random(114);
    let count = 150usize;
    let (first, delta) = (0.05f32, 0.25f32);
    let lambda: Vec<f32> = (0..RATES).map(|_| random.between(0.1, 0.3) as f32).collect();
    let options: Vec<Swaption> = (0..9)
        .map(|k| Swaption {
            maturity: 1 + random.below(8) as u32,
            rate: [0.045, 0.05, 0.055][k % 3],
        })
        .collect();
    let noise: Vec<f32> = (0..count * STEPS)
        .map(|_| random.between(-2.0, 2.0) as f32)
        .collect();
    let value = |path: usize, last: f64| {
        let delta = f64::from(delta);
        let mut rates = [f64::from(first); RATES];
        rates[RATES - 1] = last;
        for n in 0..STEPS {
            let mut drift = 0.0;
            for i in n + 1..RATES {
                let lambda = f64::from(lambda[i - n - 1]);
                drift += delta * lambda * rates[i] / (1.0 + delta * rates[i]);
                let shock = delta.sqrt() * f64::from(noise[path * STEPS + n]);
                rates[i] *= (delta * lambda * drift + lambda * (shock - 0.5 * delta * lambda)).exp();
            }
        }
        let bond = |m: usize| (STEPS..=STEPS + m).fold(1.0, |b, n| b / (1.0 + delta * rates[n]));
        let sum: f64 = options
            .iter()
            .map(|o| {
                let m = o.maturity as usize;
                let coupons: f64 = (0..m).map(|k| delta * bond(k)).sum();
                100.0 * (1.0 - bond(m - 1) - f64::from(o.rate) * coupons).max(0.0)
            })
            .sum();
        (0..STEPS).fold(sum, |v, n| v / (1.0 + delta * rates[n]))
    };
    let at = f64::from(first);
    let values: Vec<f64> = (0..count).map(|p| value(p, at)).collect();
    let deltas: Vec<f64> = (0..count)
        .map(|p| (value(p, at + 1e-6) - value(p, at - 1e-6)) / 2e-6)
        .collect();
    assert!(deltas.iter().filter(|d| **d != 0.0).count() > 20);
    everywhere(|run| {
        let (lambda, options, noise) = (run.upload(&lambda), run.upload(&options), run.upload(&noise));
        let (v, d) = (run.zeros::<f32>(count), run.zeros::<f32>(count));
        let config = LaunchConfig::linear(count, 64);
        run.launch(
            libor::kernel(),
            config,
            args![first, delta, &lambda, &options, &noise, &v, &d],
        );
        run.near(&v, &values, 1e-4);
        run.near(&d, &deltas, 2e-3);
    });
}
