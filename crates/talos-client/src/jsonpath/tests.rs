use proptest::prelude::*;
use serde_json::json;

use super::*;

fn check(template: &str, expected: &str) {
    let root = json!({
        "name": "n1",
        "ready": true,
        "count": 3,
        "load": 0.5,
        "none": null,
        "addresses": ["10.5.0.2", "fd00::2"],
        "empty": [],
        "labels": {"node.kubernetes.io/x": "y", "a-b": "c"},
        "conditions": [
            {"type": "Ready", "status": "True", "age": 7},
            {"type": "DiskPressure", "status": "False", "age": 9},
        ],
        "deep": {"image": "a", "inner": {"image": "b"}},
    });
    let template = Template::parse(template).unwrap();
    assert_eq!(template.render(&root), expected, "{template:?}");
}

#[test]
fn values_are_text_and_composites_are_json() {
    check("{.name}", "n1");
    check("{.ready}", "true");
    check("{.count}", "3");
    check("{.load}", "0.5");
    check("{.addresses}", r#"["10.5.0.2","fd00::2"]"#);
    check("{.empty}", "[]");
    check("{.deep.inner}", r#"{"image":"b"}"#);
}

#[test]
fn what_is_missing_or_null_is_nothing() {
    check("{.nope}", "");
    check("{.name.nope}", "");
    check("{.none}", "");
    check("{.addresses[7]}", "");
    check("{.empty[*]}", "");
}

#[test]
fn lists_are_indexed_sliced_and_spread() {
    check("{.addresses[0]}", "10.5.0.2");
    check("{.addresses[-1]}", "fd00::2");
    check("{.addresses[*]}", "10.5.0.2 fd00::2");
    check("{.addresses[:]}", "10.5.0.2 fd00::2");
    check("{.addresses[1:]}", "fd00::2");
    check("{.addresses[:-1]}", "10.5.0.2");
    check("{.addresses[::2]}", "10.5.0.2");
    check("{.addresses[0,1]}", "10.5.0.2 fd00::2");
    check("{.conditions[*].status}", "True False");
}

#[test]
fn fields_may_be_quoted_or_escaped() {
    check("{.labels['node.kubernetes.io/x']}", "y");
    check(r"{.labels.node\.kubernetes\.io/x}", "y");
    check("{.labels.a-b}", "c");
    check("{['name','count']}", "n1 3");
}

#[test]
fn filters_compare() {
    check(r#"{.conditions[?(@.type=="Ready")].status}"#, "True");
    check("{.conditions[?(@.type != 'Ready')].status}", "False");
    check("{.conditions[?(@.age>8)].type}", "DiskPressure");
    check("{.conditions[?(@.age<=7)].type}", "Ready");
    check("{.conditions[?(@.nope)].type}", "");
    check("{.conditions[?(@.age)].type}", "Ready DiskPressure");
}

#[test]
fn the_root_the_current_item_and_everything_below() {
    check("{$.name}", "n1");
    check("{@.name}", "n1");
    check("{.deep..image}", "a b");
    check("{.deep.*.image}", "b");
}

#[test]
fn text_ranges_and_bare_paths() {
    check("{.name}:{.count}", "n1:3");
    check(
        r#"{range .conditions[*]}{.type}={.status}{"\n"}{end}"#,
        "Ready=True\nDiskPressure=False\n",
    );
    check("{range .conditions[*]}{$.name} {end}", "n1 n1 ");
    check(".name", "n1");
    check("deep.inner.image", "b");
}

#[test]
fn the_path_of_a_whole_content_is_the_content() {
    let template = Template::parse("{@}").unwrap();
    assert_eq!(template.render(&json!("text")), "text");
    assert!(!template.has_text());
    assert_eq!(template.values(&json!(1)), [&json!(1)]);
}

#[test]
fn a_wrong_template_says_where_and_what() {
    for (text, at, expected) in [
        ("{.name", 7, "}"),
        ("{}{end}", 8, "a range before its end"),
        ("{range .x}", 11, "{end}"),
        ("{.x[}", 5, "an index"),
        ("{.x[0}", 6, "]"),
        ("{.x[::0]}", 8, "a step of 1 or more"),
        ("{.x[?(@.a==)]}", 12, "a path"),
        ("{.x['a]}", 9, "a closing quote"),
        ("", 1, "a path"),
        (".a b", 3, "the end"),
    ] {
        let error = Template::parse(text).unwrap_err();
        assert_eq!((error.at, error.expected), (at, expected), "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[{}\\[\\].*@$?()'\"a-z0-9=<>!:, -]{0,40}") {
        if let Ok(template) = Template::parse(&text) {
            template.render(&json!({"a": [1, {"b": "c"}]}));
        }
    }

    #[test]
    fn nesting_is_limited(depth in 17usize..200) {
        let text = format!("{{.a{}", "[?(@".repeat(depth));
        prop_assert!(Template::parse(&text).is_err());
    }
}
