//! What `-o json` prints is what `ichor schema` says.

use serde_json::Value;
use talos_sim::Options;

use super::program::{Home, Lab};

/// Checks a value against the parts of JSON Schema that the program's schemas use, and that it has no field more.
fn check(root: &Value, schema: &Value, value: &Value, path: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/$defs/").unwrap();
        return check(root, &root["$defs"][name], value, path);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let choice = choices
            .iter()
            .find(|choice| (choice["type"] == "null") == value.is_null());
        return check(root, choice.unwrap(), value, path);
    }
    let types = match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        // Anything goes, such as the content of a resource.
        _ => return,
    };
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert!(types.contains(&found), "{path} is {found}, not {types:?}");
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(root, &schema["items"], item, &format!("{path}[{index}]"));
    }
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    for required in schema["required"].as_array().into_iter().flatten() {
        assert!(
            value.get(required.as_str().unwrap()).is_some(),
            "{path} lacks {required}"
        );
    }
    for (key, field) in value.as_object().unwrap() {
        let path = format!("{path}.{key}");
        let schema = properties
            .get(key)
            .unwrap_or_else(|| panic!("{path} is not in the schema"));
        assert!(
            schema["description"].is_string() || schema["$ref"].is_string(),
            "{path} is not described"
        );
        check(root, schema, field, &path);
    }
}

fn schema(home: &Home, command: &str) -> Value {
    let words: Vec<&str> = ["schema"].into_iter().chain(command.split(' ')).collect();
    let ran = home.run(&words);
    assert_eq!(ran.code, Some(0), "{command}: {ran:?}");
    ran.json()
}

#[test]
fn every_listed_schema_is_printed() {
    let home = Home::new();
    let list = home.run(&["schema"]);
    let commands: Vec<&str> = list.stdout.lines().collect();
    assert!(commands.contains(&"get"), "{list:?}");
    for command in commands {
        let schema = schema(&home, command);
        assert!(schema["$schema"].is_string(), "{command}: {schema}");
        assert_eq!(schema["type"], "object", "{command}");
    }
    assert_eq!(home.run(&["schema", "nope"]).code, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_as_their_schemas_say() {
    let lab = Lab::start(Options::default()).await;
    let node = lab.nodes[0].as_str();
    let cases: &[(&str, &[&str])] = &[
        ("version", &["version", "-n", node, "-n", "127.0.0.9"]),
        ("version", &["version", "--client"]),
        ("get", &["get", "members"]),
        ("get", &["get", "mc"]),
        ("get", &["get", "nodename", "nope"]),
        ("service", &["service", "kubelet"]),
        (
            "service restart",
            &["service", "kubelet", "restart", "-n", node],
        ),
        ("logs", &["logs", "kubelet", "--tail", "1"]),
        ("bootstrap", &["bootstrap", "-n", node]),
        ("reboot", &["reboot", "-n", node]),
        ("config contexts", &["config", "contexts"]),
        ("config info", &["config", "info"]),
    ];
    for (command, args) in cases {
        let ran = lab.run(&[args, &["-o", "json"][..]].concat());
        let schema = schema(&lab.home, command);
        check(&schema, &schema, &ran.json(), command);
    }
    let lines: &[(&str, &[&str])] = &[
        ("get ndjson", &["get", "members"]),
        ("logs ndjson", &["logs", "kubelet"]),
    ];
    for (command, args) in lines {
        let ran = lab.run(&[args, &["-o", "ndjson"][..]].concat());
        let schema = schema(&lab.home, command);
        for line in ran.stdout.lines() {
            check(
                &schema,
                &schema,
                &serde_json::from_str(line).unwrap(),
                command,
            );
        }
    }
    let missing = lab.run(&["get", "nosuchtype", "-o", "json"]);
    let schema = schema(&lab.home, "error");
    let document = serde_json::json!({ "error": missing.error() });
    check(&schema, &schema, &document, "error");
}
