//! Elements by their index, sorting, cumulative sums, parts beside each other and sums of products by letters, against plain loops.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

mod common;

use common::{check, devices, values};
use perpetua_device::{BackendKind, Device};
use perpetua_tensor::{DType, Slice, Tensor};

fn cpu() -> Device {
    Device::new(BackendKind::Cpu, 0).expect("the CPU")
}

/// Numbers from 0 to `below`, in a fixed disorder.
fn places(n: usize, below: usize) -> Vec<i32> {
    (0..n)
        .map(|i| ((i * 7919 + i / 3 * 104_729) % below) as i32)
        .collect()
}

#[test]
fn elements_are_looked_up_by_their_index() {
    for device in devices() {
        let x = values(DType::F32, &[5, 4, 3], 1, &device);
        let index = |shape: &[usize], below: usize| {
            let own = places(shape.iter().product(), 2 * below);
            let own: Vec<i32> = own.iter().map(|i| i - below as i32).collect();
            Tensor::from_slice(&own, shape, &device)
        };
        check("first axis", &x.gather(0, &index(&[7, 4, 3], 5)));
        check("last axis", &x.gather(-1, &index(&[5, 4, 2], 3)));
        check("repeated index", &x.gather(1, &index(&[1, 6, 1], 4)));
        check(
            "repeated rows",
            &x.slice([Slice::from(0)]).gather(1, &index(&[5, 2, 3], 4)),
        );
        check(
            "a computed one",
            &(&x * 2.0).gather(0, &(index(&[2, 4, 3], 2) + 1)),
        );
        check(
            "through views",
            &x.transpose().gather(1, &index(&[5, 2, 1], 3)).flip(0).sum(1),
        );
        check(
            "of a number",
            &Tensor::ones([1, 1], DType::F32, &device).gather(0, &index(&[4, 3], 1)),
        );
        check("embedding", &x.reshape([20, 3]).embedding(&index(&[2, 2, 2], 20)));
        check("whole parts", &x.index_select(1, &index(&[9], 4)));
        check(
            "of bytes by bytes",
            &values(DType::U8, &[9], 2, &device).gather(0, &index(&[4], 9).cast(DType::I8)),
        );
        check("nothing", &x.gather(0, &index(&[0, 4, 3], 5)));
    }
}

#[test]
fn an_index_that_is_not_there_is_an_error() {
    for device in devices() {
        for (n, wrong) in [
            (3usize, 3i64),
            (3, -4),
            (1, 1),
            (1, -2),
            (3, 1 << 32),
            (3, i64::MIN),
        ] {
            let x = Tensor::ones([n, 2], DType::F32, &device);
            let index = match common::has(&device, DType::I64) {
                true => Tensor::from_slice(&[0i64, wrong], [2, 1], &device),
                false => Tensor::from_slice(&[0i32, wrong.clamp(-5, 5) as i32], [2, 1], &device),
            };
            let error = x.gather(0, &index).to_vec::<f32>().expect_err("it is not there");
            assert!(error.to_string().contains("gather"), "{error}");
            let ones = Tensor::ones([2, 2], DType::F32, &device);
            x.scatter_add(0, &index, &ones)
                .to_vec::<f32>()
                .expect_err("it is not there");
        }
    }
}

