//! One short fold of the digits, on the CPU, wgpu and CUDA: trained and recognised the same.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn the_data_are_those_of_the_repository() {
    let lines = lines().unwrap();
    let mut count = [0; 10];
    for line in &lines {
        assert!(line.len() == 65 && line[..64].iter().all(|x| *x <= 16));
        count[usize::from(line[64])] += 1;
    }
    assert_eq!(count, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
}

#[test]
fn folds_are_apart_and_have_all_digits_evenly() {
    let (lines, device) = (lines().unwrap(), Device::new(BackendKind::Cpu, 0).unwrap());
    let count = |fold, is_test| -> Vec<i32> {
        let [_, digits] = part(&lines, fold, is_test, &device);
        digits.one_hot(10).sum(0).to_vec().unwrap()
    };
    let mut all = [0; 10];
    for fold in 0..FOLDS {
        let (test, train) = (count(fold, true), count(fold, false));
        for digit in 0..10 {
            all[digit] += test[digit];
            assert!((34..=37).contains(&test[digit]) && (139..=147).contains(&train[digit]));
        }
    }
    assert_eq!(all.iter().sum::<i32>(), 1797);
}

#[test]
fn a_short_fold_learns() {
    let lines = lines().unwrap();
    let share = |kind| recognised(&lines, 0, 6, &Device::new(kind, 0).unwrap()).unwrap();
    let share_cpu = share(BackendKind::Cpu);
    assert!(share_cpu > 0.9, "{share_cpu}");
    let others = [
        (BackendKind::Wgpu, cfg!(feature = "wgpu")),
        // Where there is a device, or must be.
        (
            BackendKind::Cuda,
            cfg!(feature = "cuda")
                && (Device::new(BackendKind::Cuda, 0).is_ok()
                    || std::env::var("PERPETUA_MUST_OPEN").is_ok_and(|kind| kind == "cuda")),
        ),
    ];
    for (kind, _) in others.into_iter().filter(|(_, is_there)| *is_there) {
        let share = share(kind);
        assert!(
            (share - share_cpu).abs() < 0.02,
            "{share} on {kind:?}, {share_cpu} on the CPU"
        );
    }
}
