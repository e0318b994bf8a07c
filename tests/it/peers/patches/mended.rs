//! Patches without `compat`, held against the same ones with it: only the official defects that we mend may differ.
//!
//! The cases are the first of those in which `compat` is held against the official library. Each place that differs has
//! to be one of the defects, and its value the one that follows from the configuration and the patch there: what a
//! patch says replaces, what it does not say stays.

use std::collections::BTreeSet;

use serde_json::Value;
use talos_config::patch::Patch;
use talos_config::yaml::read_documents;

use super::{PORTION, SEED, VERSIONS, documents, inputs, ours};
use crate::machineconfig::generator::Generator;

/// How many cases are compared, unless `ICHOR_CASES` says otherwise.
const CASES: usize = 6_000;

/// A place at which both results differ.
struct Site<'a> {
    key: &'a str,
    compat: Option<&'a Value>,
    default: Option<&'a Value>,
    /// What the configuration, or an earlier patch, has there.
    before: Vec<&'a Value>,
    /// What the patches have there.
    said: Vec<&'a Value>,
    /// Whether a patch has a mapping around it without it.
    left_out: bool,
}

impl Site<'_> {
    fn is_said(&self) -> bool {
        // A number may stand for a text.
        let is = |said: &Value, value: &Value| {
            said == value || (said.is_number() && value.as_str() == Some(&said.to_string()))
        };
        self.default
            .is_some_and(|value| self.said.iter().any(|said| is(said, value)))
    }

    fn is_kept(&self) -> bool {
        self.left_out && self.default.is_some_and(|value| self.is_old(value))
    }

    fn is_old(&self, value: &Value) -> bool {
        self.before.contains(&value) || self.said.contains(&value)
    }

    /// Returns whether the patch has a text there that replaces, and the official tool kept what was there.
    fn is_passed_over(&self, matches: impl Fn(&str) -> bool) -> bool {
        let text = self.default.and_then(Value::as_str);
        self.is_said()
            && text.is_some_and(matches)
            && self.compat.is_none_or(|compat| self.is_old(compat))
    }
}

