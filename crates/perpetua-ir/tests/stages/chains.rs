//! Chains of three factors and twins are computed as written down.

use half::bf16;

use super::{CHAIN, OWN, TWINS, body, run_with, stores};

/// `(A B') B`, where the rows of A are there from the first stage on, and each stage has all 64 rows of B; weights are rounded to bf16.
#[test]
fn chains_are_computed() {
    for turns in 1..4 {
        let k = 100;
        let step = |i: usize| {
            let (scores, before, sums) = (100 + 2 * i, 49 + 2 * i, 51 + 2 * i);
            let before = if i == 0 { 50 } else { before };
            format!(
                "%{scores}: [[[f32; 2]; 2]; 8] = multiply_stage %50\n    %{sums}: [[[f32; 2]; 2]; 8] = weigh_stage %{before}, %{scores}\n    "
            )
        };
        let steps: String = (0..turns).map(step).collect();
        let last = steps + &stores(2 * turns - 1, OWN);
        // What later stages say of the left factor's rows counts no more.
        let fills = body(turns, 0, ["%85: u32 = const 128", &last, ""]);
        let fills = (1..turns).fold(fills, |fills, i| {
            let (own, other) = (10 + i, 64 * i);
            fills.replace(
                &format!("const {other}\n    fill_stage %0, %0, %{own}"),
                &format!("const 0\n    fill_stage %1, %0, %{own}"),
            )
        });
        let (done, c) = run_with(CHAIN, &fills, k, 128);
        done.unwrap();
        for (lane, found) in c.into_iter().enumerate() {
            let (row, column) = (lane / 4 + lane / 32 * 8, lane % 4 * 2);
            let score = |other: usize| -> f32 {
                let sum: usize = (0..k).map(|i| (row * k + i) % 11 * ((other * k + i) % 7)).sum();
                bf16::from_f32(sum as f32).to_f32()
            };
            let sum: f32 = (0..64)
                .map(|other| score(other) * ((other * k + column) % 7) as f32)
                .sum();
            let expected = sum * turns as f32;
            assert!(
                (found - expected).abs() <= expected * 1e-6,
                "lane {lane} of {turns} turns: {found}, {expected}"
            );
        }
    }
}

/// `(A B') B + (B A') A`, where rows of the left factors are there from the first stage on; a stage is free when it has been weighed.
#[test]
fn twins_are_computed() {
    for turns in 1..4 {
        let k = 100;
        let step = |i: usize| {
            let [scores, others, twin, sums, before] = [100, 101, 102, 103, 99].map(|at| at + 4 * i);
            format!(
                "%{scores}: [[[f32; 2]; 2]; 8] = multiply_stage %50\n    %{others}: [[[f32; 2]; 2]; 8] = multiply_twin %50\n    %{twin}: [[[f32; 2]; 2]; 16] = weigh_twin %{before}, %{others}\n    %{sums}: [[[f32; 2]; 2]; 16] = weigh_stage %{twin}, %{scores}\n    "
            )
        };
        let steps: String = (0..turns).map(step).collect();
        let last = format!("%99: [[[f32; 2]; 2]; 16] = zero\n    {steps}");
        let last = last + &stores(4 * turns + 49, OWN);
        let fills = (1..turns).fold(body(turns, 0, ["%85: u32 = const 128", &last, ""]), |fills, i| {
            let (own, other) = (10 + i, 64 * i);
            fills.replace(
                &format!("const {other}\n    fill_stage %0, %0, %{own}"),
                &format!("const 0\n    fill_stage %1, %0, %{own}"),
            )
        });
        let (done, c) = run_with(TWINS, &fills, k, 128);
        done.unwrap();
        let a = |row: usize, column: usize| ((row * k + column) % 11) as f32;
        let b = |row: usize, column: usize| ((row * k + column) % 7) as f32;
        let score = |row: usize, other: usize| -> f32 {
            let sum: f32 = (0..k).map(|i| a(row, i) * b(other, i)).sum();
            bf16::from_f32(sum).to_f32()
        };
        for (lane, found) in c.into_iter().enumerate() {
            let (row, column) = (lane / 4 + lane / 32 * 8, lane % 4 * 2);
            let sum: f32 = (0..64)
                .map(|other| score(row, other) * b(other, column) + score(other, row) * a(other, column))
                .sum();
            let expected = sum * turns as f32;
            assert!(
                (found - expected).abs() <= expected * 1e-6,
                "lane {lane} of {turns} turns: {found}, {expected}"
            );
        }
    }
}