#[test]
fn elements_are_combined_at_their_index() {
    for device in devices() {
        // Rows, and elements by themselves.
        for (n, m, width, is_rows) in [
            (6, 40, 3, true),
            (300, 500, 1, true),
            (4, 9, 5, false),
            (2, 1, 1, true),
            (5, 3, 2, false),
        ] {
            let base: Vec<f32> = (0..n * width).map(|i| i as f32 * 0.5).collect();
            let updates: Vec<f32> = (0..m * width).map(|i| (i % 17) as f32 - 8.0).collect();
            let index = places(if is_rows { m } else { m * width }, n);
            let place = |row: usize, column: usize| {
                let at = if is_rows { row } else { row * width + column };
                index[at] as usize * width + column
            };
            let [mut set, mut sum, mut max, mut min] = [(); 4].map(|()| base.clone());
            for row in 0..m {
                for column in 0..width {
                    let (at, update) = (place(row, column), updates[row * width + column]);
                    set[at] = update;
                    sum[at] += update;
                    max[at] = max[at].max(update);
                    min[at] = min[at].min(update);
                }
            }
            let x = Tensor::from_slice(&base, [n, width], &device);
            let updates = Tensor::from_slice(&updates, [m, width], &device);
            let columns = if is_rows { 1 } else { width };
            let index = Tensor::from_slice(&index, [m, columns], &device);
            let same = |what: &str, found: Tensor, expected: &[f32]| {
                assert_eq!(
                    found.to_vec::<f32>().expect(what),
                    expected,
                    "{what} of {n}, {m}, {width} on {device:?}"
                );
            };
            same("scatter", x.scatter(0, &index, &updates), &set);
            same("scatter_add", x.scatter_add(0, &index, &updates), &sum);
            same("scatter_max", x.scatter_max(0, &index, &updates), &max);
            same("scatter_min", x.scatter_min(0, &index, &updates), &min);
            // The same along the other axis.
            let turned = x
                .transpose()
                .scatter_add(1, &index.transpose(), &updates.transpose());
            same("transposed", turned.transpose(), &sum);
        }
        let bytes = Tensor::from_slice(&[250u8, 1], [2], &device);
        let index = Tensor::from_slice(&[0i32, 0, -1], [3], &device);
        let sum = bytes.index_add(0, &index, &Tensor::from_slice(&[4u8, 5, 6], [3], &device));
        assert_eq!(sum.to_vec::<u8>().expect("bytes"), [3, 7]);
    }
}

#[test]
fn what_is_sorted_is_in_order_and_equal_ones_stay_in_theirs() {
    for device in devices() {
        for n in [1usize, 2, 3, 8, 33, 100] {
            for descending in [false, true] {
                let x = values(DType::F32, &[2, n], n, &device);
                let all = x.to_vec::<f32>().expect("floats");
                let mut order: Vec<i32> = Vec::new();
                for row in all.chunks(n) {
                    let mut own: Vec<i32> = (0..n as i32).collect();
                    own.sort_by(|a, b| {
                        let (a, b) = (row[*a as usize], row[*b as usize]);
                        let by = if descending {
                            b.partial_cmp(&a)
                        } else {
                            a.partial_cmp(&b)
                        };
                        by.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
                    });
                    order.extend(own);
                }
                let found = x.argsort(1, descending);
                assert_eq!(
                    found.to_vec::<i32>().expect("an order"),
                    order,
                    "{n} {descending}"
                );
                let other = x.transpose().argsort(0, descending).transpose();
                assert_eq!(other.to_vec::<i32>().expect("an order"), order);
            }
        }
        let x = Tensor::from_slice(&[3u8, 255, 0, 255, 7], [5], &device);
        assert_eq!(
            x.sort(0, false).to_vec::<u8>().expect("bytes"),
            [0, 3, 7, 255, 255]
        );
        let (largest, index) = x.topk(2, 0);
        assert_eq!(largest.to_vec::<u8>().expect("bytes"), [255, 255]);
        assert_eq!(index.to_vec::<i32>().expect("places"), [1, 3]);
        assert!(x.sort(0, true).slice([Slice::from(..0)]).is_empty());
        let sorted = Tensor::from_slice(&[1.0f32, 2.0, 2.0, 5.0], [4], &device);
        let asked = Tensor::from_slice(&[0.0f32, 1.0, 2.0, 3.0, 5.0, 9.0], [2, 3], &device);
        let of = |right| {
            sorted
                .searchsorted(&asked, right)
                .to_vec::<i32>()
                .expect("places")
        };
        assert_eq!(
            (of(false), of(true)),
            (vec![0, 0, 1, 3, 3, 4], vec![0, 1, 3, 3, 4, 4])
        );
        let none = Tensor::zeros([0], DType::F32, &device).searchsorted(&asked, true);
        assert_eq!(none.to_vec::<i32>().expect("places"), [0; 6]);
    }
}

