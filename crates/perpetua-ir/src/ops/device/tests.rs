//! That the rows of the table fit together.

use super::*;
use perpetua_syntax::{Intrinsic, IntrinsicGroup};

#[test]
fn names_are_unique_and_functions_exist() {
    let (mut names, mut functions) = (Vec::new(), Vec::new());
    for op in DeviceOp::all() {
        let row = op.row();
        names.push(format!("{}{}", row.name.0, row.name.1));
        let called = Intrinsic::ALL.iter().filter(|i| row.is_called(i.name()));
        let called: Vec<Intrinsic> = called.copied().collect();
        assert_eq!(called.len(), row.language.len(), "{op:?} is called by {called:?}");
        for function in called {
            let arguments = function.arg_count();
            assert_eq!(arguments, row.operands.len(), "{function:?}");
            functions.push(function);
        }
    }
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    // What the front end makes of several operations.
    let own = ["subgroup_size", "subgroup_lane", "subgroup_id", "check_index"];
    for intrinsic in Intrinsic::ALL {
        let asks = matches!(
            intrinsic.group(),
            IntrinsicGroup::Sync | IntrinsicGroup::Subgroup | IntrinsicGroup::Fast | IntrinsicGroup::Resident
        );
        let rows = functions.iter().filter(|f| *f == intrinsic).count();
        assert_eq!(
            rows,
            usize::from(asks && !own.contains(&intrinsic.name())),
            "{intrinsic:?}"
        );
    }
}
