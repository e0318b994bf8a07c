//! Configurations and patches of many lines.

use super::*;

#[test]
fn a_patch_of_many_documents_finds_each_and_adds_and_deletes_others() {
    let link = |at: usize, rest: &str| {
        format!("---\napiVersion: v1alpha1\nkind: LinkConfig\nname: l{at}\n{rest}\n")
    };
    let config: String = (0..3000).map(|at| link(at, "mtu: 1400")).collect();
    let patch: String = (0..1000)
        .map(|at| link(at, "$patch: delete"))
        .chain((1000..4000).map(|at| link(at, "mtu: 1500")))
        .collect();
    let patch = format!("{patch}---\nmachine: {{type: worker}}\n");
    let patched = patched(&config, &[&patch], "v1.13.9").unwrap();
    let links: String = (1000..4000).map(|at| link(at, "mtu: 1500")).collect();
    let want = read_documents(&format!("machine: {{type: worker}}\n{links}")).unwrap();
    assert!(read_documents(&patched.text).unwrap() == want);
}

#[test]
fn long_lists_are_paired_by_name_as_short_ones_are() {
    let list = |names: std::ops::Range<usize>, mtu: usize| -> String {
        names
            .map(|at| format!("    - interface: eth{at}\n      mtu: {mtu}\n"))
            .collect()
    };
    let head = "machine:\n  network:\n    interfaces:\n";
    let config = format!("{head}{}", list(0..40, 1400));
    let twice = "    - interface: eth50\n      dhcp: true\n";
    let patch = format!("{head}{}{twice}", list(20..60, 1500));
    let patched = patched(&config, &[&patch], "v1.13.9").unwrap();
    let rest = list(20..60, 1500).replace(
        "eth50\n      mtu: 1500\n",
        "eth50\n      mtu: 1500\n      dhcp: true\n",
    );
    let want = format!("{head}{}{rest}", list(0..20, 1400));
    assert_eq!(read(&patched.text).unwrap(), read(&want).unwrap());
}

#[test]
fn long_lists_are_paired_by_number_and_selector_as_short_ones_are() {
    let vlans = |of: &mut dyn Iterator<Item = usize>, rest: &str| -> String {
        of.map(|at| format!("        - {{vlanId: {at}, {rest}}}\n"))
            .collect()
    };
    let head = "machine:\n  network:\n    interfaces:\n    - interface: eth0\n      vlans:\n";
    let config = format!("{head}{}", vlans(&mut (1..41), "mtu: 1400"));
    // Written in another way, one of them twice, one without a number.
    let patch = format!(
        "{head}{}        - {{vlanId: 0x32, dhcp: true}}\n        - {{mtu: 7}}\n        - {{mtu: 8}}\n",
        vlans(&mut (21..61), "mtu: 1500")
    );
    let made = patched(&config, &[&patch], "v1.13.9").unwrap();
    let rest = vlans(&mut (21..61), "mtu: 1500").replace(
        "{vlanId: 50, mtu: 1500}",
        "{vlanId: 50, mtu: 1500, dhcp: true}",
    );
    let want = format!(
        "{head}{}{rest}        - {{mtu: 8}}\n",
        vlans(&mut (1..21), "mtu: 1400")
    );
    assert_eq!(read(&made.text).unwrap(), read(&want).unwrap());

    let devices = |of: &mut dyn Iterator<Item = usize>, mtu: usize| -> String {
        of.map(|at| {
            format!(
                "    - {{deviceSelector: {{driver: d{}, busPath: '{at}'}}, mtu: {mtu}}}\n",
                at % 3
            )
        })
        .collect()
    };
    let head = "machine:\n  network:\n    interfaces:\n";
    let config = format!("{head}{}", devices(&mut (0..40), 1400));
    let patch = format!(
        "{head}{}    - {{deviceSelector: {{busPath: '50', driver: d2}}, dhcp: true}}\n    - {{deviceSelector: {{busPath: '50'}}, dhcp: true}}\n",
        devices(&mut (20..60), 1500)
    );
    let made = patched(&config, &[&patch], "v1.13.9").unwrap();
    let rest =
        devices(&mut (20..60), 1500).replace("'50'}, mtu: 1500}", "'50'}, mtu: 1500, dhcp: true}");
    let want = format!(
        "{head}{}{rest}    - {{deviceSelector: {{busPath: '50'}}, dhcp: true}}\n",
        devices(&mut (0..20), 1400)
    );
    assert_eq!(read(&made.text).unwrap(), read(&want).unwrap());
}

