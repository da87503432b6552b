//! Queries: joins of tables, and calendars.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 89: a star join

/// A row of a hash table; a key of 0 means that it is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Slot {
    key: u32,
    value: u32,
}

#[device]
fn slot(key: u32, step: usize, size: usize) -> usize {
    (key.wrapping_mul(0x9e37_79b1) as usize).wrapping_add(step) % size
}

#[kernel]
fn build<F: Fn(u32) -> bool>(wanted: F, keys: &[u32], attributes: &[u32], table: &mut [Slot]) {
    let i = global_id_x();
    let Some((&key, &value)) = keys.get(i).zip(attributes.get(i)) else {
        return;
    };
    if !wanted(value) {
        return;
    }
    for step in 0..table.len() {
        let slot = &mut table[slot(key, step, table.len())];
        if atomic_compare_exchange(&mut slot.key, 0, key) == 0 {
            slot.value = value;
            return;
        }
    }
    panic!("the table has no room for key {}", key);
}

#[device]
fn probe(table: &[Slot], key: u32) -> Option<u32> {
    (0..table.len())
        .map(|step| table[slot(key, step, table.len())])
        .take_while(|slot| slot.key != 0)
        .find(|slot| slot.key == key)
        .map(|slot| slot.value)
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Order {
    part: u32,
    date: u32,
    revenue: u32,
    discount: u8,
    quantity: u8,
}

const GROUPS: usize = 64;

/// `ITEMS` orders a lane, revenue summed by the year and the brand.
#[kernel(block_size = 64)]
fn query<const ITEMS: usize>(
    discounts: [u8; 2],
    orders: &[Order],
    parts: &[Slot],
    dates: &[Slot],
    revenue: &mut [u32],
    count: &mut [u32],
) {
    let sums = shared_array::<[u32; GROUPS]>();
    let lane = local_id_x();
    sums[lane] = 0;
    sync_threads();
    let [low, high] = discounts;
    let start = group_id_x() * 64 * ITEMS + lane;
    let own: [Option<&Order>; ITEMS] = std::array::from_fn(|k| {
        orders
            .get(start + k * 64)
            .filter(|o| (low..=high).contains(&o.discount) && o.quantity < 25)
    });
    let mut matches = 0;
    for order in own.into_iter().flatten() {
        let (Some(brand), Some(year)) = (probe(parts, order.part), probe(dates, order.date)) else {
            continue;
        };
        matches += 1;
        let group = (year * 8 + brand) as usize % GROUPS;
        atomic_add(&mut sums[group], order.revenue);
    }
    let all = subgroup_add(matches);
    if subgroup_lane() == 0 {
        atomic_add(&mut count[0], all);
    }
    sync_threads();
    atomic_add(&mut revenue[lane], sums[lane]);
}

#[device]
fn is_odd(x: u32) -> bool {
    x % 2 == 1
}

#[device]
fn is_any(_: u32) -> bool {
    true
}

#[test]
fn a_star_join_sums_revenue() {
    let (parts, dates, count) = (90usize, 60usize, 1000usize);
    let mut random = Random(89);
    let part_keys: Vec<u32> = (0..parts as u32).map(|i| 1 + i * 37).collect();
    let brands: Vec<u32> = (0..parts).map(|_| random.bits() as u32 % 8).collect();
    let date_keys: Vec<u32> = (0..dates as u32).map(|i| 19_920_101 + i * 100).collect();
    let years: Vec<u32> = date_keys.iter().map(|d| d / 10_000 % 8).collect();
    let orders: Vec<Order> = (0..count)
        .map(|_| Order {
            part: part_keys[random.bits() as usize % parts],
            date: date_keys[random.bits() as usize % dates] + u32::from(random.bits() % 4 == 0),
            revenue: random.bits() as u32 % 10_000,
            discount: random.bits() as u8 % 11,
            quantity: random.bits() as u8 % 50,
        })
        .collect();
    let mut sums = vec![0u32; GROUPS];
    let mut matches = 0;
    for o in &orders {
        let brand = brands[part_keys.iter().position(|k| *k == o.part).unwrap()];
        let date = date_keys.iter().position(|k| *k == o.date);
        if brand % 2 == 1 && o.discount >= 2 && o.discount <= 8 && o.quantity < 25 {
            if let Some(date) = date {
                sums[(years[date] * 8 + brand) as usize] += o.revenue;
                matches += 1;
            }
        }
    }
    everywhere(|run| {
        let (pk, pv) = (run.upload(&part_keys), run.upload(&brands));
        let (dk, dv) = (run.upload(&date_keys), run.upload(&years));
        let (pt, dt) = (run.zeros::<Slot>(128), run.zeros::<Slot>(64));
        let config = LaunchConfig::linear(parts, 64);
        run.launch(build::kernel::<is_odd>(), config, args![&pk, &pv, &pt]);
        let config = LaunchConfig::linear(dates, 64);
        run.launch(build::kernel::<is_any>(), config, args![&dk, &dv, &dt]);
        let (o, r, c) = (run.upload(&orders), run.zeros::<u32>(GROUPS), run.zeros::<u32>(1));
        let config = LaunchConfig::new(count.div_ceil(256) as u32, 64);
        run.launch(
            query::kernel::<4>(),
            config,
            args![[2u8, 8u8], &o, &pt, &dt, &r, &c],
        );
        run.holds(&r, &sums);
        run.holds(&c, &[matches]);
    });
}

// 90: fields of dates

const DAY: i64 = 24 * 60 * 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq, GpuType)]
#[repr(i32)]
enum Field {
    Year,
    Quarter,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Weekday,
    IsoWeekday,
    YearDay,
    Week,
    Decade,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Date {
    year: i64,
    month: u8,
    day: u8,
}

#[device]
impl Date {
    /// The date of a day since 1970, by years that begin in March.
    fn of(days: i64) -> Date {
        let days = days + 719_468;
        let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let month_day = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Date {
            year: year + era * 400 + i64::from(month <= 2),
            month: month as u8,
            day: month_day as u8,
        }
    }

