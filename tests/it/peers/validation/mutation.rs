//! Small changes to configurations, most of which make them wrong.

use serde_json::{Map, Value, json};

use crate::machineconfig::generator::Random;

/// Values that are wrong in most places, and right in some.
const ODD: [&str; 58] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "65536",
    "4096",
    "1.5",
    "99999999999999999999",
    "\"\"",
    "\"x\"",
    "\"5\"",
    "\"yes\"",
    "\"true\"",
    "{}",
    "[]",
    "[\"x\"]",
    "[null]",
    "[{}]",
    "{\"x\": 1}",
    "{\"a\": null}",
    "\"10.0.0.1\"",
    "\"10.0.0.0/24\"",
    "\"10.0.0.0/33\"",
    "\"300.1.1.1\"",
    "\"fd00::1/64\"",
    "\"fd00::1\"",
    "\"fe80::1%eth0\"",
    "\"10.0.0.1:80\"",
    "\"[fd00::1]:80\"",
    "\"host:80\"",
    "\"host:port\"",
    "\"https://host\"",
    "\"https://host:99999\"",
    "\"https://::1:80\"",
    "\"tcp://host:5/path\"",
    "\"udp://host:5\"",
    "\"grpc://host?x=1\"",
    "\":80\"",
    "\"//\"",
    "\"10s\"",
    "\"5m30s\"",
    "\"-5s\"",
    "\"1d\"",
    "\"100MB\"",
    "\"10GiB\"",
    "\"-1GB\"",
    "\"50%\"",
    "\"150%\"",
    "\"stable\"",
    "\"off\"",
    "\"802.3ad\"",
    "\"main\"",
    "\"******\"",
    "\"YWJj\"",
    "\"a/b/c\"",
    "\"*.example.com\"",
];

/// Writes documents, each as JSON, which is YAML.
pub(super) fn write(documents: &[Value]) -> String {
    let texts: Vec<String> = documents.iter().map(Value::to_string).collect();
    texts.join("\n---\n") + "\n"
}

/// Adds one or two documents of others that are not the main one.
pub(super) fn add_document(
    random: &mut Random,
    documents: &mut Vec<Value>,
    others: Vec<Value>,
) -> Option<String> {
    let mut added: Vec<Value> = others
        .into_iter()
        .filter(|other| other["kind"].is_string())
        .collect();
    if added.is_empty() {
        return None;
    }
    let keep = if random.percent(25) { 2 } else { 1 };
    while added.len() > keep {
        added.remove(random.below(added.len()));
    }
    let names: Vec<String> = added
        .iter()
        .map(|added| added["kind"].to_string())
        .collect();
    // Two of a kind are only sometimes of interest.
    if random.percent(90) {
        documents.retain(|document| !added.iter().any(|added| added["kind"] == document["kind"]));
    }
    documents.append(&mut added);
    Some(format!("with {}", names.join(" and ")))
}

/// Puts a part of another main document into the main one.
pub(super) fn graft(
    random: &mut Random,
    documents: &mut [Value],
    others: &[Value],
) -> Option<String> {
    let other = others.iter().find(|other| other["kind"].is_null())?;
    let section = random.one(&["machine", "machine", "cluster"]);
    let from = other.get(section)?.as_object()?;
    let key = from.keys().nth(random.below(from.len()))?.clone();
    let part = from.get(&key)?.clone();
    let main = documents
        .iter_mut()
        .find(|document| document["kind"].is_null())?;
    let to = main.get_mut(section)?.as_object_mut()?;
    let deep = to.get(&key).is_some_and(Value::is_object) && part.is_object() && random.percent(60);
    if !deep {
        to.insert(key.clone(), part);
        return Some(format!("with another {section}.{key}"));
    }
    let part = part.as_object()?;
    let inner = part.keys().nth(random.below(part.len()))?.clone();
    let value = part.get(&inner)?.clone();
    to.get_mut(&key)?
        .as_object_mut()?
        .insert(inner.clone(), value);
    Some(format!("with another {section}.{key}.{inner}"))
}

/// Changes one place, in the last document or in any, and says what.
pub(super) fn mutate(random: &mut Random, documents: &mut Vec<Value>, last: bool) -> String {
    if !last && random.percent(3) {
        return whole(random, documents);
    }
    let index = match last {
        true => documents.len() - 1,
        false => random.below(documents.len()),
    };
    let Some(document) = documents.get_mut(index) else {
        return String::new();
    };
    let mut path = document["kind"].as_str().unwrap_or("main").to_owned();
    let mut value = document;
    loop {
        let stop = random.percent(12);
        let enter = match value {
            Value::Object(map) => !map.is_empty() && (!stop || !path.contains('.')),
            Value::Array(items) => !items.is_empty() && !stop,
            _ => false,
        };
        if !enter {
            let odd = random.one(&ODD);
            *value = serde_json::from_str(odd).unwrap();
            return format!(", with {odd} at {path}");
        }
        value = match value {
            Value::Object(map) => {
                let key = map.keys().nth(random.below(map.len())).unwrap().clone();
                path = format!("{path}.{key}");
                if random.percent(9) {
                    map.remove(&key);
                    return format!(", without {path}");
                }
                if random.percent(3) {
                    let value = map.remove(&key).unwrap();
                    map.insert(misspelt(random, &key), value);
                    return format!(", with a misspelt {path}");
                }
                if random.percent(3) {
                    map.insert("bogus".to_owned(), json!(1));
                    return format!(", with a field more beside {path}");
                }
                map.get_mut(&key).unwrap()
            }
            Value::Array(items) => {
                let index = random.below(items.len());
                path = format!("{path}[{index}]");
                if random.percent(12) {
                    let twin = items[index].clone();
                    items.push(twin);
                    return format!(", with {path} twice");
                }
                if random.percent(8) {
                    items.remove(index);
                    return format!(", without {path}");
                }
                &mut items[index]
            }
            _ => return path,
        };
    }
}

/// Changes which documents there are.
fn whole(random: &mut Random, documents: &mut Vec<Value>) -> String {
    let index = random.below(documents.len());
    match random.below(5) {
        0 => {
            documents.remove(index);
            format!(", without document {index}")
        }
        1 => {
            documents.push(documents[index].clone());
            format!(", with document {index} twice")
        }
        2 => {
            documents.insert(index, Value::Null);
            format!(", with nothing before document {index}")
        }
        3 => {
            documents.insert(index, json!(["x"]));
            format!(", with a list before document {index}")
        }
        _ => {
            documents.push(Value::Object(Map::new()));
            ", with an empty document".to_owned()
        }
    }
}

fn misspelt(random: &mut Random, key: &str) -> String {
    match random.below(3) {
        0 => format!("{key}s"),
        1 => key.to_uppercase(),
        _ => key[..key.len() - 1].to_owned() + "_",
    }
}
