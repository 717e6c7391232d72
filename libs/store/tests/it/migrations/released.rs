//! Migrations that an operator may have applied are never changed.

use std::collections::BTreeMap;

/// What each of them held when it was released: its number, and the beginning of its checksum as `_sqlx_migrations` has it.
/// A release adds those that it brings.
const RELEASED: &str = include_str!("released.txt");

/// By number.
pub(super) fn released() -> BTreeMap<i64, &'static str> {
    let lines = RELEASED.lines().map(|line| line.split_once(' ').unwrap());
    lines
        .map(|(number, checksum)| (number.parse().unwrap(), checksum))
        .collect()
}

#[test]
fn a_released_migration_is_as_it_was() {
    let present: BTreeMap<i64, String> = store::MIGRATOR
        .iter()
        .map(|migration| (migration.version, hex(&migration.checksum[..8])))
        .collect();
    for (number, checksum) in released() {
        let found = present.get(&number).map(String::as_str);
        assert_eq!(
            found,
            Some(checksum),
            "migration {number:04} was changed after its release: a database that has it cannot be migrated any more"
        );
    }
}

#[test]
fn migrations_are_numbered_without_a_gap_and_go_forward_only() {
    let numbers: Vec<i64> = store::MIGRATOR
        .iter()
        .map(|migration| migration.version)
        .collect();
    let expected: Vec<i64> = (1..).take(numbers.len()).collect();
    assert_eq!(numbers, expected);
    assert!(
        store::MIGRATOR
            .iter()
            .all(|migration| migration.migration_type.is_up_migration() && !migration.no_tx)
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
