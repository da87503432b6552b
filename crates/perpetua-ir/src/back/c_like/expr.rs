//! Expressions as text with what one must know to put them into others: how tightly they bind, what memory they
//! read, in which of two equal forms they stand. Knows nothing of any one target.

use crate::ir::{Base, Scalar};

/// How tightly an expression binds. Shifts and bitwise operators never mix with others without parentheses, which
/// WGSL demands and readers of C are grateful for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bind {
    /// `a ? b : c`
    Choice,
    /// `||`
    Or,
    /// `&&`
    And,
    /// `&`, `|`, `^`, `<<`, `>>`
    Bits,
    /// `==`, `<`, …
    Compare,
    /// `+`, `-`
    Sum,
    /// `*`, `/`, `%`
    Product,
    /// `-a`, `!a`, `(int)a`
    Prefix,
    /// Names, literals, calls, `a[i]`, `a.b`.
    Whole,
}

/// Memory that an expression reads, so that it must not move past a write to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reads {
    /// Local variables, by index.
    pub(crate) locals: Vec<u32>,
    /// Any buffer.
    pub(crate) buffers: bool,
    /// Any shared variable.
    pub(crate) shared: bool,
    /// The lane's fault flag.
    pub(crate) dead: bool,
}

impl Reads {
    pub(crate) fn add(&mut self, other: &Reads) {
        for l in &other.locals {
            if !self.locals.contains(l) {
                self.locals.push(*l);
            }
        }
        self.buffers |= other.buffers;
        self.shared |= other.shared;
        self.dead |= other.dead;
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Reads::default()
    }

    /// Whether something that `self` reads is among what `writes` names.
    pub(crate) fn meets(&self, writes: &Reads) -> bool {
        self.buffers && writes.buffers
            || self.shared && writes.shared
            || self.dead && writes.dead
            || self.locals.iter().any(|l| writes.locals.contains(l))
    }
}

/// An expression.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) text: String,
    pub(crate) bind: Bind,
    pub(crate) reads: Reads,
    /// The operator at the top, for chains of one associative operator.
    pub(crate) operator: Option<&'static str>,
    /// The text has the unsigned type of the value's width, though the value is signed: same bits, defined to wrap.
    pub(crate) unsigned: bool,
    /// The bits, of a literal.
    pub(crate) literal: Option<u64>,
    /// Whether the target computes it at compile time.
    pub(crate) constant: bool,
    /// The opposite of a condition, if it is simpler than `!(…)`.
    pub(crate) opposite: Option<(String, Bind)>,
    /// A cast of a name: as good as a name.
    pub(crate) cheap: bool,
    /// The integer before a cast that widened it, and its type.
    pub(crate) unwidened: Option<(Box<Expr>, Scalar)>,
    /// Where the value is loaded from as it stands: the memory, and the byte offset as text. Set only where a copy from there is worth more than
    /// the value.
    pub(crate) copied: Option<(Base, String)>,
}

impl Expr {
    pub(crate) fn new(text: impl Into<String>, bind: Bind) -> Expr {
        Expr {
            text: text.into(),
            bind,
            reads: Reads::default(),
            operator: None,
            unsigned: false,
            literal: None,
            constant: false,
            opposite: None,
            cheap: false,
            unwidened: None,
            copied: None,
        }
    }

    /// A name, call or access.
    pub(crate) fn whole(text: impl Into<String>) -> Expr {
        Expr::new(text, Bind::Whole)
    }

    /// A literal of these bits.
    pub(crate) fn literal(text: impl Into<String>, bind: Bind, bits: u64) -> Expr {
        Expr {
            literal: Some(bits),
            constant: true,
            ..Expr::new(text, bind)
        }
    }

    /// The call of a function.
    pub(crate) fn call(name: &str, args: &[Expr]) -> Expr {
        let texts: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        Expr::whole(format!("{name}({})", texts.join(", "))).reading(args)
    }