#[test]
fn cumulative_operators_combine_all_before() {
    for device in devices() {
        let x: Vec<i32> = places(3 * 37, 11).iter().map(|i| i - 5).collect();
        let running = |how: fn(i32, i32) -> i32| -> Vec<i32> {
            let row = |row: &[i32]| -> Vec<i32> {
                let sums = row.iter().scan(None, |sum, x| {
                    *sum = Some(sum.map_or(*x, |sum| how(sum, *x)));
                    *sum
                });
                sums.collect()
            };
            x.chunks(37).flat_map(row).collect()
        };
        let tensor = Tensor::from_slice(&x, [3, 37], &device);
        let same = |found: Tensor, expected: Vec<i32>| {
            assert_eq!(found.to_vec::<i32>().expect("integers"), expected)
        };
        same(tensor.cumsum(1), running(i32::wrapping_add));
        same(tensor.cumprod(-1), running(i32::wrapping_mul));
        same(tensor.cummax(1), running(i32::max));
        same(tensor.transpose().cummin(0).transpose(), running(i32::min));
        check("of floats", &values(DType::F32, &[130], 1, &device).cumsum(0));
        check(
            "of half floats",
            &values(DType::F16, &[40, 2], 1, &device).cumsum(0),
        );
        check(
            "NaN from the first on",
            &values(DType::F32, &[130], 1, &device).cummax(0),
        );
        same(
            values(DType::Bool, &[6], 0, &device).cumsum(0),
            vec![1, 1, 1, 2, 2, 2],
        );
    }
}

#[test]
fn parts_come_beside_each_other_and_apart() {
    for device in devices() {
        let x = Tensor::arange(0, 6, 1, &device).reshape([2, 3]);
        let y = Tensor::arange(10, 14, 1, &device).reshape([2, 2]);
        let text = |tensor: &Tensor| tensor.to_string().replace("\n ", "");
        let joined = x.concat(&[&y, &x.cast(DType::I64).cast(DType::I32)], 1);
        assert_eq!(
            text(&joined),
            "[[ 0  1  2 10 11  0  1  2][ 3  4  5 12 13  3  4  5]]"
        );
        check(
            "concat of views",
            &x.concat(
                &[&y.transpose()
                    .tile(2, 0)
                    .slice([Slice::from(..), Slice::from(..1)])
                    .tile(3, 1)],
                0,
            ),
        );
        assert_eq!(text(&x.stack(&[&(&x + 1)], 0).sum(0)), "[[ 1  3  5][ 7  9 11]]");
        assert_eq!(x.stack(&[&x, &x], -1).shape(), [2, 3, 3]);
        let parts = joined.split(&[3, 0, 5], 1);
        assert_eq!(
            parts.iter().map(|part| part.shape()[1]).collect::<Vec<_>>(),
            [3, 0, 5]
        );
        assert_eq!(text(&parts[0]), text(&x));
        assert_eq!(text(&x.roll(1, 1)), "[[2 0 1][5 3 4]]");
        assert_eq!(text(&x.roll(-4, 1)), "[[1 2 0][4 5 3]]");
        assert_eq!(text(&x.tile(2, 1)), "[[0 1 2 0 1 2][3 4 5 3 4 5]]");
        assert_eq!(text(&(&x + 1).tril(0)), "[[1 0 0][4 5 0]]");
        assert_eq!(text(&(&x + 1).triu(1)), "[[0 2 3][0 0 6]]");
        assert_eq!(text(&x.diff(1)), "[[1 1][1 1]]");
        assert_eq!(
            text(&x.masked_fill(&x.greater(3), -1.0).cast(DType::I32)),
            "[[ 0  1  2][ 3 -1 -1]]"
        );
        let empty = x.slice([Slice::from(..), Slice::from(..0)]);
        assert_eq!(text(&empty.concat(&[&x, &empty], 1)), text(&x));
        assert_eq!(empty.concat(&[&empty], 1).shape(), [2, 0]);
    }
}

