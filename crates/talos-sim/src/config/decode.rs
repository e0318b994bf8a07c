//! Reads a configuration as strictly as a machine does, with the machine's own words for refusals.

use std::collections::HashSet;

use crate::config::documents::{Document, Documents, Unreadable};
use crate::config::keys::{self, Misfit};
use crate::cosi::yaml;
use crate::options::TalosVersion;

/// Reads a configuration; the error is what the machine answers.
pub(crate) fn decode(text: &str, version: TalosVersion) -> Result<Documents, String> {
    let documents = Documents::read(text).map_err(refusal)?;
    let mut seen = HashSet::new();
    for document in &documents.0 {
        let (label, kind) = (label(document), kind(document));
        if !seen.insert(label.clone()) {
            let line = document.line;
            return Err(format!(
                "duplicate document {label} is not allowed (line {line})"
            ));
        }
        let Err(misfit) = keys::check(kind, &document.value, version) else {
            continue;
        };
        let problem = match misfit {
            Misfit::UnknownKind => {
                format!(
                    "{:?} {:?}: not registered",
                    document.kind, document.api_version
                )
            }
            Misfit::UnknownKeys(unknown) => {
                let unknown = yaml::render(&unknown);
                let unknown = unknown.trim_end_matches('\n');
                format!("unknown keys found during decoding:\n{unknown}\n")
            }
            Misfit::Shape { path, wanted } => {
                format!("yaml: cannot decode the value of {path:?} into a {wanted}")
            }
        };
        return Err(format!(
            "error decoding document {label} (line {}): {problem}",
            document.line
        ));
    }
    Ok(documents)
}

/// How a machine names a document: version, kind and name.
fn label(document: &Document) -> String {
    format!(
        "{}/{}/{}",
        document.api_version,
        kind(document),
        document.name
    )
}

fn kind(document: &Document) -> &str {
    if document.kind.is_empty() {
        "v1alpha1"
    } else {
        &document.kind
    }
}

fn refusal(problem: Unreadable) -> String {
    match problem {
        Unreadable::Empty => "config not found".to_owned(),
        Unreadable::Syntax { line, problem } => {
            format!("decode error: yaml: document at line {line}: {problem}")
        }
        Unreadable::NotMapping { line } => {
            format!("decode error: expected a YAML document at line {line}")
        }
        Unreadable::MissingKind { api_version, line } => {
            format!("error decoding document /{api_version}/ (line {line}): missing kind")
        }
        Unreadable::MissingApiVersion { kind, line } => {
            format!("error decoding document /{kind}/ (line {line}): missing apiVersion")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(
            decode(text, TalosVersion::V1_13_9),
            Err(expected.to_owned())
        );
    }

    /// Recorded from a real machine (recorded/upgrade/f-errors).
    #[test]
    fn refusals_read_like_the_machine_s() {
        check("", "config not found");
        check(
            "machine:\n    bogus: 1\n",
            "error decoding document /v1alpha1/ (line 1): unknown keys found during decoding:\nmachine:\n    bogus: 1\n",
        );
        check(
            "apiVersion: v1alpha1\nkind: NoSuchKind\n",
            "error decoding document v1alpha1/NoSuchKind/ (line 1): \"NoSuchKind\" \"v1alpha1\": not registered",
        );
        check(
            "version: v1alpha1\n",
            "error decoding document /v1alpha1/ (line 1): missing kind",
        );
        check(
            "machine: {}\n---\nmachine: {}\n",
            "duplicate document /v1alpha1/ is not allowed (line 3)",
        );
    }

    #[test]
    fn null_documents_are_skipped() {
        let documents = decode("---\n---\nmachine: {}\n---\n", TalosVersion::V1_13_9).unwrap();
        assert_eq!(documents.0.len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,200}", lines in "([a-z: \\-#'\"&*]{0,20}\n){0,12}") {
            for version in TalosVersion::ALL {
                let _read_or_refused = decode(&text, version);
                let _read_or_refused = decode(&lines, version);
            }
        }

        #[test]
        fn a_key_that_nobody_knows_is_named(key in "x[a-z]{3,12}z") {
            let refusal = decode(&format!("machine:\n    {key}: 1\n"), TalosVersion::V1_13_9);
            let named = refusal.unwrap_err().contains(&key);
            proptest::prop_assert!(named);
        }
    }
}
