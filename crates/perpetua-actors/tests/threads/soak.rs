//! Everything at random for a while: each accepted message is handled once, or reported, by the counts of both sides.
