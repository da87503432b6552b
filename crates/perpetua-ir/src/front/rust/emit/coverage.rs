//! Whether the arms of a `match` cover every value, and whether each of their constants is one.

use super::matching::parts_of;
use super::types::tag_scalar;
use super::{Emitter, Result};
use crate::front::rust::describe::TypeDesc;
use crate::front::rust::infer::methods::num;
use crate::front::rust::infer::tree::{Arm, Pat};
use crate::front::rust::infer::ty::{Ty, show};

impl Emitter<'_> {
    /// The least and greatest value that a scalar type holds.
    pub(super) fn range_of(&self, ty: &Ty) -> (i128, i128) {
        let s = match ty {
            Ty::Scalar(s) => *s,
            Ty::Enum(e) => e.repr,
            Ty::Tag(of) => tag_scalar(of),
            _ => return (0, 0),
        };
        let s = num(s, self.program.width);
        // Patterns of `u128` end where those of `i128` do.
        let most = i128::try_from(s.greatest()).unwrap_or(i128::MAX);
        if s.is_signed_int() {
            (-most - 1, most)
        } else {
            (0, most)
        }
    }

    /// Refuses constants that the type cannot hold.
    pub(super) fn check_patterns(&self, arms: &[Arm], met: &Ty) -> Result<()> {
        for arm in arms {
            if let Some(value) = self.unfit(&arm.pattern, met) {
                return Err(self.error(
                    arm.line,
                    format!("the pattern's value {value} is out of range for `{}`", show(met)),
                    "",
                ));
            }
        }
        Ok(())
    }

    fn unfit(&self, pat: &Pat, ty: &Ty) -> Option<i128> {
        match (pat, ty) {
            (Pat::Range(low, high), _) => {
                let (min, max) = self.range_of(ty);
                [low, high]
                    .into_iter()
                    .flatten()
                    .copied()
                    .find(|v| *v < min || *v > max)
            }
            (Pat::Or(pats), _) => pats.iter().find_map(|p| self.unfit(p, ty)),
            (Pat::Tuple(pats), _) => {
                let types = parts_of(ty).unwrap_or_default();
                pats.iter().zip(&types).find_map(|(p, t)| self.unfit(p, t))
            }
            (Pat::Slice { front, back, .. }, Ty::Slice(element) | Ty::Array(element, _)) => {
                front.iter().chain(back).find_map(|p| self.unfit(p, element))
            }
            (Pat::At(_, inner), _) => self.unfit(inner, ty),
            (Pat::Deref(inner), Ty::Ref(_, target)) => self.unfit(inner, target),
            _ => None,
        }
    }

    /// An example of what no row covers, as text; `None` where all is covered.
    pub(super) fn missing(&self, rows: &[&Pat], ty: &Ty) -> Option<String> {
        let rows: Vec<Vec<&Pat>> = rows.iter().map(|p| vec![*p]).collect();
        self.uncovered(&rows, std::slice::from_ref(ty))
            .map(|example| format!("`{}`", example.join(", ")))
    }

    /// An example of values, one for each type, that no row covers. Each row has a pattern for each type.
    fn uncovered(&self, rows: &[Vec<&Pat>], types: &[Ty]) -> Option<Vec<String>> {
        let Some((ty, rest)) = types.split_first() else {
            return rows.is_empty().then(Vec::new);
        };
        // Alternatives become rows.
        let rows: Vec<Vec<&Pat>> = rows.iter().flat_map(|row| alternatives(row)).collect();
        if let Ty::Ref(_, target) = ty {
            let rows: Vec<Vec<&Pat>> = rows
                .iter()
                .map(|row| {
                    let first = match row.first() {
                        Some(Pat::Deref(inner)) => &**inner,
                        _ => &WILD,
                    };
                    std::iter::once(first)
                        .chain(row.iter().skip(1).copied())
                        .collect()
                })
                .collect();
            let types: Vec<Ty> = std::iter::once((**target).clone())
                .chain(rest.iter().cloned())
                .collect();
            return self.uncovered(&rows, &types);
        }
        if let Ty::Slice(element) = ty {
            return self.uncovered_length(&rows, element, rest);
        }
        let taken_apart = rows
            .iter()
            .any(|row| matches!(row.first(), Some(Pat::Tuple(_) | Pat::Slice { .. })));
        if taken_apart && let Some(elements) = parts_of(ty) {
            let n = elements.len();
            let flat: Vec<Vec<&Pat>> = rows
                .iter()
                .map(|row| {
                    let first: Vec<&Pat> = match row.first() {
                        Some(Pat::Tuple(parts)) => parts.iter().collect(),
                        Some(pat) => of_length(pat, n).unwrap_or_else(|| vec![&WILD; n]),
                        None => vec![&WILD; n],
                    };
                    first.into_iter().chain(row.iter().skip(1).copied()).collect()
                })
                .collect();
            let types: Vec<Ty> = elements.iter().chain(rest).cloned().collect();
            return self.uncovered(&flat, &types).map(|mut example| {
                let tail = example.split_off(n.min(example.len()));
                let mut out = vec![taken_together(&elements, &example)];
                out.extend(tail);
                out
            });
        }
        let (min, max) = self.range_of(ty);
        // Between two neighbouring bounds all values are alike.
        let mut starts = vec![min];
        for row in &rows {
            if let Some(Pat::Range(low, high)) = row.first() {
                starts.extend(low);
                starts.extend(high.and_then(|h| h.checked_add(1)));
            }
        }
        let variants: Option<Vec<i128>> = match ty {
            Ty::Enum(e) => Some(e.variants.iter().map(|(_, v)| *v).collect()),
            Ty::Tag(of) => Some((0..).take(of.variants.len()).collect()),
            _ => None,
        };
        let mut points = variants.unwrap_or(starts);
        points.retain(|p| *p >= min && *p <= max);
        points.sort_unstable();
        points.dedup();
        let covers = |pat: Option<&&Pat>, at: i128| match pat {
            Some(Pat::Range(low, high)) => low.is_none_or(|l| l <= at) && high.is_none_or(|h| at <= h),
            // All that they are together is not known.
            Some(Pat::Floats(_)) => false,
            _ => true,
        };
        for at in points {
            let left: Vec<Vec<&Pat>> = rows
                .iter()
                .filter(|row| covers(row.first(), at))
                .map(|row| row.iter().skip(1).copied().collect())
                .collect();
            if let Some(mut example) = self.uncovered(&left, rest) {
                example.insert(0, example_text(ty, at));
                return Some(example);
            }
        }
        None
    }

    /// As [`Emitter::uncovered`], of rows whose first pattern is of a slice: beyond the longest pattern all lengths are alike.
    fn uncovered_length(&self, rows: &[Vec<&Pat>], element: &Ty, rest: &[Ty]) -> Option<Vec<String>> {
        let longest = rows.iter().map(|row| match row.first() {
            Some(Pat::Slice { front, back, .. }) => front.len() + back.len(),
            _ => 0,
        });
        let longest = longest.max().unwrap_or(0);
        (0..=longest + 1).find_map(|n| {
            let fitting = rows.iter().filter_map(|row| {
                let (first, others) = row.split_first()?;
                let elements = of_length(first, n)?;
                Some(elements.into_iter().chain(others.iter().copied()).collect())
            });
            let fitting: Vec<Vec<&Pat>> = fitting.collect();
            let types: Vec<Ty> = std::iter::repeat_n(element, n).chain(rest).cloned().collect();
            self.uncovered(&fitting, &types).map(|mut example| {
                let tail = example.split_off(n.min(example.len()));
                let mut out = vec![format!("[{}]", example.join(", "))];
                out.extend(tail);
                out
            })
        })
    }
}