struct Mended {
    name: &'static str,
    reason: &'static str,
    is_it: fn(&Site<'_>) -> bool,
}

const VALUES: [Mended; 6] = [
    Mended {
        name: "parts of a URL",
        reason: "a URL replaces; the official tool keeps the parts that the new one lacks",
        is_it: |site| {
            let texts = (
                site.default.and_then(Value::as_str),
                site.compat.and_then(Value::as_str),
            );
            let (Some(default), Some(compat)) = texts else {
                return false;
            };
            let mut left = site.before.iter().chain(&site.said);
            site.is_said()
                && left.any(|left| {
                    left.as_str()
                        .is_some_and(|left| merged(left, default) == compat)
                })
        },
    },
    Mended {
        name: "expression or size left out",
        reason: "a patch without the sizes or the expression leaves them; the official tool erases them",
        is_it: |site| {
            matches!(
                site.key,
                "minSize"
                    | "minAllocationGroupSize"
                    | "maxSize"
                    | "match"
                    | "triggerExpression"
                    | "cgroupRankingExpression"
            ) && site.compat.is_none()
                && site.is_kept()
        },
    },
    Mended {
        name: "relative maxSize",
        reason: "a share replaces a size in bytes; the official tool keeps the bytes",
        is_it: |site| {
            let is_share = |value: &Value| value.as_str().is_some_and(|text| text.contains('%'));
            site.key == "maxSize"
                && site.is_passed_over(|text| text.contains('%'))
                && site.compat.is_some_and(|compat| !is_share(compat))
        },
    },
    Mended {
        name: "half of a key pair",
        reason: "a patch of one half leaves the other; the official tool empties it",
        is_it: |site| {
            let is_deleted = site.said.iter().any(|value| value["$patch"] == "delete");
            let was_absent = site.before.is_empty() && site.left_out;
            let is_absent = site.default.is_none() && (was_absent || is_deleted);
            matches!(site.key, "crt" | "key")
                && site.compat.is_none_or(|value| value == "")
                && (site.is_kept() || is_absent)
        },
    },
    Mended {
        name: "switch left out",
        reason: "a patch without a switch, or with nothing there, leaves it; the official tool turns it off",
        is_it: |site| {
            let is_on = site.default == Some(&Value::Bool(true));
            let is_null = site.said.contains(&&Value::Null);
            let is_off = site.compat == Some(&Value::Bool(false));
            is_off
                && is_on
                && (site.is_kept() || (is_null && site.before.contains(&&Value::Bool(true))))
        },
    },
    Mended {
        name: "words for zero",
        reason: "a word replaces, also one that stands for zero, which the official tool passes over",
        is_it: |site| site.is_passed_over(is_zero_word),
    },
];

/// Returns what the official tool makes of two URLs: each part that the right one lacks is that of the left one.
fn merged(left: &str, right: &str) -> String {
    fn parts(text: &str) -> [&str; 6] {
        let cut = |text: &'_ str, mark: char| text.find(mark).unwrap_or(text.len());
        let (text, fragment) = text.split_at(cut(text, '#'));
        let (text, query) = text.split_at(cut(text, '?'));
        let (scheme, text) = text.split_at(text.find("://").map_or(0, |at| at + 3));
        let (authority, path) = match scheme {
            "" => ("", text),
            _ => text.split_at(cut(text, '/')),
        };
        let (user, host) = authority.split_at(authority.find('@').map_or(0, |at| at + 1));
        [scheme, user, host, path, query, fragment]
    }
    let pairs = parts(left).into_iter().zip(parts(right));
    pairs
        .map(|(left, right)| if right.is_empty() { left } else { right })
        .collect()
}

fn is_zero_word(text: &str) -> bool {
    let words = ["accept", "do53", "none", "linear", "raid1", "1.0", "unspec"];
    let is_number = text.contains('0') && !text.contains(|c| ('1'..='9').contains(&c));
    is_number || words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// A case, and what either mode made of it.
struct Case {
    version: &'static str,
    config: String,
    patch: String,
    compat: Result<String, String>,
    default: Result<String, String>,
}

struct Refusal {
    name: &'static str,
    reason: &'static str,
    is_it: fn(&Case) -> bool,
}

const REFUSALS: [Refusal; 6] = [
    Refusal {
        name: "deletion in a missing document",
        reason: "it is an error; the official tool writes an empty document, or passes it over",
        is_it: |case| {
            let there = read_documents(&case.config).unwrap_or_default();
            let there: BTreeSet<String> = there.iter().map(identity).collect();
            let is_missing = |value: &Value| {
                value.to_string().contains("$patch") && !there.contains(&identity(value))
            };
            case.refuses("no such document") && case.said().iter().any(is_missing)
        },
    },
    Refusal {
        name: "another kind",
        reason: "a JSON Patch may not change what a document is; that of the official tool may",
        is_it: |case| {
            case.refuses("`apiVersion` and `kind` tell what the document is")
                && ["/apiVersion", "/kind"]
                    .iter()
                    .any(|path| case.patch.contains(path))
        },
    },
    Refusal {
        name: "document twice in a patch",
        reason: "both are merged, as from two patches; up to Talos 1.13 the official tool refuses it",
        is_it: |case| case.is_allowed("stands twice in the patch"),
    },
    Refusal {
        name: "JSON Patch beside other documents",
        reason: "it changes the main one, as if that stood alone; the official tool refuses it",
        is_it: |case| case.is_allowed("refuses a JSON Patch on a configuration of"),
    },
    Refusal {
        name: "configuration that is not decoded",
        reason: "what a patch does not touch is not judged; the official tool decodes all, and crashes at times",
        is_it: |case| case.is_allowed("the configuration: ") || case.is_allowed("nothing to merge"),
    },
    Refusal {
        name: "deletions and nulls that are not understood",
        reason: "what is named is deleted, by hand as well; the official tool finds only some types, and crashes at nulls",
        is_it: |case| {
            case.is_allowed(": nothing to delete") || case.is_allowed("fails to merge this value")
        },
    },
];

/// Deletes by hand what a document of a patch asks for, and takes that and what is null out of it.
fn delete(there: &mut Value, patch: &mut Value) {
    let is_deletion = |value: &Value| value["$patch"] == "delete";
    match (there, patch) {
        (there, Value::Object(patch)) => {
            patch.retain(|key, value| {
                if is_deletion(value) {
                    if let Some(there) = there.as_object_mut() {
                        there.remove(key);
                    }
                    return false;
                }
                let had = value.to_string().contains("$patch");
                let below = there
                    .get_mut(key.as_str())
                    .unwrap_or(&mut Value::Null)
                    .take();
                let mut below = below;
                delete(&mut below, value);
                if let Some(place) = there.get_mut(key.as_str()) {
                    *place = below;
                }
                let is_left = match value {
                    Value::Object(map) => !map.is_empty(),
                    Value::Array(items) => !items.is_empty(),
                    _ => true,
                };
                !value.is_null() && (is_left || !had)
            });
        }
        (there, Value::Array(items)) => items.retain(|item| {
            if !is_deletion(item) {
                return true;
            }
            let mut selector = item.as_object().into_iter().flatten();
            let selector = selector.find(|(key, _)| *key != "$patch");
            if let (Some((key, wanted)), Some(there)) = (selector, there.as_array_mut()) {
                let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
                let at = there
                    .iter()
                    .position(|element| text(&element[key]) == text(wanted));
                at.map(|at| there.remove(at));
            }
            false
        }),
        _ => {}
    }
}

impl Case {
    fn new(version: &'static str, config: &str, patch: &str) -> Self {
        let patches = [patch.to_owned()];
        Self {
            version,
            config: config.to_owned(),
            patch: patch.to_owned(),
            compat: ours(config, &patches, version, true),
            default: ours(config, &patches, version, false),
        }
    }

    fn is_json(&self) -> bool {
        Patch::parse(&self.patch).is_ok_and(|patch| patch.is_json())
    }

    /// Returns the documents of the patch, none of a JSON Patch.
    fn said(&self) -> Vec<Value> {
        match self.is_json() {
            true => Vec::new(),
            false => read_documents(&self.patch).unwrap_or_default(),
        }
    }

    /// Returns whether only the default refuses, with some words.
    fn refuses(&self, words: &str) -> bool {
        self.compat.is_ok()
            && self
                .default
                .as_ref()
                .is_err_and(|error| error.contains(words))
    }

    /// Returns whether only `compat` refuses, with some words, and patches in the same way what it does not refuse.
    fn is_allowed(&self, words: &str) -> bool {
        let Ok(default) = &self.default else {
            return false;
        };
        self.compat
            .as_ref()
            .is_err_and(|error| error.contains(words))
            && self
                .detour()
                .is_some_and(|compat| self.explain_values(&compat, default).is_ok())
    }

    /// Returns what `compat` makes of the documents that the patch touches alone, deletions done by hand, and the
    /// documents of the patch one after the other.
    fn detour(&self) -> Option<String> {
        let mut all = read_documents(&self.config).ok()?;
        let write = |documents: &[Value]| -> String {
            documents
                .iter()
                .map(|value| format!("---\n{value}\n"))
                .collect()
        };
        let mut said = self.said();
        said.retain(|value| {
            value
                .as_object()
                .is_some_and(|map| map.keys().any(|key| key != "version"))
        });
        said.sort_by_key(|value| value.get("kind").is_some());
        for patch in &mut said {
            if let Some(there) = all
                .iter_mut()
                .find(|there| identity(there) == identity(patch))
            {
                delete(there, patch);
                // Which has scalars only, of a type that the official tool cannot merge.
                if patch["kind"] == "RoutingRuleConfig"
                    && patch.get("$patch").is_none()
                    && let (Some(there), Some(patch)) =
                        (there.as_object_mut(), patch.as_object_mut())
                {
                    let values = patch
                        .iter()
                        .filter(|(_, value)| **value != "" && **value != 0);
                    there.extend(values.map(|(key, value)| (key.clone(), value.clone())));
                    patch.retain(|key, _| ["apiVersion", "kind", "name"].contains(&key.as_str()));
                }
            }
        }
        let mut touched: BTreeSet<String> = said.iter().map(identity).collect();
        let mut patches: Vec<String> = said
            .iter()
            .filter(|value| {
                let names = ["version", "apiVersion", "kind", "name"];
                value
                    .as_object()
                    .is_some_and(|map| map.keys().any(|key| !names.contains(&key.as_str())))
                    || !all.iter().any(|there| identity(there) == identity(value))
            })
            .map(Value::to_string)
            .collect();
        if self.is_json() {
            touched.insert("/".to_owned());
            patches.push(self.patch.clone());
        }
        let (there, mut rest): (Vec<Value>, Vec<Value>) = all
            .into_iter()
            .partition(|value| touched.contains(&identity(value)));
        let patched = match there.is_empty() && patches.is_empty() {
            true => String::new(),
            false => ours(&write(&there), &patches, self.version, true).ok()?,
        };
        rest.extend(read_documents(&patched).ok()?);
        Some(write(&rest))
    }

    /// Returns the classes of all places that differ, or those of no class.
    fn explain(&self) -> Result<BTreeSet<&'static str>, String> {
        let (Ok(compat), Ok(default)) = (&self.compat, &self.default) else {
            if self.compat.is_err() && self.default.is_err() {
                return Ok(BTreeSet::new());
            }
            let refusal = REFUSALS.iter().find(|class| (class.is_it)(self));
            return refusal
                .map(|class| BTreeSet::from([class.name]))
                .ok_or_else(|| {
                    format!(
                        "refused by one: {:?} {:?}",
                        self.compat.as_ref().err(),
                        self.default.as_ref().err()
                    )
                });
        };
        self.explain_values(compat, default)
    }

    fn explain_values(
        &self,
        compat: &str,
        default: &str,
    ) -> Result<BTreeSet<&'static str>, String> {
        let read = |text: &str| {
            let mut documents = documents(text).unwrap_or_default();
            documents.retain(|value| value.as_object().is_some_and(|map| !map.is_empty()));
            documents.sort_by_key(identity);
            documents
        };
        let (compat, default) = (read(compat), read(default));
        let names =
            |documents: &[Value]| -> Vec<String> { documents.iter().map(identity).collect() };
        if names(&compat) != names(&default) {
            return Err("other documents".to_owned());
        }
        let before = read_documents(&self.config).unwrap_or_default();
        let said = self.said();
        let mut found = BTreeSet::new();
        for (compat, default) in compat.iter().zip(&default) {
            let name = identity(compat);
            let of = |documents: &'_ [Value]| -> Vec<usize> {
                let all = documents.iter().enumerate();
                all.filter(|(_, value)| identity(value) == name)
                    .map(|(at, _)| at)
                    .collect()
            };
            let before: Vec<&Value> = of(&before).into_iter().map(|at| &before[at]).collect();
            let said: Vec<&Value> = of(&said).into_iter().map(|at| &said[at]).collect();
            let mut places = Vec::new();
            differ(&mut Vec::new(), Some(compat), Some(default), &mut places);
            for (path, compat, default) in places {
                let site = Site {
                    key: path.last().map_or("", String::as_str),
                    compat,
                    default,
                    before: at(&before, &path, true),
                    said: at(&said, &path, false),
                    left_out: (0..path.len()).any(|end| {
                        let around = at(&said, &path[..end], false);
                        around.iter().any(|value| {
                            value.is_object() && value.get(&path[end]).is_none_or(Value::is_null)
                        })
                    }),
                };
                match VALUES.iter().find(|class| (class.is_it)(&site)) {
                    Some(class) => found.insert(class.name),
                    None => {
                        return Err(format!(
                            "{name} {path:?}: compat {compat:?}, default {default:?}, before {:?}, said {:?}",
                            site.before, site.said
                        ));
                    }
                };
            }
        }
        Ok(found)
    }
}

