//! Writes random kernels as Rust: expressions and statements of patterns, traits, closures and iterators, over the types and functions of
//! [`PRELUDE`]. What rustc takes, kernels take; nothing divides, indexes out of range or loops for ever.

/// What all kernels use.
pub(super) const PRELUDE: &str = include_str!("prelude.rs");

/// The types of values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Int,
    Word,
    Flag,
    Pair,
    Shape,
    Maybe,
    Tried,
    Both,
    Four,
    /// A closure of two integers.
    Closure,
}

mod arrays;
use Kind::{Both, Closure, Flag, Four, Int, Maybe, Pair, Shape, Tried, Word};

/// Decisions that follow from a seed (splitmix64).
struct Choices(u64);

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % n as u64) as usize
    }

    fn pick<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        match items.len() {
            0 => None,
            n => items.get(self.below(n)),
        }
    }
}

/// Writes the kernel of a seed.
pub(super) fn kernel(name: &str, seed: u64) -> String {
    let mut writer = Writer {
        choices: Choices(seed),
        names: 0,
        scope: Vec::new(),
        text: String::new(),
    };
    writer.line("let i = global_id_x();".to_owned());
    writer.line("if i >= y.len() { return; }".to_owned());
    writer.line("let mut state = x[i];".to_owned());
    writer.scope.push((Int, "state".to_owned()));
    writer.line("let near = [x[i], x[(i + 1) % x.len()], x[(i + 2) % x.len()], 7];".to_owned());
    writer.scope.push((Four, "near".to_owned()));
    for _ in 0..3 + writer.choices.below(5) {
        writer.statement();
    }
    for kind in [Int, Word, Flag, Pair, Shape, Maybe, Tried, Both, Four] {
        let part = writer.as_int(kind);
        writer.line(format!("state = state.rotate_left(5) ^ {part};"));
    }
    writer.line("y[i] = state;".to_owned());
    format!(
        "#[kernel]\npub fn {name}(x: &[i32], y: &mut [i32]) {{\n{}}}\n",
        writer.text
    )
}

struct Writer {
    choices: Choices,
    names: u32,
    scope: Vec<(Kind, String)>,
    text: String,
}

