//! Reads what a kernel multiplies in stages.

use super::cursor::Result;
use super::parse::Parser;
use crate::ir::{Base, Factor, Stages};

impl Parser<'_> {
    /// Reads what a kernel multiplies in stages.
    pub(super) fn stages(&mut self) -> Result<Stages> {
        self.token("(")?;
        let count = self.cursor.number("the number of stages")?;
        self.token(",")?;
        let element = self.scalar_type()?;
        let (left, right) = (self.factor()?, self.factor()?);
        self.cursor.gap();
        let pairs = self.cursor.eat(",");
        if pairs {
            self.cursor.gap();
            self.cursor.expect("pairs")?;
        }
        self.token(")")?;
        Ok(Stages {
            count,
            element,
            left,
            right,
            pairs,
        })
    }

    fn factor(&mut self) -> Result<Factor> {
        self.token(",")?;
        let way = |word: &str| match word {
            "along" => Some(false),
            "across" => Some(true),
            _ => None,
        };
        let across = self.word("`along` or `across`", way)?;
        self.token("(")?;
        let extent = self.cursor.number("rows or columns of sums")?;
        let mut param = || {
            self.token(",")?;
            let start = self.cursor;
            let name = self.cursor.identifier("a parameter's name")?;
            match self.bases.get(name) {
                Some(Base::Buffer(i)) => Ok(*i),
                _ => Err(start.expected("the name of a parameter")),
            }
        };
        let (buffer, shape) = (param()?, [param()?, param()?, param()?]);
        self.token(")")?;
        Ok(Factor {
            buffer,
            shape,
            extent,
            across,
        })
    }
}
