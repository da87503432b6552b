//! How often a message is delivered, and what its packet says of that. Must not know engines.

/// How often a message is delivered to its handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// Once: where its handler faults, it is a dead letter.
    #[default]
    AtMostOnce = 0,
    /// Again, before all that waits, until a handler of it has returned, or it has been delivered as often as
    /// `LaunchOptions::with_max_deliveries` says. A handler tells a repetition by `ctx.delivery()`.
    AtLeastOnce = 1,
}

/// What a packet says of its deliveries: how many came before, and what its sender has asked for. In bits 24 to 31 of a header's flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deliveries(u8);

const AT_MOST_ONCE: u8 = 64;
const AT_LEAST_ONCE: u8 = 128;

impl Deliveries {
    /// A message is delivered so often, at most.
    pub const MOST: u8 = 63;

    /// Of a message that was never delivered, whose sender asks for this.
    #[must_use]
    pub fn asking(delivery: Delivery) -> Deliveries {
        Deliveries(match delivery {
            Delivery::AtMostOnce => AT_MOST_ONCE,
            Delivery::AtLeastOnce => AT_LEAST_ONCE,
        })
    }

    /// These bits.
    #[must_use]
    pub fn from_bits(bits: u8) -> Deliveries {
        Deliveries(bits)
    }

    /// As bits.
    #[must_use]
    pub fn bits(self) -> u8 {
        self.0
    }

    /// How often the message was delivered before.
    #[must_use]
    pub fn before(self) -> u8 {
        self.0 & Deliveries::MOST
    }

    /// What its sender has asked for, if anything.
    #[must_use]
    pub fn asked(self) -> Option<Delivery> {
        match self.0 {
            bits if bits & AT_LEAST_ONCE != 0 => Some(Delivery::AtLeastOnce),
            bits if bits & AT_MOST_ONCE != 0 => Some(Delivery::AtMostOnce),
            _ => None,
        }
    }

    /// The same after one more delivery.
    #[must_use]
    pub fn next(self) -> Deliveries {
        match self.before() {
            Deliveries::MOST => self,
            _ => Deliveries(self.0 + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_are_counted_beside_what_was_asked_for() {
        for asked in [None, Some(Delivery::AtMostOnce), Some(Delivery::AtLeastOnce)] {
            let mut deliveries = asked.map(Deliveries::asking).unwrap_or_default();
            for before in 0..100 {
                assert_eq!(deliveries.before(), before.min(Deliveries::MOST));
                assert_eq!(deliveries.asked(), asked);
                assert_eq!(Deliveries::from_bits(deliveries.bits()), deliveries);
                deliveries = deliveries.next();
            }
        }
    }
}