#[test]
fn letters_say_what_is_summed() {
    let device = cpu();
    let x = Tensor::arange(0, 6, 1, &device).cast(DType::F32).reshape([2, 3]);
    let y = (Tensor::arange(0, 12, 1, &device).cast(DType::F32) - 4.0).reshape([3, 4]);
    let z = (Tensor::arange(0, 8, 1, &device).cast(DType::F32) * 0.5).reshape([4, 2]);
    let same = |found: Tensor, expected: Tensor| {
        assert_eq!(found.shape(), expected.shape());
        assert_eq!(
            found.to_vec::<f32>().expect("a sum"),
            expected.to_vec::<f32>().expect("the same")
        );
    };
    same(x.einsum(&[&y], "ij,jk->ik"), x.matmul(&y));
    same(x.einsum(&[&y], "ij, jk"), x.matmul(&y));
    same(x.einsum(&[&y], "ij,jk->ki"), x.matmul(&y).transpose());
    same(x.einsum(&[], "ij->ji"), x.transpose());
    same(x.einsum(&[], "ij->"), x.sum(..));
    same(x.einsum(&[&x], "ij,ij->i"), (&x * &x).sum(1));
    same(
        x.einsum(&[&x], "ij,kl->ikjl"),
        x.reshape([2, 1, 3, 1]) * x.reshape([1, 2, 1, 3]),
    );
    same(x.einsum(&[&y, &z], "ij,jk,kl->il"), x.matmul(&y).matmul(&z));
    let square = x.matmul(x.transpose());
    same(
        square.einsum(&[], "ii->i"),
        Tensor::from_slice(&[5.0f32, 50.0], [2], &device),
    );
    same(
        square.einsum(&[], "ii"),
        Tensor::from_slice(&[55.0f32], [], &device),
    );
    let batch = Tensor::arange(0, 24, 1, &device)
        .cast(DType::F32)
        .reshape([4, 2, 3]);
    same(
        batch.einsum(&[&y], "bij,jb->bi"),
        (&batch * y.transpose().reshape([4, 1, 3])).sum(2),
    );
    let refused = |tensor: Tensor, expect: &str| {
        let error = tensor.check().expect_err(expect).to_string();
        assert!(error.contains(expect), "{error}");
    };
    refused(x.einsum(&[&y], "ij->i"), "describes 1 operands, there are 2");
    refused(
        x.einsum(&[&x], "ij,jk->ik"),
        "`j` stands for axes of different extents",
    );
    refused(x.einsum(&[], "ijk->i"), "has not as many letters");
    refused(
        x.einsum(&[], "ij->k"),
        "`k` of the result must stand in an operand",
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let device = cpu();
    let x = Tensor::ones([2, 3], DType::F32, &device);
    let index = Tensor::from_slice(&[0i32, 1], [2, 1], &device);
    let refused = |tensor: Tensor, expect: &str| {
        let error = tensor.check().expect_err(expect).to_string();
        assert!(
            error.contains(expect) && error.contains("indexing.rs:"),
            "{error}"
        );
    };
    refused(x.gather(2, &index), "axis 2 is not there");
    refused(x.gather(0, &x), "an index has integers");
    refused(x.gather(0, &index.reshape([2])), "as many axes");
    refused(x.gather(1, &index.tile(2, 0)), "but for axis 1");
    refused(x.scatter_add(1, &index, &x), "repeatable to one shape");
    refused(
        x.scatter(1, &index, &Tensor::ones([2, 1], DType::F64, &device)),
        "must not be wider",
    );
    refused(x.index_select(0, &index), "the index is a vector");
    refused(x.concat(&[&x.transpose()], 0), "the same shape");
    refused(x.split(&[1, 1], 1).remove(0), "do not add up");
    refused(x.topk(4, 1).0, "there are not 4 along axis 1");
    refused(x.argsort(5, false), "axis 5 is not there");
    refused(x.searchsorted(&x, true), "it takes a vector");
    refused(x.reshape([7]).gather(0, &index), "do not fill");
    refused(x.reshape([7]).sort(0, true), "do not fill");
    refused(x.reshape([7]).cumsum(0), "do not fill");
    refused(x.reshape([7]).tril(0), "do not fill");
    refused(x.reshape([7]).roll(1, 0), "do not fill");
    refused(x.reshape([7]).tile(2, 0), "do not fill");
    refused(x.reshape([7]).diff(0), "do not fill");
    refused(x.reshape([7]).argmax(0), "do not fill");
    refused(x.reshape([7]).embedding(&index), "do not fill");
}

#[test]
fn parts_are_assigned_as_values() {
    for device in devices() {
        let x = Tensor::arange(0, 20, 1, &device).reshape([4, 5]);
        let ints = |x: &Tensor| x.to_vec::<i32>().unwrap_or_else(|error| panic!("{error}"));
        let check = |slices: &[Slice], rows: &[usize], columns: &[usize]| {
            let value = Tensor::arange(100, 100 + (rows.len() * columns.len()) as i32, 1, &device);
            let y = x.assign(
                slices,
                value.reshape([rows.len() as isize, columns.len() as isize]),
            );
            let mut expected = ints(&x);
            let places = rows
                .iter()
                .flat_map(|row| columns.iter().map(move |column| row * 5 + column));
            places
                .zip(100..)
                .for_each(|(place, value)| expected[place] = value);
            assert_eq!(ints(&y), expected, "{slices:?}");
            // What was there is as it was, and the part is the value.
            assert_eq!(ints(&x), (0..20).collect::<Vec<i32>>());
            assert_eq!(ints(&y.slice(slices)).len(), rows.len() * columns.len());
        };
        check(&[], &[0, 1, 2, 3], &[0, 1, 2, 3, 4]);
        check(
            &[Slice::every(-1), Slice::every(-1)],
            &[3, 2, 1, 0],
            &[4, 3, 2, 1, 0],
        );
        check(&[Slice::from(1..3)], &[1, 2], &[0, 1, 2, 3, 4]);
        check(
            &[
                Slice::every(2),
                Slice {
                    start: Some(3),
                    end: Some(0),
                    ..Slice::every(-2)
                },
            ],
            &[0, 2],
            &[3, 1],
        );
        check(&[Slice::from(-1), Slice::from(2..)], &[3], &[2, 3, 4]);
        check(&[Slice::from(2..2)], &[], &[0, 1, 2, 3, 4]);
        // Repeated, in the type of what is assigned to.
        assert_eq!(
            ints(&x.assign(&[Slice::from(..), Slice::from(0)], 7.9))[..6],
            [7, 1, 2, 3, 4, 7]
        );
        assert_eq!(ints(&x.add_(x.slice([Slice::from(0)])))[5..10], [5, 7, 9, 11, 13]);
        assert_eq!(ints(&x.div_(2)), (0..20).map(|i| i / 2).collect::<Vec<i32>>());
        let refused = |y: Tensor, words: &str| {
            let text = y.check().expect_err(words).to_string();
            assert!(text.contains(words) && text.contains("indexing.rs:"), "{text}");
        };
        refused(x.assign(&[Slice::from(1..3)], &x), "the part's shape [2, 5]");
        refused(x.assign(&[Slice::from(4)], 1), "4 is not among the 4 places");
        refused(x.slice([Slice::from(0)]).add_(&x), "the shape [4, 5]");
        refused(x.copy_(&x.transpose()), "cannot be repeated");
        // Grids.
        let (a, b) = (Tensor::arange(0, 3, 1, &device), Tensor::arange(5, 7, 1, &device));
        let grid = a.meshgrid(&[&b], true);
        assert_eq!(
            (grid[0].shape(), ints(&grid[0]), ints(&grid[1])),
            (&[3usize, 2][..], vec![0, 0, 1, 1, 2, 2], vec![5, 6, 5, 6, 5, 6])
        );
        let grid = a.meshgrid(&[&b], false);
        assert_eq!(
            (grid[1].shape(), ints(&grid[0]), ints(&grid[1])),
            (&[2usize, 3][..], vec![0, 1, 2, 0, 1, 2], vec![5, 5, 5, 6, 6, 6])
        );
        refused(x.meshgrid(&[&a], true).remove(0), "it takes vectors");
        let (values, counts) = x.remainder(3).unique_counts().expect("values");
        assert_eq!((ints(&values), ints(&counts)), (vec![0, 1, 2], vec![7, 7, 6]));
        let (values, places) = (a.remainder(2) + 4).unique_inverse().expect("values");
        assert_eq!((ints(&values), ints(&places)), (vec![4, 5], vec![0, 1, 0]));
    }
}
