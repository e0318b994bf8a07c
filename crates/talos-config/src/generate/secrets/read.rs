//! Reading a secrets bundle.

use std::collections::HashSet;

use super::check::{Collector, Found, Held, name};
use super::{FoundSecrets, Secrets};
use crate::generate::{Error, Problem};
use crate::yaml::{Kind, Node, Step, Stream};

/// What errors call a bundle.
const WHAT: &str = "the secrets bundle";

/// The fields of a bundle that hold a text; those above them are mappings.
const FIELDS: [&[&str]; 15] = [
    &["cluster", "id"],
    &["cluster", "secret"],
    &["secrets", "bootstraptoken"],
    &["secrets", "secretboxencryptionsecret"],
    &["secrets", "aescbcencryptionsecret"],
    &["trustdinfo", "token"],
    &["certs", "etcd", "crt"],
    &["certs", "etcd", "key"],
    &["certs", "k8s", "crt"],
    &["certs", "k8s", "key"],
    &["certs", "k8saggregator", "crt"],
    &["certs", "k8saggregator", "key"],
    &["certs", "k8sserviceaccount", "key"],
    &["certs", "os", "crt"],
    &["certs", "os", "key"],
];

impl Secrets {
    /// Reads a bundle, see [`Self::read_with_warnings`].
    ///
    /// # Errors
    ///
    /// [`Error::Syntax`], or [`Error::Secrets`] with all that is missing or damaged.
    pub fn read(text: &str) -> Result<Self, Error> {
        Self::read_with_warnings(text).map(|found| found.secrets)
    }

    /// Reads a bundle and checks that it is complete, that tokens have the form that they need, that keys and
    /// certificates can be read, and that they belong together.
    ///
    /// Keys of other tools' JSON form, such as `Certs.OS`, are understood too. Fields that no bundle has, and texts in an
    /// unusual form that works all the same, are warned of.
    ///
    /// # Errors
    ///
    /// [`Error::Syntax`], or [`Error::Secrets`] with all that is missing or damaged.
    pub fn read_with_warnings(text: &str) -> Result<FoundSecrets, Error> {
        let stream = Stream::parse(text).map_err(|source| Error::Syntax { source })?;
        let whole = |reason: &str| Error::Secrets {
            what: WHAT,
            problems: vec![Problem::new("the text", reason)],
        };
        let mut roots = stream
            .roots()
            .enumerate()
            .filter(|(_, root)| !root.is_null());
        let (index, root) = roots.next().ok_or_else(|| whole("is empty"))?;
        if roots.next().is_some() {
            return Err(whole("has several documents"));
        }
        if root.kind() != Kind::Mapping {
            return Err(whole("is no mapping"));
        }
        let bundle = Bundle {
            stream: &stream,
            index,
            root,
        };
        let mut collector = Collector::default();
        bundle.check_fields(root, &[], &[], &mut collector);
        let secrets = bundle.secrets(&mut collector);
        let warnings = collector.finish(WHAT)?;
        Ok(FoundSecrets { secrets, warnings })
    }
}

struct Bundle<'a> {
    stream: &'a Stream,
    index: usize,
    root: &'a Node,
}

impl Bundle<'_> {
    fn secrets(&self, collector: &mut Collector) -> Secrets {
        let mut pair = |name: &str| {
            let crt = collector.base64(self.find(&["certs", name, "crt"]));
            let key = collector.base64(self.find(&["certs", name, "key"]));
            collector.authority(crt, key)
        };
        let (etcd, kubernetes) = (pair("etcd"), pair("k8s"));
        let (aggregator, os) = (pair("k8saggregator"), pair("os"));
        let service_account = collector.base64(self.find(&["certs", "k8sserviceaccount", "key"]));
        Secrets {
            cluster_id: collector.cluster_id(self.find(&["cluster", "id"])),
            cluster_secret: collector.cluster_secret(self.find(&["cluster", "secret"])),
            bootstrap_token: collector.bootstrap_token(self.find(&["secrets", "bootstraptoken"])),
            trustd_token: collector.trustd_token(self.find(&["trustdinfo", "token"])),
            encryption: collector.encryption(
                self.find(&["secrets", "secretboxencryptionsecret"]),
                self.find(&["secrets", "aescbcencryptionsecret"]),
            ),
            service_account: collector.key(service_account),
            etcd,
            kubernetes,
            aggregator,
            os,
        }
    }

    /// Looks for fields that no bundle has, that stand twice, or that are no mapping where one belongs.
    fn check_fields(
        &self,
        node: &Node,
        above: &[String],
        steps: &[Step],
        collector: &mut Collector,
    ) {
        let mut seen = HashSet::new();
        for (key, below) in node.entries() {
            let path = [above, &[key.to_ascii_lowercase()]].concat();
            let steps = [steps, &[Step::from(key)]].concat();
            let place = Found {
                field: [above, &[key.to_owned()]].concat().join("."),
                line: self.stream.line(self.index, &steps),
                held: Held::Nothing,
            };
            let leads = |field: &&&[&str]| {
                field.len() >= path.len() && path.iter().zip(**field).all(|(one, two)| one == two)
            };
            let Some(field) = FIELDS.iter().find(leads) else {
                collector.warn(&place, "is no field of a secrets bundle and is ignored");
                continue;
            };
            if !seen.insert(path.last().cloned()) {
                collector.say(&place, "is there twice, with capital letters and without");
            } else if field.len() > path.len() && !below.is_null() {
                match below.kind() {
                    Kind::Mapping => self.check_fields(below, &path, &steps, collector),
                    _ => {
                        let reason = format!("must be a mapping, not {}", name(below));
                        collector.say(&place, &reason);
                    }
                }
            }
        }
    }

    /// Finds a text whatever the case of its keys.
    fn find(&self, path: &[&str]) -> Found {
        let mut node = Some(self.root);
        let mut steps = Vec::new();
        let mut is_reported = false;
        for key in path {
            let above = node.filter(|node| !node.is_null());
            is_reported |= above.is_some_and(|node| node.kind() != Kind::Mapping);
            let entry = node.and_then(|node| {
                node.entries()
                    .find(|(name, _)| name.eq_ignore_ascii_case(key))
            });
            if let Some((name, _)) = entry {
                steps.push(Step::from(name));
            }
            node = entry.map(|(_, node)| node);
        }
        let line = (!steps.is_empty())
            .then(|| self.stream.line(self.index, &steps))
            .flatten();
        Found {
            field: path.join("."),
            line,
            held: match is_reported {
                true => Held::Reported,
                false => Held::of(self.stream, node),
            },
        }
    }
}
