//! Filling the placeholders of recorded resources, which look like `{{name}}`.

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::{Machine, Site};
use crate::node::MachineType;
use crate::options::Platform;

/// The words that replace placeholders on one machine.
#[derive(Default)]
pub(super) struct Words {
    words: Vec<(&'static str, String)>,
    controlplanes: Vec<String>,
}

impl Words {
    /// Collects the words for a machine of a cluster.
    pub(super) fn new(site: &Site, machine: &Machine) -> Self {
        let authority = site.endpoint.split("://").last().unwrap_or_default();
        let authority = authority.split('/').next().unwrap_or_default();
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "443"));
        let platform = match site.platform {
            Platform::Metal => "metal",
            Platform::Container => "container",
        };
        let controlplanes = site.machines.iter();
        let controlplanes = controlplanes.filter(|m| m.kind == MachineType::ControlPlane);
        Self {
            words: vec![
                ("name", machine.name.clone()),
                ("address", machine.address.to_string()),
                ("node-id", node_id(&machine.name)),
                ("cluster-name", site.cluster_name.clone()),
                ("cluster-id", site.cluster_id.clone()),
                ("endpoint", site.endpoint.clone()),
                ("endpoint-host", host.to_owned()),
                ("endpoint-port", port.to_owned()),
                ("platform", platform.to_owned()),
                ("talos", site.talos_version.tag().to_owned()),
                ("kubernetes", site.kubernetes_version.clone()),
            ],
            controlplanes: controlplanes.map(|m| m.address.to_string()).collect(),
        }
    }

    /// Fills a text.
    pub(super) fn text(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            filled.push_str(before);
            let Some((name, after)) = after.split_once("}}") else {
                break;
            };
            let word = self.words.iter().find(|(known, _)| *known == name);
            filled.push_str(word.map_or("", |(_, word)| word));
            rest = after;
        }
        filled.push_str(rest);
        filled
    }

    /// Fills a value; a list item with `{{controlplanes}}` is repeated for each of them.
    pub(super) fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) if text == PORT => self.number(text),
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => {
                let filled = items.iter().flat_map(|item| self.item(item));
                Value::Array(filled.collect())
            }
            Value::Object(map) => {
                let filled = map.iter().map(|(k, v)| (self.text(k), self.value(v)));
                Value::Object(filled.collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }

    fn item(&self, item: &Value) -> Vec<Value> {
        let repeated = match item {
            Value::String(text) => text == EACH,
            Value::Object(map) => map.values().any(|value| value == EACH),
            _ => false,
        };
        if !repeated {
            return vec![self.value(item)];
        }
        let put = |address: &String| match item {
            Value::Object(map) => {
                let place = |value: &Value| match value == EACH {
                    true => Value::String(address.clone()),
                    false => self.value(value),
                };
                Value::Object(map.iter().map(|(k, v)| (k.clone(), place(v))).collect())
            }
            _ => Value::String(address.clone()),
        };
        self.controlplanes.iter().map(put).collect()
    }

    fn number(&self, text: &str) -> Value {
        self.text(text)
            .parse::<u16>()
            .map_or(Value::Null, Value::from)
    }
}

/// Tells whether something is to be filled in.
pub(super) fn has_placeholder(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(items) => items.iter().any(has_placeholder),
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| key.contains("{{") || has_placeholder(value)),
        _ => false,
    }
}

/// Makes a node's identity of its name: 32 bytes in letters and digits.
fn node_id(name: &str) -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut digits = Sha256::digest(name.as_bytes()).to_vec();
    let mut id = Vec::new();
    while digits.iter().any(|digit| *digit != 0) {
        let mut rest = 0usize;
        for digit in &mut digits {
            let all = rest * 256 + usize::from(*digit);
            *digit = u8::try_from(all / ALPHABET.len()).unwrap_or(u8::MAX);
            rest = all % ALPHABET.len();
        }
        id.push(ALPHABET[rest]);
    }
    id.iter().rev().map(|byte| char::from(*byte)).collect()
}

const EACH: &str = "{{controlplanes}}";
const PORT: &str = "{{endpoint-port}}";
