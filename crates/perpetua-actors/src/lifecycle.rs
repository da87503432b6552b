//! Through which states an actor goes: Created → Launched → Active ⇄ Deactivated → Terminated. Must not know how.

use std::fmt;

/// Where an actor is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ActorState {
    /// It has a name and a number.
    Created = 0,
    /// Its state exists where it will run; messages wait.
    Launched = 1,
    /// It handles messages.
    Active = 2,
    /// It keeps its state; messages wait.
    Deactivated = 3,
    /// It is gone; messages to it are refused.
    Terminated = 4,
    /// Its handler faulted: its state is as its options say ([`OnFault`](crate::OnFault)); messages wait until it is activated, restarted,
    /// restored or terminated.
    Faulted = 5,
}

impl fmt::Display for ActorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl ActorState {
    /// The state with this number.
    pub fn from_number(number: u8) -> Option<ActorState> {
        use ActorState::*;
        [Created, Launched, Active, Deactivated, Terminated, Faulted]
            .into_iter()
            .find(|state| *state as u8 == number)
    }

    /// Whether an actor may go from here to `next`.
    pub fn may_become(self, next: ActorState) -> bool {
        use ActorState::*;
        matches!(
            (self, next),
            (Created, Launched)
                | (Launched | Deactivated, Active)
                | (Active, Deactivated | Faulted)
                | (Faulted, Launched | Active)
                | (Created | Launched | Active | Deactivated | Faulted, Terminated)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::ActorState::{self, *};

    #[test]
    fn only_the_moves_of_the_life_cycle_are_legal() {
        let all = [Created, Launched, Active, Deactivated, Terminated, Faulted];
        let legal: Vec<(ActorState, ActorState)> = all
            .into_iter()
            .flat_map(|a| all.map(|b| (a, b)))
            .filter(|(a, b)| a.may_become(*b))
            .collect();
        let expected = [
            (Created, Launched),
            (Created, Terminated),
            (Launched, Active),
            (Launched, Terminated),
            (Active, Deactivated),
            (Active, Terminated),
            (Active, Faulted),
            (Deactivated, Active),
            (Deactivated, Terminated),
            (Faulted, Launched),
            (Faulted, Active),
            (Faulted, Terminated),
        ];
        assert_eq!(legal, expected);
    }
}