    /// Reads what `parts` read; is constant if all of them are.
    pub(crate) fn reading<'a>(mut self, parts: impl IntoIterator<Item = &'a Expr>) -> Expr {
        let mut all = true;
        for p in parts {
            self.reads.add(&p.reads);
            all &= p.constant;
        }
        self.constant = all;
        self
    }

    /// Is computed when the code runs.
    pub(crate) fn at_run_time(mut self) -> Expr {
        self.constant = false;
        self
    }

    pub(crate) fn in_unsigned(mut self, unsigned: bool) -> Expr {
        self.unsigned = unsigned;
        self
    }

    /// The text, in parentheses unless it binds at least as tightly as `bind`.
    pub(crate) fn at(&self, bind: Bind) -> String {
        if self.bind >= bind {
            self.text.clone()
        } else {
            format!("({})", self.text)
        }
    }

    /// `a OP b`.
    pub(crate) fn infix(op: &'static str, bind: Bind, a: &Expr, b: &Expr) -> Expr {
        let joins = matches!(op, "&&" | "||" | "&" | "|" | "^");
        let side = |e: &Expr, left: bool| {
            let free = match bind {
                // `a + b - c` needs none on the left; `&`, `|` and `^` chain with themselves.
                Bind::Sum | Bind::Product => {
                    if left {
                        e.bind >= bind
                    } else {
                        e.bind > bind
                    }
                }
                Bind::Compare => e.bind > Bind::Compare,
                _ => {
                    joins && left && e.operator == Some(op)
                        || (if bind == Bind::Bits {
                            e.bind >= Bind::Prefix
                        } else {
                            e.bind >= Bind::Compare
                        })
                }
            };
            if free {
                e.text.clone()
            } else {
                format!("({})", e.text)
            }
        };
        let mut out = Expr::new(format!("{} {op} {}", side(a, true), side(b, false)), bind).reading([a, b]);
        out.operator = Some(op);
        out
    }

    /// `OP a`.
    pub(crate) fn prefix(op: &str, a: &Expr) -> Expr {
        // Two signs side by side would be another operator.
        let inner = if a.bind == Bind::Prefix && !a.text.starts_with('(') {
            format!("({})", a.text)
        } else {
            a.at(Bind::Prefix)
        };
        Expr::new(format!("{op}{inner}"), Bind::Prefix).reading([a])
    }

    /// The opposite of a condition.
    pub(crate) fn negated(&self) -> Expr {
        let mut out = match &self.opposite {
            Some((text, bind)) => Expr::new(text.clone(), *bind),
            None => Expr::new(format!("!{}", self.at(Bind::Prefix)), Bind::Prefix),
        }
        .reading([self]);
        out.opposite = Some((self.text.clone(), self.bind));
        out
    }

    /// This comparison, of which `op` is the opposite operator.
    pub(crate) fn with_opposite(mut self, op: &'static str, a: &Expr, b: &Expr) -> Expr {
        self.opposite = Some((Expr::infix(op, Bind::Compare, a, b).text, Bind::Compare));
        self
    }

    /// Whether naming it would gain nothing.
    pub(crate) fn is_atom(&self) -> bool {
        self.reads.is_empty()
            && (self.literal.is_some()
                || self.bind == Bind::Whole
                    && self
                        .text
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parentheses_stand_where_they_must() {
        let n = Expr::whole;
        let sum = Expr::infix("+", Bind::Sum, &n("a"), &n("b"));
        let check = |e: Expr, expect: &str| assert_eq!(e.text, expect);
        check(Expr::infix("-", Bind::Sum, &sum, &n("c")), "a + b - c");
        check(Expr::infix("-", Bind::Sum, &n("c"), &sum), "c - (a + b)");
        check(Expr::infix("*", Bind::Product, &sum, &n("c")), "(a + b) * c");
        check(Expr::infix("<<", Bind::Bits, &sum, &n("c")), "(a + b) << c");
        let or = Expr::infix("|", Bind::Bits, &n("a"), &n("b"));
        check(Expr::infix("|", Bind::Bits, &or, &n("c")), "a | b | c");
        check(Expr::infix("&", Bind::Bits, &or, &n("c")), "(a | b) & c");
        check(Expr::infix("<", Bind::Compare, &sum, &n("c")), "a + b < c");
        check(Expr::infix("==", Bind::Compare, &or, &n("c")), "(a | b) == c");
        let less = Expr::infix("<", Bind::Compare, &n("a"), &n("b"));
        check(Expr::infix("&&", Bind::And, &less, &n("c")), "a < b && c");
        check(
            less.clone().with_opposite(">=", &n("a"), &n("b")).negated(),
            "a >= b",
        );
        check(Expr::prefix("-", &Expr::prefix("-", &n("a"))), "-(-a)");
        check(n("a").negated(), "!a");
        check(less.negated(), "!(a < b)");
    }
}