fn identity(document: &Value) -> String {
    let text = |key: &str| document[key].as_str().unwrap_or_default();
    format!("{}/{}", text("kind"), text("name"))
}

/// Returns what documents have at a path; elements of lists by their position, or all of them.
fn at<'a>(documents: &[&'a Value], path: &[String], exactly: bool) -> Vec<&'a Value> {
    let mut values = documents.to_vec();
    for key in path {
        values = values
            .into_iter()
            .flat_map(|value| match value {
                Value::Array(items) if exactly => key
                    .parse()
                    .ok()
                    .and_then(|at: usize| items.get(at))
                    .into_iter()
                    .collect(),
                Value::Array(items) => items.iter().collect(),
                value => value.get(key).into_iter().collect::<Vec<_>>(),
            })
            .collect();
    }
    values
}

type Place<'a> = (Vec<String>, Option<&'a Value>, Option<&'a Value>);

fn differ<'a>(
    path: &mut Vec<String>,
    compat: Option<&'a Value>,
    default: Option<&'a Value>,
    places: &mut Vec<Place<'a>>,
) {
    let mut inside = |key: String, compat, default| {
        path.push(key);
        differ(path, compat, default, places);
        path.pop();
    };
    match (compat, default) {
        (compat, default) if compat == default => {}
        (Some(Value::Object(compat)), Some(Value::Object(default))) => {
            let keys: BTreeSet<&String> = compat.keys().chain(default.keys()).collect();
            for key in keys {
                inside(key.clone(), compat.get(key), default.get(key));
            }
        }
        // A mapping of which nothing is left says nothing.
        (None, Some(Value::Object(default))) => {
            for (key, value) in default {
                inside(key.clone(), None, Some(value));
            }
        }
        (Some(Value::Object(compat)), None) => {
            for (key, value) in compat {
                inside(key.clone(), Some(value), None);
            }
        }
        (Some(Value::Array(compat)), Some(Value::Array(default)))
            if compat.len() == default.len() =>
        {
            for (at, (compat, default)) in compat.iter().zip(default).enumerate() {
                inside(at.to_string(), Some(compat), Some(default));
            }
        }
        (compat, default) => places.push((path.clone(), compat, default)),
    }
}

