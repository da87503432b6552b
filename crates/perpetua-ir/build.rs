//! Hands the hash of this crate's sources to its code (`CODE_HASH`). Must not know anything else.

fn main() -> std::io::Result<()> {
    perpetua_code_hash::export()
}
