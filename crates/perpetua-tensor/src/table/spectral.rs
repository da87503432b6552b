//! Rows of Fourier transforms.

use std::panic::Location;

use super::composed::composed;
use crate::node::Tensor;
use crate::place::here;
use crate::shape::Axes;

composed! {
    fft(x, axis: isize) "matmul with the matrices of short transforms; of long primes a convolution" "The Fourier transform along an axis, of any length. Complex numbers are pairs along the last axis, which is not counted." {
        x.transformed("fft", axis, false, here(Location::caller()))
    }
    ifft(x, axis: isize) "conjugated matrices, divided by n" "The inverse of `fft`." {
        let back = x.transformed("ifft", axis, true, here(Location::caller()));
        match length(&back, axis) {
            Some(n) => back / n as f64,
            None => back,
        }
    }
    fftn(x, axes: &[isize]) "fft along each" "The Fourier transform along several axes." { axes.iter().fold(x.clone(), |x, axis| x.fft(*axis)) }
    ifftn(x, axes: &[isize]) "ifft along each" "The inverse of `fftn`." { axes.iter().fold(x.clone(), |x, axis| x.ifft(*axis)) }
    rfft(x, axis: isize) "fft of pairs with zeros, [..n / 2 + 1]" "The Fourier transform of real numbers along an axis: n / 2 + 1 pairs along it, of which the others are the mirror." {
        let at = here(Location::caller());
        if let Some(half) = x.half_transformed(axis, at) {
            return half;
        }
        let all = x.paired(at).transformed("rfft", axis, false, at);
        match (Axes::from(axis).of(x.rank()), length(&all, axis)) {
            (Ok(axes), Some(n)) => all.part_of(axes[0], ..(n / 2 + 1) as isize),
            _ => all,
        }
    }
    irfft(x, n: usize, axis: isize) "ifft of x and its mirror, [.., 0]" "The inverse of `rfft`: n real numbers along an axis of n / 2 + 1 pairs." {
        let at = here(Location::caller());
        let place = Axes::from(axis).of(x.rank().saturating_sub(1));
        let place = match place {
            Ok(axes) if x.shape()[axes[0]] == n / 2 + 1 && n > 0 => axes[0],
            Ok(_) => return x.refuse("irfft", &[], format!("{n} numbers are {} pairs along the axis", n / 2 + 1), at),
            Err(rule) => return x.refuse("irfft", &[], rule, at),
        };
        let last = x.rank() - 1;
        let mirror = x.part_of(place, 1..(n - n / 2) as isize).flip(place as isize);
        let is_second = Tensor::coordinates(mirror.shape(), last, x.device()).equal(1);
        let mirror = is_second.select(-&mirror, &mirror);
        let all = x.concat(&[&mirror], place as isize).ifft(axis);
        all.part_of(last, ..1).squeeze(last as isize)
    }
    rfftn(x, axes: &[isize]) "rfft along the last of them, fft along the others" "The Fourier transform of real numbers along several axes: n / 2 + 1 pairs along the last of them." {
        match axes.split_last() {
            Some((last, others)) => x.rfft(*last).fftn(others),
            None => x.refuse("rfftn", &[], "name at least one axis", here(Location::caller())),
        }
    }
    irfftn(x, n: usize, axes: &[isize]) "ifft along the others, irfft along the last of them" "The inverse of `rfftn`: n real numbers along the last of the axes." {
        match axes.split_last() {
            Some((last, others)) => x.ifftn(others).irfft(n, *last),
            None => x.refuse("irfftn", &[], "name at least one axis", here(Location::caller())),
        }
    }
    hfft(x, n: usize, axis: isize) "irfft(conj(x)) n" "The Fourier transform, n real numbers, of what is its own mirror, conjugated: n / 2 + 1 pairs along an axis." { x.conj().irfft(n, axis) * n as f64 }
    ihfft(x, axis: isize) "conj(rfft(x)) / n" "The inverse of `hfft`." {
        let found = x.rfft(axis).conj();
        match Axes::from(axis).of(x.rank()) {
            Ok(axes) if x.error().is_none() => found / x.shape()[axes[0]].max(1) as f64,
            _ => found,
        }
    }
    conj(x) "x with the other sign of the second of each pair" "The conjugates of complex numbers, which are pairs along the last axis." {
        if x.shape().last() != Some(&2) {
            return x.refuse("conj", &[], "complex numbers are pairs along the last axis", here(Location::caller()));
        }
        Tensor::coordinates(x.shape(), x.rank() - 1, x.device()).equal(1).select(-x, x)
    }
    fftshift(x, axes: impl Into<Axes>) "roll by n / 2" "The middle of axes brought to their beginnings, and these to the middle." { shifted(x, &axes.into(), false) }
    ifftshift(x, axes: impl Into<Axes>) "roll by -n / 2" "The inverse of `fftshift`." { shifted(x, &axes.into(), true) }
}

// Of an axis of pairs.
fn length(x: &Tensor, axis: isize) -> Option<usize> {
    let axes = Axes::from(axis).of(x.rank().checked_sub(1)?).ok()?;
    Some(x.shape()[axes[0]]).filter(|n| *n > 0 && x.error().is_none())
}

fn shifted(x: &Tensor, axes: &Axes, back: bool) -> Tensor {
    match axes.of(x.rank()) {
        Ok(axes) => axes.iter().fold(x.clone(), |x, axis| {
            let by = (x.shape()[*axis] / 2) as isize;
            x.roll(if back { -by } else { by }, *axis as isize)
        }),
        Err(rule) => x.refuse("fftshift", &[], rule, here(Location::caller())),
    }
}
