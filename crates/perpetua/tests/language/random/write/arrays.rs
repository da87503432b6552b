//! Arrays whose elements are written at constant places where lanes leave at different turns, and read behind that at places that run time chooses.

use super::{Kind, Writer};

impl Writer {
    pub(super) fn kept(&mut self, name: &str, other: &str) {
        let (value, turns) = (self.value(Kind::Four, 2), self.value(Kind::Word, 1));
        let (at, inside) = (self.choices.below(4), self.value(Kind::Int, 1));
        self.line(format!("let mut {name} = {value};"));
        self.line(format!(
            "for {other} in 0..({turns}) % 9 {{ {name}[{at}] += {inside} + {other} as i32; }}"
        ));
        self.line(format!(
            "state ^= {name}[(i + 1) % 4] - {name}.iter().sum::<i32>();"
        ));
    }
}
