//! Random expressions in CEL: Talos takes those that are taken here, and no others.

use serde_json::{Value, json};
use talos_config::validate::{Mode, Options, validate};

use super::config::Peer;
use crate::machineconfig::generator::Random;

/// How many expressions each kind of document gets; `ICHOR_EXPRESSIONS` says another number.
const COUNT: usize = 1500;

/// What an expression is meant to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Duration,
    Texts,
    Numbers,
}

const ALL: [Of; 9] = [
    Of::Bool,
    Of::Int,
    Of::Uint,
    Of::Double,
    Of::Text,
    Of::Bytes,
    Of::Duration,
    Of::Texts,
    Of::Numbers,
];

/// A field that holds an expression: kind, the rest of the document with `%` for the expression, and its atoms.
struct Field {
    start: &'static str,
    end: &'static str,
    result: Of,
    atoms: &'static [(Of, &'static str)],
}

const FIELDS: [Field; 3] = [
    Field {
        start: r#"{"apiVersion": "v1alpha1", "kind": "RawVolumeConfig", "name": "a", "provisioning": {"minSize": "1GiB", "diskSelector": {"match": "#,
        end: "}}}",
        result: Of::Bool,
        atoms: &[
            (Of::Bool, "disk.rotational"),
            (Of::Bool, "system_disk"),
            (Of::Bool, "glob('a*', disk.model)"),
            (Of::Bool, "has(disk.wwid)"),
            (Of::Uint, "disk.size"),
            (Of::Uint, "GiB"),
            (Of::Text, "disk.model"),
            (Of::Text, "disk.dev_path"),
            (Of::Texts, "disk.symlinks"),
            (Of::Text, "disk.bogus"),
        ],
    },
    Field {
        start: r#"{"apiVersion": "v1alpha1", "kind": "LinkAliasConfig", "name": "a", "selector": {"match": "#,
        end: "}}",
        result: Of::Bool,
        atoms: &[
            (Of::Bool, "link.link_state"),
            (Of::Bool, "has(link.vlan)"),
            (Of::Uint, "link.mtu"),
            (Of::Uint, "link.vlan.vid"),
            (Of::Int, "link.type"),
            (Of::Int, "link.speed_megabits"),
            (Of::Text, "link.driver"),
            (Of::Text, "mac(link.hardware_addr)"),
            (Of::Bytes, "link.permanent_addr"),
            (Of::Texts, "link.alt_names"),
        ],
    },
    Field {
        start: r#"{"apiVersion": "v1alpha1", "kind": "OOMConfig", "cgroupRankingExpression": "#,
        end: "}",
        result: Of::Double,
        atoms: &[
            (Of::Int, "class"),
            (Of::Int, "Burstable"),
            (Of::Text, "path"),
            (Of::Uint, "memory_max.orValue(0u)"),
            (Of::Uint, "memory_current.value()"),
            (Of::Bool, "memory_peak.hasValue()"),
            (Of::Double, "{Besteffort: 1.0}[class]"),
            (Of::Double, "{System: 1.0}[?class].orValue(2.0)"),
            (Of::Int, "optional.of(1).orValue(2)"),
        ],
    },
];

/// Atoms that every expression can use.
const LITERALS: &[(Of, &str)] = &[
    (Of::Bool, "true"),
    (Of::Bool, "false"),
    (Of::Int, "1"),
    (Of::Int, "0x1F"),
    (Of::Int, "-7"),
    (Of::Uint, "3u"),
    (Of::Double, "1.5"),
    (Of::Double, ".5e3"),
    (Of::Text, "'a'"),
    (Of::Text, "\"b\\n\""),
    (Of::Text, "r'\\d'"),
    (Of::Text, "'''x'y'''"),
    (Of::Bytes, "b'ab'"),
    (Of::Duration, "duration('1s')"),
    (Of::Texts, "['a', 'b']"),
    (Of::Numbers, "[1, 2]"),
    (Of::Numbers, "[]"),
    (Of::Bool, "null"),
    (Of::Text, "dyn('a')"),
];

struct Maker<'a> {
    random: Random,
    atoms: &'a [(Of, &'static str)],
}