#[test]
fn pairing_a_long_list_does_what_pairing_its_elements_one_by_one_does() {
    let name = |at: usize| match at % 7 {
        0 => String::new(),
        1 => "interface: '', ".to_owned(),
        2 => format!("deviceSelector: {{driver: d{}}}, ", at % 5),
        3 => format!(
            "interface: e{}, deviceSelector: {{driver: d{}}}, ",
            at % 11,
            at % 4
        ),
        4 => format!("interface: {}, ", at % 3),
        _ => format!("interface: e{}, ", at % 13),
    };
    let head = "machine:\n  network:\n    interfaces:\n";
    let item = |at: usize| format!("    - {{{}addresses: [a{at}]}}\n", name(at));
    let config = format!("{head}{}", (0..40).map(item).collect::<String>());
    let items: Vec<String> = (100..190).map(|at| item(at * 31 % 97)).collect();
    for version in ["1.11", "1.13", "1.14"] {
        let schema = Schema::for_talos(version);
        for compat in [false, true] {
            let options = Options {
                compat,
                ..Options::from(schema)
            };
            let whole = Patch::parse(&format!("{head}{}", items.concat())).unwrap();
            let each = items
                .iter()
                .map(|item| Patch::parse(&format!("{head}{item}")).unwrap());
            let each: Vec<Patch> = each.collect();
            let whole = apply_with(&config, &[whole], &options).unwrap();
            let each = apply_with(&config, &each, &options).unwrap();
            assert_eq!(read(&whole.text).unwrap(), read(&each.text).unwrap());
        }
    }
}

#[test]
fn time_does_not_grow_with_the_square_of_what_is_deleted_or_paired() {
    const COUNT: usize = 10_000;
    let lines = |line: &dyn Fn(usize) -> String| (0..COUNT).map(line).collect::<String>();
    let interfaces = "machine:\n  network:\n    interfaces:\n";
    let start = std::time::Instant::now();
    for (head, there, patch, left) in [
        (
            "machine:\n  sysctls:\n",
            lines(&|at| format!("    k{at}: v\n")),
            lines(&|at| format!("    k{at}: {{$patch: delete}}\n")),
            0,
        ),
        (
            "machine:\n  files:\n",
            lines(&|at| format!("    - path: /f{at}\n")),
            lines(&|at| format!("    - {{path: /f{at}, $patch: delete}}\n")),
            0,
        ),
        (
            &format!("{interfaces}    - interface: eth0\n      vlans:\n"),
            lines(&|at| format!("        - vlanId: {}\n", at % 4094 + 1)),
            lines(&|at| format!("        - {{vlanId: {}, mtu: 1}}\n", at % 4094 + 1)),
            4094,
        ),
        (
            interfaces,
            lines(&|at| format!("    - deviceSelector: {{busPath: b{at}}}\n")),
            lines(&|at| format!("    - {{deviceSelector: {{busPath: b{at}}}, mtu: 1}}\n")),
            COUNT,
        ),
    ] {
        let patch = format!("{head}{patch}");
        let made = patched(&format!("{head}{there}"), &[&patch], "1.13").unwrap();
        assert_eq!(made.text.matches("mtu: 1").count(), left, "{head}");
    }
    // Takes seconds without optimization, and took minutes.
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}