    const fn is_leap(year: i64) -> bool {
        year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    }

    /// From 1.
    fn day_of_year(self) -> i64 {
        const BEFORE: [u16; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let leap = i64::from(self.month > 2 && Self::is_leap(self.year));
        i64::from(BEFORE[self.month as usize - 1]) + i64::from(self.day) + leap
    }
}

/// Monday is 1.
#[device]
fn iso_weekday(days: i64) -> i64 {
    (days + 3).rem_euclid(7) + 1
}

/// A week belongs to the year that has its Thursday.
#[device]
fn iso_week(days: i64) -> i64 {
    let thursday = days + 4 - iso_weekday(days);
    (Date::of(thursday).day_of_year() - 1) / 7 + 1
}

#[device]
impl Field {
    fn extract(self, seconds: i64) -> i64 {
        let (days, time) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let date = Date::of(days);
        match self {
            Field::Year => date.year,
            Field::Quarter => i64::from((date.month - 1) / 3 + 1),
            Field::Month => date.month.into(),
            Field::Day => date.day.into(),
            Field::Hour => time / 3600,
            Field::Minute => time / 60 % 60,
            Field::Second => time % 60,
            Field::Weekday => iso_weekday(days) % 7,
            Field::IsoWeekday => iso_weekday(days),
            Field::YearDay => date.day_of_year(),
            Field::Week => iso_week(days),
            Field::Decade => date.year.div_euclid(10),
        }
    }
}

/// `i64::MIN` is null.
#[kernel]
fn extract(field: Field, units: i64, times: &[i64], out: &mut [i64]) {
    let i = global_id_x();
    if let Some(&time) = times.get(i) {
        out[i] = match time {
            i64::MIN => i64::MIN,
            time => field.extract(time.div_euclid(units)),
        };
    }
}

#[test]
fn fields_are_those_of_the_calendar() {
    let mut random = Random(90);
    // Days counted one by one, from a Monday.
    let (mut year, mut month, mut day, mut day_of_year) = (1600i64, 1i64, 1i64, 1i64);
    let mut calendar = Vec::new();
    for days in -135_140i64..150_000 {
        calendar.push((days, year, month, day, day_of_year));
        let leap = year % 400 == 0 || (year % 4 == 0 && year % 100 != 0);
        let length = match month {
            2 => 28 + i64::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        (day, day_of_year) = (day + 1, day_of_year + 1);
        if day > length {
            (day, month) = (1, month + 1);
        }
        if month > 12 {
            (month, day_of_year, year) = (1, 1, year + 1);
        }
    }
    assert_eq!(calendar[135_140], (0, 1970, 1, 1, 1));
    let mut times = vec![i64::MIN];
    let mut rows = Vec::new();
    for _ in 0..400 {
        let at = 10 + random.bits() as usize % (calendar.len() - 20);
        let second = (random.bits() % 86_400) as i64;
        let (days, year, month, day, day_of_year) = calendar[at];
        times.push((days * DAY + second) * 1000 + (random.bits() % 1000) as i64);
        // 1970 began on a Thursday.
        let weekday = (days + 700_004).rem_euclid(7);
        let monday = at - (weekday as usize + 6) % 7;
        let (.., thursday_of_year) = calendar[monday + 3];
        rows.push([
            year,
            (month + 2) / 3,
            month,
            day,
            second / 3600,
            second % 3600 / 60,
            second % 60,
            weekday,
            if weekday == 0 { 7 } else { weekday },
            day_of_year,
            (thursday_of_year + 6) / 7,
            year / 10,
        ]);
    }
    let fields = [
        Field::Year,
        Field::Quarter,
        Field::Month,
        Field::Day,
        Field::Hour,
        Field::Minute,
        Field::Second,
        Field::Weekday,
        Field::IsoWeekday,
        Field::YearDay,
        Field::Week,
        Field::Decade,
    ];
    everywhere(|run| {
        let times = run.upload(&times);
        for (k, field) in fields.into_iter().enumerate() {
            let out = run.zeros::<i64>(times.len());
            let args = args![field, 1000i64, &times, &out];
            run.launch(extract::kernel(), LaunchConfig::linear(times.len(), 64), args);
            let mut expected = vec![i64::MIN];
            expected.extend(rows.iter().map(|r| r[k]));
            run.holds(&out, &expected);
        }
    });
}