impl Maker<'_> {
    fn expression(&mut self, of: Of, depth: usize) -> String {
        // Sometimes what is meant is not what is written.
        let of = match self.random.percent(2) {
            true => ALL[self.random.below(ALL.len())],
            false => of,
        };
        if depth == 0 || self.random.percent(15) {
            return self.atom(of);
        }
        let made = match of {
            Of::Bool => self.condition(depth - 1),
            Of::Int | Of::Uint | Of::Double => self.number(of, depth - 1),
            Of::Text => self.text(depth - 1),
            Of::Texts | Of::Numbers => self.list(of, depth - 1),
            Of::Bytes => format!("bytes({})", self.expression(Of::Text, depth - 1)),
            Of::Duration => format!(
                "{} {} {}",
                self.expression(Of::Duration, depth - 1),
                self.random.one(&["+", "-"]),
                self.expression(Of::Duration, depth - 1)
            ),
        };
        match self.random.percent(40) {
            true => format!("({made})"),
            false => made,
        }
    }

    fn atom(&mut self, of: Of) -> String {
        let fitting: Vec<&str> = self
            .atoms
            .iter()
            .chain(LITERALS)
            .filter(|(known, _)| *known == of)
            .map(|(_, text)| *text)
            .collect();
        self.random.one(&fitting).to_owned()
    }

    fn condition(&mut self, depth: usize) -> String {
        let some = ALL[self.random.below(7)];
        match self.random.below(9) {
            0 => format!("!{}", self.expression(Of::Bool, depth)),
            1 | 2 => {
                let sign = self.random.one(&["&&", "||", "==", "!="]);
                let (a, b) = (
                    self.expression(Of::Bool, depth),
                    self.expression(Of::Bool, depth),
                );
                format!("{a} {sign} {b}")
            }
            3 | 4 => {
                let sign = self.random.one(&["==", "!=", "<", "<=", ">", ">="]);
                let (a, b) = (self.expression(some, depth), self.expression(some, depth));
                format!("{a} {sign} {b}")
            }
            5 => {
                let method = self
                    .random
                    .one(&["startsWith", "endsWith", "contains", "matches"]);
                let (a, b) = (
                    self.expression(Of::Text, depth),
                    self.expression(Of::Text, depth),
                );
                format!("({a}).{method}({b})")
            }
            6 => format!(
                "{} in {}",
                self.expression(Of::Text, depth),
                self.expression(Of::Texts, depth)
            ),
            7 => {
                let macro_name = self.random.one(&["all", "exists", "exists_one"]);
                let list = self.expression(Of::Texts, depth);
                format!(
                    "({list}).{macro_name}(x, x {} 'a')",
                    self.random.one(&["==", "<", "+"])
                )
            }
            _ => self.choice(Of::Bool, depth),
        }
    }

    fn choice(&mut self, of: Of, depth: usize) -> String {
        let test = self.expression(Of::Bool, depth);
        let (yes, no) = (self.expression(of, depth), self.expression(of, depth));
        format!("{test} ? {yes} : {no}")
    }

    fn number(&mut self, of: Of, depth: usize) -> String {
        match self.random.below(6) {
            0 => self.choice(of, depth),
            1 => {
                let from = [Of::Int, Of::Uint, Of::Double, Of::Text][self.random.below(4)];
                let name = match of {
                    Of::Int => "int",
                    Of::Uint => "uint",
                    _ => "double",
                };
                format!("{name}({})", self.expression(from, depth))
            }
            2 if of == Of::Int => format!("size({})", self.expression(Of::Text, depth)),
            3 if of == Of::Int => format!("({}).size()", self.expression(Of::Texts, depth)),
            4 if of == Of::Int => format!(
                "({})[{}]",
                self.expression(Of::Numbers, depth),
                self.expression(Of::Int, depth)
            ),
            _ => {
                let sign = self.random.one(&["+", "-", "*", "/", "%"]);
                let (a, b) = (self.expression(of, depth), self.expression(of, depth));
                format!("{a} {sign} {b}")
            }
        }
    }

    fn text(&mut self, depth: usize) -> String {
        match self.random.below(5) {
            0 => self.choice(Of::Text, depth),
            1 => {
                let from = ALL[self.random.below(ALL.len())];
                format!("string({})", self.expression(from, depth))
            }
            2 => format!("({})[0]", self.expression(Of::Texts, depth)),
            3 => format!("{{'a': {}}}.a", self.expression(Of::Text, depth)),
            _ => format!(
                "{} + {}",
                self.expression(Of::Text, depth),
                self.expression(Of::Text, depth)
            ),
        }
    }

    fn list(&mut self, of: Of, depth: usize) -> String {
        let item = if of == Of::Texts { Of::Text } else { Of::Int };
        match self.random.below(4) {
            0 => format!(
                "[{}, {}]",
                self.expression(item, depth),
                self.expression(item, depth)
            ),
            1 => format!(
                "{} + {}",
                self.expression(of, depth),
                self.expression(of, depth)
            ),
            2 => format!(
                "({}).filter(y, y == {})",
                self.expression(of, depth),
                self.expression(item, depth)
            ),
            _ => format!(
                "({}).map(z, {})",
                self.expression(Of::Numbers, depth),
                self.expression(item, depth)
            ),
        }
    }

    /// Damages a text by one letter, now and then.
    fn damaged(&mut self, text: String) -> String {
        if !self.random.percent(12) {
            return text;
        }
        let mut letters: Vec<char> = text.chars().collect();
        let at = self.random.below(letters.len());
        match self.random.below(3) {
            0 => {
                letters.remove(at);
            }
            1 => letters.insert(at, letters[at]),
            _ => {
                let other = self.random.one(&[
                    "(", ")", ".", "'", "\"", "u", "1", " ", "[", "}", "&", "\\", "?", "-",
                ]);
                letters[at] = other.chars().next().unwrap();
            }
        }
        letters.into_iter().collect()
    }
}

