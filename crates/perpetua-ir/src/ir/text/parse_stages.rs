//! Reads what a kernel multiplies in stages.

use super::cursor::Result;
use super::parse::Parser;
use crate::ir::{Base, Factor, StageElement, Stages};

impl Parser<'_> {
    /// Reads what a kernel multiplies in stages.
    pub(super) fn stages(&mut self) -> Result<Stages> {
        self.token("(")?;
        let count = self.cursor.number("the number of stages")?;
        self.token(",")?;
        let named = |word: &str| {
            StageElement::ALL
                .into_iter()
                .find(|element| element.name() == word)
        };
        let element = self.word("what is multiplied, such as `bf16` or `e4m3`", named)?;
        self.token(",")?;
        let left = self.factor()?;
        self.token(",")?;
        let mut stages = Stages {
            count,
            element,
            left,
            right: self.factor()?,
            third: None,
            twins: None,
            depth: element.depth(),
            pairs: false,
        };
        self.cursor.gap();
        while self.cursor.eat(",") {
            self.cursor.gap();
            if self.cursor.eat("pairs") {
                stages.pairs = true;
            } else if self.cursor.eat("twins") {
                self.token(",")?;
                let left = self.factor()?;
                self.token(",")?;
                stages.twins = Some([left, self.factor()?]);
            } else if self.cursor.rest().starts_with(|c: char| c.is_ascii_digit()) {
                stages.depth = self.cursor.number("how deep a stage is")?;
                self.cursor.gap();
                self.cursor.expect("deep")?;
            } else {
                stages.third = Some(self.factor()?);
            }
            self.cursor.gap();
        }
        self.token(")")?;
        Ok(stages)
    }

    fn factor(&mut self) -> Result<Factor> {
        let way = |word: &str| match word {
            "along" => Some(false),
            "across" => Some(true),
            _ => None,
        };
        let across = self.word("`along` or `across`", way)?;
        self.token("(")?;
        let extent = self.cursor.number("rows or columns of sums")?;
        let (buffer, shape) = (self.param()?, [self.param()?, self.param()?, self.param()?]);
        // Nothing more, or two.
        let mut more = self.cursor;
        more.gap();
        let layers = match more.eat(",") {
            true => Some([self.param()?, self.param()?]),
            false => None,
        };
        self.token(")")?;
        Ok(Factor {
            buffer,
            shape,
            layers,
            extent,
            across,
        })
    }

    /// Reads a comma and a parameter's name.
    fn param(&mut self) -> Result<u32> {
        self.token(",")?;
        let start = self.cursor;
        let name = self.cursor.identifier("a parameter's name")?;
        match self.bases.get(name) {
            Some(Base::Buffer(i)) => Ok(*i),
            _ => Err(start.expected("the name of a parameter")),
        }
    }
}
