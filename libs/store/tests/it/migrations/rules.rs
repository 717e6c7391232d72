//! Expand, then contract: a migration is applied below services of the version before, which go on, and to which an operator
//! may go back. So it takes nothing away that they use, asks nothing of the rows that they write, and keeps no service out of a
//! table for long.

use super::released::released;
use super::statements::statements;

/// Tables that are large, and written all the time.
const BUSY: [&str; 9] = [
    "push_notifications",
    "send_attempts",
    "events",
    "notifications",
    "delivery_attempts",
    "dead_letters",
    "idempotency_keys",
    "event_keys",
    "subscriptions",
];

/// What a migration may do although a rule forbids it: its number, the beginning of the statement, and why no version that
/// may be at work with it minds.
const EXCEPTIONS: &[(i64, &str, &str)] = &[
    (
        24,
        "create index subscriptions_deleted",
        "a few rows for each reseller, of which those that are deleted are read: changes wait for milliseconds",
    ),
    (
        28,
        "create index subscriptions_outage",
        "a few rows for each reseller, in a column that is empty still: changes wait for milliseconds",
    ),
    (
        28,
        "create index if not exists dead_letters_given_up",
        "what was given up waits while it is made, seconds for a million open dead letters; it can be made beforehand",
    ),
    (
        55,
        "lock table dead_letters",
        "the tallies by the hour are summed meanwhile, which are far fewer than dead letters: half a million in under a second",
    ),
    (
        74,
        "create index subscriptions_reseller_name",
        "a few rows for each reseller: changes wait for milliseconds",
    ),
    (
        75,
        "create index subscriptions_endpoint",
        "a few rows for each reseller: changes wait for milliseconds",
    ),
];

