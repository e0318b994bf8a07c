//! Reading a secrets bundle.

use super::Secrets;
use super::check::{Collector, Found};
use crate::generate::{Error, Problem};
use crate::yaml::{Kind, Node, Step, Stream};

/// What errors call a bundle.
const WHAT: &str = "the secrets bundle";

impl Secrets {
    /// Reads a bundle and checks that it is complete, that keys and certificates can be read, and that they belong
    /// together; keys of other tools' JSON form, such as `Certs.OS`, are understood too.
    ///
    /// # Errors
    ///
    /// [`Error::Syntax`], or [`Error::Secrets`] with all that is missing or damaged.
    pub fn read(text: &str) -> Result<Self, Error> {
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
        let secrets = bundle.secrets(&mut collector);
        match collector.problems.is_empty() {
            true => Ok(secrets),
            false => Err(Error::Secrets {
                what: WHAT,
                problems: collector.problems,
            }),
        }
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
            cluster_id: collector.required(self.find(&["cluster", "id"])),
            cluster_secret: collector.required(self.find(&["cluster", "secret"])),
            bootstrap_token: collector.required(self.find(&["secrets", "bootstraptoken"])),
            trustd_token: collector.required(self.find(&["trustdinfo", "token"])),
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

    /// Finds a text whatever the case of its keys.
    fn find(&self, path: &[&str]) -> Found {
        let mut node = Some(self.root);
        let mut steps = Vec::new();
        for key in path {
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
            text: node
                .and_then(Node::as_str)
                .filter(|text| !text.is_empty())
                .map(str::to_owned),
        }
    }
}
