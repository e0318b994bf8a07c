//! Expressions beyond those of the table of cases.

use super::{Variables, types_well};

#[test]
fn deep_and_long_expressions_end() {
    let deep = format!("{}true{}", "(".repeat(5000), ")".repeat(5000));
    assert!(types_well(&deep, Variables::Disk, "1.14.1").is_err());
    let long = vec!["system_disk"; 5000].join(" || ");
    assert_eq!(types_well(&long, Variables::Disk, "1.14.1"), Ok(()));
    let signs = format!("{}system_disk", "!".repeat(50_000));
    assert_eq!(types_well(&signs, Variables::Disk, "1.14.1"), Ok(()));
    assert!(types_well(&"a".repeat(200_000), Variables::Disk, "1.14.1").is_err());
}

#[test]
fn what_may_be_anything_makes_a_list_of_anything() {
    for text in [
        "1 in ['a'] + ['b', dyn('a')]",
        "(true ? [1] : [dyn(1)])[0] == 'a'",
    ] {
        assert_eq!(
            types_well(text, Variables::Disk, "1.14.1"),
            Ok(()),
            "{text}"
        );
    }
    assert!(types_well("1 in ['a'] + ['b']", Variables::Disk, "1.14.1").is_err());
}

#[test]
fn messages_say_what_is_wrong() {
    for (text, part) in [
        ("disk.size > 1", "`>` does not work on uint and int"),
        ("disk.bogus == ''", "DiskSpec has no field bogus"),
        ("disk.size", "gives uint, not bool"),
        ("disk.model == 'a", "the closing ' is missing"),
        ("(system_disk", "`)` is expected instead of the end"),
        ("link.mtu > 1u", "there is no link"),
        ("!!!disk.model", "`!` takes bool, not string"),
        ("--disk.model == 1", "`==` does not work on string and int"),
    ] {
        let wrong = types_well(text, Variables::Disk, "1.14.1").unwrap_err();
        assert!(wrong.contains(part), "{text}: {wrong}");
    }
}