static WILD: Pat = Pat::Wild;

/// The patterns of the elements of a slice of this length; `None` where the pattern is of other lengths.
fn of_length(pat: &Pat, n: usize) -> Option<Vec<&Pat>> {
    let Pat::Slice {
        front, rest, back, ..
    } = pat
    else {
        return Some(vec![&WILD; n]);
    };
    let between = n.checked_sub(front.len() + back.len())?;
    if rest.is_none() && between > 0 {
        return None;
    }
    let between = std::iter::repeat_n(&WILD, between);
    Some(front.iter().chain(between).chain(back).collect())
}

/// An example of a value of which the parts are given.
fn taken_together(types: &[Ty], parts: &[String]) -> String {
    let variant = match (types.first(), parts.first()) {
        (Some(Ty::Tag(of)), Some(name)) => of
            .variants
            .iter()
            .find(|variant| variant.name == *name)
            .zip(Some(of)),
        _ => None,
    };
    let Some((variant, of)) = variant else {
        return format!("({})", parts.join(", "));
    };
    let name = match of.fields.first().map(|tag| &tag.ty) {
        Some(TypeDesc::Enum(_)) => format!("{}::{}", of.name, variant.name),
        _ => variant.name.clone(),
    };
    match parts.get(variant.fields.clone()) {
        Some(fields) if !fields.is_empty() => format!("{name}({})", fields.join(", ")),
        _ => name,
    }
}

fn example_text(ty: &Ty, at: i128) -> String {
    match ty {
        Ty::Scalar(perpetua_syntax::Scalar::Bool) => (at != 0).to_string(),
        Ty::Enum(e) => match e.variants.iter().find(|(_, v)| *v == at) {
            Some((name, _)) => format!("{}::{name}", e.name),
            None => at.to_string(),
        },
        Ty::Tag(of) => {
            let variant = usize::try_from(at).ok().and_then(|at| of.variants.get(at));
            variant.map_or_else(|| at.to_string(), |variant| variant.name.clone())
        }
        Ty::Scalar(s) if s.is_float() => "_".into(),
        Ty::Scalar(_) => at.to_string(),
        _ => "_".into(),
    }
}

/// The rows that a row with alternatives in its first pattern stands for.
fn alternatives<'p>(row: &[&'p Pat]) -> Vec<Vec<&'p Pat>> {
    match row.split_first() {
        Some((Pat::At(_, inner), rest)) => {
            let row: Vec<&Pat> = std::iter::once(&**inner).chain(rest.iter().copied()).collect();
            alternatives(&row)
        }
        Some((Pat::Or(pats), rest)) => pats
            .iter()
            .flat_map(|p| {
                let row: Vec<&Pat> = std::iter::once(p).chain(rest.iter().copied()).collect();
                alternatives(&row)
            })
            .collect(),
        _ => vec![row.to_vec()],
    }
}
