//! Patterns with `|` that bind names, as arms of their own. Must not know types.

use perpetua_syntax as syntax;
use perpetua_syntax::PatternKind;

/// How many arms one arm with alternatives that bind names becomes.
pub(super) const MOST_ALTERNATIVES: usize = 256;

/// The patterns without alternatives that bind names for which this one stands; `None` where they are more than [`MOST_ALTERNATIVES`].
pub(super) fn alternatives(pattern: &syntax::Pattern) -> Option<Vec<syntax::Pattern>> {
    let line = pattern.line;
    let with = |kind| syntax::Pattern { line, kind };
    if pattern.names().is_empty() {
        return Some(vec![pattern.clone()]);
    }
    let of_parts = |parts: &[syntax::Pattern]| -> Option<Vec<Vec<syntax::Pattern>>> {
        let mut rows: Vec<Vec<syntax::Pattern>> = vec![Vec::new()];
        for part in parts {
            let cases = alternatives(part)?;
            if rows.len() * cases.len() > MOST_ALTERNATIVES {
                return None;
            }
            let longer = rows.iter().flat_map(|row| {
                cases.iter().map(|case| {
                    let mut row = row.clone();
                    row.push(case.clone());
                    row
                })
            });
            rows = longer.collect();
        }
        Some(rows)
    };
    let all: Vec<syntax::Pattern> = match &pattern.kind {
        PatternKind::Or(cases) => {
            let each: Option<Vec<Vec<syntax::Pattern>>> = cases.iter().map(alternatives).collect();
            each?.into_iter().flatten().collect()
        }
        PatternKind::Tuple(parts) => {
            let rows = of_parts(parts)?.into_iter();
            rows.map(|row| with(PatternKind::Tuple(row))).collect()
        }
        PatternKind::Array(parts) => {
            let rows = of_parts(parts)?.into_iter();
            rows.map(|row| with(PatternKind::Array(row))).collect()
        }
        PatternKind::Struct { name, fields, rest } => {
            let parts: Vec<syntax::Pattern> = fields.iter().map(|(_, part)| part.clone()).collect();
            let rows = of_parts(&parts)?.into_iter().map(|row| {
                let names = fields.iter().map(|(name, _)| name.clone());
                with(PatternKind::Struct {
                    name: name.clone(),
                    fields: names.zip(row).collect(),
                    rest: *rest,
                })
            });
            rows.collect()
        }
        PatternKind::TupleStruct { name, parts } => {
            let rows = of_parts(parts)?.into_iter().map(|parts| {
                let name = name.clone();
                with(PatternKind::TupleStruct { name, parts })
            });
            rows.collect()
        }
        PatternKind::At {
            name,
            mutable,
            pattern,
        } => {
            let cases = alternatives(pattern)?.into_iter().map(|case| {
                with(PatternKind::At {
                    name: name.clone(),
                    mutable: *mutable,
                    pattern: Box::new(case),
                })
            });
            cases.collect()
        }
        PatternKind::Variant {
            variant,
            payload: Some(payload),
        } => {
            let cases = alternatives(payload)?.into_iter().map(|case| {
                with(PatternKind::Variant {
                    variant: *variant,
                    payload: Some(Box::new(case)),
                })
            });
            cases.collect()
        }
        PatternKind::Ref(inner) => {
            let cases = alternatives(inner)?.into_iter();
            cases.map(|case| with(PatternKind::Ref(Box::new(case)))).collect()
        }
        _ => vec![pattern.clone()],
    };
    (all.len() <= MOST_ALTERNATIVES).then_some(all)
}
