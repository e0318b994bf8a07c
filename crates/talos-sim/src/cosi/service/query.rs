//! Selecting resources by labels and id.

use regex::Regex;
use talos_api::cosi::resource::label_term::Operation;
use talos_api::cosi::resource::{IdQuery, LabelQuery, LabelTerm};
use tonic::Status;

use crate::store::Resource;

/// What a list or watch selects.
pub(super) struct Query {
    /// Any one has to match; all terms of one have to match; no query matches everything.
    labels: Vec<LabelQuery>,
    id: Option<Regex>,
}

impl Query {
    /// Reads the query of a request.
    pub(super) fn new(labels: Vec<LabelQuery>, id: Option<IdQuery>) -> Result<Self, Status> {
        let id = match id {
            Some(query) if !query.regexp.is_empty() => {
                let compiled = Regex::new(&query.regexp).map_err(|error| {
                    Status::invalid_argument(format!("failed to compile regexp: {error}"))
                })?;
                Some(compiled)
            }
            _ => None,
        };
        let terms = labels.iter().flat_map(|query| &query.terms);
        if let Some(term) = terms
            .into_iter()
            .find(|t| Operation::try_from(t.op).is_err())
        {
            return Err(Status::unimplemented(format!(
                "unsupported label query operator: {}",
                term.op
            )));
        }
        Ok(Self { labels, id })
    }

    /// Tells whether the query can leave something out.
    pub(super) fn has_labels(&self) -> bool {
        !self.labels.is_empty()
    }

    /// Tells whether a resource is selected.
    pub(super) fn matches(&self, resource: &Resource) -> bool {
        let by_id = self
            .id
            .as_ref()
            .is_none_or(|id| id.is_match(&resource.metadata.id));
        let by_label = self.labels.is_empty()
            || self
                .labels
                .iter()
                .any(|query| query.terms.iter().all(|term| holds(term, resource)));
        by_id && by_label
    }
}

fn holds(term: &LabelTerm, resource: &Resource) -> bool {
    let label = resource.metadata.labels.get(&term.key);
    let first = term.value.first().map_or("", String::as_str);
    let numbers = |label: &str| number(label).zip(number(first));
    let holds = match (term.op(), label) {
        (Operation::Exists, _) => Some(label.is_some()),
        (Operation::Equal, _) => Some(label.is_some_and(|label| label == first)),
        (Operation::In, _) => Some(label.is_some_and(|label| term.value.contains(label))),
        (Operation::Lt, Some(label)) => Some(label.as_str() < first),
        (Operation::Lte, Some(label)) => Some(label.as_str() <= first),
        (Operation::LtNumeric, Some(label)) => numbers(label).map(|(a, b)| a < b),
        (Operation::LteNumeric, Some(label)) => numbers(label).map(|(a, b)| a <= b),
        (Operation::Lt | Operation::Lte | Operation::LtNumeric | Operation::LteNumeric, None) => {
            None
        }
        // What is left is the deprecated opposite of `Exists`.
        _ => Some(label.is_none()),
    };
    // A comparison that makes no sense does not hold, inverted or not.
    holds.is_some_and(|holds| holds != term.invert)
}

/// Reads an integer with an optional decimal or binary suffix, such as `4Gi`.
fn number(text: &str) -> Option<i128> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '-')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let factor: i128 = match suffix.trim().to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "p" => 1_000_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        "ti" => 1 << 40,
        "pi" => 1 << 50,
        _ => return None,
    };
    number.parse::<i64>().ok().map(|n| i128::from(n) * factor)
}