#[test]
#[ignore = "needs Go"]
fn expressions_are_taken_as_the_official_library_takes_them() {
    let number = |name: &str, default: u64| {
        let value = std::env::var(name).ok();
        value.map_or(default, |value| value.parse().unwrap())
    };
    let seed = number("ICHOR_SEED", 20_261_130);
    let count = usize::try_from(number("ICHOR_EXPRESSIONS", COUNT as u64)).unwrap();
    println!("seed {seed}, {count} expressions of a kind (ICHOR_SEED, ICHOR_EXPRESSIONS)");
    let mut mistakes = Vec::new();
    let (mut taken, mut all) = (0, 0);
    for (version, talos) in [("1.13", "1.13.9"), ("1.14", "1.14.1")] {
        let mut peer = Peer::start(version);
        for field in &FIELDS {
            let random = Random::new(seed);
            let mut maker = Maker {
                random,
                atoms: field.atoms,
            };
            let expressions: Vec<String> = (0..count)
                .map(|_| {
                    let depth = maker.random.between(0, 4);
                    let made = maker.expression(field.result, depth);
                    maker.damaged(made)
                })
                .collect();
            let configs: Vec<String> = expressions
                .iter()
                .map(|text| format!("{}{}{}", field.start, Value::from(text.as_str()), field.end))
                .collect();
            let questions = configs.iter().map(|config| {
                json!({"op": "validate", "config": config, "mode": "cloud", "strict": false})
            });
            let answers = peer.ask_all(questions.collect());
            for ((text, config), answer) in expressions.iter().zip(&configs).zip(answers) {
                let options = Options {
                    mode: Mode::Cloud,
                    strict: false,
                    talos_version: Some(talos.to_owned()),
                };
                let report = validate(config, &options).unwrap();
                let official = answer["ok"] == true;
                all += 1;
                taken += usize::from(official);
                if report.is_valid() != official {
                    let said = report
                        .findings
                        .first()
                        .map(|finding| finding.message.clone());
                    mistakes.push(format!(
                        "{version}: {text}\n  official: {answer}\n  here: {said:?}"
                    ));
                }
            }
        }
    }
    println!("{taken} of {all} taken");
    assert!(
        mistakes.is_empty(),
        "{} differ:\n{}",
        mistakes.len(),
        mistakes.join("\n")
    );
    assert!(
        taken * 4 > all && taken * 20 < all * 19,
        "{taken} of {all} taken"
    );
}