impl Writer {
    fn line(&mut self, line: String) {
        self.text.push_str("    ");
        self.text.push_str(&line);
        self.text.push('\n');
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    /// What `write` writes where these names are known.
    fn with(&mut self, names: &[(Kind, &str)], write: impl FnOnce(&mut Self) -> String) -> String {
        let before = self.scope.len();
        let names = names.iter().map(|(kind, name)| (*kind, (*name).to_owned()));
        self.scope.extend(names);
        let text = write(self);
        self.scope.truncate(before);
        text
    }

    fn local(&mut self, kind: Kind) -> Option<String> {
        let known: Vec<&String> = self
            .scope
            .iter()
            .filter(|(of, _)| *of == kind)
            .map(|(_, name)| name)
            .collect();
        self.choices.pick(&known).map(|name| (*name).clone())
    }

    fn literal(&mut self) -> String {
        let known = ["1", "0", "-1", "3", "7", "100", "-4096", "65537", "2147483647"];
        format!("({}i32)", self.choices.pick(&known).unwrap_or(&"0"))
    }

    /// The simplest value of a kind.
    fn leaf(&mut self, kind: Kind) -> String {
        if let Some(local) = self.local(kind) {
            return local;
        }
        let int = self.literal();
        match kind {
            Int => int,
            Word => format!("({int} as u32)"),
            Flag => format!("({int} > state)"),
            Pair => format!("Pair {{ a: {int}, b: 9 }}"),
            Shape => format!("Shape::One({int})"),
            Maybe => format!("Some({int})"),
            Tried => format!("attempt({int}, 5)"),
            Both => format!("({int}, 3u32)"),
            Four => format!("[{int}, 2, state, 4]"),
            Closure => "|p: i32, q: i32| p ^ q".to_owned(),
        }
    }

    /// A value of a kind as an integer.
    fn as_int(&mut self, kind: Kind) -> String {
        let value = self.value(kind, 1);
        match kind {
            Int => value,
            Word | Flag => format!("{value} as i32"),
            Pair => format!("{value}.folded()"),
            Shape => format!("({value}).weight() as i32"),
            Maybe | Tried => format!("{value}.unwrap_or(-3)"),
            Both => format!("{{ let (p, q) = {value}; p ^ q as i32 }}"),
            Four => format!("{value}.iter().fold(1i32, |s, v| s * 31 + v)"),
            Closure => format!("({value})(1, 2)"),
        }
    }

    fn value(&mut self, kind: Kind, depth: u32) -> String {
        if depth == 0 {
            return self.leaf(kind);
        }
        let d = depth - 1;
        match kind {
            Int => self.int(d),
            Word => self.word(d),
            Flag => self.flag(d),
            Pair => match self.choices.below(5) {
                0 => self.leaf(Pair),
                1 => format!("Pair {{ b: {}, a: {} }}", self.value(Word, d), self.value(Int, d)),
                2 => format!("Pair {{ a: {}, ..{} }}", self.value(Int, d), self.value(Pair, d)),
                3 => format!("({} + {})", self.value(Pair, d), self.value(Pair, d)),
                _ => format!("{}.mix({})", self.value(Pair, d), self.value(Pair, d)),
            },
            Shape => match self.choices.below(5) {
                0 => self.leaf(Shape),
                1 => format!("Shape::One({})", self.value(Int, d)),
                2 => format!(
                    "Shape::Two {{ a: {}, b: {} }}",
                    self.value(Int, d),
                    self.value(Word, d)
                ),
                3 => format!("Shape::Held({}, {})", self.value(Maybe, d), self.value(Both, d)),
                _ => format!("Shape::of({}, {})", self.value(Int, d), self.value(Word, d)),
            },
            Maybe => self.maybe(d),
            Tried => match self.choices.below(4) {
                0 => self.leaf(Tried),
                1 => format!("{}.ok_or({})", self.value(Maybe, d), self.value(Word, d)),
                2 => format!("{}.map({})", self.value(Tried, d), self.closure(d)),
                _ => format!("attempt({}, {})", self.value(Int, d), self.value(Word, d)),
            },
            Both => match self.choices.below(3) {
                0 => self.leaf(Both),
                1 => format!("({}, {})", self.value(Int, d), self.value(Word, d)),
                _ => format!("{{ let (p, q) = {}; (q as i32, p as u32) }}", self.value(Both, d)),
            },
            Four => match self.choices.below(3) {
                0 => self.leaf(Four),
                1 => {
                    let parts: Vec<String> = (0..4).map(|_| self.value(Int, d)).collect();
                    format!("[{}]", parts.join(", "))
                }
                _ => format!("{}.map({})", self.value(Four, d), self.closure(d)),
            },
            Closure => self.leaf(Closure),
        }
    }

    /// A closure of one integer.
    fn closure(&mut self, depth: u32) -> String {
        let name = self.name();
        let body = self.with(&[(Int, &name)], |w| w.value(Int, depth));
        format!("|{name}: i32| {body}")
    }

    /// A closure of a reference to an integer that gives a condition; `deref` where it takes a reference to a reference.
    fn condition(&mut self, pattern: &str, depth: u32) -> String {
        let name = self.name();
        let body = self.with(&[(Int, &name)], |w| w.value(Flag, depth));
        format!("|{pattern}{name}| {body}")
    }

    fn int(&mut self, d: u32) -> String {
        let name = self.name();
        match self.choices.below(21) {
            0 => self.leaf(Int),
            1..=3 => {
                let op = *self.choices.pick(&["+", "-", "*", "&", "|", "^"]).unwrap_or(&"+");
                format!("({} {op} {})", self.value(Int, d), self.value(Int, d))
            }
            4 => format!("{}.mix({})", self.value(Int, d), self.value(Int, d)),
            5 => {
                let kind = *self.choices.pick(&[Word, Pair, Shape, Flag]).unwrap_or(&Word);
                let value = self.value(kind, d);
                match kind {
                    Pair => format!("{value}.folded()"),
                    Shape => format!("(({value}).weight() as i32)"),
                    _ => format!("({value} as i32)"),
                }
            }
            6 => format!(
                "(if {} {{ {} }} else {{ {} }})",
                self.value(Flag, d),
                self.value(Int, d),
                self.value(Int, d)
            ),
            7 => {
                let (value, other) = (self.value(Maybe, d), self.value(Int, d));
                let inside = self.with(&[(Int, &name)], |w| w.value(Int, d));
                let guard = self.with(&[(Int, &name)], |w| w.value(Flag, 0));
                format!(
                    "(match ({value}) {{ Some({name} @ (-3..=90 | 4096..)) => {inside}, Some({name}) if {guard} => {name} - 1, Some(_) => 6, \
                     None => {other} }})"
                )
            }
            8 => format!(
                "{}.map_or({}, {})",
                self.value(Maybe, d),
                self.value(Int, d),
                self.closure(d)
            ),
            9 => {
                let value = self.value(Shape, d);
                let one = self.with(&[(Int, &name)], |w| w.value(Int, d));
                let rest = self.value(Int, d);
                format!(
                    "(match ({value}) {{ Shape::Empty => -8, Shape::One({name}) => {one}, Shape::Two {{ a: {name}, b: 3.. }} if {name} > 2 => \
                     {one}, Shape::Two {{ b, .. }} => b as i32, Shape::Held(Some({name}), (0.., _)) => {one}, Shape::Held(..) => {rest} }})"
                )
            }
            10 => {
                let value = self.value(Tried, d);
                let fine = self.with(&[(Int, &name)], |w| w.value(Int, d));
                format!("(match ({value}) {{ Ok({name}) => {fine}, Err(code) => code as i32 }})")
            }
            11 => format!("{}.unwrap_or({})", self.value(Tried, d), self.value(Int, d)),
            12 => {
                let value = self.value(Four, d);
                let inside = self.with(&[(Int, "p"), (Int, "q")], |w| w.value(Int, d));
                format!("{{ let [p, .., q] = {value}; {inside} }}")
            }
            13 => format!("{}[({} as usize) % 4]", self.value(Four, d), self.value(Word, d)),
            14 => {
                let (four, closure) = (self.value(Four, d), self.closure(d));
                let condition = self.condition("&", d);
                let (first, step) = (
                    self.value(Int, d),
                    self.with(&[(Int, "s"), (Int, "v")], |w| w.value(Int, d)),
                );
                format!(
                    "{four}.iter().copied().filter({condition}).map({closure}).fold({first}, |s, v| {step})"
                )
            }
            15 => {
                let (four, other) = (self.value(Four, d), self.value(Four, d));
                let inside = self.with(&[(Int, "p"), (Int, "q")], |w| w.value(Int, d));
                format!("{four}.iter().zip({other}.iter().rev()).map(|(&p, &q)| {inside}).sum::<i32>()")
            }
            16 => {
                let (four, condition) = (self.value(Four, d), self.condition("&", d));
                format!("{four}.iter().position({condition}).map_or(-1, |at| at as i32)")
            }
            17 => {
                let four = self.value(Four, d);
                let part = *self
                    .choices
                    .pick(&["skip(1).step_by(2)", "take(3)", "rev().skip(2)"])
                    .unwrap_or(&"take(3)");
                format!("{four}.iter().{part}.max().copied().unwrap_or(0)")
            }
            18 => {
                let four = self.value(Four, d);
                let windows = *self
                    .choices
                    .pick(&["windows(2)", "chunks_exact(2)"])
                    .unwrap_or(&"windows(2)");
                let inside = self.with(&[(Int, "p"), (Int, "q")], |w| w.value(Int, d));
                format!(
                    "{four}.{windows}.enumerate().map(|(k, two)| {{ let (p, q) = (two[0], two[1] + k as i32); {inside} }}).fold(0, |s, v| s ^ v)"
                )
            }
            19 => format!("apply({}, {})", self.value(Int, d), self.closure(d)),
            _ => match self.local(Closure) {
                Some(closure) => format!("{closure}({}, {})", self.value(Int, d), self.value(Int, d)),
                None => format!("mixed({0}, {1}, {0})", self.value(Int, d), self.value(Int, d)),
            },
        }
    }

    fn word(&mut self, d: u32) -> String {
        match self.choices.below(7) {
            0 => self.leaf(Word),
            1 => format!("({} as u32)", self.value(Int, d)),
            2 => {
                let op = *self.choices.pick(&["+", "*", "^", "|"]).unwrap_or(&"+");
                format!("({} {op} {})", self.value(Word, d), self.value(Word, d))
            }
            3 => format!("({} << ({} & 31))", self.value(Word, d), self.value(Word, d)),
            4 => format!("({}).weight()", self.value(Shape, d)),
            5 => {
                let (value, other) = (self.value(Int, d), self.value(Word, d));
                format!(
                    "(match ({value}) {{ i32::MIN..=-1 => 4u32, 0 | 1 => {other}, n @ 2..100 => n as u32, _ => 8 }})"
                )
            }
            _ => format!(
                "mixed({}, {}, {})",
                self.value(Word, d),
                self.value(Word, d),
                self.value(Word, d)
            ),
        }
    }

    fn flag(&mut self, d: u32) -> String {
        match self.choices.below(9) {
            0 => self.leaf(Flag),
            1 | 2 => {
                let op = *self.choices.pick(&["<", ">=", "==", "!="]).unwrap_or(&"<");
                format!("({} {op} {})", self.value(Int, d), self.value(Int, d))
            }
            3 => format!(
                "matches!({}, Shape::One(p) | Shape::Two {{ a: p, .. }} if p > {})",
                self.value(Shape, d),
                self.value(Int, d)
            ),
            4 => format!("{}.is_some_and({})", self.value(Maybe, d), self.condition("", d)),
            5 => format!("(!{} && {})", self.value(Flag, d), self.value(Flag, d)),
            6 => {
                let kind = *self
                    .choices
                    .pick(&[Pair, Shape, Maybe, Tried, Both, Four])
                    .unwrap_or(&Pair);
                format!("({} == {})", self.value(kind, d), self.value(kind, d))
            }
            7 => {
                let which = *self.choices.pick(&["any", "all"]).unwrap_or(&"any");
                format!(
                    "{}.iter().{which}({})",
                    self.value(Four, d),
                    self.condition("&", d)
                )
            }
            _ => format!(
                "({}.mix({}) < {})",
                self.value(Word, d),
                self.value(Word, d),
                self.value(Word, d)
            ),
        }
    }

    fn maybe(&mut self, d: u32) -> String {
        match self.choices.below(8) {
            0 => self.leaf(Maybe),
            1 => format!("Some({})", self.value(Int, d)),
            2 => format!("{}.checked_add({})", self.value(Int, d), self.value(Int, d)),
            3 => format!("{}.map({})", self.value(Maybe, d), self.closure(d)),
            4 => format!("{}.filter({})", self.value(Maybe, d), self.condition("&", d)),
            5 => format!("{}.and_then(|v| twice_halved(v))", self.value(Maybe, d)),
            6 => format!(
                "{}.iter().copied().find({})",
                self.value(Four, d),
                self.condition("&", d)
            ),
            _ => format!(
                "{}.get({} as usize % 6).copied()",
                self.value(Four, d),
                self.value(Word, d)
            ),
        }
    }

    fn statement(&mut self) {
        let (name, other) = (self.name(), self.name());
        match self.choices.below(14) {
            0 | 1 => {
                let kinds = [Int, Word, Flag, Pair, Shape, Maybe, Tried, Both, Four];
                let kind = *self.choices.pick(&kinds).unwrap_or(&Int);
                let value = self.value(kind, 3);
                self.line(format!("let {name} = {value};"));
                self.scope.push((kind, name));
            }
            parts @ (2 | 3) => {
                let (kind, pattern) = match parts {
                    2 => (Both, format!("({name}, {other})")),
                    _ => (Pair, format!("Pair {{ a: {name}, b: {other} }}")),
                };
                let value = self.value(kind, 2);
                self.line(format!("let {pattern} = {value};"));
                self.scope.extend([(Int, name), (Word, other)]);
            }
            4 => {
                let (value, otherwise) = (self.value(Maybe, 2), self.value(Int, 1));
                self.line(format!(
                    "let Some({name}) = ({value}) else {{ y[i] = {otherwise}; return; }};"
                ));
                self.scope.push((Int, name));
            }
            5 => {
                let value = self.value(Shape, 2);
                let inside = self.with(&[(Int, &name), (Word, &other)], |w| w.value(Int, 2));
                self.line(format!(
                    "if let Shape::Two {{ a: {name}, b: {other} }} = ({value}) && {name} != 9 {{ state ^= {inside}; }} else {{ state += 1; }}"
                ));
            }
            6 => {
                let body = self.with(&[(Int, "p"), (Int, "q")], |w| w.value(Int, 2));
                self.line(format!("let {name} = |p: i32, q: i32| {body};"));
                let used = self.with(&[(Closure, &name)], |w| w.value(Int, 3));
                self.line(format!("let {other} = {used} + {name}(1, 2);"));
                self.scope.push((Int, other));
            }
            7 => {
                let (first, second) = (self.value(Int, 2), self.value(Int, 2));
                self.line(format!("let mut {name} = {first};"));
                self.line(format!(
                    "let mut {other} = |v: i32| {{ {name} = {name} * 3 + v; {name} }};"
                ));
                self.line(format!("{other}({second}); {other}(5);"));
                self.scope.push((Int, name));
            }
            8 => {
                let value = self.value(Four, 2);
                let inside = self.with(&[(Int, &name)], |w| w.value(Int, 2));
                self.line(format!(
                    "for {name} in ({value}) {{ state = state * 3 + {inside}; }}"
                ));
            }
            9 => {
                let value = self.value(Four, 2);
                let inside = self.with(&[(Int, "v")], |w| w.value(Int, 2));
                self.line(format!("let mut {name} = {value};"));
                self.line(format!("for (k, v) in {name}.iter_mut().enumerate() {{ let v = {{ *v += k as i32; *v }}; state ^= {inside}; }}"));
                self.scope.push((Four, name));
            }
            10 => {
                let (value, inside) = (
                    self.value(Int, 2),
                    self.with(&[(Int, &other)], |w| w.value(Int, 1)),
                );
                self.line(format!("let mut {name} = {value};"));
                self.line(format!(
                    "while let Some({other}) = halved({name}) {{ {name} = {other}; if {name} == 0 {{ break; }} state ^= {inside}; }}"
                ));
                self.scope.push((Int, name));
            }
            11 => self.kept(&name, &other),
            12 => {
                let (value, grown) = (self.value(Shape, 2), self.value(Int, 2));
                self.line(format!("let mut {name} = {value};"));
                self.line(format!(
                    "match {name} {{ Shape::One(ref mut v) => *v += {grown}, Shape::Two {{ ref a, ref mut b }} => *b ^= *a as u32, _ => {{}} }}"
                ));
                self.line(format!("{name}.grow();"));
                self.scope.push((Shape, name));
            }
            _ => {
                let (first, second) = (self.value(Int, 2), self.value(Int, 2));
                self.line(format!("let (mut {name}, mut {other}) = ({first}, {second});"));
                self.line(format!("({name}, {other}) = ({other} - 1, {name});"));
                self.scope.extend([(Int, name), (Int, other)]);
            }
        }
    }
}
