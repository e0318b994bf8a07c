//! Which values are secret, by where they stand and what they look like, and how they are masked.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// What is printed instead of a secret.
const MASK: &str = "******";

/// Shorter values are masked where they stand alone, but not searched for: they would mask unrelated text.
const MIN_SEARCHED: usize = 8;

/// Secret values; whatever contains one of them can be masked.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    values: Vec<String>,
}

impl Secrets {
    /// Remembers values. Those of several lines are known by their lines too, since YAML indents them.
    pub(crate) fn learn(&mut self, values: impl IntoIterator<Item = String>) {
        for value in values.into_iter().filter(|value| !value.is_empty()) {
            if value.contains('\n') {
                let lines = value.lines().map(str::trim);
                let lines =
                    lines.filter(|line| line.len() >= MIN_SEARCHED && !line.starts_with("-----"));
                self.values.extend(lines.map(str::to_owned));
            }
            self.values.push(value);
        }
        // The longest first: one secret may be a part of another.
        self.values
            .sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.values.dedup();
    }

    /// Tells whether there is nothing to mask.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Masks a text.
    pub(crate) fn mask(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for value in &self.values {
            if text == value {
                return MASK.to_owned();
            }
            if value.len() >= MIN_SEARCHED && masked.contains(value.as_str()) {
                masked = masked.replace(value.as_str(), MASK);
            }
        }
        masked
    }

    /// Masks every text in a document.
    pub(crate) fn mask_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.mask(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.mask_value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Collects the secret values of a document.
///
/// Secret are private keys (PEM, or base64 of it) wherever they stand, fields whose name says so, and the data of
/// Kubernetes Secrets; also inside texts that are documents themselves.
pub(crate) fn find(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    visit(document, false, &mut found);
    found
}

/// Collects the secret values of a text: of the YAML documents it holds, or of the private keys in PEM.
pub(crate) fn find_in_text(text: &str) -> Vec<String> {
    let mut found: Vec<String> = pem_keys(text).map(str::to_owned).collect();
    if let Ok(documents) = talos_config::yaml::read_documents(text) {
        // A text that is no mapping or list is only prose.
        for document in documents.iter().filter(|document| !document.is_string()) {
            visit(document, false, &mut found);
        }
    }
    found
}

/// Returns the bodies of private keys in PEM.
fn pem_keys(text: &str) -> impl Iterator<Item = &str> {
    text.split("-----BEGIN ").skip(1).filter_map(|rest| {
        let (label, rest) = rest.split_once("-----")?;
        let (body, _) = rest.split_once("-----END ")?;
        label.ends_with("PRIVATE KEY").then_some(body.trim())
    })
}

/// Fields whose value is secret, in lower case.
const NAMES: &[&str] = &[
    "aescbcencryptionsecret",
    "bootstraptokenid",
    "bootstraptokensecret",
    "passphrase",
    "password",
    "presharedkey",
    "privatekey",
    "secret",
    "secretboxencryptionsecret",
    "sharedsecret",
    "token",
    "token-secret",
];

fn visit(value: &Value, secret: bool, found: &mut Vec<String>) {
    match value {
        Value::String(text) if secret || is_private_key(text) => {
            if !text.is_empty() {
                found.push(text.clone());
            }
        }
        Value::Array(items) => items.iter().for_each(|item| visit(item, secret, found)),
        Value::Object(fields) => visit_fields(fields, secret, found),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn visit_fields(fields: &Map<String, Value>, secret: bool, found: &mut Vec<String>) {
    let is_kubernetes_secret = fields.get("kind").is_some_and(|kind| kind == "Secret");
    let is_key_pair = fields.contains_key("crt") && fields.contains_key("key");
    for (name, value) in fields {
        let named = NAMES.contains(&name.to_lowercase().as_str());
        let data = is_kubernetes_secret && (name == "data" || name == "stringData");
        let key = is_key_pair && name == "key";
        visit(value, secret || named || data || key, found);
    }
}

fn is_private_key(text: &str) -> bool {
    const MARK: &str = "PRIVATE KEY-----";
    if text.contains(MARK) {
        return true;
    }
    // Base64 of "-----BEGIN " begins like this.
    text.starts_with("LS0tLS1CRUdJTi")
        && STANDARD
            .decode(text.trim())
            .is_ok_and(|pem| String::from_utf8_lossy(&pem).contains(MARK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(document: &Value, secrets: &[&str]) {
        assert_eq!(find(document), secrets, "{document}");
    }

    #[test]
    fn secrets_are_found_by_name_and_by_look() {
        let pem = "-----BEGIN ED25519 PRIVATE KEY-----\nMC4C\n-----END ED25519 PRIVATE KEY-----\n";
        let encoded = STANDARD.encode(pem);
        check(&json!({"serviceAccount": {"key": encoded}}), &[&encoded]);
        check(&json!({"list": [pem]}), &[pem]);
        check(
            &json!({"issuingCA": {"crt": "c", "key": "anything"}}),
            &["anything"],
        );
        check(
            &json!({"token": "2ig2au.ek86", "bootstrapTokenID": "abcdef"}),
            &["2ig2au.ek86", "abcdef"],
        );
        check(
            &json!({"kind": "Secret", "metadata": {"name": "n"}, "stringData": {"a": "b", "c": "d"}}),
            &["b", "d"],
        );
    }

    #[test]
    fn a_secret_is_masked_wherever_it_appears() {
        let mut secrets = Secrets::default();
        secrets.learn([
            "abcdef".to_owned(),
            "0123456789abcdef".to_owned(),
            "first line\nsecond line".to_owned(),
        ]);
        assert_eq!(
            secrets.mask("token: abcdef.0123456789abcdef"),
            "token: abcdef.******"
        );
        assert_eq!(secrets.mask("abcdef"), "******");
        assert_eq!(secrets.mask("    second line\n"), "    ******\n");
        let mut value = json!({"a": ["abcdef", 1], "b": {"c": "x 0123456789abcdef"}});
        secrets.mask_value(&mut value);
        assert_eq!(value, json!({"a": ["******", 1], "b": {"c": "x ******"}}));
    }

    #[test]
    fn secrets_are_found_in_texts() {
        assert_eq!(
            find_in_text("machine:\n    token: a.b\n---\nkind: Secret\ndata: {x: y}\n"),
            ["a.b", "y"]
        );
        assert_eq!(
            find_in_text("-----BEGIN EC PRIVATE KEY-----\nMC4C\n-----END EC PRIVATE KEY-----\n"),
            ["MC4C"]
        );
        assert!(find_in_text("Linux version 6.1: #1 SMP\n").is_empty());
    }

    #[test]
    fn a_key_of_a_taint_or_label_is_no_secret() {
        check(
            &json!({"registerWithTaints": [{"effect": "NoSchedule", "key": "node-role.kubernetes.io/control-plane"}]}),
            &[],
        );
        check(
            &json!({"kind": "ConfigMap", "data": {"a": "b"}, "tokenFile": "/run/token"}),
            &[],
        );
        check(
            &json!({"crt": STANDARD.encode("-----BEGIN CERTIFICATE-----\nMC4C\n")}),
            &[],
        );
    }
}