#[test]
fn a_new_migration_leaves_the_version_before_at_work() {
    let newest_released = released().into_keys().max().unwrap();
    let mut broken = Vec::new();
    for migration in store::MIGRATOR.iter().filter(|one| one.version > newest_released) {
        let statements = statements(migration.sql.as_str());
        for (statement, rule) in broken_rules(&statements) {
            let is_meant = |(number, beginning, _): &&(i64, &str, &str)| {
                *number == migration.version && statement.starts_with(beginning)
            };
            if !EXCEPTIONS.iter().any(|one| is_meant(&one)) {
                broken.push(format!("{:04}: {rule}: {statement}", migration.version));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Statements, and the rules that they break.
fn broken_rules(statements: &[String]) -> Vec<(&str, &'static str)> {
    let mut broken = Vec::new();
    if !statements.first().is_some_and(|first| bounds_its_locks(first)) {
        let first = statements.first().map_or("", String::as_str);
        broken.push((
            first,
            "it begins with SET LOCAL lock_timeout of five seconds at most",
        ));
    }
    for statement in statements {
        let table = table_of(statement);
        let is_new = table.is_some_and(|table| {
            let created = format!("create table {table} ");
            statements.iter().any(|other| other.starts_with(&created))
        });
        let is_busy = table.is_some_and(|table| BUSY.contains(&table));
        let rules = RULES.iter().filter(|rule| match rule.holds_for {
            Tables::All => !is_new,
            Tables::Busy => !is_new && is_busy,
        });
        broken.extend(
            rules
                .filter(|rule| (rule.breaks)(statement))
                .map(|rule| (&**statement, rule.says)),
        );
    }
    broken
}

enum Tables {
    /// All but those that the same migration makes.
    All,
    /// The large ones.
    Busy,
}

struct Rule {
    says: &'static str,
    holds_for: Tables,
    breaks: fn(&str) -> bool,
}

const RULES: [Rule; 9] = [
    Rule {
        says: "what the version before may use stays: drop it a version later",
        holds_for: Tables::All,
        breaks: |statement| {
            let dropped = [
                "drop table",
                "drop view",
                "drop function",
                "drop type",
                "drop sequence",
                "truncate",
            ];
            dropped.iter().any(|words| statement.starts_with(words))
                || (statement.starts_with("alter table ") && statement.contains(" drop column "))
        },
    },
    Rule {
        says: "what the version before may use keeps its name",
        holds_for: Tables::All,
        breaks: |statement| statement.starts_with("alter ") && statement.contains(" rename "),
    },
    Rule {
        says: "a column keeps its type, and the default that older writers count on",
        holds_for: Tables::All,
        breaks: |statement| {
            let column = statement.starts_with("alter table ") && statement.contains(" alter column ");
            column && (statement.contains(" type ") || statement.contains(" drop default"))
        },
    },
    Rule {
        says: "older writers do not know a new column: it may be null or has a default",
        holds_for: Tables::All,
        breaks: |statement| {
            let added = columns_added(statement);
            added.iter().any(|column| {
                column.contains(" not null")
                    && !column.contains(" default ")
                    && !column.contains(" generated ")
            })
        },
    },
    Rule {
        says: "a column that may be null stays so while older writers leave it out",
        holds_for: Tables::All,
        breaks: |statement| statement.starts_with("alter table ") && statement.contains(" set not null"),
    },
    Rule {
        says: "a constraint on a table with rows is added NOT VALID, and validated in a later migration",
        holds_for: Tables::All,
        breaks: |statement| {
            let mut added = statement.split(" add constraint ").skip(1);
            added.any(|constraint| {
                let looks = [" check ", " check(", " foreign key", " not null "];
                looks.iter().any(|words| constraint.contains(words)) && !constraint.contains(" not valid")
            })
        },
    },
    Rule {
        says: "an index on a large table keeps writers out while it is made: make it on the parent alone, or on the partitions \
               to come",
        holds_for: Tables::Busy,
        breaks: |statement| {
            let index =
                statement.starts_with("create index ") || statement.starts_with("create unique index ");
            let constraint = statement.contains(" add constraint ")
                && (statement.contains(" unique") || statement.contains(" primary key"));
            (index && !statement.contains(" on only "))
                || (constraint && !statement.contains(" using index "))
        },
    },
    Rule {
        says: "a stored column rewrites a large table",
        holds_for: Tables::Busy,
        breaks: |statement| {
            let volatile = ["gen_random_uuid()", "clock_timestamp()", "random()", " stored"];
            let added = columns_added(statement);
            added
                .iter()
                .any(|column| volatile.iter().any(|words| column.contains(words)))
        },
    },
    Rule {
        says: "a large table is neither locked nor changed as a whole in one transaction",
        holds_for: Tables::Busy,
        breaks: |statement| {
            ["lock ", "update ", "delete ", "cluster "]
                .iter()
                .any(|words| statement.starts_with(words))
        },
    },
];

fn bounds_its_locks(statement: &str) -> bool {
    let limit = statement.strip_prefix("set local lock_timeout = '");
    let seconds = limit.and_then(|limit| limit.strip_suffix("s'"));
    seconds.is_some_and(|seconds| {
        seconds
            .parse::<u32>()
            .is_ok_and(|seconds| (1..=5).contains(&seconds))
    })
}

/// What a statement adds to a table, each with its type and what follows.
fn columns_added(statement: &str) -> Vec<&str> {
    if !statement.starts_with("alter table ") {
        return Vec::new();
    }
    statement.split(" add column ").skip(1).collect()
}

/// The table that a statement is about.
fn table_of(statement: &str) -> Option<&str> {
    let index = statement.starts_with("create index ") || statement.starts_with("create unique index ");
    let after = if index {
        statement.split_once(" on ")?.1
    } else {
        let beginnings = [
            "alter table ",
            "update ",
            "delete from ",
            "lock table ",
            "drop table ",
            "truncate ",
            "cluster ",
        ];
        beginnings
            .iter()
            .find_map(|words| statement.strip_prefix(words))?
    };
    let mut words = after
        .split([' ', '(', ','])
        .filter(|word| !["only", "if", "exists", "table"].contains(word));
    words.next()
}

#[test]
fn each_rule_finds_what_breaks_it() {
    for statement in [
        "DROP TABLE lanes",
        "TRUNCATE leases",
        "DROP FUNCTION enter_lane(text, bigint)",
        "ALTER TABLE leases DROP COLUMN epoch",
        "ALTER TABLE leases RENAME COLUMN epoch TO term",
        "ALTER TABLE leases RENAME TO terms",
        "ALTER TABLE leases ALTER COLUMN epoch TYPE numeric",
        "ALTER TABLE leases ALTER COLUMN epoch DROP DEFAULT",
        "ALTER TABLE leases ADD COLUMN a int DEFAULT 1, ADD COLUMN b text NOT NULL",
        "ALTER TABLE leases ALTER COLUMN taken_at SET NOT NULL",
        "ALTER TABLE leases ADD CONSTRAINT c CHECK (epoch > 0)",
        "ALTER TABLE replays ADD CONSTRAINT c FOREIGN KEY (subscription_id) REFERENCES subscriptions (id)",
        "CREATE INDEX i ON notifications (reseller_id)",
        "CREATE UNIQUE INDEX i ON ONLY events (id); CREATE INDEX j ON push_notifications (status)",
        "ALTER TABLE event_keys ADD CONSTRAINT c UNIQUE (event)",
        "ALTER TABLE events ADD COLUMN size int GENERATED ALWAYS AS (length(body)) STORED",
        "ALTER TABLE events ADD COLUMN tag uuid NOT NULL DEFAULT gen_random_uuid()",
        "UPDATE push_notifications SET reason = ''",
        "LOCK TABLE dead_letters IN SHARE MODE",
        "DELETE FROM events",
    ] {
        let script = format!("SET LOCAL lock_timeout = '5s'; {statement};");
        let statements = statements(&script);
        assert_eq!(
            broken_rules(&statements).len(),
            1,
            "{statement}: {:?}",
            broken_rules(&statements)
        );
    }
    for beginning in [
        "",
        "SET LOCAL lock_timeout = '60s'; ",
        "SET LOCAL lock_timeout = 0; ",
    ] {
        let statements = statements(&format!("{beginning}CREATE TABLE t (id int);"));
        assert_eq!(broken_rules(&statements).len(), 1, "{beginning:?}");
    }
}

#[test]
fn what_leaves_the_version_before_at_work_breaks_no_rule() {
    let script = "SET LOCAL lock_timeout = '5s';
        CREATE TABLE t (id int NOT NULL, CHECK (id > 0));
        CREATE INDEX i ON t (id);
        UPDATE t SET id = 1;
        ALTER TABLE t ADD CONSTRAINT c CHECK (id > 1);
        ALTER TABLE push_notifications ADD COLUMN a int, ADD COLUMN b text NOT NULL DEFAULT 'drop table x';
        ALTER TABLE push_notifications ADD CONSTRAINT c CHECK (a > 0) NOT VALID;
        ALTER TABLE push_notifications VALIDATE CONSTRAINT d;
        CREATE INDEX j ON ONLY notifications (id);
        CREATE INDEX k ON leases (epoch);
        DROP INDEX l;
        CREATE OR REPLACE FUNCTION f() RETURNS void LANGUAGE sql AS $$ UPDATE events SET body = '' $$;
        COMMENT ON COLUMN t.id IS 'Rename; drop column it.';";
    let statements = statements(script);
    assert_eq!(broken_rules(&statements), []);
}

#[test]
fn every_exception_is_of_a_migration_that_is_not_released() {
    let newest_released = released().into_keys().max().unwrap();
    for (number, statement, why) in EXCEPTIONS {
        assert!(
            *number > newest_released && !why.is_empty(),
            "{statement} is long past"
        );
    }
}
