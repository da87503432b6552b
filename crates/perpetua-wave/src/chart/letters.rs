//! Letters as strokes, as plotters draw them. Must not know where they are drawn.

/// Strokes of the characters from `!` to `~`: pairs of digits, a column from 0 to 4 and a row from 0 to 8; capitals are from row 0 to row 6, on which a text stands.
const STROKES: [&str; 94] = [
    "2024 2626",
    "1012 3032",
    "1016 3036 0242 0444",
    "413010010213334445361605 2026",
    "0640 0010110100 3545463635",
    "4612112031320405162644",
    "2022",
    "30212536",
    "10212516",
    "2125 0244 0442",
    "2125 0343",
    "252617",
    "0343",
    "2626",
    "0640",
    "103041453616050110",
    "112026 1636",
    "01103041420646",
    "01103041423313 334445361605",
    "36300444",
    "400002324345361605",
    "413010010516364544331304",
    "004016",
    "103041423313020110 3344453616050413",
    "051636454130100102133342",
    "2222 2626",
    "2222 252617",
    "410345",
    "0242 0444",
    "014305",
    "01103041422324 2626",
    "4616050110304144242242",
    "062046 1434",
    "06003041423303 3344453606",
    "4130100105163645",
    "00063645413000",
    "40000646 0333",
    "400006 0333",
    "41301001051636454323",
    "0006 4046 0343",
    "1030 2026 1636",
    "3035261605",
    "0006 4004 1346",
    "000646",
    "0600234046",
    "06004640",
    "103041453616050110",
    "06003041423303",
    "103041453616050110 2446",
    "06003041423303 2346",
    "413010010213334445361605",
    "0040 2026",
    "000516364540",
    "002640",
    "0016233640",
    "0046 4006",
    "002340 2326",
    "00400646",
    "30202636",
    "0046",
    "10202616",
    "022042",
    "0747",
    "1021",
    "12324346 441405163645",
    "0006 0312324345361605",
    "4332120305163645",
    "4046 4332120305163645",
    "04444332120305163645",
    "41302126 1242",
    "4332120305163645 4247381807",
    "0006 0312324346",
    "122226 1636 2020",
    "32372818 3030",
    "0006 4205 2446",
    "102026 1636",
    "0206 03122326 23324346",
    "0206 0312324346",
    "123243453616050312",
    "0208 0312324345361605",
    "4248 4332120305163645",
    "0206 03123243",
    "4212031434453606",
    "20253646 1242",
    "0205163645 4246",
    "022642",
    "0216243642",
    "0246 4206",
    "0226 4218",
    "02420646",
    "30212213242536",
    "2027",
    "10212233242516",
    "04133443",
];
/// What stands for a character that has no strokes.
const BOX: &str = "0040460600";
/// The row on which a text stands.
pub(super) const BASE: f64 = 6.0;
/// Columns from a character to the next one.
pub(super) const ADVANCE: f64 = 6.0;

/// The strokes of a character: columns and rows of their points.
pub(super) fn strokes(character: char) -> Vec<Vec<[f64; 2]>> {
    let text = match (character, u32::from(character).checked_sub(u32::from('!'))) {
        (' ', _) => "",
        (_, Some(at)) => STROKES.get(at as usize).copied().unwrap_or(BOX),
        (_, None) => BOX,
    };
    let points = |stroke: &str| {
        let pairs = stroke.as_bytes().chunks_exact(2);
        pairs
            .map(|pair| [0, 1].map(|i| f64::from(pair[i] - b'0')))
            .collect()
    };
    text.split_whitespace().map(points).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_has_strokes_of_its_own() {
        let mut known = std::collections::HashMap::new();
        for character in '!'..='~' {
            let found = strokes(character);
            assert!(!found.is_empty(), "{character}");
            for [column, row] in found.iter().flatten() {
                assert!(*column <= 4.0 && *row <= 8.0, "{character}");
            }
            let text = format!("{found:?}");
            if let Some(other) = known.insert(text, character) {
                // These two look alike to many.
                assert_eq!((other, character), ('0', 'O'));
            }
        }
        assert!(
            STROKES
                .iter()
                .all(|text| text.split(' ').all(|stroke| stroke.len() % 2 == 0))
        );
        assert!(strokes(' ').is_empty());
        assert_eq!(strokes('\u{e9}'), strokes('\u{7f}'));
        assert_eq!(strokes('\n').len(), 1);
    }
}
