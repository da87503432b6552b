//! The builder's control flow: labels and branches, and what is written with them.

use super::ProgramBuilder;
use super::draft::Arg;
use super::value::{Label, Predicate, Register, Value};

impl ProgramBuilder {
    /// A new label; [`ProgramBuilder::place`] says where it stands.
    pub fn label(&mut self) -> Label {
        Label(self.draft.label())
    }

    /// Lets a label stand here.
    #[track_caller]
    pub fn place(&mut self, label: Label) {
        if !self.draft.put(label.0) {
            self.fail("place", "this label stands somewhere already".into());
        }
    }

    /// `bra`: goes on at a label.
    #[track_caller]
    pub fn bra(&mut self, label: Label) {
        self.line("bra", None, None, vec![Arg::Label(label.0)]);
    }

    /// `bra` where a condition holds.
    #[track_caller]
    pub fn bra_if(&mut self, condition: Predicate, label: Label) {
        self.branch(condition, false, label);
    }

    /// `bra` where a condition does not hold.
    #[track_caller]
    pub fn bra_unless(&mut self, condition: Predicate, label: Label) {
        self.branch(condition, true, label);
    }

    #[track_caller]
    fn branch(&mut self, condition: Predicate, negated: bool, label: Label) {
        let guard = Some((condition.0, negated));
        self.guarded("bra", guard, None, None, vec![Arg::Label(label.0)]);
    }

    /// `loop`: where the count is above zero takes one from it, and goes on at a label.
    #[track_caller]
    pub fn count_down(&mut self, count: Register<u32>, label: Label) {
        let args = vec![Arg::Register(count.0), Arg::Label(label.0)];
        self.line("loop", None, None, args);
    }

    /// `exit`: ends the lane.
    #[track_caller]
    pub fn exit(&mut self) {
        self.line("exit", None, None, Vec::new());
    }

    /// `exit` where a condition holds.
    #[track_caller]
    pub fn exit_if(&mut self, condition: Predicate) {
        self.guarded("exit", Some((condition.0, false)), None, None, Vec::new());
    }

    /// Code that runs where a condition holds.
    #[track_caller]
    pub fn if_(&mut self, condition: Predicate, then: impl FnOnce(&mut ProgramBuilder)) {
        let end = self.label();
        self.bra_unless(condition, end);
        then(self);
        self.place(end);
    }

    /// Code that runs where a condition holds, and code that runs where not.
    #[track_caller]
    pub fn if_else(
        &mut self,
        condition: Predicate,
        then: impl FnOnce(&mut ProgramBuilder),
        other: impl FnOnce(&mut ProgramBuilder),
    ) {
        let (not, end) = (self.label(), self.label());
        self.bra_unless(condition, not);
        then(self);
        self.bra(end);
        self.place(not);
        other(self);
        self.place(end);
    }

    /// Code that runs again and again while a condition holds, which is computed in front of each turn.
    #[track_caller]
    pub fn while_(
        &mut self,
        condition: impl FnOnce(&mut ProgramBuilder) -> Predicate,
        body: impl FnOnce(&mut ProgramBuilder),
    ) {
        let (head, end) = (self.label(), self.label());
        self.place(head);
        let condition = condition(self);
        self.bra_unless(condition, end);
        body(self);
        self.bra(head);
        self.place(end);
    }

    /// Code that runs for each number below a count, in order.
    #[track_caller]
    pub fn repeat(
        &mut self,
        count: impl Into<Value<u32>>,
        body: impl FnOnce(&mut ProgramBuilder, Register<u32>),
    ) {
        let count = count.into();
        let i = self.var(0u32);
        let (head, end) = (self.label(), self.label());
        self.place(head);
        let done = self.setge::<u32>(i, count);
        self.bra_if(done, end);
        body(self, i);
        let next = self.add::<u32>(i, 1u32);
        self.set(i, next);
        self.bra(head);
        self.place(end);
    }
}