type Explained = (Case, Result<BTreeSet<&'static str>, String>);

/// Patches the cases of one version in both modes.
fn explained(version: &'static str, seed: u64, count: usize) -> Vec<Explained> {
    let mut generator = Generator::new(seed, version);
    let mut left = count;
    let mut all = Vec::with_capacity(count);
    // In the portions in which the official library is asked, so that the cases are the same ones.
    while left > 0 {
        let inputs = inputs(&mut generator, left.min(PORTION));
        left -= inputs.len();
        for (mut config, patches) in inputs {
            // Each patch of a case by itself, so that what was there before is known.
            for patch in patches {
                let case = Case::new(version, &config, &patch);
                let found = case.explain();
                config = case.default.clone().unwrap_or(config);
                all.push((case, found));
            }
        }
    }
    all
}

#[test]
fn without_compat_only_the_mended_defects_differ() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed: u64 = number("ICHOR_SEED").unwrap_or(SEED);
    let cases = number("ICHOR_CASES").map_or(CASES, |cases| cases as usize);
    println!("seed {seed}, {cases} cases (ICHOR_SEED, ICHOR_CASES)");
    let mut counts = vec![0_usize; VALUES.len() + REFUSALS.len()];
    let (mut unexplained, mut patched) = (Vec::new(), 0);
    let names: Vec<(&str, &str)> = VALUES
        .iter()
        .map(|class| (class.name, class.reason))
        .chain(REFUSALS.iter().map(|class| (class.name, class.reason)))
        .collect();
    assert!(names.len() <= 15);
    let share = cases.div_ceil(VERSIONS.len());
    let outcomes = std::thread::scope(|scope| {
        let workers =
            VERSIONS.map(|(_, version)| scope.spawn(move || explained(version, seed, share)));
        workers.map(|worker| worker.join().unwrap())
    });
    for (version, outcome) in VERSIONS.into_iter().zip(outcomes) {
        for (case, found) in outcome {
            patched += usize::from(case.compat.is_ok() && case.default.is_ok());
            match found {
                Ok(found) => {
                    for (count, (name, _)) in counts.iter_mut().zip(&names) {
                        *count += usize::from(found.contains(name));
                    }
                }
                Err(reason) => unexplained.push((version.1, reason, case)),
            }
        }
    }
    for (count, (name, reason)) in counts.iter().zip(&names) {
        println!("{count:6}  {name}: {reason}");
    }
    println!("{patched:6}  of {cases} cases patched in both modes");
    for (version, reason, case) in unexplained.iter().take(60) {
        println!("=== {reason}\n--- Talos {version}\n{}", case.config);
        println!("--- patch\n{}", case.patch);
        println!(
            "--- compat {:?}\n--- default {:?}",
            case.compat, case.default
        );
    }
    // What the official tool refuses cannot always be put in a way that it takes; all that both patch is explained.
    let (refused, differing): (Vec<_>, Vec<_>) = unexplained
        .iter()
        .partition(|(_, _, case)| case.compat.is_err());
    println!("{:6}  refused with compat, and not checked", refused.len());
    assert!(
        differing.is_empty(),
        "{} differences without compat that are none of the mended defects, with seed {seed}",
        differing.len()
    );
    assert!(
        refused.len() * 100 <= cases,
        "{} are not checked",
        refused.len()
    );
    assert!(
        patched * 10 >= cases * 6,
        "only {patched} cases say how configurations are patched"
    );
}
