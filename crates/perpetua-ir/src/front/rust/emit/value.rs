//! What an expression gives, and where things are kept.

use std::cell::RefCell;
use std::rc::Rc;

use crate::front::rust::describe::ConstValue;
use crate::front::rust::infer::tree::ClosureBody;
use crate::ir::{LocalId, Place, Value};

/// What an expression gives.
#[derive(Clone, Debug)]
pub(super) enum Val {
    /// A value of the IR.
    Value(Value),
    /// A tuple, element by element; `()` has none. Also what an expression gives that never ends.
    Tuple(Vec<Val>),
    /// A reference.
    Ref(Src),
    /// The stencil's position.
    Grid,
    /// A closure, and the scope in which it stands.
    Closure(Rc<ClosureBody>, u32),
}

impl Val {
    /// `()`.
    pub(super) const fn unit() -> Val {
        Val::Tuple(Vec::new())
    }
}

/// Where something is: what a place expression leads to, or a reference refers to.
#[derive(Clone, Debug)]
pub(super) enum Src {
    /// Memory. A slice's place is the base alone, or the place of an array.
    Place(Place),
    /// A value that never changes.
    Val(Box<Val>),
    /// A constant: its name, its value.
    Constant(Rc<str>, Rc<ConstValue>),
    /// A part of a slice or an array.
    Part(Part),
    /// One of several: that of the number which the value is, else the last.
    OneOf(Value, Rc<[Src]>),
}

/// A part of a slice or an array in memory.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// All of it, as [`Src::Place`].
    pub(super) whole: Place,
    /// The index of the first element.
    pub(super) start: Value,
    /// The number of elements.
    pub(super) len: Value,
}

/// What a local of the source is.
#[derive(Clone, Debug)]
pub(super) enum Binding {
    /// Not declared yet.
    Unset,
    /// It never changes.
    Val(Val),
    /// A variable of the IR.
    Var(LocalId),
    /// Something with references that is assigned later: where it is kept.
    Kept(Slot),
}

/// Where branches put the value that they share.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    /// A variable of the IR.
    Var(LocalId),
    /// A tuple's elements; no elements: nothing to put.
    Tuple(Vec<Slot>),
    /// What a reference `&T` refers to: a copy where nothing changes it while the reference is there, else the place, as in
    /// [`Slot::Place`].
    Shared(Box<Slot>, Chosen, [LocalId; 3]),
    /// An option whose value has references in it: whether it is there, and the value, which is looked at only then.
    There(Box<Slot>, Box<Slot>),
    /// What a reference to a part of a slice means: of which slice, where it starts, and how much it is.
    Part(Chosen, [LocalId; 3]),
    /// What a `&mut T` means: the place, and its indices in order.
    Place(Chosen, [LocalId; 3]),
}

/// What the references in a slot may mean. Behind the two numbers of a slot's reference stands which of these it is.
pub(super) type Chosen = Rc<RefCell<Meant>>;

/// Places that references may mean further on, by the number of the references' slot: places in buffers and in shared memory, which
/// are the same however often a kernel is lowered.
pub(super) type Meanings = Vec<(u32, Place)>;

/// Places that differ by more than indices, in the order in which they were put there.
#[derive(Debug)]
pub(super) struct Meant {
    /// The slot's.
    pub(super) number: u32,
    pub(super) places: Vec<Place>,
    /// Whether something was emitted that knows no others.
    pub(super) read: bool,
}

/// Whether memory takes the value.
pub(super) fn is_stored(val: &Val) -> bool {
    match val {
        Val::Value(_) => true,
        Val::Tuple(parts) => !parts.is_empty() && parts.iter().all(is_stored),
        Val::Ref(_) | Val::Grid | Val::Closure(..) => false,
    }
}
