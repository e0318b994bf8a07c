//! Label and field selectors of lists and watches.

use serde_json::Value;

use super::refusal::Refusal;

/// What a list or watch is narrowed to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Selection {
    labels: Vec<Requirement>,
    fields: Vec<Requirement>,
}

impl Selection {
    /// Reads the values of `labelSelector` and `fieldSelector`.
    ///
    /// # Errors
    ///
    /// A bad request that shows the part that is no requirement.
    pub(crate) fn parse(labels: &str, fields: &str) -> Result<Self, Refusal> {
        Ok(Self {
            labels: requirements(labels)?,
            fields: requirements(fields)?,
        })
    }

    /// Tells whether an object is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.labels
            .iter()
            .all(|label| label.holds(labels.get(&label.key).and_then(Value::as_str)))
            && self
                .fields
                .iter()
                .all(|field| field.holds(Some(&field_text(object, &field.key))))
    }
}

/// One condition on one label or field.
#[derive(Debug, Clone, PartialEq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        match &self.test {
            Test::In(values) => value.is_some_and(|found| values.iter().any(|v| v == found)),
            Test::NotIn(values) => !value.is_some_and(|found| values.iter().any(|v| v == found)),
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
        }
    }
}

/// Splits a selector at the commas outside of parentheses.
fn requirements(text: &str) -> Result<Vec<Requirement>, Refusal> {
    let mut found = Vec::new();
    let mut depth = 0_i32;
    let mut start = 0;
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(requirement(&text[start..at])?);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        found.push(requirement(&text[start..])?);
    }
    Ok(found)
}

fn requirement(text: &str) -> Result<Requirement, Refusal> {
    let text = text.trim();
    let unclear = || Refusal::bad_request(format!("unable to parse requirement: {text:?}"));
    let (key, test) = if let Some((key, value)) = text.split_once("!=") {
        (key, Test::NotIn(vec![value.trim().to_owned()]))
    } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (key, Test::In(vec![value.trim().to_owned()]))
    } else if let Some((key, rest)) = text.split_once(" notin ") {
        (key, Test::NotIn(set(rest).ok_or_else(unclear)?))
    } else if let Some((key, rest)) = text.split_once(" in ") {
        (key, Test::In(set(rest).ok_or_else(unclear)?))
    } else if let Some(key) = text.strip_prefix('!') {
        (key, Test::Absent)
    } else {
        (text, Test::Exists)
    };
    let key = key.trim();
    if key.is_empty() || key.contains(char::is_whitespace) || key.contains(['(', ')']) {
        return Err(unclear());
    }
    Ok(Requirement {
        key: key.to_owned(),
        test,
    })
}

fn set(text: &str) -> Option<Vec<String>> {
    let inside = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some(
        inside
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect(),
    )
}

/// Returns the text of a field such as `status.phase`; absent fields are empty text.
fn field_text(object: &Value, path: &str) -> String {
    let found = path
        .split('.')
        .try_fold(object, |value, step| value.get(step));
    match found {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(value)) => value.to_string(),
        Some(Value::Number(value)) => value.to_string(),
        // Kubernetes compares an unset flag as false, an unset text as empty.
        _ if path == "spec.unschedulable" => "false".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn any_selector_is_read_or_refused(labels in "[a-z=!(), in]*", fields in ".*") {
            if let Err(refusal) = Selection::parse(&labels, &fields) {
                prop_assert_eq!(refusal.code, 400);
            }
        }
    }

    #[test]
    fn selectors_choose_by_labels_and_fields() {
        let pod = json!({
            "metadata": { "name": "a", "labels": { "k8s-app": "kube-proxy", "tier": "node" } },
            "spec": { "nodeName": "cp-1" },
        });
        for (labels, fields, expected) in [
            ("", "", true),
            ("k8s-app = kube-proxy", "", true),
            ("k8s-app=kube-proxy,tier==node", "", true),
            ("k8s-app!=kube-proxy", "", false),
            ("k8s-app in (kube-dns, kube-proxy),tier", "", true),
            ("k8s-app notin (kube-dns)", "", true),
            ("tier in (other)", "", false),
            ("!tier", "", false),
            ("!other", "", true),
            ("", "metadata.name=a", true),
            ("", "metadata.name=b", false),
            ("", "spec.nodeName!=cp-1", false),
            ("", "status.phase=", true),
        ] {
            let selection = Selection::parse(labels, fields).unwrap();
            assert_eq!(selection.matches(&pod), expected, "{labels:?} {fields:?}");
        }
    }

    #[test]
    fn a_selector_without_sense_is_a_bad_request() {
        for text in ["a b", "=x", "k in x", "(a)"] {
            assert_eq!(Selection::parse(text, "").unwrap_err().code, 400, "{text}");
        }
    }
}
