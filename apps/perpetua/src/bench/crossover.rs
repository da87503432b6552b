//! Times by size, on the CPU and on a GPU, as a table and as a chart.

use std::collections::BTreeSet;
use std::time::Duration;

use perpetua::device::{BackendKind, Crossover, CrossoverPoint};
use perpetua::wave::chart::{Chart, Curve};

use crate::text::ratio;

/// The times as a table.
pub(super) fn rows(found: &Crossover) -> Vec<Vec<String>> {
    let mut rows = vec![
        [
            "operation",
            "elements",
            "CPU, us",
            "GPU, us",
            "CPU / GPU",
            "with transfers, us",
            "CPU / GPU",
        ]
        .map(String::from)
        .to_vec(),
    ];
    for point in found.points() {
        let [host, device, transfers] =
            [point.host, point.device, point.transfers].map(|time| 1e6 * time.as_secs_f64());
        rows.push(vec![
            point.operation.clone(),
            point.size.to_string(),
            format!("{host:.1}"),
            format!("{device:.1}"),
            ratio(host / device),
            format!("{transfers:.1}"),
            ratio(host / transfers),
        ]);
    }
    rows
}

/// From which of the sizes on the GPU is faster at each operation.
pub(super) fn from_where(found: &Crossover) -> String {
    let operations: BTreeSet<&str> = found.points().iter().map(|point| &*point.operation).collect();
    let mut text = String::new();
    for operation in operations {
        let from = |time: fn(&CrossoverPoint) -> Duration| {
            let points = found.points().iter().filter(|point| point.operation == operation);
            let slower = points.clone().filter(|point| time(point) >= point.host);
            let last = slower.map(|point| point.size).max();
            let first = points
                .map(|point| point.size)
                .filter(|size| last.is_none_or(|last| *size > last))
                .min();
            first.map_or("at none of these sizes".into(), |size| {
                format!("from {size} elements on")
            })
        };
        let (there, with) = (from(|point| point.device), from(|point| point.transfers));
        text += &format!("{operation}: the GPU is faster {there}; with transfers {with}\n");
    }
    text
}

/// How many times as fast as the CPU a GPU is, by size. One GPU's curves are what a chart has room for.
pub(super) fn chart(found: &Crossover, name: &str, kind: BackendKind) -> Chart {
    let mut operations: Vec<&str> = found
        .points()
        .iter()
        .map(|point| point.operation.as_str())
        .collect();
    operations.dedup();
    let mut curves = Vec::new();
    for operation in operations {
        let curve = |what: &str, time: fn(&CrossoverPoint) -> Duration| Curve {
            name: format!("{operation}{what}"),
            points: found
                .points()
                .iter()
                .filter(|point| point.operation == operation)
                .map(|point| {
                    [
                        point.size as f64,
                        point.host.as_secs_f64() / time(point).as_secs_f64(),
                    ]
                })
                .collect(),
        };
        curves.push(curve("", |point| point.device));
        curves.push(curve(", with transfers", |point| point.transfers));
    }
    Chart {
        title: format!("{name} ({kind}) beside the CPU"),
        labels: ["elements".into(), "times as fast as the CPU".into()],
        logarithmic: [true; 2],
        curves,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table;

    #[test]
    fn times_become_a_table_and_curves() {
        let point = CrossoverPoint {
            operation: "element-wise".into(),
            size: 1024,
            host: Duration::from_nanos(1500),
            device: Duration::from_micros(6),
            transfers: Duration::from_micros(12),
        };
        let larger = CrossoverPoint {
            size: 4096,
            host: Duration::from_micros(9),
            ..point.clone()
        };
        let both = Crossover::new(vec![point.clone(), larger]);
        assert_eq!(
            from_where(&both),
            "element-wise: the GPU is faster from 4096 elements on; with transfers at none of these sizes\n"
        );
        let found = Crossover::new(vec![point]);
        let expected = "operation     elements  CPU, us  GPU, us  CPU / GPU  with transfers, us  CPU / GPU\n\
                        element-wise      1024      1.5      6.0       0.25                12.0       0.12\n";
        assert_eq!(table(&rows(&found)), expected);
        let chart = chart(&found, "a GPU", BackendKind::Cuda);
        assert_eq!(chart.title, "a GPU (CUDA) beside the CPU");
        let [there, with] = &chart.curves[..] else {
            panic!("{:?}", chart.curves);
        };
        assert_eq!((&*there.name, there.points[0]), ("element-wise", [1024.0, 0.25]));
        assert_eq!(
            (&*with.name, with.points[0]),
            ("element-wise, with transfers", [1024.0, 0.125])
        );
    }
}
